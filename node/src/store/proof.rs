//! EIP-1186 proofs at the head and at the heights just below it.
//!
//! The stored trie is the head's. For an older block the values before every change since are laid over it in memory, and
//! the root that comes out must be that block's. All reads go through one RocksDB snapshot, so commits go on beside.

use super::{
    AccountProof, StorageProof, StoreError,
    database::Source,
    history::Inner,
    schema::{self, Family, Touched},
};
use alloy_primitives::{Address, U256};
use cloister_app::{
    state::{HashedAddress, HashedSlot},
    trie::{self, Overlay},
};
use std::collections::BTreeMap;

impl Inner {
    pub(super) fn proof(
        &self,
        height: u64,
        address: Address,
        slots: &[U256],
    ) -> Result<AccountProof, StoreError> {
        let shown = self.head.read().as_ref().map_or(0, |head| head.height);
        let snapshot = self.database.snapshot();
        let source = Source {
            database: &self.database,
            snapshot: Some(&snapshot),
        };
        // A batch may be in the snapshot before its block is the head: the state is that of the snapshot's own head.
        let Some((head, _)) = source.head_record()?.filter(|_| height <= shown) else {
            return Err(StoreError::AboveHead {
                height,
                head: shown,
            });
        };
        let oldest = super::read::oldest_state(source)?
            .max(shown.saturating_sub(self.options.proof_window_blocks));
        if height < oldest {
            return Err(StoreError::HistoryPruned { height, oldest });
        }
        let hashed_address = HashedAddress::from(address);
        let overlay = overlay(source, height, head, hashed_address)?;
        let hashed_slots: Vec<_> = slots.iter().copied().map(HashedSlot::from).collect();
        let proof = trie::prove(&source, &overlay, hashed_address, &hashed_slots)?;
        let (header, _) = source.header_record(height)?;
        if proof.state_root != header.state_root {
            return Err(StoreError::StateRoot {
                height,
                expected: header.state_root,
                got: proof.state_root,
            });
        }
        let storage = slots
            .iter()
            .zip(proof.storage)
            .map(|(slot, proved)| StorageProof {
                slot: *slot,
                value: proved.value,
                proof: proved.proof,
            });
        Ok(AccountProof {
            account: proof.account.unwrap_or_default(),
            account_proof: proof.account_proof,
            storage: storage.collect(),
        })
    }
}

/// Values as block `height` left them, for all accounts changed up to `head` and the slots of one.
fn overlay(
    source: Source<'_>,
    height: u64,
    head: u64,
    address: HashedAddress,
) -> Result<Overlay, StoreError> {
    let mut accounts = BTreeMap::new();
    let mut storage = BTreeMap::new();
    for changed_at in height.saturating_add(1)..=head {
        let value = source.required(Family::ChangesByHeight, changed_at.to_be_bytes())?;
        for touched in schema::decode_touched(changed_at, &value)? {
            let Touched {
                address: owner,
                slots,
            } = touched;
            // The first change above the height has the value we want; later ones do not matter.
            if let std::collections::btree_map::Entry::Vacant(entry) = accounts.entry(owner) {
                let key = schema::history_key(owner.0.as_slice(), changed_at);
                let before = source.required(Family::AccountHistory, &key)?;
                let before = if before.is_empty() {
                    None
                } else {
                    Some(schema::decode_account(
                        Family::AccountHistory,
                        &key,
                        &before,
                    )?)
                };
                entry.insert(before);
            }
            if owner != address {
                continue;
            }
            for slot in slots {
                if let std::collections::btree_map::Entry::Vacant(entry) = storage.entry(slot) {
                    let key = schema::history_key(&schema::slot_key(owner, slot), changed_at);
                    let before = source.required(Family::StorageHistory, &key)?;
                    entry.insert(schema::decode_slot(Family::StorageHistory, &key, &before)?);
                }
            }
        }
    }
    Ok(Overlay { accounts, storage })
}
