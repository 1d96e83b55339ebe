//! The table of methods: name, most arguments, cost, function. Everything but subscriptions is in it.

use super::{
    accounts,
    arguments::Arguments,
    blocks, calls,
    context::{Context, Cost},
    error::RpcError,
    fees, filters, logs, pool, status,
};
use serde::Serialize;
use serde_json::value::RawValue;

/// Serialised once, off the runtime's threads.
pub(crate) type Answer = Result<Box<RawValue>, RpcError>;

/// Serialises a result.
pub(crate) fn answer<T: Serialize>(value: &T) -> Answer {
    serde_json::value::to_raw_value(value).map_err(|error| RpcError::Internal(error.to_string()))
}

/// One method.
#[derive(Clone, Copy)]
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) arguments_max: usize,
    pub(crate) cost: Cost,
    pub(crate) run: fn(&Context, &Arguments) -> Answer,
}

const fn light(
    name: &'static str,
    arguments_max: usize,
    run: fn(&Context, &Arguments) -> Answer,
) -> Method {
    Method {
        name,
        arguments_max,
        cost: Cost::Light,
        run,
    }
}

const fn heavy(
    name: &'static str,
    arguments_max: usize,
    run: fn(&Context, &Arguments) -> Answer,
) -> Method {
    Method {
        name,
        arguments_max,
        cost: Cost::Heavy,
        run,
    }
}

/// In order of name.
pub(crate) const METHODS: &[Method] = &[
    light("cloister_status", 0, status::cloister_status),
    light("eth_accounts", 0, accounts::accounts),
    light("eth_blobBaseFee", 0, fees::blob_base_fee),
    light("eth_blockNumber", 0, blocks::block_number),
    heavy("eth_call", 4, calls::call),
    light("eth_chainId", 0, status::chain_id),
    heavy("eth_createAccessList", 3, calls::create_access_list),
    heavy("eth_estimateGas", 4, calls::estimate_gas),
    heavy("eth_feeHistory", 3, fees::fee_history),
    light("eth_gasPrice", 0, fees::gas_price),
    light("eth_getBalance", 2, accounts::balance),
    light("eth_getBlockByHash", 2, blocks::block_by_hash),
    light("eth_getBlockByNumber", 2, blocks::block_by_number),
    light("eth_getBlockReceipts", 1, blocks::block_receipts),
    light(
        "eth_getBlockTransactionCountByHash",
        1,
        blocks::transaction_count_by_hash,
    ),
    light(
        "eth_getBlockTransactionCountByNumber",
        1,
        blocks::transaction_count_by_number,
    ),
    light("eth_getCode", 2, accounts::code),
    heavy("eth_getFilterChanges", 1, filters::changes),
    heavy("eth_getFilterLogs", 1, filters::logs),
    heavy("eth_getLogs", 1, logs::logs),
    heavy("eth_getProof", 3, accounts::proof),
    light("eth_getStorageAt", 3, accounts::storage_at),
    light(
        "eth_getTransactionByBlockHashAndIndex",
        2,
        blocks::transaction_by_hash_and_index,
    ),
    light(
        "eth_getTransactionByBlockNumberAndIndex",
        2,
        blocks::transaction_by_number_and_index,
    ),
    light("eth_getTransactionByHash", 1, blocks::transaction_by_hash),
    light("eth_getTransactionCount", 2, accounts::transaction_count),
    light("eth_getTransactionReceipt", 1, blocks::transaction_receipt),
    light("eth_getUncleByBlockHashAndIndex", 2, blocks::uncle_by_hash),
    light(
        "eth_getUncleByBlockNumberAndIndex",
        2,
        blocks::uncle_by_number,
    ),
    light(
        "eth_getUncleCountByBlockHash",
        1,
        blocks::uncle_count_by_hash,
    ),
    light(
        "eth_getUncleCountByBlockNumber",
        1,
        blocks::uncle_count_by_number,
    ),
    light("eth_maxPriorityFeePerGas", 0, fees::max_priority_fee),
    light("eth_newBlockFilter", 0, filters::new_block_filter),
    light("eth_newFilter", 1, filters::new_filter),
    light(
        "eth_newPendingTransactionFilter",
        1,
        filters::new_pending_filter,
    ),
    light("eth_sendRawTransaction", 1, accounts::send_raw_transaction),
    light("eth_syncing", 0, status::syncing),
    light("eth_uninstallFilter", 1, filters::uninstall),
    light("net_listening", 0, status::listening),
    light("net_peerCount", 0, status::peer_count),
    light("net_version", 0, status::network_version),
    light("rpc_modules", 0, status::modules),
    light("txpool_content", 0, pool::content),
    light("txpool_contentFrom", 1, pool::content_from),
    light("txpool_inspect", 0, pool::inspect),
    light("txpool_status", 0, pool::status),
    light("web3_clientVersion", 0, status::client_version),
    light("web3_sha3", 1, status::sha3),
];
