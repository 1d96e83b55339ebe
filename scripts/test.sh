#!/usr/bin/env bash
# All tests: unit, vector and property, then real processes and clients. CLOISTER_SOAK=1: the full figures.
# usage: scripts/test.sh [unit] [e2e]
source "$(dirname "$0")/lib.sh"
cd "$ROOT"
"$ROOT/scripts/setup.sh" build cometbft
export CLOISTER_VECTORS=${CLOISTER_VECTORS:-$(cd "$ROOT/.." && pwd)/shared/vectors/public}
[ -d "$CLOISTER_VECTORS" ] || say "no public test data at $CLOISTER_VECTORS: tests that need it say so and are counted as not run"

log=${TEST_LOG:-$CLOISTER_CACHE/test.log}
: >"$log"
status=0
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(unit e2e)

run_logged() { "$@" 2>&1 | tee -a "$log" || status=1; }

# Integration tests are chosen by name, never by package: the same packages in every call mean the same features, so
# nothing is compiled twice.
named_tests() {
    local file
    for file in $(git ls-files -- "$@"); do
        case $file in
            e2e/*) [ "$part" = e2e ] || continue ;;
            *) [ "$part" = unit ] || continue ;;
        esac
        printf -- '--test %s ' "$(basename "$file" .rs)"
    done
}

say "building the programs and all tests"
# One call: a separate `cargo build` would leave out the features of test dependencies and compile half of them twice.
# The node's integration tests bring its program, which the end-to-end tests start.
cargo test --release --locked --workspace --features cloister/fail-points --no-run
for part in "${parts[@]}"; do
    started=$SECONDS
    case $part in
        unit)
            run_logged cargo test --release --locked --workspace --features cloister/fail-points --no-fail-fast --lib --bins $(named_tests ':(glob)*/tests/*.rs' ':(glob)modules/*/tests/*.rs' ':(glob)tools/*/tests/*.rs') -- --show-output
            run_logged cargo test --release --locked --workspace --features cloister/fail-points --no-fail-fast --doc
            ;;
        e2e)
            # npm and Python packages of the client suites; what cannot be had is counted as not run.
            run_logged "$ROOT/scripts/setup.sh" clients
            # One at a time: each test starts several processes and some measure time.
            run_logged cargo test --release --locked --workspace --features cloister/fail-points --no-fail-fast $(named_tests ':(glob)e2e/tests/*.rs') -- --test-threads=1 --show-output
            ;;
        *) fail "unknown part $part" "one of: unit e2e" ;;
    esac
    say "$part tests took $(((SECONDS - started + 59) / 60)) min"
done

awk -v status="$status" '
    /^test result:/ { for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) passed += $(i-1); if ($i ~ /^failed/) failed += $(i-1); if ($i ~ /^ignored/) skipped += $(i-1) } }
    /not run: / { line = $0; sub(/.*not run: /, "", line); if (!(line in seen)) { seen[line] = 1; skipped++; names[++n] = line } }
    END {
        if (n) { print "\nNot run:"; for (i = 1; i <= n; i++) print "  " names[i] }
        if (status && !failed) failed = 1
        printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
    }' "$log"
exit "$status"
