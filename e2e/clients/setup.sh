#!/usr/bin/env bash
# npm and Python packages of the client suites, pinned by their lock files, kept outside the clone.
# What cannot be had is said in one line; the suites that need it are then not run.
source "$(dirname "$0")/../../scripts/lib.sh"
here=$ROOT/e2e/clients
hash_of() { cat "$@" | sha256sum | cut -c1-16; }

setup_node() {
    local store=$CLOISTER_CACHE/clients-node-$(hash_of "$here/package.json" "$here/package-lock.json")
    if [ ! -e "$store/ready" ]; then
        if ! have npm || ! have node; then
            say "the client suites are JavaScript: node and npm are needed"
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends nodejs npm >/dev/null 2>&1 || true
        fi
        if ! have npm || ! have node; then
            not_run "client suites cast, forge, viem, ethers" "node and npm are not installed (as root: apt-get install nodejs npm)"
            return
        fi
        say "installing cast, forge, viem, ethers and solc for the client suites"
        mkdir -p "$store"
        cp "$here/package.json" "$here/package-lock.json" "$store/"
        if ! (cd "$store" && npm ci --ignore-scripts --no-fund --no-audit --loglevel=error </dev/null); then
            not_run "client suites cast, forge, viem, ethers" "npm could not fetch their packages"
            return
        fi
        touch "$store/ready"
    fi
    # A folder of one's own making (npm install while working on the suites) is left alone.
    if [ -L "$here/node_modules" ] || [ ! -e "$here/node_modules" ]; then
        ln -sfn "$store/node_modules" "$here/node_modules"
    fi
}

setup_python() {
    local store=$CLOISTER_CACHE/clients-python-$(hash_of "$here/requirements.txt") python
    if [ ! -e "$store/ready" ]; then
        for python in python3 python; do have "$python" && break; done
        if ! "$python" -m venv "$store" >/dev/null 2>&1; then
            say "the web3.py suite is Python: python3 with venv is needed"
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3 python3-venv >/dev/null 2>&1 || true
            if ! have python3 || ! python3 -m venv "$store" >/dev/null 2>&1; then
                not_run "client suite web3.py" "python3 with venv is not installed (as root: apt-get install python3-venv)"
                return
            fi
        fi
        say "installing web3.py for the client suites"
        if ! "$store/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt" </dev/null; then
            not_run "client suite web3.py" "pip could not fetch its packages"
            return
        fi
        touch "$store/ready"
    fi
    if [ -L "$here/.venv" ] || [ ! -e "$here/.venv" ]; then
        ln -sfn "$store" "$here/.venv"
    fi
}

setup_node
setup_python
