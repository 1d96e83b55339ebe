//! Stand-ins until the store lands: delete this file and its `mod` line with the first real implementation.

use crate::store::{CurrentState, StateView};
use alloy_primitives::{B256, Bytes, U256};
use alloy_trie::Nibbles;
use cloister_app::state::{Account, HashedAddress, HashedSlot, StateError, StateRead, TrieRead};

impl StateRead for StateView {
    fn account(&self, _: HashedAddress) -> Result<Option<Account>, StateError> {
        todo!()
    }
    fn storage(&self, _: HashedAddress, _: HashedSlot) -> Result<U256, StateError> {
        todo!()
    }
    fn code(&self, _: B256) -> Result<Bytes, StateError> {
        todo!()
    }
    fn block_hash(&self, _: u64) -> Result<Option<B256>, StateError> {
        todo!()
    }
}

impl StateRead for CurrentState {
    fn account(&self, _: HashedAddress) -> Result<Option<Account>, StateError> {
        todo!()
    }
    fn storage(&self, _: HashedAddress, _: HashedSlot) -> Result<U256, StateError> {
        todo!()
    }
    fn code(&self, _: B256) -> Result<Bytes, StateError> {
        todo!()
    }
    fn block_hash(&self, _: u64) -> Result<Option<B256>, StateError> {
        todo!()
    }
}

impl TrieRead for CurrentState {
    fn account_node(&self, _: &Nibbles) -> Result<Option<Bytes>, StateError> {
        todo!()
    }
    fn storage_node(&self, _: HashedAddress, _: &Nibbles) -> Result<Option<Bytes>, StateError> {
        todo!()
    }
    fn storage_slots(&self, _: HashedAddress) -> Result<Vec<(HashedSlot, U256)>, StateError> {
        todo!()
    }
    fn storage_node_paths(&self, _: HashedAddress) -> Result<Vec<Nibbles>, StateError> {
        todo!()
    }
}
