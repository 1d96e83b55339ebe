//! A block on its way through the core: what consensus gives, and what comes out.

use crate::{rejection::Rejection, state::ChangeSet, transaction::Transaction};
use alloy_consensus::{Header, ReceiptEnvelope};
use alloy_primitives::{B256, Bytes, FixedBytes};
use std::sync::Arc;

/// First 20 bytes of SHA-256 of a validator's ed25519 public key: its address in CometBFT.
pub type ConsensusAddress = FixedBytes<20>;

/// What Prepare-, ProcessProposal and FinalizeBlock know alike of a block, and all that execution may depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockInput {
    /// Height, one above the parent's.
    pub height: u64,
    /// Block time of consensus in milliseconds since the epoch (floored).
    pub time_ms: u64,
    /// The validator that proposed the block.
    pub proposer: ConsensusAddress,
    /// Raw transactions in block order.
    pub transactions: Vec<Bytes>,
    /// Evidence included in the block.
    pub misbehaviour: Vec<Misbehaviour>,
    /// Who signed the parent, from the block's own last commit, in validator-set order.
    pub last_commit: Vec<Vote>,
}

/// One validator's part in the last commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vote {
    /// The validator.
    pub validator: ConsensusAddress,
    /// Its power at that height.
    pub power: u64,
    /// Whether its signature is in the commit.
    pub signed: bool,
}

/// Proof that a validator misbehaved, as CometBFT verified it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misbehaviour {
    /// Duplicate vote (`false`: light-client attack).
    pub duplicate_vote: bool,
    /// The offender.
    pub validator: ConsensusAddress,
    /// Height of the offence.
    pub height: u64,
}

/// One transaction of the Ethereum block.
#[derive(Debug, Clone)]
pub struct ExecutedTransaction {
    /// The transaction with its recovered sender.
    pub transaction: Arc<Transaction>,
    /// Its receipt: status, cumulative gas, logs, bloom.
    pub receipt: ReceiptEnvelope,
    /// Gas it used alone.
    pub gas_used: u64,
}

/// The result CometBFT hashes for each transaction of the decided block, in block order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionResult {
    /// 0 if the transaction is in the Ethereum block (even if it reverted), else the rejection's code.
    pub code: u32,
    /// Gas limit of the transaction; 0 if rejected.
    pub gas_wanted: u64,
    /// Gas used; 0 if rejected.
    pub gas_used: u64,
    /// Index in the Ethereum block, or why the transaction is not in it.
    pub placement: Result<u32, Rejection>,
}

/// A change of the validator set. Power 0 removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValidatorUpdate {
    /// ed25519 public key, canonical 32 bytes.
    pub public_key: [u8; 32],
    /// Voting power.
    pub power: u64,
}

/// A block executed but not sealed: independent of CometBFT's hash of it, so one execution serves
/// Prepare-, ProcessProposal and FinalizeBlock.
#[derive(Debug, Clone)]
pub struct ExecutedBlock {
    /// The header without its extra data.
    pub header: Header,
    /// Transactions of the Ethereum block.
    pub transactions: Vec<ExecutedTransaction>,
    /// One result for each transaction of the input.
    pub results: Vec<TransactionResult>,
    /// Changes of the validator set, effective at height + 2.
    pub validator_updates: Vec<ValidatorUpdate>,
    /// The writes.
    pub changes: ChangeSet,
}

/// What a decided block does. Commit persists it in one atomic batch.
#[derive(Debug, Clone)]
pub struct BlockOutcome {
    /// The block as executed, its header sealed: extra data = CometBFT's hash of the block.
    pub block: ExecutedBlock,
    /// keccak256 of the RLP header: Ethereum's block hash and CometBFT's app hash.
    pub hash: B256,
}

impl ExecutedBlock {
    /// Puts CometBFT's hash of the block (32 bytes) into the header and computes the app hash.
    pub fn seal(mut self, consensus_hash: B256) -> BlockOutcome {
        self.header.extra_data = Bytes::copy_from_slice(consensus_hash.as_slice());
        let hash = self.header.hash_slow();
        BlockOutcome { block: self, hash }
    }
}
