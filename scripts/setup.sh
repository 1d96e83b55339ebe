#!/usr/bin/env bash
# Installs what is missing and says why. Each part is at once when it is there already.
# usage: scripts/setup.sh [build] [cometbft] [deny] [clients]
source "$(dirname "$0")/lib.sh"

apt_install() {
    have apt-get || return 1
    say "installing $* with apt-get"
    as_root env DEBIAN_FRONTEND=noninteractive sh -c '
        apt-get install -y --no-install-recommends "$@" >/dev/null 2>&1 && exit 0
        apt-get update -q >/dev/null && apt-get install -y --no-install-recommends "$@" >/dev/null
    ' sh "$@"
}

libclang_found() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null ||
        compgen -G '/usr/lib/*-linux-gnu/libclang-[0-9]*.so*' >/dev/null ||
        compgen -G '/usr/lib*/libclang.so*' >/dev/null
}

libclang_from_wheel() {
    local python
    for python in python3 python; do have "$python" && break; done
    have "$python" || return 1
    "$python" -m pip --version >/dev/null 2>&1 || return 1
    say "no root: installing the libclang wheel into $LIBCLANG_WHEEL_DIR"
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps \
        --target "$LIBCLANG_WHEEL_DIR" "libclang==$LIBCLANG_WHEEL_VERSION"
}

setup_build() {
    have cargo || fail "cargo is not installed" \
        "install Rust with rustup (Debian: apt-get install rustup && rustup default stable); rust-toolchain.toml picks the version"
    if ! have cc || ! have c++ || ! have make; then
        say "RocksDB, blst and ring hold C and C++: a compiler is needed"
        apt_install build-essential || fail "no C++ compiler" "as root: apt-get install build-essential"
    fi
    if ! libclang_found; then
        say "RocksDB's Rust binding is generated from its C header: libclang is needed"
        apt_install libclang-dev || libclang_from_wheel || fail "libclang is not installed and could not be had" \
            "as root: apt-get install libclang-dev; or set LIBCLANG_PATH to the folder that holds libclang.so"
    fi
}

setup_cometbft() {
    local want=${COMETBFT_VERSION#v}
    [ "$("$CLOISTER_CACHE/bin/cometbft" version 2>/dev/null)" = "$want" ] && return
    have go || fail "CometBFT $want is built from source and go is not installed" \
        "as root: apt-get install golang-go (1.22 or newer; an older go fetches a newer one by itself); or put a cometbft $want binary at $CLOISTER_CACHE/bin/cometbft"
    say "building CometBFT $COMETBFT_VERSION, the consensus engine, into $CLOISTER_CACHE/bin"
    GOBIN=$CLOISTER_CACHE/bin GOFLAGS=-trimpath go install "github.com/cometbft/cometbft/cmd/cometbft@$COMETBFT_VERSION" ||
        fail "CometBFT could not be built" "check that the Go module proxy can be reached: go env GOPROXY"
}

setup_deny() {
    [ "$("$CLOISTER_CACHE/bin/cargo-deny" --version 2>/dev/null)" = "cargo-deny $CARGO_DENY_VERSION" ] && return
    say "building cargo-deny $CARGO_DENY_VERSION, the licence and source check, into $CLOISTER_CACHE/bin"
    # Unoptimised: it runs for a second and compiles in a third of the time.
    (cd "$ROOT" && cargo install cargo-deny --version "$CARGO_DENY_VERSION" --locked --debug --no-default-features --root "$CLOISTER_CACHE") ||
        fail "cargo-deny could not be built" "see the compiler's message above; everything but the licence check works without it"
}

setup_clients() { "$ROOT/e2e/clients/setup.sh"; }

parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(build cometbft)
for part in "${parts[@]}"; do
    case $part in
        build | cometbft | deny | clients) "setup_$part" ;;
        *) fail "unknown part $part" "one of: build cometbft deny clients" ;;
    esac
done
