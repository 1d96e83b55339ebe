//! The transaction pool: our own index by sender and nonce. It is the truth; CometBFT's mempool only carries what
//! is executable to the peers.
//!
//! Admission decodes and recovers (the caller), checks against the last commit's state and prepares the entry, all
//! without a lock and so in parallel; only the insertion ([`core`]) holds it. After each commit the block's change set
//! tells which senders to look at again: the cost grows with the block, not with the pool.

mod best;
mod core;
mod entry;

pub use self::{best::Best, core::Limits};

use self::{
    core::Core,
    entry::{Entry, SenderAccount},
};
use crate::store::Store;
use alloy_primitives::{Address, B256};
use cloister_app::{
    app::App,
    block::BlockOutcome,
    rejection::Rejection,
    state::{HashedAddress, StateRead as _},
    transaction::Transaction,
};
use parking_lot::RwLock;
use std::sync::Arc;
use tokio::sync::broadcast;

/// Announcements a subscriber may lag behind before it must read [`Pool::best`] anew.
const ANNOUNCEMENTS_MAX: usize = 16_384;

/// Where a transaction came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Our JSON-RPC: one it already knows is an error, as wallets expect.
    Local,
    /// CheckTx. CometBFT also brings back what we gave it ourselves: known is fine.
    Peer,
}

/// Where it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Executable now.
    Pending,
    /// Waits for an earlier nonce.
    Queued,
}

/// What one sender has in the pool, in nonce order.
#[derive(Debug, Clone)]
pub struct SenderContent {
    /// The sender.
    pub sender: Address,
    /// Executable.
    pub pending: Vec<Arc<Transaction>>,
    /// Waiting.
    pub queued: Vec<Arc<Transaction>>,
}

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    app: Arc<App>,
    store: Store,
    core: RwLock<Core>,
    announcements: broadcast::Sender<Arc<Transaction>>,
}

impl Pool {
    /// An empty pool that checks against `store`.
    pub fn new(app: Arc<App>, store: Store, mut limits: Limits) -> Self {
        limits.base_fee_floor_wei = app.parameters().base_fee.floor_wei;
        Self {
            shared: Arc::new(Shared {
                app,
                store,
                core: RwLock::new(Core::new(limits)),
                announcements: broadcast::channel(ANNOUNCEMENTS_MAX).0,
            }),
        }
    }

    /// Checks against the last committed state and keeps it.
    pub fn add(
        &self,
        transaction: Arc<Transaction>,
        origin: Origin,
    ) -> Result<Placement, Rejection> {
        let hash = transaction.hash();
        if let Some(known) = self.placement(&hash) {
            return match origin {
                Origin::Local => Err(Rejection::AlreadyKnown),
                Origin::Peer => Ok(known),
            };
        }
        let mut entry = None;
        loop {
            let (height, account) = self.check_against_head(&transaction)?;
            let entry = entry.get_or_insert_with(|| Entry::new(Arc::clone(&transaction)));
            let mut core = self.shared.core.write();
            if core.height() > height {
                // A block was committed between the check and the lock: its verdict is out of date.
                continue;
            }
            let admission = match core.add(entry.clone(), account) {
                // Two threads brought the same transaction.
                Err(Rejection::AlreadyKnown) if origin == Origin::Peer => {
                    return Ok(placement(core.is_pending(&hash) == Some(true)));
                }
                result => result?,
            };
            self.announce(admission.executable);
            return Ok(placement(admission.pending));
        }
    }

    fn check_against_head(
        &self,
        transaction: &Transaction,
    ) -> Result<(u64, SenderAccount), Rejection> {
        let Shared { app, store, .. } = &*self.shared;
        let head = store
            .head()
            .ok_or_else(|| state_unavailable("the chain has not begun"))?;
        // By height, not "latest": header and state must be of one block.
        let state = store.state_at(head.height).map_err(state_unavailable)?;
        // What waits for an earlier nonce or for the base fee to fall passes this check.
        app.check_transaction(&state, &head.header, transaction)?;
        let account = state
            .account(HashedAddress::from(transaction.sender()))
            .map_err(state_unavailable)?;
        Ok((head.height, SenderAccount::from(account)))
    }

    /// The lock is held, so that two announcements of one sender cannot change places.
    fn announce(&self, executable: Vec<Arc<Transaction>>) {
        for transaction in executable {
            // An error only says that nobody listens.
            let _ = self.shared.announcements.send(transaction);
        }
    }

    /// Takes in a block that the store has just committed.
    pub(crate) fn apply_block(&self, outcome: &BlockOutcome) {
        let mut core = self.shared.core.write();
        let executable =
            core.apply_block(outcome.block.header.number, &outcome.block.changes.accounts);
        self.announce(executable);
    }

    /// CheckTx of kind recheck, by hash: answered from the index, no state read, no signature.
    pub fn recheck(&self, hash: &B256) -> Result<(), Rejection> {
        self.shared.core.read().recheck(hash)
    }

    /// Where it is; `None` if it is not in the pool.
    pub fn placement(&self, hash: &B256) -> Option<Placement> {
        self.shared.core.read().is_pending(hash).map(placement)
    }

    /// By hash.
    pub fn get(&self, hash: &B256) -> Option<Arc<Transaction>> {
        self.shared.core.read().get(hash).map(Arc::clone)
    }

    /// Next usable nonce: contiguous from the account's, not jumping over a gap. `None`: nothing of this sender here.
    pub fn pending_nonce(&self, sender: Address) -> Option<u64> {
        self.shared.core.read().pending_nonce(sender)
    }

    /// Executable transactions, best tip first, nonces in order per sender.
    pub fn best(&self, base_fee_wei: u64) -> Vec<Arc<Transaction>> {
        self.best_iter(base_fee_wei).collect()
    }

    /// The same, sorted as they are taken.
    pub fn best_iter(&self, base_fee_wei: u64) -> Best {
        self.shared.core.read().best(base_fee_wei)
    }

    /// Counts (pending, queued).
    pub fn size(&self) -> (usize, usize) {
        self.shared.core.read().size()
    }

    /// Everything, by sender in order.
    pub fn content(&self) -> Vec<SenderContent> {
        let core = self.shared.core.read();
        core.sender_addresses()
            .into_iter()
            .map(|sender| sender_content(&core, sender))
            .collect()
    }

    /// What one sender has here.
    pub fn content_of(&self, sender: Address) -> SenderContent {
        sender_content(&self.shared.core.read(), sender)
    }

    /// Transactions that become executable, promoted ones included (for newPendingTransactions and the broadcaster).
    /// A lagging receiver reads [`Self::best`] anew.
    pub fn subscribe_pending(&self) -> broadcast::Receiver<Arc<Transaction>> {
        self.shared.announcements.subscribe()
    }
}

const fn placement(pending: bool) -> Placement {
    if pending {
        Placement::Pending
    } else {
        Placement::Queued
    }
}

fn sender_content(core: &Core, sender: Address) -> SenderContent {
    let (pending, queued): (Vec<_>, Vec<_>) = core
        .of_sender(sender)
        .into_iter()
        .partition(|(_, pending)| *pending);
    let transactions = |list: Vec<(Arc<Transaction>, bool)>| {
        list.into_iter()
            .map(|(transaction, _)| transaction)
            .collect()
    };
    SenderContent {
        sender,
        pending: transactions(pending),
        queued: transactions(queued),
    }
}

/// The store failed under a read of admission: the transaction is not to blame.
fn state_unavailable(error: impl std::fmt::Display) -> Rejection {
    tracing::error!(%error, "state read failed during admission");
    Rejection::Evm("state unavailable".to_owned())
}
