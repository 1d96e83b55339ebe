//! The transaction pool: our own index by sender and nonce. It is the truth; CometBFT's mempool only carries what
//! is executable to the peers.

use alloy_primitives::{Address, B256};
use cloister_app::{rejection::Rejection, transaction::Transaction};
use std::sync::Arc;

/// Where a transaction came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin { /// Our JSON-RPC.
    Local, /// CheckTx of a transaction from a peer.
    Peer }

/// Where it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement { /// Executable now.
    Pending, /// Waits for an earlier nonce.
    Queued }

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Pool { /* Arc<Mutex<Inner>> */ }

impl Pool {
    /// Checks against the last committed state and keeps it.
    pub fn add(&self, transaction: Arc<Transaction>, origin: Origin) -> Result<Placement, Rejection> { let _ = (transaction, origin); todo!() }
    /// CheckTx of kind recheck, by hash: answered from the index, no state read, no signature.
    pub fn recheck(&self, hash: &B256) -> Result<(), Rejection> { let _ = hash; todo!() }
    pub fn get(&self, hash: &B256) -> Option<Arc<Transaction>> { let _ = hash; todo!() }
    /// Next usable nonce: contiguous from the account's, not jumping over a gap.
    pub fn pending_nonce(&self, sender: Address) -> Option<u64> { let _ = sender; todo!() }
    /// Executable transactions, best tip first, nonces in order per sender.
    pub fn best(&self, base_fee_wei: u64) -> Vec<Arc<Transaction>> { let _ = base_fee_wei; todo!() }
    /// Counts (pending, queued).
    pub fn size(&self) -> (usize, usize) { todo!() }
    /// Hashes of transactions that become executable (for newPendingTransactions and for the broadcaster).
    pub fn subscribe_pending(&self) -> tokio::sync::broadcast::Receiver<Arc<Transaction>> { todo!() }
}
