//! The application: one method per call of consensus. Holds only what genesis fixes; state is an argument.

use crate::{
    block::{BlockInput, ExecutedBlock},
    rejection::Rejection,
    state::{ChangeSet, StateError, StateRead, TrieRead},
    transaction::Transaction,
};
use alloy_consensus::Header;
use alloy_primitives::{B256, Bytes};
use cloister_genesis::{Genesis, Parameters};
use std::sync::Arc;

/// The rules of one network.
#[derive(Debug)]
pub struct App {
    parameters: Parameters,
}

/// State and header of block 0.
#[derive(Debug)]
pub struct GenesisOutcome {
    /// Ethereum header of block 0.
    pub header: Header,
    /// Its hash: the app hash that InitChain answers.
    pub hash: B256,
    /// All accounts, slots, code and trie nodes.
    pub changes: ChangeSet,
}

/// Why a proposal is refused.
#[derive(Debug, thiserror::Error)]
pub enum ProposalFault {
    #[error("transaction {index}: {rejection}")]
    InvalidTransaction { index: usize, rejection: Rejection },
    #[error("transactions take {size_bytes} bytes, limit {max_bytes}")]
    TooLarge { size_bytes: u64, max_bytes: u64 },
    #[error("block height {got} does not follow {parent}")]
    WrongHeight { parent: u64, got: u64 },
    #[error(transparent)]
    State(#[from] StateError),
}

/// A decided block that cannot be executed: the node must stop.
#[derive(Debug, thiserror::Error)]
pub enum ConsensusFault {
    #[error("decided block has height {got}, the last committed is {parent}")]
    WrongHeight { parent: u64, got: u64 },
    #[error("system call of block {height} failed: {reason}")]
    SystemCall { height: u64, reason: String },
    #[error(transparent)]
    State(#[from] StateError),
}

/// What a proposer chose.
#[derive(Debug)]
pub struct Proposal {
    /// The transactions to propose, in order.
    pub transactions: Vec<Bytes>,
    /// The block they make, kept to be reused.
    pub executed: ExecutedBlock,
}

impl App {
    /// Takes a checked genesis: parameters and prepared verifying keys.
    pub fn new(genesis: &Genesis) -> Self {
        Self {
            parameters: genesis.parameters.clone(),
        }
    }

    /// The genesis parameters.
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Block 0: the allocated accounts and its header.
    pub fn init_chain(&self, genesis: &Genesis) -> GenesisOutcome {
        let _ = genesis;
        todo!()
    }

    /// Checks a parsed transaction against the state after `head`: what a pool needs to know before it keeps it.
    /// `NonceGap` is not an error here: the pool decides. Order: size, signature, nonce, fee, balance.
    pub fn check_transaction(
        &self,
        state: &dyn StateRead,
        head: &Header,
        transaction: &Transaction,
    ) -> Result<(), Rejection> {
        let _ = (state, head, transaction);
        todo!()
    }

    /// Executes `candidates` in order on top of `parent`, leaving out those that fail a rule, until block gas or
    /// `max_bytes` (protobuf framing included) is full. `input.transactions` is ignored.
    pub fn prepare_proposal(
        &self,
        state: &dyn TrieRead,
        parent: &Header,
        input: &BlockInput,
        candidates: &mut dyn Iterator<Item = Arc<Transaction>>,
        max_bytes: u64,
    ) -> Result<Proposal, ProposalFault> {
        let _ = (state, parent, input, candidates, max_bytes);
        todo!()
    }

    /// Executes a proposed block and refuses it if any transaction is invalid.
    /// `known` maps transaction hash to an already parsed transaction (from the pool), to spare recovery.
    pub fn process_proposal(
        &self,
        state: &dyn TrieRead,
        parent: &Header,
        input: &BlockInput,
        known: &(dyn Fn(&B256) -> Option<Arc<Transaction>> + Sync),
    ) -> Result<ExecutedBlock, ProposalFault> {
        let _ = (state, parent, input, known);
        todo!()
    }

    /// Executes a decided block. Invalid transactions get their rejection code and are left out of the Ethereum block.
    pub fn execute_block(
        &self,
        state: &dyn TrieRead,
        parent: &Header,
        input: &BlockInput,
        known: &(dyn Fn(&B256) -> Option<Arc<Transaction>> + Sync),
    ) -> Result<ExecutedBlock, ConsensusFault> {
        let _ = (state, parent, input, known);
        todo!()
    }
}
