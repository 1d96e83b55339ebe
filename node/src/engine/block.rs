//! A block of the embedded engine: RLP of its fields in order. Its hash is keccak256 of those bytes; the Ethereum
//! header carries it as extra data.

use alloy_primitives::{B256, Bytes, keccak256};
use alloy_rlp::{RlpDecodable, RlpEncodable};
use cloister_app::block::ConsensusAddress;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, RlpEncodable, RlpDecodable)]
pub(super) struct EngineBlock {
    pub(super) height: u64,
    pub(super) time_ms: u64,
    /// App hash of the parent.
    pub(super) parent_hash: B256,
    pub(super) proposer: ConsensusAddress,
    pub(super) transactions: Vec<Bytes>,
    /// Who signed the parent.
    pub(super) signers: Vec<Signer>,
}

/// A validator in the last commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, RlpEncodable, RlpDecodable)]
pub(super) struct Signer {
    pub(super) validator: ConsensusAddress,
    pub(super) power: u64,
}

impl EngineBlock {
    pub(super) fn hash(&self) -> B256 {
        keccak256(alloy_rlp::encode(self))
    }
}
