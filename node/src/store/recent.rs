//! The newest blocks in memory: what wallets and subscribers ask for.

use super::StoredBlock;
use alloy_consensus::ReceiptEnvelope;
use std::{collections::VecDeque, sync::Arc};

/// Blocks kept at most.
const BLOCKS_MAX: usize = 64;
/// Rough memory of all of them at most; the newest block stays whatever its size.
const SIZE_BYTES_MAX: usize = 16 << 20;

/// Consecutive blocks up to the head, oldest first.
#[derive(Default)]
pub(super) struct Recent {
    entries: VecDeque<Entry>,
    size_bytes: usize,
}

struct Entry {
    block: Arc<StoredBlock>,
    receipts: Arc<Vec<ReceiptEnvelope>>,
    size_bytes: usize,
}

impl Recent {
    pub(super) fn push(&mut self, block: Arc<StoredBlock>, receipts: Arc<Vec<ReceiptEnvelope>>) {
        let size_bytes = size_bytes(&block, &receipts);
        self.size_bytes += size_bytes;
        self.entries.push_back(Entry {
            block,
            receipts,
            size_bytes,
        });
        while self.entries.len() > 1
            && (self.entries.len() > BLOCKS_MAX || self.size_bytes > SIZE_BYTES_MAX)
        {
            if let Some(oldest) = self.entries.pop_front() {
                self.size_bytes -= oldest.size_bytes;
            }
        }
    }

    pub(super) fn block(&self, height: u64) -> Option<Arc<StoredBlock>> {
        self.entry(height).map(|entry| Arc::clone(&entry.block))
    }

    pub(super) fn receipts(&self, height: u64) -> Option<Arc<Vec<ReceiptEnvelope>>> {
        self.entry(height).map(|entry| Arc::clone(&entry.receipts))
    }

    fn entry(&self, height: u64) -> Option<&Entry> {
        let first = self.entries.front()?.block.header.number;
        let index = usize::try_from(height.checked_sub(first)?).ok()?;
        self.entries.get(index)
    }
}

/// Decoded transactions and receipts take a few times their raw bytes, and some hundred bytes each at least.
fn size_bytes(block: &StoredBlock, receipts: &[ReceiptEnvelope]) -> usize {
    let transactions = block.transactions.iter();
    let transactions: usize = transactions
        .map(|transaction| 600 + 2 * transaction.raw().len())
        .sum();
    let receipts: usize = receipts
        .iter()
        .map(|receipt| {
            let logs = receipt.logs().iter();
            400 + logs.map(|log| 200 + log.data.data.len()).sum::<usize>()
        })
        .sum();
    1_000 + transactions + receipts
}
