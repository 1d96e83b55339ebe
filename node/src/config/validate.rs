//! Rules between values, each reported with the key it is about.

use super::{Config, ConfigError, ConsensusMode};
use std::net::{SocketAddr, ToSocketAddrs};

/// Appends one error for each rule that `config` breaks.
pub(super) fn validate(config: &Config, errors: &mut Vec<ConfigError>) {
    let mut rule = |holds: bool, key: &'static str, value: String, rule: &'static str| {
        if !holds {
            errors.push(ConfigError::Invalid { key, value, rule });
        }
    };

    let node = &config.node;
    rule(
        !node.name.is_empty() && node.name.len() <= 64 && !node.name.chars().any(char::is_control),
        "node.name",
        format!("{:?}", node.name),
        "1 to 64 printable characters",
    );

    let consensus = &config.consensus;
    rule(
        (1..=600_000).contains(&consensus.timeout_commit_ms),
        "consensus.timeout_commit_ms",
        consensus.timeout_commit_ms.to_string(),
        "between 1 and 600000 (ten minutes)",
    );
    rule(
        (100..=600_000).contains(&consensus.timeout_propose_ms),
        "consensus.timeout_propose_ms",
        consensus.timeout_propose_ms.to_string(),
        "between 100 and 600000 (ten minutes)",
    );
    rule(
        matches!(consensus.log_level.as_str(), "debug" | "info" | "error"),
        "consensus.log_level",
        format!("{:?}", consensus.log_level),
        "one of debug, info, error",
    );
    for peer in consensus.persistent_peers.iter().chain(&consensus.seeds) {
        rule(
            is_peer(peer),
            "consensus.persistent_peers",
            format!("{peer:?}"),
            "40 hex digits of the node's id, @, host, :, port",
        );
    }
    if let Some(address) = &consensus.external_address {
        rule(
            is_host_and_port(address),
            "consensus.external_address",
            format!("{address:?}"),
            "host:port",
        );
    }
    if let Some(address) = &consensus.remote_signer_address {
        let scheme_known = address.starts_with("tcp://") || address.starts_with("unix://");
        rule(
            scheme_known && !address.contains(['"', '\\']),
            "consensus.remote_signer_address",
            format!("{address:?}"),
            "tcp://host:port or unix:///path",
        );
    }
    let abci_tcp = consensus
        .abci_address
        .strip_prefix("tcp://")
        .and_then(|address| address.parse::<SocketAddr>().ok());
    rule(
        consensus.abci_address == "unix"
            || abci_tcp.is_some_and(|address| address.ip().is_loopback()),
        "consensus.abci_address",
        format!("{:?}", consensus.abci_address),
        "\"unix\", or \"tcp://\" and a loopback address with a port: whoever can connect can feed this node blocks",
    );
    rule(
        consensus.mode == ConsensusMode::External || consensus.abci_address == "unix",
        "consensus.abci_address",
        format!("{:?}", consensus.abci_address),
        "\"unix\" in managed mode",
    );
    rule(
        consensus.abci_group.is_none() || consensus.mode == ConsensusMode::External,
        "consensus.abci_group",
        format!("{:?}", consensus.abci_group),
        "not set in managed mode",
    );

    let storage = &config.storage;
    for (key, value) in [
        ("storage.interval_blocks", storage.interval_blocks),
        ("storage.interval_ms", storage.interval_ms),
    ] {
        rule(value >= 1, key, value.to_string(), "at least 1");
    }
    rule(
        (8..=1_048_576).contains(&storage.block_cache_mib),
        "storage.block_cache_mib",
        storage.block_cache_mib.to_string(),
        "between 8 and 1048576",
    );
    rule(
        storage.proof_window_blocks <= storage.history_blocks,
        "storage.proof_window_blocks",
        storage.proof_window_blocks.to_string(),
        "at most storage.history_blocks: a proof is built from kept history",
    );
    rule(
        storage.retain_blocks == 0 || storage.retain_blocks >= 256,
        "storage.retain_blocks",
        storage.retain_blocks.to_string(),
        "0 (keep all) or at least 256",
    );

    let pool = &config.pool;
    for (key, value) in [
        ("pool.transactions_max", pool.transactions_max),
        ("pool.memory_mib_max", pool.memory_mib_max),
        ("pool.queued_max", pool.queued_max),
        ("pool.pending_per_sender_max", pool.pending_per_sender_max),
        ("pool.queued_per_sender_max", pool.queued_per_sender_max),
        ("pool.gossiped_max", pool.gossiped_max),
    ] {
        rule(
            (1..=1_000_000).contains(&value),
            key,
            value.to_string(),
            "between 1 and 1000000",
        );
    }

    rule(
        pool.lifetime_blocks >= 1,
        "pool.lifetime_blocks",
        pool.lifetime_blocks.to_string(),
        "at least 1",
    );

    let rpc = &config.rpc;
    for (key, value) in [
        ("rpc.request_bytes_max", rpc.request_bytes_max),
        ("rpc.response_bytes_max", rpc.response_bytes_max),
    ] {
        rule(
            value >= 300_000,
            key,
            value.to_string(),
            "at least 300000: one transaction of 128 KiB is that long in hex",
        );
    }
    for (key, value) in [
        ("rpc.batch_max", u64::from(rpc.batch_max)),
        ("rpc.connections_max", u64::from(rpc.connections_max)),
        ("rpc.call_gas_max", rpc.call_gas_max),
        ("rpc.call_timeout_ms", rpc.call_timeout_ms),
        ("rpc.log_range_blocks_max", rpc.log_range_blocks_max),
    ] {
        rule(value >= 1, key, value.to_string(), "at least 1");
    }

    rule(
        config
            .log
            .level
            .parse::<tracing_subscriber::EnvFilter>()
            .is_ok(),
        "log.level",
        format!("{:?}", config.log.level),
        "a level, or a list of part=level",
    );

    distinct_ports(config, errors);
}

/// Two services on one address is a mistake, save HTTP and WebSocket, which can share a port.
fn distinct_ports(config: &Config, errors: &mut Vec<ConfigError>) {
    let mut taken: Vec<(&'static str, SocketAddr)> = Vec::new();
    let addresses = [
        ("consensus.rpc_address", Some(config.consensus.rpc_address)),
        ("consensus.p2p_address", Some(config.consensus.p2p_address)),
        (
            "consensus.prometheus_address",
            config.consensus.prometheus_address,
        ),
        ("rpc.http_address", config.rpc.http_address),
        (
            "rpc.ws_address",
            config
                .rpc
                .ws_address
                .filter(|address| Some(*address) != config.rpc.http_address),
        ),
    ];
    for (key, address) in addresses {
        // Port 0 asks the system for a free one.
        let Some(address) = address.filter(|address| address.port() != 0) else {
            continue;
        };
        if taken.iter().any(|(_, other)| clash(*other, address)) {
            errors.push(ConfigError::Invalid {
                key,
                value: address.to_string(),
                rule: "not the address of another service of this node",
            });
        }
        taken.push((key, address));
    }
}

fn clash(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && (a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified())
}

fn is_peer(text: &str) -> bool {
    text.split_once('@').is_some_and(|(id, address)| {
        id.len() == 40
            && id.bytes().all(|byte| byte.is_ascii_hexdigit())
            && is_host_and_port(address)
    })
}

fn is_host_and_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty()
            && !host.contains(|c: char| c.is_whitespace() || c == '"' || c == ',' || c == '\\')
            && port.parse::<u16>().is_ok_and(|port| port != 0)
            // An address in digits is checked further without asking a name server.
            && if host.starts_with('[') { text.to_socket_addrs().is_ok() } else { true }
    })
}
