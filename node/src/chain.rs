//! The chain of this node: the one place where consensus calls, storage, pool and subscribers meet.
//!
//! ABCI services and the embedded engine drive the same methods in the same order. Consensus calls run on one
//! dedicated thread (see [`ChainHandle`]); reads go to [`crate::store::Store`] views and never wait for it.

use crate::{pool::Pool, store::Store};
use alloy_primitives::{B256, Bytes};
use cloister_app::{app::App, block::{BlockInput, BlockOutcome, ValidatorUpdate, TransactionResult}};
use std::sync::Arc;

/// Everything readers need, shared by RPC, ABCI services and the engine. Cheap to clone.
#[derive(Clone)]
pub struct Chain { /* Arc<Inner { app: App, store: Store, pool: Pool, events }> */ }

/// A block just committed, for subscribers. Sent after it is visible in the store, in height order.
#[derive(Debug, Clone)]
pub struct CommittedBlock { pub outcome: Arc<BlockOutcome> }

impl Chain {
    pub fn app(&self) -> &App { todo!() }
    pub fn store(&self) -> &Store { todo!() }
    pub fn pool(&self) -> &Pool { todo!() }
    /// Blocks as they are committed.
    pub fn subscribe_blocks(&self) -> tokio::sync::broadcast::Receiver<CommittedBlock> { todo!() }
}

/// Consensus calls, run one at a time on the block thread. The methods are those of ABCI, with our types.
#[derive(Clone)]
pub struct ChainHandle { /* sender */ }

/// A fault that must end the process. Carries the exit code of style.md's table (70 consensus, 74 store).
#[derive(Debug, thiserror::Error)]
#[error("{report}")]
pub struct Fatal { pub exit_code: u8, pub report: String }

pub struct InitChainAnswer { pub app_hash: B256, pub validators: Vec<ValidatorUpdate> }
pub struct FinalizeAnswer { pub app_hash: B256, pub results: Vec<TransactionResult>, pub validator_updates: Vec<ValidatorUpdate> }

impl ChainHandle {
    /// Height and app hash of what the store really holds.
    pub async fn info(&self) -> Result<(u64, B256), Fatal> { todo!() }
    pub async fn init_chain(&self, cometbft_chain_id: String, app_state: Bytes, initial_height: u64) -> Result<InitChainAnswer, Fatal> { todo!() }
    /// `input.transactions` is what CometBFT offers; the pool decides.
    pub async fn prepare_proposal(&self, input: BlockInput, max_bytes: u64) -> Result<Vec<Bytes>, Fatal> { todo!() }
    /// `Ok(false)` = REJECT. Keeps the executed block by `consensus_hash`.
    pub async fn process_proposal(&self, input: BlockInput, consensus_hash: B256) -> Result<bool, Fatal> { todo!() }
    pub async fn finalize_block(&self, input: BlockInput, consensus_hash: B256) -> Result<FinalizeAnswer, Fatal> { todo!() }
    /// Persists the pending outcome, updates the pool, tells subscribers. Returns retain_height.
    pub async fn commit(&self) -> Result<u64, Fatal> { todo!() }
    /// CometBFT's connection closed: drop the pending outcome, keep the last commit.
    pub async fn disconnect(&self) { todo!() }
}
