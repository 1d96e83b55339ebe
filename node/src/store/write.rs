//! The two writes: block 0, and the block after the head.

use super::{
    Batch, Database, Head, StoreError, StoredBlock, StoredResult,
    database::Source,
    history::Inner,
    schema::{self, Family, Touched},
};
use alloy_consensus::Header;
use alloy_primitives::{B256, Bytes, keccak256};
use alloy_trie::{EMPTY_ROOT_HASH, Nibbles};
use cloister_app::{
    app::GenesisOutcome,
    block::{BlockOutcome, ExecutedBlock, TransactionResult},
    state::ChangeSet,
};
use rocksdb::WriteOptions;
use std::sync::{Arc, atomic::Ordering};

/// A genesis of a million accounts is written in batches of about this size, so that memory stays bounded.
const GENESIS_BATCH_SIZE_BYTES: usize = 16 << 20;
/// Heights of history deleted by one commit: one keeps pace, more catch up after the window was made smaller.
const PRUNED_HEIGHTS_PER_COMMIT_MAX: u64 = 4;

/// Writes the format version into a new store, checks it in an old one.
pub(super) fn check_format(database: &Database) -> Result<(), StoreError> {
    let source = Source {
        database,
        snapshot: None,
    };
    let expected = schema::FORMAT_VERSION;
    let Some(value) = source.get(Family::Meta, schema::META_FORMAT)? else {
        if source.head_record()?.is_some() {
            return Err(StoreError::Missing {
                family: Family::Meta.name(),
                key: hex::encode(schema::META_FORMAT),
            });
        }
        let mut batch = Batch::new(database);
        batch.put(Family::Meta, schema::META_FORMAT, expected.to_be_bytes());
        return write(database, batch, true);
    };
    let bytes = value.as_ref().try_into();
    let bytes = bytes.map_err(|_| Family::Meta.corrupt(schema::META_FORMAT, "length is not 4"))?;
    let found = u32::from_be_bytes(bytes);
    if found != expected {
        return Err(StoreError::FormatVersion { found, expected });
    }
    Ok(())
}

fn write(database: &Database, batch: Batch<'_>, sync: bool) -> Result<(), StoreError> {
    let mut options = WriteOptions::default();
    options.set_sync(sync);
    database.write_opt(batch.writes, &options)?;
    Ok(())
}

impl Inner {
    pub(super) fn init(&self, genesis: &GenesisOutcome) -> Result<(), StoreError> {
        let _writing = self.writing.lock();
        if let Some(head) = self.head.read().as_ref() {
            return Err(StoreError::Initialised {
                height: head.height,
            });
        }
        self.log.check_fault()?;
        check_root(&genesis.header, &genesis.changes, EMPTY_ROOT_HASH)?;
        let database = &*self.database;
        // A genesis has no head until its last batch. What an interrupted one left, perhaps of another network, goes first.
        let mut batch = Batch::new(database);
        if self
            .source()
            .get(Family::Meta, schema::META_UNFINISHED_GENESIS)?
            .is_some()
        {
            for family in Family::ALL {
                if family != Family::Meta {
                    batch.clear(family);
                }
            }
        }
        batch.put(Family::Meta, schema::META_UNFINISHED_GENESIS, []);
        write(database, batch, true)?;

        let mut batch = Batch::new(database);
        put_state(&mut batch, &genesis.changes, &mut |batch| {
            if batch.writes.size_in_bytes() < GENESIS_BATCH_SIZE_BYTES {
                return Ok(());
            }
            write(
                database,
                std::mem::replace(batch, Batch::new(database)),
                false,
            )
        })?;
        put_block(&mut batch, &genesis.header, genesis.hash, None);
        let height = genesis.header.number;
        batch.put(
            Family::Meta,
            schema::META_OLDEST_STATE,
            height.to_be_bytes(),
        );
        batch.delete(Family::Meta, schema::META_UNFINISHED_GENESIS);
        self.oldest_state.store(height, Ordering::SeqCst);
        write(database, batch, false)?;
        self.log.wrote(height);
        self.log.sync()?;
        self.show(
            Head {
                height,
                hash: genesis.hash,
                header: genesis.header.clone(),
            },
            None,
        );
        Ok(())
    }

    pub(super) fn commit(&self, outcome: &BlockOutcome) -> Result<(), StoreError> {
        let _writing = self.writing.lock();
        self.log.check_fault()?;
        let block = &outcome.block;
        let header = &block.header;
        let height = header.number;
        let head = self.head.read().clone();
        let follows = head.as_ref().filter(|head| {
            head.height.checked_add(1) == Some(height) && head.hash == header.parent_hash
        });
        let Some(parent) = follows else {
            return Err(StoreError::NotNext {
                head: head.map(|head| (head.height, head.hash)),
                got: height,
                parent: header.parent_hash,
            });
        };
        check_root(header, &block.changes, parent.header.state_root)?;

        let mut batch = Batch::new(&self.database);
        put_state(&mut batch, &block.changes, &mut |_| Ok(()))?;
        put_history(&mut batch, height, &block.changes);
        put_block(&mut batch, header, outcome.hash, Some(block));
        self.prune(&mut batch, height)?;

        let sync = self.log.syncs_every_block();
        let before = self.generation.fetch_add(1, Ordering::SeqCst);
        assert!(
            before.is_multiple_of(2),
            "one writer at a time, under the lock"
        );
        // After an error the number stays odd: views go the long way, and nothing is committed any more.
        write(&self.database, batch, sync)?;
        if sync {
            self.log.wrote_synced(height);
        } else {
            self.log.wrote(height);
        }
        self.show(
            Head {
                height,
                hash: outcome.hash,
                header: header.clone(),
            },
            Some(block),
        );
        self.generation.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Makes a written block the head.
    fn show(&self, head: Head, block: Option<&ExecutedBlock>) {
        let transactions = block
            .map(|block| &block.transactions[..])
            .unwrap_or_default();
        let stored = StoredBlock {
            hash: head.hash,
            header: head.header.clone(),
            transactions: transactions
                .iter()
                .map(|executed| Arc::clone(&executed.transaction))
                .collect(),
        };
        let receipts = transactions
            .iter()
            .map(|executed| executed.receipt.clone())
            .collect();
        self.recent
            .lock()
            .push(Arc::new(stored), Arc::new(receipts));
        *self.head.write() = Some(Arc::new(head));
    }

    /// Deletes history that no height still served needs: a record at height `h` is needed for heights below `h`.
    fn prune(&self, batch: &mut Batch<'_>, height: u64) -> Result<(), StoreError> {
        let kept = self
            .options
            .history_blocks
            .max(self.options.proof_window_blocks);
        let oldest_wanted = height.saturating_sub(kept);
        let oldest_before = self.oldest_state.load(Ordering::SeqCst);
        let mut oldest = oldest_before;
        while oldest < oldest_wanted
            && oldest.saturating_sub(oldest_before) < PRUNED_HEIGHTS_PER_COMMIT_MAX
        {
            oldest = oldest.saturating_add(1);
            let value = self
                .source()
                .required(Family::ChangesByHeight, oldest.to_be_bytes())?;
            for touched in schema::decode_touched(oldest, &value)? {
                let account = touched.address.0;
                batch.delete(
                    Family::AccountHistory,
                    schema::history_key(account.as_slice(), oldest),
                );
                for slot in touched.slots {
                    let slot = schema::slot_key(touched.address, slot);
                    batch.delete(Family::StorageHistory, schema::history_key(&slot, oldest));
                }
            }
            batch.delete(Family::ChangesByHeight, oldest.to_be_bytes());
        }
        if oldest != oldest_before {
            batch.put(
                Family::Meta,
                schema::META_OLDEST_STATE,
                oldest.to_be_bytes(),
            );
            // Before the deletions can be seen.
            self.oldest_state.store(oldest, Ordering::SeqCst);
        }
        Ok(())
    }
}

/// The root node that is written must be the header's state root: the last moment to notice.
fn check_root(header: &Header, changes: &ChangeSet, root_before: B256) -> Result<(), StoreError> {
    let got = match changes.account_nodes.get(&Nibbles::new()) {
        None => root_before,
        Some(None) => EMPTY_ROOT_HASH,
        Some(Some(node)) => keccak256(node),
    };
    if got != header.state_root {
        return Err(StoreError::StateRoot {
            height: header.number,
            expected: header.state_root,
            got,
        });
    }
    Ok(())
}

/// Current records, code and trie nodes. `after_each` may write the batch out in pieces.
fn put_state<'a>(
    batch: &mut Batch<'a>,
    changes: &ChangeSet,
    after_each: &mut dyn FnMut(&mut Batch<'a>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    for (address, change) in &changes.accounts {
        match &change.after {
            Some(account) => {
                batch.put(Family::Accounts, address.0, schema::encode_account(account))
            }
            None => batch.delete(Family::Accounts, address.0),
        }
        after_each(batch)?;
    }
    for ((address, slot), change) in &changes.storage {
        let key = schema::slot_key(*address, *slot);
        if change.after.is_zero() {
            batch.delete(Family::Storage, key);
        } else {
            batch.put(Family::Storage, key, schema::encode_slot(change.after));
        }
        after_each(batch)?;
    }
    for (hash, code) in &changes.code {
        batch.put(Family::Code, hash, code);
        after_each(batch)?;
    }
    for (path, node) in &changes.account_nodes {
        put_node(
            batch,
            Family::AccountNodes,
            schema::account_node_key(path),
            node,
        );
        after_each(batch)?;
    }
    for ((address, path), node) in &changes.storage_nodes {
        let key = schema::storage_node_key(*address, path);
        put_node(batch, Family::StorageNodes, key, node);
        after_each(batch)?;
    }
    Ok(())
}

fn put_node(batch: &mut Batch<'_>, family: Family, key: Vec<u8>, node: &Option<Bytes>) {
    match node {
        Some(rlp) => batch.put(family, key, rlp),
        None => batch.delete(family, key),
    }
}

/// What the block replaced, by key and height, and the list of those keys.
fn put_history(batch: &mut Batch<'_>, height: u64, changes: &ChangeSet) {
    let mut all_touched = Vec::with_capacity(changes.accounts.len());
    let mut slots = changes.storage.iter().peekable();
    for (address, change) in &changes.accounts {
        let before = change
            .before
            .as_ref()
            .map(schema::encode_account)
            .unwrap_or_default();
        let key = schema::history_key(address.0.as_slice(), height);
        batch.put(Family::AccountHistory, key, before);
        let mut touched = Touched {
            address: *address,
            slots: Vec::new(),
        };
        while let Some(((_, slot), change)) = slots.next_if(|((owner, _), _)| owner == address) {
            let key = schema::history_key(&schema::slot_key(*address, *slot), height);
            batch.put(
                Family::StorageHistory,
                key,
                schema::encode_slot(change.before),
            );
            touched.slots.push(*slot);
        }
        all_touched.push(touched);
    }
    assert!(
        slots.next().is_none(),
        "an account with changed slots has a changed storage root"
    );
    let key = height.to_be_bytes();
    batch.put(
        Family::ChangesByHeight,
        key,
        schema::encode_touched(all_touched),
    );
}

/// The block's own records and the head. Block 0 has no transactions.
fn put_block(batch: &mut Batch<'_>, header: &Header, hash: B256, block: Option<&ExecutedBlock>) {
    let height = header.number;
    let key = height.to_be_bytes();
    let transactions = block
        .map(|block| &block.transactions[..])
        .unwrap_or_default();
    let results = block.map(|block| &block.results[..]).unwrap_or_default();
    batch.put(Family::Headers, key, schema::encode_header(hash, header));
    let body = transactions.iter().map(|executed| &executed.transaction);
    batch.put(Family::Bodies, key, schema::encode_body(body));
    let receipts = transactions.iter().map(|executed| &executed.receipt);
    batch.put(Family::Receipts, key, schema::encode_receipts(receipts));
    batch.put(
        Family::Results,
        key,
        schema::encode_results(results.iter().map(stored_result)),
    );
    batch.put(Family::HeightByHash, hash, key);
    for (index, executed) in (0u32..).zip(transactions) {
        let location = schema::encode_location(height, index);
        batch.put(Family::TxIndex, executed.transaction.hash(), location);
    }
    batch.put(
        Family::Meta,
        schema::META_HEAD,
        schema::encode_head(height, hash),
    );
}

fn stored_result(result: &TransactionResult) -> StoredResult {
    StoredResult {
        code: result.code,
        gas_wanted: result.gas_wanted,
        gas_used: result.gas_used,
        placement: result
            .placement
            .as_ref()
            .copied()
            .map_err(ToString::to_string),
    }
}
