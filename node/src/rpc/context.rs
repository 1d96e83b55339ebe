//! What every method works with: the chain, the limits, and the meaning of block references.

use super::{
    RpcConfig,
    arguments::{BlockReference, BlockTag},
    error::RpcError,
    filters::Filters,
};
use crate::{
    chain::Chain,
    store::{Head, StateView, Store, StoredBlock},
};
use alloy_consensus::{Header, ReceiptEnvelope};
use std::{sync::Arc, time::Duration};
use tokio::sync::{Semaphore, watch};

/// What consensus knows of the network, as the node last heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConsensusStatus {
    /// Connected peers.
    pub peers: u32,
    /// Whether blocks are still being fetched from peers.
    pub catching_up: bool,
    /// Highest height seen anywhere, at least the head.
    pub highest_height: u64,
}

/// Shared by all connections.
pub(crate) struct Context {
    pub(crate) chain: Chain,
    pub(crate) config: RpcConfig,
    pub(crate) consensus: watch::Receiver<ConsensusStatus>,
    pub(crate) filters: Filters,
    light: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
}

/// How much of the machine a method takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cost {
    /// Reads of a few records.
    Light,
    /// Runs code, scans blocks or rebuilds trie paths.
    Heavy,
}

/// A block and what its transactions did.
pub(crate) struct BlockWithReceipts {
    pub(crate) block: Arc<StoredBlock>,
    pub(crate) receipts: Arc<Vec<ReceiptEnvelope>>,
}

impl Context {
    pub(crate) fn new(
        chain: Chain,
        config: RpcConfig,
        consensus: watch::Receiver<ConsensusStatus>,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            filters: Filters::new(config.filters_max, config.filter_lifetime),
            // Light calls wait on the disk; heavy ones would take the cores from block execution. Two at least, so that
            // one slow call does not hold up all others.
            light: Arc::new(Semaphore::new(cores.saturating_mul(4))),
            heavy: Arc::new(Semaphore::new(cores.div_ceil(2).max(2))),
            chain,
            config,
            consensus,
        }
    }

    /// Runs `work` off the runtime's threads, at most so many at once.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        cost: Cost,
        work: impl FnOnce(&Self) -> Result<T, RpcError> + Send + 'static,
    ) -> Result<T, RpcError> {
        let slots = match cost {
            Cost::Light => &self.light,
            Cost::Heavy => &self.heavy,
        };
        let permit = tokio::time::timeout(self.wait_for_slot(), Arc::clone(slots).acquire_owned())
            .await
            .map_err(|_| RpcError::Busy)?
            .map_err(|_| RpcError::Busy)?;
        let context = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            // The permit moves here: a caller that hangs up does not free the slot its work still holds.
            let _permit = permit;
            work(&context)
        })
        .await
        .map_err(|_| RpcError::Crashed)?
    }

    const fn wait_for_slot(&self) -> Duration {
        self.config.evm_timeout.saturating_mul(2)
    }

    pub(crate) fn store(&self) -> &Store {
        self.chain.store()
    }

    pub(crate) fn head(&self) -> Result<Arc<Head>, RpcError> {
        self.store().head().ok_or(RpcError::NoBlockYet)
    }

    pub(crate) fn chain_id(&self) -> u64 {
        self.chain.app().parameters().chain_id
    }

    /// The height a tag means now; it may be above the head.
    pub(crate) fn height(&self, tag: BlockTag) -> Result<u64, RpcError> {
        Ok(match tag {
            BlockTag::Latest | BlockTag::Pending => self.head()?.height,
            BlockTag::Earliest => 0,
            BlockTag::Number(height) => height,
        })
    }

    /// The height a reference means, `None` if there is no such block.
    pub(crate) fn find_height(&self, reference: BlockReference) -> Result<Option<u64>, RpcError> {
        let head = self.head()?.height;
        Ok(match reference {
            BlockReference::Tag(tag) => Some(self.height(tag)?).filter(|height| *height <= head),
            BlockReference::Hash(hash) => self.store().height_by_hash(hash)?,
        })
    }

    pub(crate) fn find_block(
        &self,
        reference: BlockReference,
    ) -> Result<Option<Arc<StoredBlock>>, RpcError> {
        match self.find_height(reference)? {
            Some(height) => Ok(self.store().block(height)?),
            None => Ok(None),
        }
    }

    pub(crate) fn find_block_with_receipts(
        &self,
        reference: BlockReference,
    ) -> Result<Option<BlockWithReceipts>, RpcError> {
        match self.find_height(reference)? {
            Some(height) => self.block_with_receipts(height),
            None => Ok(None),
        }
    }

    pub(crate) fn block_with_receipts(
        &self,
        height: u64,
    ) -> Result<Option<BlockWithReceipts>, RpcError> {
        let (Some(block), Some(receipts)) =
            (self.store().block(height)?, self.store().receipts(height)?)
        else {
            return Ok(None);
        };
        if block.transactions.len() != receipts.len() {
            return Err(RpcError::Internal(format!(
                "block {height} has {} transactions and {} receipts",
                block.transactions.len(),
                receipts.len()
            )));
        }
        Ok(Some(BlockWithReceipts { block, receipts }))
    }

    /// Height that a state query speaks of.
    pub(crate) fn state_height(&self, reference: BlockReference) -> Result<u64, RpcError> {
        self.find_height(reference)?.ok_or(match reference {
            BlockReference::Tag(_) => RpcError::HeaderNotFound,
            BlockReference::Hash(_) => RpcError::HeaderForHashNotFound,
        })
    }

    /// The state a query speaks of.
    pub(crate) fn state(&self, reference: BlockReference) -> Result<StateView, RpcError> {
        let height = self.state_height(reference)?;
        Ok(self.store().state_at(height)?)
    }

    /// State and header together, for a simulation on top of that block.
    pub(crate) fn state_and_header(
        &self,
        reference: BlockReference,
    ) -> Result<(StateView, Header), RpcError> {
        let height = self.state_height(reference)?;
        let (header, _) = self
            .store()
            .header(height)?
            .ok_or(RpcError::HeaderNotFound)?;
        Ok((self.store().state_at(height)?, header))
    }
}
