#!/usr/bin/env bash
# Runs every benchmark and prints the figures with the machine and the command.
source "$(dirname "$0")/lib.sh"
"$ROOT/scripts/setup.sh" build cometbft
cd "$ROOT"
say "building cloister and cloister-bench"
cargo build --release --locked --workspace
exec "$BIN/cloister-bench" report
