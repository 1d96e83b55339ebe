//! Blocks, transactions, receipts and logs as JSON-RPC shows them. Each is built in one place, whichever method asks, so
//! that two methods cannot disagree.

use crate::store::StoredBlock;
use alloy_consensus::{ReceiptEnvelope, Transaction as _, transaction::Recovered};
use alloy_primitives::{Address, U256};
use alloy_rpc_types_eth as rpc;
use cloister_app::transaction::Transaction;

/// A block with the hashes of its transactions, or with the transactions themselves.
pub(crate) fn block(block: &StoredBlock, full: bool) -> rpc::Block {
    let transactions = if full {
        let indices = 0..block.transactions.len();
        rpc::BlockTransactions::Full(
            indices
                .filter_map(|index| transaction(block, index))
                .collect(),
        )
    } else {
        rpc::BlockTransactions::Hashes(
            block
                .transactions
                .iter()
                .map(|transaction| transaction.hash())
                .collect(),
        )
    };
    rpc::Block {
        header: header(block),
        uncles: Vec::new(),
        transactions,
        withdrawals: block
            .header
            .withdrawals_root
            .map(|_| alloy_eips::eip4895::Withdrawals::default()),
    }
}

/// A header alone (subscriptions to new heads).
pub(crate) fn header(block: &StoredBlock) -> rpc::Header {
    rpc::Header {
        hash: block.hash,
        inner: block.header.clone(),
        total_difficulty: None,
        size: Some(U256::from(block.size_bytes())),
    }
}

/// The transaction at `index` of a block, `None` past its end.
pub(crate) fn transaction(block: &StoredBlock, index: usize) -> Option<rpc::Transaction> {
    let transaction = block.transactions.get(index)?;
    let envelope = transaction.envelope();
    Some(rpc::Transaction {
        inner: Recovered::new_unchecked(envelope.clone(), transaction.sender()),
        block_hash: Some(block.hash),
        block_number: Some(block.header.number),
        transaction_index: Some(index as u64),
        effective_gas_price: Some(envelope.effective_gas_price(block.header.base_fee_per_gas)),
        block_timestamp: Some(block.header.timestamp),
    })
}

/// A transaction still in the pool.
pub(crate) fn pending_transaction(transaction: &Transaction) -> rpc::Transaction {
    let envelope = transaction.envelope();
    rpc::Transaction {
        inner: Recovered::new_unchecked(envelope.clone(), transaction.sender()),
        block_hash: None,
        block_number: None,
        transaction_index: None,
        effective_gas_price: Some(envelope.max_fee_per_gas()),
        block_timestamp: None,
    }
}

/// All receipts of a block. `receipts` has one entry for each transaction.
pub(crate) fn receipts(
    block: &StoredBlock,
    receipts: &[ReceiptEnvelope],
) -> Vec<rpc::TransactionReceipt> {
    let mut first_log_index = 0;
    let indices = 0..receipts.len();
    indices
        .filter_map(|index| {
            let receipt = receipt_from(block, receipts, index, first_log_index);
            first_log_index += receipts[index].logs().len() as u64;
            receipt
        })
        .collect()
}

/// The receipt at `index` of a block.
pub(crate) fn receipt(
    block: &StoredBlock,
    receipts: &[ReceiptEnvelope],
    index: usize,
) -> Option<rpc::TransactionReceipt> {
    receipt_from(block, receipts, index, first_log_index(receipts, index))
}

/// Logs of the block before transaction `index`: their index counts over the whole block.
pub(crate) fn first_log_index(receipts: &[ReceiptEnvelope], index: usize) -> u64 {
    receipts
        .iter()
        .take(index)
        .map(|receipt| receipt.logs().len() as u64)
        .sum()
}

fn receipt_from(
    block: &StoredBlock,
    receipts: &[ReceiptEnvelope],
    index: usize,
    first_log_index: u64,
) -> Option<rpc::TransactionReceipt> {
    let transaction = block.transactions.get(index)?;
    let receipt = receipts.get(index)?;
    let before = index
        .checked_sub(1)
        .map_or(0, |previous| receipts[previous].cumulative_gas_used());
    let mut log_index = first_log_index;
    let inner = receipt.clone().map_logs(|inner| {
        let shown = log(block, transaction, index, log_index, inner);
        log_index += 1;
        shown
    });
    Some(rpc::TransactionReceipt {
        inner,
        transaction_hash: transaction.hash(),
        transaction_index: Some(index as u64),
        block_hash: Some(block.hash),
        block_number: Some(block.header.number),
        gas_used: receipt.cumulative_gas_used().saturating_sub(before),
        effective_gas_price: transaction
            .envelope()
            .effective_gas_price(block.header.base_fee_per_gas),
        blob_gas_used: None,
        blob_gas_price: None,
        from: transaction.sender(),
        to: transaction.envelope().to(),
        contract_address: created_address(transaction),
    })
}

/// One log, as receipts, log queries and subscriptions show it alike.
pub(crate) const fn log(
    block: &StoredBlock,
    transaction: &Transaction,
    transaction_index: usize,
    log_index: u64,
    inner: alloy_primitives::Log,
) -> rpc::Log {
    rpc::Log {
        inner,
        block_hash: Some(block.hash),
        block_number: Some(block.header.number),
        block_timestamp: Some(block.header.timestamp),
        transaction_hash: Some(transaction.hash()),
        transaction_index: Some(transaction_index as u64),
        log_index: Some(log_index),
        removed: false,
    }
}

fn created_address(transaction: &Transaction) -> Option<Address> {
    let envelope = transaction.envelope();
    envelope
        .is_create()
        .then(|| transaction.sender().create(envelope.nonce()))
}
