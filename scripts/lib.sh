# Shared by the scripts of this folder; sourced, not run. Needs bash.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Tools, stamps and the one build folder live outside the clone, so that a second clone is quick too.
export CLOISTER_CACHE=${CLOISTER_CACHE:-$HOME/.cache/cloister}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$CLOISTER_CACHE/target}
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}
export PATH=$CLOISTER_CACHE/bin:$PATH
STAMPS=$CLOISTER_CACHE/stamps
BIN=$CARGO_TARGET_DIR/release
mkdir -p "$CLOISTER_CACHE/bin" "$STAMPS"

COMETBFT_VERSION=v0.38.26
CARGO_DENY_VERSION=0.20.2
# The wheel serves machines without root; its folder is found here by every later command.
LIBCLANG_WHEEL_VERSION=18.1.1
LIBCLANG_WHEEL_DIR=$CLOISTER_CACHE/libclang
if [ -e "$LIBCLANG_WHEEL_DIR/clang/native/libclang.so" ]; then
    export LIBCLANG_PATH=$LIBCLANG_WHEEL_DIR/clang/native
    # The wheel has no compiler headers (stddef.h …); the C compiler's own do.
    export BINDGEN_EXTRA_CLANG_ARGS="-I$(cc -print-file-name=include)"
fi

say() { printf '==> %s\n' "$*"; }

# fail MESSAGE REMEDY: what is wrong, then what to do about it.
fail() {
    printf 'error: %s\n' "$1" >&2
    printf 'hint: %s\n' "$2" >&2
    exit 1
}

# not_run WHAT WHY: one visible line, counted by the summaries.
not_run() { printf 'not run: %s: %s\n' "$1" "$2"; }

have() { command -v "$1" >/dev/null 2>&1; }

# Runs a command as root if that can be had without asking in a non-interactive run.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif have sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then sudo "$@"
    else return 1
    fi
}
