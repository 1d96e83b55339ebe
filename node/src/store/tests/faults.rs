//! A damaged record is an error, never a default value.

use super::{TestChain, address, options, some_steps};
use crate::store::{
    Durability, Store, StoreError, database,
    schema::{self, Family},
};
use alloy_primitives::U256;
use cloister_app::state::{HashedAddress, HashedSlot, StateRead, TrieRead};
use std::path::Path;

fn chain_of_three(folder: &Path) -> TestChain {
    let mut chain = TestChain::new(folder, options(Durability::Os), &some_steps(0));
    for height in 1..=3 {
        chain.commit(&some_steps(height));
    }
    chain
}

/// Overwrites every record of a family.
fn spoil(store: &Store, family: Family, spoilt: impl Fn(&[u8]) -> Vec<u8>) {
    let database = &store.inner.database;
    let handle = database::handle(database, family);
    let records: Vec<_> = database
        .iterator_cf(handle, rocksdb::IteratorMode::Start)
        .map(Result::unwrap)
        .collect();
    for (key, value) in records {
        database.put_cf(handle, key, spoilt(&value)).unwrap();
    }
}

fn truncated(value: &[u8]) -> Vec<u8> {
    value[..value.len().saturating_sub(1)].to_vec()
}

fn reopen(folder: &Path) -> Result<Store, StoreError> {
    Store::open(folder, options(Durability::Os))
}

/// RocksDB itself looks at no more than the first sixteen table files when it opens.
#[test]
fn a_lost_or_short_table_file_is_found_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    // Two files to a family: from four on RocksDB would merge them under our hands.
    for height in 1..=2 {
        chain.commit(&some_steps(height));
        let database = &chain.store.inner.database;
        for family in Family::ALL {
            database
                .flush_cf(database::handle(database, family))
                .unwrap();
        }
    }
    let files = chain.store.inner.database.live_files().unwrap();
    assert!(files.len() > 16, "only {} files", files.len());
    drop(chain);
    for file in files {
        let path = folder.path().join(file.name.trim_start_matches('/'));
        let whole = std::fs::read(&path).unwrap();
        for damaged in [None, Some(&whole[..whole.len() - 1])] {
            match damaged {
                None => std::fs::remove_file(&path).unwrap(),
                Some(part) => std::fs::write(&path, part).unwrap(),
            }
            let error = reopen(folder.path()).expect_err("a damaged store");
            let name = file.name.trim_start_matches('/');
            assert!(error.to_string().contains(name), "{error}");
            assert!(error.hint().is_some(), "{error}");
        }
        std::fs::write(&path, whole).unwrap();
    }
    reopen(folder.path()).unwrap();
}

#[test]
fn a_damaged_block_record_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let chain = chain_of_three(folder.path());
    let hash = chain.store.head().unwrap().hash;
    let block = chain.store.block(2).unwrap().unwrap();
    drop(chain);
    let store = reopen(folder.path()).unwrap();
    for family in [
        Family::Headers,
        Family::Bodies,
        Family::Receipts,
        Family::Results,
        Family::HeightByHash,
        Family::TxIndex,
    ] {
        spoil(&store, family, truncated);
    }
    assert!(matches!(
        store.header(2),
        Err(StoreError::Corrupt {
            family: "headers",
            ..
        })
    ));
    assert!(store.block(2).is_err());
    assert!(matches!(
        store.receipts(2),
        Err(StoreError::Corrupt {
            family: "receipts",
            ..
        })
    ));
    assert!(matches!(
        store.results(2),
        Err(StoreError::Corrupt {
            family: "results",
            ..
        })
    ));
    assert!(matches!(
        store.height_by_hash(hash),
        Err(StoreError::Corrupt {
            family: "height_by_hash",
            ..
        })
    ));
    let location = store.transaction_location(block.transactions[0].hash());
    assert!(matches!(
        location,
        Err(StoreError::Corrupt {
            family: "tx_index",
            ..
        })
    ));
}

#[test]
fn a_header_whose_bytes_changed_has_another_hash() {
    let folder = tempfile::tempdir().unwrap();
    drop(chain_of_three(folder.path()));
    let store = reopen(folder.path()).unwrap();
    spoil(&store, Family::Headers, |value| {
        let mut value = value.to_vec();
        value[100] ^= 1;
        value
    });
    let error = store.header(2).unwrap_err();
    assert!(
        error.to_string().contains("does not have the stored hash"),
        "{error}"
    );
    drop(store);
    assert!(matches!(
        reopen(folder.path()),
        Err(StoreError::Corrupt {
            family: "headers",
            ..
        })
    ));
}

#[test]
fn a_missing_block_record_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    drop(chain_of_three(folder.path()));
    let store = reopen(folder.path()).unwrap();
    let database = &store.inner.database;
    let key = 2u64.to_be_bytes();
    for family in [
        Family::Headers,
        Family::Bodies,
        Family::Receipts,
        Family::Results,
    ] {
        database
            .delete_cf(database::handle(database, family), key)
            .unwrap();
    }
    assert!(matches!(
        store.header(2),
        Err(StoreError::Missing {
            family: "headers",
            ..
        })
    ));
    assert!(matches!(
        store.receipts(2),
        Err(StoreError::Missing {
            family: "receipts",
            ..
        })
    ));
    assert!(matches!(
        store.results(2),
        Err(StoreError::Missing {
            family: "results",
            ..
        })
    ));
    assert!(store.block(2).is_err());
}

#[test]
fn a_damaged_state_record_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let chain = chain_of_three(folder.path());
    for family in [
        Family::Accounts,
        Family::Storage,
        Family::Code,
        Family::AccountHistory,
    ] {
        spoil(&chain.store, family, truncated);
    }
    spoil(&chain.store, Family::StorageHistory, |_| vec![0, 1]);
    let owner = HashedAddress::from(address(2));
    let slot = HashedSlot::from(U256::from(1));
    let latest = chain.store.state_latest().unwrap();
    assert!(latest.account(owner).is_err());
    assert!(latest.storage(owner, slot).is_err());
    let code = alloy_primitives::keccak256(b"some code");
    assert!(latest.code(code).is_err());
    assert!(
        latest
            .code(alloy_primitives::keccak256(b"unknown"))
            .is_err()
    );
    assert!(chain.store.current().storage_slots(owner).is_err());
    let old = chain.store.state_at(1).unwrap();
    assert!(old.account(owner).is_err());
    assert!(old.storage(owner, slot).is_err());
}

#[test]
fn damaged_history_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let chain = chain_of_three(folder.path());
    spoil(&chain.store, Family::AccountHistory, |value| {
        [value, &[0]].concat()
    });
    spoil(&chain.store, Family::StorageHistory, |_| vec![0, 1]);
    let owner = HashedAddress::from(address(2));
    let old = chain.store.state_at(1).unwrap();
    assert!(old.account(owner).is_err());
    assert!(old.storage(owner, HashedSlot::from(U256::from(1))).is_err());
    assert!(chain.store.proof(1, address(2), &[U256::from(1)]).is_err());
    spoil(&chain.store, Family::ChangesByHeight, truncated);
    assert!(matches!(
        chain.store.proof(1, address(2), &[]),
        Err(StoreError::Corrupt {
            family: "changes_by_height",
            ..
        })
    ));
}

#[test]
fn a_damaged_head_record_keeps_the_store_shut() {
    for spoilt in [
        &[][..],
        &[0; 39],
        &schema::encode_head(2, Default::default()),
        &schema::encode_head(3, Default::default()),
        &schema::encode_head(9, Default::default()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let chain = chain_of_three(folder.path());
        let database = &chain.store.inner.database;
        let meta = database::handle(database, Family::Meta);
        database.put_cf(meta, schema::META_HEAD, spoilt).unwrap();
        drop(chain);
        assert!(
            reopen(folder.path()).is_err(),
            "head record {}",
            hex::encode(spoilt)
        );
    }
}

#[test]
fn a_state_without_the_heads_root_keeps_the_store_shut() {
    let folder = tempfile::tempdir().unwrap();
    let chain = chain_of_three(folder.path());
    let database = &chain.store.inner.database;
    database
        .delete_cf(database::handle(database, Family::AccountNodes), [])
        .unwrap();
    drop(chain);
    let error = reopen(folder.path()).unwrap_err();
    assert!(
        matches!(error, StoreError::StateRoot { height: 3, .. }),
        "{error}"
    );
}

#[test]
fn another_format_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let chain = chain_of_three(folder.path());
    let database = &chain.store.inner.database;
    let meta = database::handle(database, Family::Meta);
    database
        .put_cf(meta, schema::META_FORMAT, 2u32.to_be_bytes())
        .unwrap();
    drop(chain);
    let error = reopen(folder.path()).unwrap_err();
    assert_eq!(error.to_string(), "store format 2, this build reads 1");
}

#[test]
fn a_chain_without_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let chain = chain_of_three(folder.path());
    let database = &chain.store.inner.database;
    database
        .delete_cf(
            database::handle(database, Family::Meta),
            schema::META_FORMAT,
        )
        .unwrap();
    drop(chain);
    assert!(matches!(
        reopen(folder.path()),
        Err(StoreError::Missing { family: "meta", .. })
    ));
}

/// Flips one byte at a time in the table files: every read then gives what was written or fails.
#[test]
fn a_flipped_bit_on_disk_is_never_a_default() {
    let folder = tempfile::tempdir().unwrap();
    let chain = chain_of_three(folder.path());
    let owner = HashedAddress::from(address(2));
    let slot = HashedSlot::from(U256::from(1));
    let view = chain.store.state_latest().unwrap();
    let expected = (
        view.account(owner).unwrap(),
        view.storage(owner, slot).unwrap(),
    );
    let expected_header = chain.store.header(2).unwrap();
    chain.store.close().unwrap();
    drop((chain, view));
    let tables: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sst"))
        .collect();
    assert!(!tables.is_empty());
    let mut failures = 0;
    for table in &tables {
        let bytes = std::fs::read(table).unwrap();
        for at in [0, bytes.len() / 4, bytes.len() / 2] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            std::fs::write(table, flipped).unwrap();
            let read = || {
                let store = reopen(folder.path())?;
                let view = store.state_latest()?;
                let got = (view.account(owner)?, view.storage(owner, slot)?);
                Ok::<_, StoreError>((got, store.header(2)?))
            };
            match read() {
                Ok((got, header)) => {
                    assert_eq!(got, expected, "byte {at} of {table:?}");
                    assert_eq!(header, expected_header, "byte {at} of {table:?}");
                }
                Err(_) => failures += 1,
            }
            std::fs::write(table, &bytes).unwrap();
        }
    }
    assert_ne!(failures, 0, "some flipped byte was read");
}
