//! The chain of this node: the one place where consensus calls, storage, pool and subscribers meet.
//!
//! ABCI services and the embedded engine drive the same methods in the same order. Consensus calls run on one
//! dedicated thread (see [`ChainHandle`]); reads go to [`crate::store::Store`] views and never wait for it.

mod block_thread;
mod executed;
mod handle;

pub use self::{
    executed::ExecutedLimits,
    handle::{ChainHandle, Fatal, FinalizeAnswer, InitChainAnswer},
};

use crate::{
    pool::{Limits, Pool},
    store::Store,
};
use alloy_primitives::B256;
use cloister_app::{app::App, block::BlockOutcome};
use cloister_genesis::Genesis;
use std::sync::Arc;
use tokio::sync::broadcast;

/// Blocks a subscriber may lag behind before it must read the store.
const BLOCKS_LAG_MAX: usize = 128;

/// What the node's configuration decides about the chain.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChainOptions {
    /// Blocks CometBFT is asked to keep below the head; 0 keeps all.
    pub retain_blocks: u64,
    /// Caps of the pool.
    pub pool: Limits,
    /// Caps of what is kept between proposal and decision.
    pub executed: ExecutedLimits,
}

/// Everything readers need, shared by RPC, ABCI services and the engine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Chain {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    app: Arc<App>,
    genesis: Arc<Genesis>,
    genesis_sha256: B256,
    store: Store,
    pool: Pool,
    options: ChainOptions,
    blocks: broadcast::Sender<CommittedBlock>,
}

/// A block just committed, for subscribers. Sent after it is visible in the store, in height order.
#[derive(Debug, Clone)]
pub struct CommittedBlock {
    /// What the block did. Its change set is empty here: the store has it, and a slow subscriber must not hold it.
    pub outcome: Arc<BlockOutcome>,
}

impl Chain {
    /// Joins an opened store with the rules of a checked genesis. `genesis_sha256` is that of the genesis file, which
    /// CometBFT's genesis names.
    pub fn new(
        genesis: Arc<Genesis>,
        genesis_sha256: B256,
        store: Store,
        options: ChainOptions,
    ) -> Self {
        let app = Arc::new(App::new(&genesis));
        let pool = Pool::new(Arc::clone(&app), store.clone(), options.pool);
        Self {
            inner: Arc::new(Inner {
                app,
                genesis,
                genesis_sha256,
                store,
                pool,
                options,
                blocks: broadcast::channel(BLOCKS_LAG_MAX).0,
            }),
        }
    }

    /// The rules.
    pub fn app(&self) -> &App {
        &self.inner.app
    }

    /// The network definition.
    pub fn genesis(&self) -> &Genesis {
        &self.inner.genesis
    }

    /// SHA-256 of the genesis file.
    pub fn genesis_sha256(&self) -> B256 {
        self.inner.genesis_sha256
    }

    /// What is on disk.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// What waits to be included.
    pub fn pool(&self) -> &Pool {
        &self.inner.pool
    }

    /// Blocks as they are committed. A lagging receiver reads the store.
    pub fn subscribe_blocks(&self) -> broadcast::Receiver<CommittedBlock> {
        self.inner.blocks.subscribe()
    }
}

#[cfg(test)]
mod tests;
