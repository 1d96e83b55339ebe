#!/usr/bin/env bash
# Runs every benchmark and prints the figures with the machine and the command, for docs/benchmarks.md.
# Let nothing else run meanwhile: about ten minutes on two cores.
source "$(dirname "$0")/lib.sh"
"$ROOT/scripts/setup.sh" build cometbft
cd "$ROOT"
if [ ! -x "$CLOISTER_CACHE/bin/abci-cli" ]; then
    have go || fail "the baseline is CometBFT's kvstore application and go is not installed" "as root: apt-get install golang-go"
    say "building abci-cli $COMETBFT_VERSION, CometBFT's kvstore application, into $CLOISTER_CACHE/bin"
    GOBIN=$CLOISTER_CACHE/bin go install "github.com/cometbft/cometbft/abci/cmd/abci-cli@$COMETBFT_VERSION"
fi
say "building cloister and cloister-bench"
cargo build --release --locked --workspace

say "machine: $(nproc) cores, $(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo), $(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo), load $(cut -d' ' -f1 /proc/loadavg), $(rustc --version), $(date -u +%F)"
bench() {
    printf '\n$ cloister-bench %s\n' "$*"
    "$BIN/cloister-bench" "$@"
}
programs=(--binaries "$BIN" --binaries "$CLOISTER_CACHE/bin")
bench execution --kind native
bench execution --kind erc20
bench growth
bench consensus "${programs[@]}"
bench consensus --timeout-commit-ms 1 "${programs[@]}"
bench node "${programs[@]}"
printf '\n$ cargo bench --workspace --bench gas\n'
cargo bench --locked --workspace --features cloister/fail-points --bench gas
