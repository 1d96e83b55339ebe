//! The state before genesis: nothing.

use crate::state::{Account, HashedAddress, HashedSlot, StateError, StateRead, TrieRead};
use alloy_primitives::{B256, Bytes, U256};
use alloy_trie::Nibbles;

/// Holds nothing, never fails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EmptyState;

impl StateRead for EmptyState {
    fn account(&self, _: HashedAddress) -> Result<Option<Account>, StateError> {
        Ok(None)
    }

    fn storage(&self, _: HashedAddress, _: HashedSlot) -> Result<U256, StateError> {
        Ok(U256::ZERO)
    }

    fn code(&self, _: B256) -> Result<Bytes, StateError> {
        Ok(Bytes::new())
    }

    fn block_hash(&self, _: u64) -> Result<Option<B256>, StateError> {
        Ok(None)
    }
}

impl TrieRead for EmptyState {
    fn account_node(&self, _: &Nibbles) -> Result<Option<Bytes>, StateError> {
        Ok(None)
    }

    fn storage_node(&self, _: HashedAddress, _: &Nibbles) -> Result<Option<Bytes>, StateError> {
        Ok(None)
    }

    fn storage_slots(&self, _: HashedAddress) -> Result<Vec<(HashedSlot, U256)>, StateError> {
        Ok(Vec::new())
    }

    fn storage_node_paths(&self, _: HashedAddress) -> Result<Vec<Nibbles>, StateError> {
        Ok(Vec::new())
    }
}
