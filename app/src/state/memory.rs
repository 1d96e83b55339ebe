//! State in memory: the double of the store in tests.

use super::{Account, ChangeSet, HashedAddress, HashedSlot, StateError, StateRead, TrieRead};
use alloy_primitives::{B256, Bytes, U256};
use alloy_trie::Nibbles;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// All records of a state and its tries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryState {
    /// Accounts of the trie.
    pub accounts: BTreeMap<HashedAddress, Account>,
    /// Non-zero slots.
    pub storage: BTreeMap<(HashedAddress, HashedSlot), U256>,
    /// Code by hash.
    pub code: BTreeMap<B256, Bytes>,
    /// Nodes of the account trie.
    pub account_nodes: BTreeMap<Nibbles, Bytes>,
    /// Nodes of the storage tries.
    pub storage_nodes: BTreeMap<(HashedAddress, Nibbles), Bytes>,
    /// Block hashes by height.
    pub block_hashes: BTreeMap<u64, B256>,
}

/// A code hash that an account names and nobody stored.
#[derive(Debug, thiserror::Error)]
#[error("code {0} is missing")]
pub struct MissingCode(pub B256);

impl MemoryState {
    /// Writes a block's changes, checking each `before` against what is here.
    ///
    /// # Panics
    /// If a change was computed on another state than this.
    pub fn apply(&mut self, changes: &ChangeSet) {
        for (address, change) in &changes.accounts {
            let before = put(&mut self.accounts, *address, change.after);
            assert_eq!(
                before, change.before,
                "account {address:?} before the block"
            );
        }
        for (key, change) in &changes.storage {
            let after = (!change.after.is_zero()).then_some(change.after);
            let before = put(&mut self.storage, *key, after).unwrap_or_default();
            assert_eq!(before, change.before, "slot {key:?} before the block");
        }
        for (hash, code) in &changes.code {
            self.code.insert(*hash, code.clone());
        }
        for (path, node) in &changes.account_nodes {
            put(&mut self.account_nodes, *path, node.clone());
        }
        for (key, node) in &changes.storage_nodes {
            put(&mut self.storage_nodes, *key, node.clone());
        }
    }

    /// Makes BLOCKHASH of `height` answer `hash`.
    pub fn set_block_hash(&mut self, height: u64, hash: B256) {
        self.block_hashes.insert(height, hash);
    }
}

fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) -> Option<V> {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    }
}

impl StateRead for MemoryState {
    fn account(&self, address: HashedAddress) -> Result<Option<Account>, StateError> {
        Ok(self.accounts.get(&address).copied())
    }

    fn storage(&self, address: HashedAddress, slot: HashedSlot) -> Result<U256, StateError> {
        Ok(self
            .storage
            .get(&(address, slot))
            .copied()
            .unwrap_or_default())
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        let code = self.code.get(&code_hash).cloned();
        code.ok_or_else(|| StateError(Arc::new(MissingCode(code_hash))))
    }

    fn block_hash(&self, height: u64) -> Result<Option<B256>, StateError> {
        Ok(self.block_hashes.get(&height).copied())
    }
}

impl TrieRead for MemoryState {
    fn account_node(&self, path: &Nibbles) -> Result<Option<Bytes>, StateError> {
        Ok(self.account_nodes.get(path).cloned())
    }

    fn storage_node(
        &self,
        address: HashedAddress,
        path: &Nibbles,
    ) -> Result<Option<Bytes>, StateError> {
        Ok(self.storage_nodes.get(&(address, *path)).cloned())
    }

    fn storage_slots(&self, address: HashedAddress) -> Result<Vec<(HashedSlot, U256)>, StateError> {
        let from = (address, HashedSlot(B256::ZERO));
        let slots = self
            .storage
            .range(from..)
            .take_while(|((owner, _), _)| *owner == address);
        Ok(slots.map(|((_, slot), value)| (*slot, *value)).collect())
    }

    fn storage_node_paths(&self, address: HashedAddress) -> Result<Vec<Nibbles>, StateError> {
        let from = (address, Nibbles::new());
        let nodes = self
            .storage_nodes
            .range(from..)
            .take_while(|((owner, _), _)| *owner == address);
        Ok(nodes.map(|((_, path), _)| *path).collect())
    }
}

/// A read that was made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("read {0} was made to fail")]
pub struct InjectedFault(pub usize);

/// A state that counts its reads and lets one of them fail: for tests that a fault becomes an error, never a default value.
#[derive(Debug)]
pub struct FaultyState<'a> {
    inner: &'a MemoryState,
    fails_at: usize,
    reads: AtomicUsize,
}

impl<'a> FaultyState<'a> {
    /// The read after `fails_at` others fails.
    pub const fn new(inner: &'a MemoryState, fails_at: usize) -> Self {
        Self {
            inner,
            fails_at,
            reads: AtomicUsize::new(0),
        }
    }

    /// Reads answered or failed so far.
    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    fn count(&self) -> Result<&MemoryState, StateError> {
        let read = self.reads.fetch_add(1, Ordering::SeqCst);
        if read == self.fails_at {
            return Err(StateError(Arc::new(InjectedFault(read))));
        }
        Ok(self.inner)
    }
}

impl StateRead for FaultyState<'_> {
    fn account(&self, address: HashedAddress) -> Result<Option<Account>, StateError> {
        self.count()?.account(address)
    }

    fn storage(&self, address: HashedAddress, slot: HashedSlot) -> Result<U256, StateError> {
        self.count()?.storage(address, slot)
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        self.count()?.code(code_hash)
    }

    fn block_hash(&self, height: u64) -> Result<Option<B256>, StateError> {
        self.count()?.block_hash(height)
    }
}

impl TrieRead for FaultyState<'_> {
    fn account_node(&self, path: &Nibbles) -> Result<Option<Bytes>, StateError> {
        self.count()?.account_node(path)
    }

    fn storage_node(
        &self,
        address: HashedAddress,
        path: &Nibbles,
    ) -> Result<Option<Bytes>, StateError> {
        self.count()?.storage_node(address, path)
    }

    fn storage_slots(&self, address: HashedAddress) -> Result<Vec<(HashedSlot, U256)>, StateError> {
        self.count()?.storage_slots(address)
    }

    fn storage_node_paths(&self, address: HashedAddress) -> Result<Vec<Nibbles>, StateError> {
        self.count()?.storage_node_paths(address)
    }
}
