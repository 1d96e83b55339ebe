#!/usr/bin/env bash
# Builds the node and runs a development chain with the demonstration; stays in the foreground.
source "$(dirname "$0")/lib.sh"
"$ROOT/scripts/setup.sh" build
cd "$ROOT"
say "building cloister (the first time takes a while: RocksDB and the EVM are compiled)"
cargo build --release --locked --workspace
home=${CLOISTER_HOME:-$CLOISTER_CACHE/dev}
http=${HTTP:-127.0.0.1:8545}
ws=${WS:-127.0.0.1:8546}
for endpoint in "$http" "$ws"; do
    if (exec 3<>"/dev/tcp/${endpoint%:*}/${endpoint##*:}") 2>/dev/null; then
        fail "$endpoint is in use" "stop what listens there, or choose other ports: make run HTTP=127.0.0.1:18545 WS=127.0.0.1:18546"
    fi
done
say "starting a development chain in $home (Ctrl-C stops it; its data stays)"
exec "$BIN/cloister" dev --home "$home" --http "$http" --ws "$ws" --block-time "${BLOCK_TIME:-1s}" --demo
