//! The keys: name, type, default and documentation of each, in one place.

use super::Section;
use serde::{Deserialize, Serialize};
use std::{net::SocketAddr, path::PathBuf};

/// Defines a section: the struct, its defaults, and the comments that `cloister init` writes.
macro_rules! section {
    (
        $(#[doc = $section_doc:literal])*
        [$name:literal] $type:ident {
            $( $(#[doc = $doc:literal])* $key:ident: $key_type:ty = $default:expr, )*
        }
    ) => {
        $(#[doc = $section_doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $type {
            $( $(#[doc = $doc])* pub $key: $key_type, )*
        }

        impl Default for $type {
            fn default() -> Self {
                Self { $( $key: $default, )* }
            }
        }

        impl Section for $type {
            const NAME: &'static str = $name;
            const DOC: &'static [&'static str] = &[$($section_doc),*];
            const KEYS: &'static [(&'static str, &'static [&'static str])] =
                &[$( (stringify!($key), &[$($doc),*]), )*];
        }
    };
}

/// How CometBFT is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ConsensusMode {
    /// As a child of this process: started, watched, restarted and stopped by it.
    Managed,
    /// By someone else (compose, systemd); this process waits for its connections.
    External,
}

/// When the write-ahead log is synced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DurabilityMode {
    /// At every Commit.
    EveryBlock,
    /// By a background thread, every `interval_blocks` or `interval_ms`.
    Interval,
    /// Left to the operating system.
    Os,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

section! {
    /// This node.
    ["node"] NodeConfig {
        /// Name shown to peers and in logs.
        name: String = "cloister".to_owned(),
        /// Network definition: parameters, allocation, validators, verifying keys.
        genesis_file: PathBuf = "genesis.json".into(),
    }
}

section! {
    /// CometBFT, and how we run it.
    ["consensus"] ConsensusConfig {
        /// "managed": CometBFT is started, watched and stopped by this process. "external": it is run elsewhere and
        /// connects to abci_address; its own configuration file is then yours to keep (see docs/configuration.md).
        mode: ConsensusMode = ConsensusMode::Managed,
        /// CometBFT's program, version 0.38.26 or later of the 0.38 line. Not set: $CLOISTER_COMETBFT, then beside our own
        /// program, then ~/.cache/cloister/bin, then $PATH.
        cometbft_binary: Option<PathBuf> = None,
        /// CometBFT's home. In managed mode its configuration is written from this file at each start.
        cometbft_home: PathBuf = "cometbft".into(),
        /// Time between a block's commit and the next proposal, in milliseconds: the pace of the chain. The same on all validators.
        timeout_commit_ms: u64 = 1000,
        /// How long to wait for a proposal before the round is lost, in milliseconds.
        timeout_propose_ms: u64 = 3000,
        /// CometBFT's own RPC. Keep it on loopback: it is for this process.
        rpc_address: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 26657)),
        /// Where peers connect.
        p2p_address: SocketAddr = SocketAddr::from(([0, 0, 0, 0], 26656)),
        /// host:port that peers should dial, if it differs from p2p_address.
        external_address: Option<String> = None,
        /// Peers to stay connected to, as "nodeid@host:port" (`cloister keys show` prints a node's id).
        persistent_peers: Vec<String> = Vec::new(),
        /// Nodes to learn further peers from, as "nodeid@host:port".
        seeds: Vec<String> = Vec::new(),
        /// Exchange addresses with peers.
        peer_exchange: bool = true,
        /// Accept peers on private and loopback addresses, and several from one address: for networks on one machine.
        allow_local_peers: bool = false,
        /// Address for a remote signer to connect to, e.g. "tcp://127.0.0.1:26659". Not set: the key is in CometBFT's home.
        remote_signer_address: Option<String> = None,
        /// Where the application listens in external mode: "unix" (a socket in a folder of ours that only this user, or abci_group,
        /// may enter) or "tcp://127.0.0.1:PORT" (every local user may connect). Managed mode always uses a unix socket.
        abci_address: String = "unix".to_owned(),
        /// Name or number of a group that may use the socket, in external mode.
        abci_group: Option<String> = None,
        /// CometBFT's own Prometheus metrics. Not set: off.
        prometheus_address: Option<SocketAddr> = None,
        /// Detail of CometBFT's log lines: debug, info or error.
        log_level: String = "info".to_owned(),
    }
}

section! {
    /// RocksDB.
    ["storage"] StorageConfig {
        /// Folder of the database.
        folder: PathBuf = "store".into(),
        /// When the write-ahead log is synced: "every-block", "interval" or "os". All three lose nothing on kill -9 or power loss,
        /// since CometBFT replays what was not yet durable; they differ in speed and in how much is replayed.
        durability: DurabilityMode = DurabilityMode::EveryBlock,
        /// With "interval": sync after so many blocks,
        interval_blocks: u64 = 64,
        /// or so many milliseconds, whichever comes first.
        interval_ms: u64 = 1000,
        /// Folder of the write-ahead log, if on another disk than the data.
        wal_folder: Option<PathBuf> = None,
        /// Memory for recently read data, in MiB.
        block_cache_mib: u64 = 64,
        /// Heights below the head at which balances and calls are answered.
        history_blocks: u64 = 100_000,
        /// Heights below the head at which eth_getProof is answered.
        proof_window_blocks: u64 = 256,
        /// Blocks that CometBFT keeps for peers and replays. 0: all.
        retain_blocks: u64 = 0,
    }
}

section! {
    /// Transaction pool.
    ["pool"] PoolConfig {
        /// Transactions held, of all senders.
        transactions_max: usize = 10_000,
        /// Transactions held that wait for an earlier nonce, of all senders.
        queued_max: usize = 2_048,
        /// Executable transactions held of one sender; those that follow wait in its queue.
        pending_per_sender_max: usize = 64,
        /// Transactions held of one sender that wait for an earlier nonce.
        queued_per_sender_max: usize = 64,
        /// Memory for transactions, in MiB.
        memory_mib_max: usize = 128,
        /// Blocks after which a transaction that was not included is dropped.
        lifetime_blocks: u64 = 10_800,
        /// Transactions that CometBFT holds for gossip. It asks about each of them again after every block.
        gossiped_max: usize = 5_000,
    }
}

section! {
    /// JSON-RPC for wallets and tools.
    ["rpc"] RpcConfig {
        /// HTTP. A loopback address serves this machine alone.
        http_address: Option<SocketAddr> = Some(SocketAddr::from(([127, 0, 0, 1], 8545))),
        /// WebSocket. The same address as HTTP serves both on one port.
        ws_address: Option<SocketAddr> = Some(SocketAddr::from(([127, 0, 0, 1], 8546))),
        /// Web origins that browsers may call from; ["*"] for any.
        cors_origins: Vec<String> = Vec::new(),
        /// Names that a request's Host header may have besides localhost and addresses; ["*"] for any.
        allowed_hosts: Vec<String> = Vec::new(),
        /// Largest request, in bytes.
        request_bytes_max: u32 = 2 * 1024 * 1024,
        /// Largest response, in bytes.
        response_bytes_max: u32 = 25 * 1024 * 1024,
        /// Calls in one batch.
        batch_max: u32 = 100,
        /// Open connections.
        connections_max: u32 = 500,
        /// Gas that eth_call and its kin may use.
        call_gas_max: u64 = 50_000_000,
        /// Time that a call may take, in milliseconds.
        call_timeout_ms: u64 = 5_000,
        /// Blocks that one eth_getLogs may span.
        log_range_blocks_max: u64 = 10_000,
    }
}

section! {
    /// Log lines, on standard error.
    ["log"] LogConfig {
        /// "text" or "json".
        format: LogFormat = LogFormat::Text,
        /// Detail: error, warn, info, debug or trace; for one part alone e.g. "info,cloister_node::abci=debug".
        level: String = "info".to_owned(),
    }
}
