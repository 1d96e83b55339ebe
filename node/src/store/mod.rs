//! RocksDB: what the node knows on disk. One column family per kind of record, one atomic batch per Commit.
//!
//! Records and keys: `schema`. The block thread alone writes ([`Store::init`], [`Store::commit`]); everyone reads without
//! waiting for it. A block becomes visible when the head moves to it, after its batch is written, and never changes.
//!
//! Errors are fatal to the node, except [`StoreError::HistoryPruned`] and [`StoreError::AboveHead`], which answer a reader's
//! question. A record that is missing or does not decode is an error, never a default.

mod closing;
mod database;
mod durability;
mod history;
mod proof;
mod read;
mod recent;
mod schema;
#[cfg(test)]
mod tests;
mod write;

use alloy_consensus::{Header, ReceiptEnvelope};
use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_rlp::Encodable;
use cloister_app::{
    app::GenesisOutcome,
    block::BlockOutcome,
    state::{Account, StateError},
    transaction::Transaction,
};
use closing::OpenGuard;
pub use closing::wait_until_closed;
use database::{Batch, Database, Source};
use durability::Log;
use history::Inner;
pub use history::StateView;
use parking_lot::{Mutex, RwLock};
pub use read::CurrentState;
use recent::Recent;
use schema::Family;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// When the write-ahead log is synced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// At every Commit.
    EveryBlock,
    /// By a background thread, whichever comes first.
    Interval {
        /// Blocks written since the last sync.
        blocks: u64,
        /// Age of the oldest block not synced.
        ms: u64,
    },
    /// Left to the operating system; synced before `retain_height` rises ([`Store::request_sync`]) and at a clean stop.
    Os,
}

/// How to open the store.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// When the log is synced.
    pub durability: Durability,
    /// Folder of the write-ahead log, if not beside the data.
    pub wal_folder: Option<PathBuf>,
    /// Memory for blocks of table files.
    pub block_cache_bytes: usize,
    /// Heights of state history (reverse change sets) kept below the head.
    pub history_blocks: u64,
    /// Heights below the head at which `eth_getProof` answers. History is kept at least this long.
    pub proof_window_blocks: u64,
}

/// The last committed block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Its height.
    pub height: u64,
    /// Ethereum block hash = app hash.
    pub hash: B256,
    /// Its header.
    pub header: Header,
}

/// One block as served to readers. Never changes once visible.
#[derive(Debug, Clone)]
pub struct StoredBlock {
    /// Ethereum block hash.
    pub hash: B256,
    /// Its header.
    pub header: Header,
    /// Transactions of the Ethereum block, in order.
    pub transactions: Vec<Arc<Transaction>>,
}

impl StoredBlock {
    /// Length of the RLP block in bytes (the `size` field of JSON-RPC): header, transactions, no ommers, and the empty
    /// list of withdrawals where the header has a root for them.
    pub fn size_bytes(&self) -> usize {
        let list = |payload_length: usize| {
            alloy_rlp::Header {
                list: true,
                payload_length,
            }
            .length_with_payload()
        };
        let transactions = self.transactions.iter().map(|transaction| {
            let raw = transaction.raw();
            match raw.first() {
                // A legacy transaction is a list by itself, the others are strings in the block.
                Some(0xc0..) => raw.len(),
                _ => raw.length(),
            }
        });
        let withdrawals = usize::from(self.header.withdrawals_root.is_some());
        list(self.header.length() + list(transactions.sum()) + 1 + withdrawals)
    }
}

/// Where a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionLocation {
    /// Height of its block.
    pub height: u64,
    /// Index in the Ethereum block.
    pub index: u32,
}

/// What became of one transaction of the decided block, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResult {
    /// 0 if it is in the Ethereum block, else the code of its rejection.
    pub code: u32,
    /// Gas limit; 0 if rejected.
    pub gas_wanted: u64,
    /// Gas used; 0 if rejected.
    pub gas_used: u64,
    /// Index in the Ethereum block, or why it is not in it.
    pub placement: Result<u32, String>,
}

/// The store cannot do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// RocksDB failed.
    #[error("rocksdb: {0}")]
    Database(#[from] rocksdb::Error),
    /// Another process holds the database.
    #[error("the store is in use by another process: lock {lock} is held ({reason})")]
    Locked {
        /// The lock file.
        lock: PathBuf,
        /// RocksDB's words.
        reason: String,
    },
    /// A record is there but not what it should be.
    #[error("{family} record {key} is corrupt: {reason}")]
    Corrupt {
        /// Column family.
        family: &'static str,
        /// Key in hex.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A record that another one names is not there.
    #[error("{family} record {key} is missing")]
    Missing {
        /// Column family.
        family: &'static str,
        /// Key in hex.
        key: String,
    },
    /// Written by a build with another format.
    #[error("store format {found}, this build reads {expected}")]
    FormatVersion {
        /// On disk.
        found: u32,
        /// Of this build.
        expected: u32,
    },
    /// A block that does not follow the head.
    #[error("block {got} with parent {parent} does not follow the head {head:?}")]
    NotNext {
        /// Height and hash of the head.
        head: Option<(u64, B256)>,
        /// Height of the block.
        got: u64,
        /// Its parent hash.
        parent: B256,
    },
    /// The trie of a change set does not have the root of its header.
    #[error("state root of block {height} is {got}, its header has {expected}")]
    StateRoot {
        /// Height of the block.
        height: u64,
        /// In the header.
        expected: B256,
        /// keccak256 of the root node.
        got: B256,
    },
    /// Block 0 is written already.
    #[error("the store holds a chain already, at height {height}")]
    Initialised {
        /// Height of the head.
        height: u64,
    },
    /// The write-ahead log could not be synced: what was written since may be lost.
    #[error("write-ahead log could not be synced: {0}")]
    Sync(rocksdb::Error),
    /// State older than what is kept.
    #[error("state of block {height} is no longer kept; oldest height served: {oldest}")]
    HistoryPruned {
        /// Asked for.
        height: u64,
        /// Oldest that can be served.
        oldest: u64,
    },
    /// A block that is not there yet.
    #[error("block {height} is above the head {head}")]
    AboveHead {
        /// Asked for.
        height: u64,
        /// The head.
        head: u64,
    },
    /// Reading state failed inside the core.
    #[error(transparent)]
    State(#[from] StateError),
    /// A folder that cannot be made, or a file of the database that is not as it was written.
    #[error("{}: {reason}", path.display())]
    File {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A folder or file.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl StoreError {
    /// What the operator can do, where there is something.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Locked { .. } => Some("stop the other process first"),
            Self::File { .. } => Some(
                "check that the folder can be written; if a file of the database is damaged, restore the store from a backup, or \
                 move its folder away: the blocks that CometBFT keeps are then executed anew",
            ),
            Self::Database(_)
            | Self::Corrupt { .. }
            | Self::Missing { .. }
            | Self::StateRoot { .. }
            | Self::State(_) => Some(
                "check the disk (space, health); if the store is damaged, restore it from a backup, or move its folder away: the \
                 blocks that CometBFT keeps are then executed anew",
            ),
            Self::FormatVersion { .. } => Some(
                "run the version that wrote it, or move the folder away to build the store anew",
            ),
            Self::NotNext { .. }
            | Self::Initialised { .. }
            | Self::Sync(_)
            | Self::HistoryPruned { .. }
            | Self::AboveHead { .. }
            | Self::Io(_) => None,
        }
    }
}

impl From<StoreError> for StateError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::State(error) => error,
            error => Self(Arc::new(error)),
        }
    }
}

/// EIP-1186 proof, nodes from the root down.
#[derive(Debug, Clone)]
pub struct AccountProof {
    /// The account; an empty one if the proof shows its absence.
    pub account: Account,
    /// RLP of the nodes from the state root down.
    pub account_proof: Vec<Bytes>,
    /// One for each slot asked.
    pub storage: Vec<StorageProof>,
}

/// Proof of one slot.
#[derive(Debug, Clone)]
pub struct StorageProof {
    /// Slot number, not hashed.
    pub slot: U256,
    /// Its value.
    pub value: U256,
    /// RLP of the nodes from the storage root down.
    pub proof: Vec<Bytes>,
}

/// Cheap to clone; all methods take `&self`.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("head", &self.head()).finish()
    }
}

impl Store {
    /// Opens or creates. A log that ends in the middle of a batch is cut there; then the head record, its header and the
    /// root node of the state must agree.
    pub fn open(folder: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let database = Arc::new(database::open(folder, &options)?);
        write::check_format(&database)?;
        let source = Source {
            database: &database,
            snapshot: None,
        };
        let head = read::checked_head(source)?.map(Arc::new);
        let oldest_state = read::oldest_state(source)?;
        let log = Log::start(Arc::clone(&database), options.durability);
        // RocksDB has rewritten what it recovered; after this sync nothing of it hangs on the operating system.
        log.wrote(head.as_ref().map_or(0, |head| head.height));
        log.sync()?;
        Ok(Self {
            inner: Arc::new(Inner {
                database,
                options,
                head: RwLock::new(head),
                generation: AtomicU64::new(0),
                oldest_state: AtomicU64::new(oldest_state),
                recent: Mutex::new(Recent::default()),
                writing: Mutex::new(()),
                log,
                _open: OpenGuard::new(),
            }),
        })
    }

    /// Writes block 0; always synced. A genesis that was cut short by a crash is written anew.
    pub fn init(&self, genesis: &GenesisOutcome) -> Result<(), StoreError> {
        self.inner.init(genesis)
    }

    /// Persists a block in one atomic batch, then moves the head.
    pub fn commit(&self, outcome: &BlockOutcome) -> Result<(), StoreError> {
        self.inner.commit(outcome)
    }

    /// Syncs the log and writes the memtables out: clean stop, and a quick next start.
    pub fn close(&self) -> Result<(), StoreError> {
        self.inner.log.sync()?;
        for family in Family::ALL {
            let handle = database::handle(&self.inner.database, family);
            self.inner.database.flush_cf(handle)?;
        }
        Ok(())
    }

    /// `None` before InitChain.
    pub fn head(&self) -> Option<Arc<Head>> {
        self.inner.head.read().clone()
    }

    /// Height known to be on stable storage.
    pub fn durable_height(&self) -> u64 {
        self.inner.log.durable_height()
    }

    /// Syncs the log now. Every block committed before the call is durable after it.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.inner.log.sync()
    }

    /// Asks the background thread for a sync and does not wait: to be called some time before `retain_height` is to rise.
    pub fn request_sync(&self) {
        self.inner.log.request_sync();
    }

    /// Oldest height whose state can be read.
    pub fn oldest_state_height(&self) -> u64 {
        self.inner.oldest_state.load(Ordering::SeqCst)
    }

    /// A committed block.
    pub fn block(&self, height: u64) -> Result<Option<Arc<StoredBlock>>, StoreError> {
        self.inner.block(height)
    }

    /// Header and hash of a committed block.
    pub fn header(&self, height: u64) -> Result<Option<(Header, B256)>, StoreError> {
        self.inner.header(height)
    }

    /// Receipts of a committed block, in order.
    pub fn receipts(&self, height: u64) -> Result<Option<Arc<Vec<ReceiptEnvelope>>>, StoreError> {
        self.inner.receipts(height)
    }

    /// Height of the committed block with this hash.
    pub fn height_by_hash(&self, hash: B256) -> Result<Option<u64>, StoreError> {
        self.inner.height_by_hash(hash)
    }

    /// Where the transaction with this hash is.
    pub fn transaction_location(
        &self,
        hash: B256,
    ) -> Result<Option<TransactionLocation>, StoreError> {
        self.inner.transaction_location(hash)
    }

    /// Results of all transactions of the decided block, rejected ones included (ties CometBFT's index to Ethereum's).
    pub fn results(&self, height: u64) -> Result<Option<Vec<StoredResult>>, StoreError> {
        self.inner.results(height)
    }

    /// State after block `height`, owned, valid while history keeps it; unaffected by later commits.
    pub fn state_at(&self, height: u64) -> Result<StateView, StoreError> {
        StateView::at(&self.inner, Some(height))
    }

    /// State after the head.
    pub fn state_latest(&self) -> Result<StateView, StoreError> {
        StateView::at(&self.inner, None)
    }

    /// For the block thread only: current state and trie nodes.
    pub fn current(&self) -> CurrentState {
        CurrentState::new(Arc::clone(&self.inner))
    }

    /// EIP-1186 proof against the state root of block `height`.
    pub fn proof(
        &self,
        height: u64,
        address: Address,
        slots: &[U256],
    ) -> Result<AccountProof, StoreError> {
        self.inner.proof(height, address, slots)
    }
}
