//! Blocks executed by Prepare- or ProcessProposal, kept until one of them is decided.
//!
//! A cache and nothing more: FinalizeBlock executes anew what it does not find. It is keyed by everything execution
//! depends on, compared whole, so a lookup can only find the block it would compute. CometBFT puts no bound on
//! proposals per height; count and bytes are bounded here.

use alloy_primitives::B256;
use cloister_app::block::{BlockInput, ExecutedBlock};
use std::collections::VecDeque;

/// Caps of the kept blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutedLimits {
    /// Blocks; 0 keeps none.
    pub count_max: usize,
    /// Estimated memory of all of them.
    pub size_bytes_max: usize,
}

impl Default for ExecutedLimits {
    fn default() -> Self {
        Self {
            // Rounds of one height: ours, the others', and one more of each.
            count_max: 4,
            size_bytes_max: 32 * 1024 * 1024,
        }
    }
}

#[derive(Debug)]
struct Kept {
    parent_hash: B256,
    input: BlockInput,
    block: ExecutedBlock,
    size_bytes: usize,
}

/// See the module.
#[derive(Debug)]
pub(super) struct ExecutedBlocks {
    limits: ExecutedLimits,
    kept: VecDeque<Kept>,
    size_bytes: usize,
}

impl ExecutedBlocks {
    pub(super) const fn new(limits: ExecutedLimits) -> Self {
        Self {
            limits,
            kept: VecDeque::new(),
            size_bytes: 0,
        }
    }

    pub(super) fn contains(&self, parent_hash: B256, input: &BlockInput) -> bool {
        self.position(parent_hash, input).is_some()
    }

    fn position(&self, parent_hash: B256, input: &BlockInput) -> Option<usize> {
        self.kept
            .iter()
            .position(|kept| kept.parent_hash == parent_hash && kept.input == *input)
    }

    /// Keeps a block, the oldest make room. One that alone exceeds the cap is not kept.
    pub(super) fn insert(&mut self, parent_hash: B256, input: BlockInput, block: ExecutedBlock) {
        let size_bytes = estimated_size_bytes(&input, &block);
        if self.limits.count_max == 0
            || size_bytes > self.limits.size_bytes_max
            || self.contains(parent_hash, &input)
        {
            return;
        }
        self.size_bytes += size_bytes;
        self.kept.push_back(Kept {
            parent_hash,
            input,
            block,
            size_bytes,
        });
        while self.kept.len() > self.limits.count_max
            || self.size_bytes > self.limits.size_bytes_max
        {
            let oldest = self.kept.pop_front().expect("over a cap means not empty");
            self.size_bytes -= oldest.size_bytes;
        }
    }

    pub(super) fn take(&mut self, parent_hash: B256, input: &BlockInput) -> Option<ExecutedBlock> {
        let kept = self.kept.remove(self.position(parent_hash, input)?)?;
        self.size_bytes -= kept.size_bytes;
        Some(kept.block)
    }

    pub(super) fn clear(&mut self) {
        self.kept.clear();
        self.size_bytes = 0;
    }
}

/// Memory of a kept block, within a factor of about two: what matters is that it grows with all a block can hold.
fn estimated_size_bytes(input: &BlockInput, block: &ExecutedBlock) -> usize {
    const TRANSACTION_OVERHEAD: usize = 1024;
    const RECORD_OVERHEAD: usize = 256;
    let inputs: usize = input
        .transactions
        .iter()
        .map(|raw| raw.len() + RECORD_OVERHEAD)
        .sum();
    let transactions: usize = block
        .transactions
        .iter()
        .map(|executed| {
            let logs: usize = executed
                .receipt
                .logs()
                .iter()
                .map(|log| log.data.data.len() + RECORD_OVERHEAD)
                .sum();
            2 * executed.transaction.raw().len() + TRANSACTION_OVERHEAD + logs
        })
        .sum();
    let changes = &block.changes;
    let code: usize = changes.code.values().map(|code| code.len()).sum();
    let nodes: usize = changes
        .account_nodes
        .values()
        .chain(changes.storage_nodes.values())
        .map(|node| node.as_ref().map_or(0, |rlp| rlp.len()) + RECORD_OVERHEAD)
        .sum();
    let records = changes.accounts.len() + changes.storage.len() + block.results.len();
    inputs + transactions + code + nodes + records * RECORD_OVERHEAD
}

#[cfg(test)]
mod tests;
