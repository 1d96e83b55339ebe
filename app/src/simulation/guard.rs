//! State as a simulation reads it: block hashes as overridden, and no read once it is told to stop.

use super::Scene;
use crate::state::{Account, HashedAddress, HashedSlot, StateError, StateRead};
use alloy_primitives::{B256, Bytes, U256};
use std::{collections::BTreeMap, sync::Arc};

pub(super) struct Guard<'a> {
    state: &'a dyn StateRead,
    block_hashes: &'a BTreeMap<u64, B256>,
    stop: &'a (dyn Fn() -> bool + Sync),
}

/// Not a failure of the store.
#[derive(Debug, thiserror::Error)]
#[error("simulation stopped")]
pub(super) struct Stopped;

impl<'a> Guard<'a> {
    pub(super) const fn new(scene: &Scene<'a>) -> Self {
        Self {
            state: scene.state,
            block_hashes: &scene.overrides.block.block_hashes,
            stop: scene.limits.stop,
        }
    }

    fn go_on(&self) -> Result<(), StateError> {
        if (self.stop)() {
            Err(StateError(Arc::new(Stopped)))
        } else {
            Ok(())
        }
    }
}

impl StateRead for Guard<'_> {
    fn account(&self, address: HashedAddress) -> Result<Option<Account>, StateError> {
        self.go_on()?;
        self.state.account(address)
    }

    fn storage(&self, address: HashedAddress, slot: HashedSlot) -> Result<U256, StateError> {
        self.go_on()?;
        self.state.storage(address, slot)
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        self.go_on()?;
        self.state.code(code_hash)
    }

    fn block_hash(&self, height: u64) -> Result<Option<B256>, StateError> {
        match self.block_hashes.get(&height) {
            Some(hash) => Ok(Some(*hash)),
            None => self.state.block_hash(height),
        }
    }
}
