//! Reads of committed blocks and of the current state.

use super::{
    Head, StoreError, StoredBlock, StoredResult, TransactionLocation,
    database::Source,
    history::Inner,
    schema::{self, Family},
};
use alloy_consensus::{Header, ReceiptEnvelope};
use alloy_primitives::{B256, Bytes, U256, keccak256};
use alloy_trie::Nibbles;
use cloister_app::{
    state::{Account, HashedAddress, HashedSlot, StateError, StateRead, TrieRead},
    trie,
};
use std::sync::Arc;

impl Inner {
    /// Whether a block may be shown: its records can be on disk before the head moves to it.
    fn is_committed(&self, height: u64) -> bool {
        let head = self.head.read();
        head.as_ref().is_some_and(|head| height <= head.height)
    }

    pub(super) fn header(&self, height: u64) -> Result<Option<(Header, B256)>, StoreError> {
        if !self.is_committed(height) {
            return Ok(None);
        }
        if let Some(block) = self.recent.lock().block(height) {
            return Ok(Some((block.header.clone(), block.hash)));
        }
        self.source().header_record(height).map(Some)
    }

    pub(super) fn block(&self, height: u64) -> Result<Option<Arc<StoredBlock>>, StoreError> {
        if !self.is_committed(height) {
            return Ok(None);
        }
        if let Some(block) = self.recent.lock().block(height) {
            return Ok(Some(block));
        }
        let source = self.source();
        let (header, hash) = source.header_record(height)?;
        let body = source.required(Family::Bodies, height.to_be_bytes())?;
        Ok(Some(Arc::new(StoredBlock {
            hash,
            header,
            transactions: schema::decode_body(height, &body)?,
        })))
    }

    pub(super) fn receipts(
        &self,
        height: u64,
    ) -> Result<Option<Arc<Vec<ReceiptEnvelope>>>, StoreError> {
        if !self.is_committed(height) {
            return Ok(None);
        }
        if let Some(receipts) = self.recent.lock().receipts(height) {
            return Ok(Some(receipts));
        }
        let value = self
            .source()
            .required(Family::Receipts, height.to_be_bytes())?;
        Ok(Some(Arc::new(schema::decode_receipts(height, &value)?)))
    }

    pub(super) fn results(&self, height: u64) -> Result<Option<Vec<StoredResult>>, StoreError> {
        if !self.is_committed(height) {
            return Ok(None);
        }
        let value = self
            .source()
            .required(Family::Results, height.to_be_bytes())?;
        schema::decode_results(height, &value).map(Some)
    }

    pub(super) fn height_by_hash(&self, hash: B256) -> Result<Option<u64>, StoreError> {
        let Some(value) = self.source().get(Family::HeightByHash, hash)? else {
            return Ok(None);
        };
        let height = schema::decode_height(Family::HeightByHash, hash.as_slice(), &value)?;
        Ok(self.is_committed(height).then_some(height))
    }

    pub(super) fn transaction_location(
        &self,
        hash: B256,
    ) -> Result<Option<TransactionLocation>, StoreError> {
        let Some(value) = self.source().get(Family::TxIndex, hash)? else {
            return Ok(None);
        };
        let (height, index) = schema::decode_location(hash.as_slice(), &value)?;
        let location = TransactionLocation { height, index };
        Ok(self.is_committed(height).then_some(location))
    }
}

/// The head as stored, its header and the state's root node checked against it.
pub(super) fn checked_head(source: Source<'_>) -> Result<Option<Head>, StoreError> {
    let Some((height, hash)) = source.head_record()? else {
        return Ok(None);
    };
    let (header, header_hash) = source.header_record(height)?;
    if header_hash != hash {
        return Err(Family::Headers.corrupt(
            &height.to_be_bytes(),
            format!("hash {header_hash}, the head has {hash}"),
        ));
    }
    let root = trie::stored_state_root(&source)?;
    if root != header.state_root {
        return Err(StoreError::StateRoot {
            height,
            expected: header.state_root,
            got: root,
        });
    }
    Ok(Some(Head {
        height,
        hash,
        header,
    }))
}

pub(super) fn oldest_state(source: Source<'_>) -> Result<u64, StoreError> {
    match source.get(Family::Meta, schema::META_OLDEST_STATE)? {
        None => Ok(0),
        Some(value) => schema::decode_height(Family::Meta, schema::META_OLDEST_STATE, &value),
    }
}

impl<'a> Source<'a> {
    /// A record that must be there.
    pub(super) fn required(
        &self,
        family: Family,
        key: impl AsRef<[u8]>,
    ) -> Result<rocksdb::DBPinnableSlice<'a>, StoreError> {
        let record = self.get(family, key.as_ref())?;
        record.ok_or_else(|| StoreError::Missing {
            family: family.name(),
            key: hex::encode(key),
        })
    }

    pub(super) fn head_record(&self) -> Result<Option<(u64, B256)>, StoreError> {
        let head = self.get(Family::Meta, schema::META_HEAD)?;
        head.map(|value| schema::decode_head(&value)).transpose()
    }

    pub(super) fn header_record(&self, height: u64) -> Result<(Header, B256), StoreError> {
        let value = self.required(Family::Headers, height.to_be_bytes())?;
        schema::decode_header(height, &value)
    }

    pub(super) fn account_record(
        &self,
        address: HashedAddress,
    ) -> Result<Option<Account>, StoreError> {
        let family = Family::Accounts;
        let value = self.get(family, address.0)?;
        value
            .map(|value| schema::decode_account(family, address.0.as_slice(), &value))
            .transpose()
    }

    pub(super) fn slot_value(
        &self,
        address: HashedAddress,
        slot: HashedSlot,
    ) -> Result<U256, StoreError> {
        let key = schema::slot_key(address, slot);
        match self.get(Family::Storage, key)? {
            None => Ok(U256::ZERO),
            Some(value) => stored_slot(&key, &value),
        }
    }
}

/// A stored slot is never zero: an empty value is a damaged one.
fn stored_slot(key: &[u8], value: &[u8]) -> Result<U256, StoreError> {
    if value.is_empty() {
        return Err(Family::Storage.corrupt(key, "empty"));
    }
    schema::decode_slot(Family::Storage, key, value)
}

impl StateRead for Source<'_> {
    fn account(&self, address: HashedAddress) -> Result<Option<Account>, StateError> {
        Ok(self.account_record(address)?)
    }

    fn storage(&self, address: HashedAddress, slot: HashedSlot) -> Result<U256, StateError> {
        Ok(self.slot_value(address, slot)?)
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        let code = self.required(Family::Code, code_hash)?;
        if keccak256(&code) != code_hash {
            let error = Family::Code.corrupt(code_hash.as_slice(), "code does not have this hash");
            return Err(error.into());
        }
        Ok(Bytes::copy_from_slice(&code))
    }

    fn block_hash(&self, height: u64) -> Result<Option<B256>, StateError> {
        let key = height.to_be_bytes();
        let value = self.get(Family::Headers, key)?;
        let hash = value.map(|value| match value.get(..32) {
            Some(hash) => Ok(B256::from_slice(hash)),
            None => Err(Family::Headers.corrupt(&key, "shorter than a hash")),
        });
        Ok(hash.transpose()?)
    }
}

impl TrieRead for Source<'_> {
    fn account_node(&self, path: &Nibbles) -> Result<Option<Bytes>, StateError> {
        let node = self.get(Family::AccountNodes, schema::account_node_key(path))?;
        Ok(node.map(|node| Bytes::copy_from_slice(&node)))
    }

    fn storage_node(
        &self,
        address: HashedAddress,
        path: &Nibbles,
    ) -> Result<Option<Bytes>, StateError> {
        let node = self.get(
            Family::StorageNodes,
            schema::storage_node_key(address, path),
        )?;
        Ok(node.map(|node| Bytes::copy_from_slice(&node)))
    }

    fn storage_slots(&self, address: HashedAddress) -> Result<Vec<(HashedSlot, U256)>, StateError> {
        let prefix = address.0.as_slice();
        let records = self.range(Family::Storage, prefix, prefix.len());
        let slots = records.map(|record| {
            let (key, value) = record?;
            match key.get(32..) {
                Some(slot) if slot.len() == 32 => {
                    let slot = HashedSlot(B256::from_slice(slot));
                    Ok((slot, stored_slot(&key, &value)?))
                }
                _ => Err(Family::Storage.corrupt(&key, "key is not 64 bytes")),
            }
        });
        Ok(slots.collect::<Result<_, StoreError>>()?)
    }

    fn storage_node_paths(&self, address: HashedAddress) -> Result<Vec<Nibbles>, StateError> {
        let prefix = address.0.as_slice();
        let records = self.range(Family::StorageNodes, prefix, prefix.len());
        let paths = records.map(|record| schema::storage_node_path(&record?.0));
        Ok(paths.collect::<Result<_, StoreError>>()?)
    }
}

/// The current state with its trie, read by the block thread between commits. Implements [`TrieRead`].
#[derive(Clone)]
pub struct CurrentState {
    inner: Arc<Inner>,
}

impl CurrentState {
    pub(super) const fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }
}

impl std::fmt::Debug for CurrentState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CurrentState").finish_non_exhaustive()
    }
}

impl StateRead for CurrentState {
    fn account(&self, address: HashedAddress) -> Result<Option<Account>, StateError> {
        self.inner.source().account(address)
    }

    fn storage(&self, address: HashedAddress, slot: HashedSlot) -> Result<U256, StateError> {
        self.inner.source().storage(address, slot)
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        self.inner.source().code(code_hash)
    }

    fn block_hash(&self, height: u64) -> Result<Option<B256>, StateError> {
        self.inner.source().block_hash(height)
    }
}

impl TrieRead for CurrentState {
    fn account_node(&self, path: &Nibbles) -> Result<Option<Bytes>, StateError> {
        self.inner.source().account_node(path)
    }

    fn storage_node(
        &self,
        address: HashedAddress,
        path: &Nibbles,
    ) -> Result<Option<Bytes>, StateError> {
        self.inner.source().storage_node(address, path)
    }

    fn storage_slots(&self, address: HashedAddress) -> Result<Vec<(HashedSlot, U256)>, StateError> {
        self.inner.source().storage_slots(address)
    }

    fn storage_node_paths(&self, address: HashedAddress) -> Result<Vec<Nibbles>, StateError> {
        self.inner.source().storage_node_paths(address)
    }
}
