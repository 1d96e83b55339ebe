#!/usr/bin/env bash
# Runs the client suites against a node: exit 0 when all that could be run passed.
# usage: e2e/clients/run.sh http://HOST:PORT ws://HOST:PORT [cast forge viem ethers web3py]
source "$(dirname "$0")/../../scripts/lib.sh"
here=$ROOT/e2e/clients
[ $# -ge 2 ] || fail "usage: run.sh HTTP WS [SUITE…]" "e2e/clients/run.sh http://127.0.0.1:8545 ws://127.0.0.1:8546"
http=$1 ws=$2
shift 2
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(cast forge viem ethers web3py)

status=0
for suite in "${suites[@]}"; do
    case $suite in
        cast | forge) command=(node "$here/foundry.mjs" "$suite") ;;
        viem | ethers) command=(node "$here/$suite.mjs") ;;
        web3py) command=("$here/.venv/bin/python" "$here/web3py.py") ;;
        *) fail "unknown suite $suite" "one of: cast forge viem ethers web3py" ;;
    esac
    if [ "$suite" = web3py ] && [ ! -e "$here/.venv/bin/python" ]; then
        not_run "client suite $suite" "its packages are not installed (scripts/setup.sh clients)"
    elif [ "$suite" != web3py ] && { ! have node || [ ! -e "$here/node_modules/viem" ]; }; then
        not_run "client suite $suite" "its packages are not installed (scripts/setup.sh clients)"
    else
        timeout 300 "${command[@]}" "$http" "$ws" || status=1
    fi
done
exit "$status"
