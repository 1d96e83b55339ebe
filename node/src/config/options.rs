//! The configuration as the parts of the node take it.

use super::{Config, DurabilityMode};
use crate::{
    chain::ChainOptions,
    pool::Limits,
    rpc::RpcConfig as RpcOptions,
    store::{Durability, StoreOptions},
};
use std::{path::Path, time::Duration};

const MIB: usize = 1024 * 1024;

impl Config {
    /// For the store, in the home folder.
    pub fn store_options(&self, home: &Path) -> StoreOptions {
        let storage = &self.storage;
        StoreOptions {
            durability: match storage.durability {
                DurabilityMode::EveryBlock => Durability::EveryBlock,
                DurabilityMode::Interval => Durability::Interval {
                    blocks: storage.interval_blocks,
                    ms: storage.interval_ms,
                },
                DurabilityMode::Os => Durability::Os,
            },
            wal_folder: storage
                .wal_folder
                .as_ref()
                .map(|folder| super::resolve(home, folder)),
            block_cache_bytes: usize::try_from(storage.block_cache_mib)
                .unwrap_or(usize::MAX)
                .saturating_mul(MIB),
            history_blocks: storage.history_blocks,
            proof_window_blocks: storage.proof_window_blocks,
        }
    }

    /// For the chain and its pool.
    pub fn chain_options(&self) -> ChainOptions {
        let pool = &self.pool;
        ChainOptions {
            retain_blocks: self.storage.retain_blocks,
            pool: Limits {
                pending_per_sender: pool.pending_per_sender_max,
                queued_per_sender: pool.queued_per_sender_max,
                queued_count_max: pool.queued_max,
                transaction_count_max: pool.transactions_max,
                size_bytes_max: pool.memory_mib_max.saturating_mul(MIB),
                lifetime_blocks: pool.lifetime_blocks,
                ..Limits::default()
            },
            ..ChainOptions::default()
        }
    }

    /// For the JSON-RPC server.
    pub fn rpc_options(&self) -> RpcOptions {
        let rpc = &self.rpc;
        RpcOptions {
            http: rpc.http_address,
            ws: rpc.ws_address,
            cors_origins: rpc.cors_origins.clone(),
            allowed_hosts: rpc.allowed_hosts.clone(),
            request_bytes_max: rpc.request_bytes_max,
            response_bytes_max: rpc.response_bytes_max,
            batch_calls_max: rpc.batch_max,
            connections_max: rpc.connections_max,
            call_gas_max: rpc.call_gas_max,
            evm_timeout: Duration::from_millis(rpc.call_timeout_ms),
            log_range_blocks_max: rpc.log_range_blocks_max,
            ..RpcOptions::default()
        }
    }
}
