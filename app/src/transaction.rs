//! A transaction parsed once at the edge: strict decoding, supported type, checked signature, our chain id.

use crate::rejection::Rejection;
use alloy_consensus::TxEnvelope;
use alloy_primitives::{Address, B256, Bytes};

/// Largest encoded transaction, as in geth's pool (128 KiB).
pub const TRANSACTION_SIZE_BYTES_MAX: usize = 128 * 1024;

/// A well-formed, signed transaction of type 0, 1, 2 or 4 for this chain, with its recovered sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    envelope: TxEnvelope,
    sender: Address,
    raw: Bytes,
}

impl Transaction {
    /// Parses `raw` (EIP-2718 bytes, nothing trailing) and recovers the sender. Needs no state.
    pub fn decode(raw: Bytes, chain_id: u64) -> Result<Self, Rejection> {
        let _ = (raw, chain_id);
        todo!()
    }

    /// The signed transaction.
    pub const fn envelope(&self) -> &TxEnvelope {
        &self.envelope
    }
    /// Recovered from the signature.
    pub const fn sender(&self) -> Address {
        self.sender
    }
    /// keccak256 of the raw bytes.
    pub fn hash(&self) -> B256 {
        *self.envelope.tx_hash()
    }
    /// EIP-2718 bytes.
    pub const fn raw(&self) -> &Bytes {
        &self.raw
    }
}
