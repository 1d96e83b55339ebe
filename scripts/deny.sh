#!/usr/bin/env bash
# Licences, bans and sources of every dependency; advisories where their database can be fetched.
source "$(dirname "$0")/lib.sh"
"$ROOT/scripts/setup.sh" deny
cd "$ROOT"
cargo deny --locked --log-level error check licenses bans sources
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if timeout 120 cargo deny --locked check advisories >"$log" 2>&1; then
    echo "advisories ok"
elif grep -qiE 'failed to (fetch|open|acquire|clone|load)|unable to (fetch|load)|advisory database' "$log"; then
    not_run "security advisories" "their database could not be fetched"
else
    cat "$log"
    exit 1
fi
