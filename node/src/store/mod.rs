//! RocksDB: what the node knows on disk. One column family per kind of record, one atomic batch per Commit.

use alloy_consensus::{Header, ReceiptEnvelope};
use alloy_primitives::{Address, B256, Bytes, U256};
use cloister_app::{
    app::GenesisOutcome,
    block::{BlockOutcome, ConsensusAddress, TransactionResult},
    state::{Account, HashedAddress, HashedSlot, StateError, StateRead, TrieRead},
    transaction::Transaction,
};
use std::{path::Path, sync::Arc};

/// When the write-ahead log is synced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// At every Commit.
    EveryBlock,
    /// By a background thread, whichever comes first.
    Interval { blocks: u64, ms: u64 },
    /// Left to the operating system; synced before `retain_height` rises and at a clean stop.
    Os,
}

/// How to open the store.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    pub durability: Durability,
    /// Folder of the write-ahead log, if not beside the data.
    pub wal_folder: Option<std::path::PathBuf>,
    pub block_cache_bytes: usize,
    /// Heights of state history (reverse change sets) kept below the head.
    pub history_blocks: u64,
    /// Heights below the head at which `eth_getProof` answers.
    pub proof_window_blocks: u64,
}

/// The last committed block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub height: u64,
    /// Ethereum block hash = app hash.
    pub hash: B256,
    pub header: Header,
}

/// One block as served to readers. Never changes once visible.
#[derive(Debug, Clone)]
pub struct StoredBlock {
    pub hash: B256,
    pub header: Header,
    pub transactions: Vec<Arc<Transaction>>,
}

impl StoredBlock {
    /// Length of the RLP block in bytes (the `size` field of JSON-RPC).
    pub fn size_bytes(&self) -> usize { todo!() }
}

/// Where a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionLocation { pub height: u64, pub index: u32 }

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("rocksdb: {0}")]
    Database(#[from] rocksdb::Error),
    #[error("{family} record {key} is corrupt: {reason}")]
    Corrupt { family: &'static str, key: String, reason: String },
    #[error("store format {found}, this build reads {expected}")]
    FormatVersion { found: u32, expected: u32 },
    #[error("state of block {height} is no longer kept; oldest height served: {oldest}")]
    HistoryPruned { height: u64, oldest: u64 },
    #[error("block {height} is above the head {head}")]
    AboveHead { height: u64, head: u64 },
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Cheap to clone; all methods take `&self`.
#[derive(Debug, Clone)]
pub struct Store { /* Arc<Inner> */ }

impl Store {
    /// Opens or creates. Point-in-time WAL recovery. A torn tail is dropped at a batch border.
    pub fn open(folder: &Path, options: StoreOptions) -> Result<Self, StoreError> { let _ = (folder, options); todo!() }
    /// Writes block 0; always synced.
    pub fn init(&self, genesis: &GenesisOutcome) -> Result<(), StoreError> { let _ = genesis; todo!() }
    /// Persists a block in one atomic batch, then moves the head.
    pub fn commit(&self, outcome: &BlockOutcome) -> Result<(), StoreError> { let _ = outcome; todo!() }
    /// Syncs the log and flushes: clean stop.
    pub fn close(&self) -> Result<(), StoreError> { todo!() }

    /// `None` before InitChain.
    pub fn head(&self) -> Option<Arc<Head>> { todo!() }
    /// Height known to be on stable storage.
    pub fn durable_height(&self) -> u64 { todo!() }

    pub fn block(&self, height: u64) -> Result<Option<Arc<StoredBlock>>, StoreError> { let _ = height; todo!() }
    pub fn header(&self, height: u64) -> Result<Option<(Header, B256)>, StoreError> { let _ = height; todo!() }
    pub fn receipts(&self, height: u64) -> Result<Option<Arc<Vec<ReceiptEnvelope>>>, StoreError> { let _ = height; todo!() }
    pub fn height_by_hash(&self, hash: B256) -> Result<Option<u64>, StoreError> { let _ = hash; todo!() }
    pub fn transaction_location(&self, hash: B256) -> Result<Option<TransactionLocation>, StoreError> { let _ = hash; todo!() }
    /// Results of all transactions of the decided block, rejected ones included (ties CometBFT's index to Ethereum's).
    pub fn results(&self, height: u64) -> Result<Option<Vec<TransactionResult>>, StoreError> { let _ = height; todo!() }

    /// State after block `height`, owned, valid while history keeps it; unaffected by later commits.
    pub fn state_at(&self, height: u64) -> Result<StateView, StoreError> { let _ = height; todo!() }
    /// State after the head.
    pub fn state_latest(&self) -> Result<StateView, StoreError> { todo!() }
    /// For the block thread only: current state and trie nodes.
    pub fn current(&self) -> CurrentState { todo!() }
    /// EIP-1186 proof against the state root of block `height`.
    pub fn proof(&self, height: u64, address: Address, slots: &[U256]) -> Result<AccountProof, StoreError> { let _ = (height, address, slots); todo!() }
}

/// EIP-1186 proof, nodes from the root down.
#[derive(Debug, Clone)]
pub struct AccountProof {
    pub account: Account,
    pub account_proof: Vec<Bytes>,
    pub storage: Vec<StorageProof>,
}
#[derive(Debug, Clone)]
pub struct StorageProof { pub slot: U256, pub value: U256, pub proof: Vec<Bytes> }

/// Immutable view of the state after one block. Implements [`StateRead`].
#[derive(Debug, Clone)]
pub struct StateView { /* store, height */ }

/// The current state with its trie, read by the block thread between commits. Implements [`TrieRead`].
#[derive(Debug, Clone)]
pub struct CurrentState { /* store */ }
