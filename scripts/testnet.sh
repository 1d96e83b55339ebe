#!/usr/bin/env bash
# Validators with real CometBFT on loopback, in the background.
# usage: scripts/testnet.sh start|stop
source "$(dirname "$0")/lib.sh"
home=${TESTNET_HOME:-$CLOISTER_CACHE/testnet}
pid_file=$home/testnet.pid

# The pid in the file, if that process still is our testnet.
running_pid() {
    local pid
    pid=$(cat "$pid_file" 2>/dev/null) || return 1
    grep -qa cloister "/proc/$pid/cmdline" 2>/dev/null || return 1
    echo "$pid"
}

case ${1:-} in
    start)
        if pid=$(running_pid); then fail "the test network already runs (pid $pid)" "make testnet-stop"; fi
        "$ROOT/scripts/setup.sh" build cometbft
        cd "$ROOT"
        say "building cloister"
        cargo build --release --locked -p cloister
        mkdir -p "$home"
        say "starting ${VALIDATORS:-4} validators in $home; their log: $home/testnet.log"
        setsid "$BIN/cloister" testnet --validators "${VALIDATORS:-4}" --home "$home" --start >"$home/testnet.log" 2>&1 </dev/null &
        echo $! >"$pid_file"
        for _ in $(seq 60); do
            pid=$(running_pid) || fail "the test network ended: $(tail -n 5 "$home/testnet.log")" "see $home/testnet.log"
            [ -e "$home/testnet.json" ] && break
            sleep 0.5
        done
        head -n 20 "$home/testnet.log"
        say "running (pid $pid); stop with: make testnet-stop"
        ;;
    stop)
        pid=$(running_pid) || { say "the test network is not running"; exit 0; }
        kill -TERM "$pid"
        for _ in $(seq 100); do running_pid >/dev/null || break; sleep 0.2; done
        if running_pid >/dev/null; then fail "pid $pid did not stop within 20 s" "kill -9 $pid"; fi
        rm -f "$pid_file"
        say "stopped; its data stays in $home"
        ;;
    *) fail "usage: scripts/testnet.sh start|stop" "make testnet" ;;
esac
