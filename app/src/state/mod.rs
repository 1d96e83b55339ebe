//! State as the core sees it: accounts and slots by hashed key, and the writes of a block as a value.

#[cfg(any(test, feature = "test-support"))]
pub mod memory;

use alloy_primitives::{B256, Bytes, KECCAK256_EMPTY, U256};
use alloy_trie::{EMPTY_ROOT_HASH, Nibbles};
use std::collections::BTreeMap;

/// One account of the Ethereum state trie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// Transactions sent, or contracts created.
    pub nonce: u64,
    /// Balance in wei.
    pub balance: U256,
    /// keccak256 of the code; [`KECCAK256_EMPTY`] without code.
    pub code_hash: B256,
    /// Root of the account's storage trie; [`EMPTY_ROOT_HASH`] without storage.
    pub storage_root: B256,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            nonce: 0,
            balance: U256::ZERO,
            code_hash: KECCAK256_EMPTY,
            storage_root: EMPTY_ROOT_HASH,
        }
    }
}

/// keccak256 of an address: the key of its account in the state trie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HashedAddress(pub B256);

/// keccak256 of a 32-byte storage slot number: its key in the account's storage trie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HashedSlot(pub B256);

impl From<alloy_primitives::Address> for HashedAddress {
    fn from(address: alloy_primitives::Address) -> Self {
        Self(alloy_primitives::keccak256(address))
    }
}

impl From<U256> for HashedSlot {
    fn from(slot: U256) -> Self {
        Self(alloy_primitives::keccak256(slot.to_be_bytes::<32>()))
    }
}

/// The store could not answer a read: fatal, never a default value.
#[derive(Debug, Clone, thiserror::Error)]
#[error("state read failed: {0}")]
pub struct StateError(pub std::sync::Arc<dyn std::error::Error + Send + Sync>);

/// Reads of accounts, slots and code at one height.
///
/// Implementations: the RocksDB views of the node, and the in-memory double of the tests.
pub trait StateRead: Send + Sync {
    /// The account, or `None` if the trie has no leaf for it.
    fn account(&self, address: HashedAddress) -> Result<Option<Account>, StateError>;
    /// The slot's value; zero if the trie has no leaf for it.
    fn storage(&self, address: HashedAddress, slot: HashedSlot) -> Result<U256, StateError>;
    /// The code with this hash. The hash comes from an account, so absence is an error of the store.
    fn code(&self, code_hash: B256) -> Result<Bytes, StateError>;
    /// Ethereum hash of the block at `height`, `None` above the head or below what is kept.
    fn block_hash(&self, height: u64) -> Result<Option<B256>, StateError>;
}

/// Reads of stored trie nodes at the last commit, by path from the root of their trie.
pub trait TrieRead: StateRead {
    /// RLP of the node of the account trie at `path` (root: the empty path).
    fn account_node(&self, path: &Nibbles) -> Result<Option<Bytes>, StateError>;
    /// RLP of the node of an account's storage trie at `path`.
    fn storage_node(
        &self,
        address: HashedAddress,
        path: &Nibbles,
    ) -> Result<Option<Bytes>, StateError>;
    /// All non-zero slots of an account, in key order: needed when an account is destroyed.
    fn storage_slots(&self, address: HashedAddress) -> Result<Vec<(HashedSlot, U256)>, StateError>;
    /// Paths of all stored nodes of an account's storage trie, in order: needed when it is destroyed.
    fn storage_node_paths(&self, address: HashedAddress) -> Result<Vec<Nibbles>, StateError>;
}

/// A value before and after a block. `before` goes to history, `after` to the current state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<T> {
    /// As the parent block left it.
    pub before: T,
    /// As this block leaves it.
    pub after: T,
}

/// Everything a block writes to state, in chosen order. Persisted by Commit in one atomic batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeSet {
    /// Accounts whose record changed; `None` = absent from the trie.
    pub accounts: BTreeMap<HashedAddress, Change<Option<Account>>>,
    /// Slots whose value changed; zero = absent from the trie. The slots of a destroyed account are all listed.
    pub storage: BTreeMap<(HashedAddress, HashedSlot), Change<U256>>,
    /// Code first seen in this block, by hash.
    pub code: BTreeMap<B256, Bytes>,
    /// Trie nodes of the account trie to write (`Some(rlp)`) or delete (`None`), by path.
    pub account_nodes: BTreeMap<Nibbles, Option<Bytes>>,
    /// The same for storage tries.
    pub storage_nodes: BTreeMap<(HashedAddress, Nibbles), Option<Bytes>>,
}
