use super::{TestChain, options, some_steps};
use crate::store::{Durability, Store, StoreError, StoreOptions};
use std::time::{Duration, Instant};

/// Waits for what a background thread does soon.
fn within_ten_seconds(reached: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(10) {
        if reached() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn every_block_is_durable_when_commit_returns() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(
        folder.path(),
        options(Durability::EveryBlock),
        &some_steps(0),
    );
    for height in 1..=3 {
        chain.commit(&some_steps(height));
        assert_eq!(chain.store.durable_height(), height);
    }
}

#[test]
fn interval_syncs_after_so_many_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let interval = Durability::Interval {
        blocks: 3,
        ms: 3_600_000,
    };
    let mut chain = TestChain::new(folder.path(), options(interval), &some_steps(0));
    chain.commit(&some_steps(1));
    chain.commit(&some_steps(2));
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(chain.store.durable_height(), 0);
    chain.commit(&some_steps(3));
    assert!(within_ten_seconds(|| chain.store.durable_height() == 3));
}

#[test]
fn interval_syncs_after_so_many_milliseconds() {
    let folder = tempfile::tempdir().unwrap();
    let interval = Durability::Interval {
        blocks: 1_000,
        ms: 20,
    };
    let mut chain = TestChain::new(folder.path(), options(interval), &some_steps(0));
    chain.commit(&some_steps(1));
    assert!(within_ten_seconds(|| chain.store.durable_height() == 1));
}

#[test]
fn os_syncs_when_asked_and_at_close() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    // Block 0 is synced in every mode.
    assert!(!chain.store.inner.log.has_unsynced());
    assert_eq!(chain.store.durable_height(), 0);
    chain.commit(&some_steps(1));
    assert!(chain.store.inner.log.has_unsynced());
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(chain.store.durable_height(), 0);
    chain.store.request_sync();
    assert!(within_ten_seconds(|| chain.store.durable_height() == 1));
    chain.commit(&some_steps(2));
    chain.store.sync().unwrap();
    assert_eq!(chain.store.durable_height(), 2);
    chain.commit(&some_steps(3));
    chain.store.close().unwrap();
    assert_eq!(chain.store.durable_height(), 3);
}

#[test]
fn a_failed_sync_is_final() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    chain.commit(&some_steps(1));
    // An error of RocksDB's own making: there is no other way to have one.
    let elsewhere = folder.path().join("missing");
    let fault = rocksdb::DB::open_for_read_only(&rocksdb::Options::default(), elsewhere, true);
    chain.store.inner.log.inject_fault(fault.unwrap_err());
    let next = chain.next(&some_steps(2), 0);
    assert!(matches!(
        chain.store.commit(&next),
        Err(StoreError::Sync(_))
    ));
    assert!(matches!(chain.store.sync(), Err(StoreError::Sync(_))));
    assert!(matches!(chain.store.close(), Err(StoreError::Sync(_))));
    assert_eq!(chain.store.head().unwrap().height, 1);
    assert_eq!(chain.store.durable_height(), 0);
}

#[test]
fn the_log_goes_to_its_own_folder() {
    let folder = tempfile::tempdir().unwrap();
    let wal = tempfile::tempdir().unwrap();
    let apart = StoreOptions {
        wal_folder: Some(wal.path().join("log")),
        ..options(Durability::EveryBlock)
    };
    let data = folder.path().join("data");
    let mut chain = TestChain::new(&data, apart.clone(), &some_steps(0));
    chain.commit(&some_steps(1));
    let is_log = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        path.extension().is_some_and(|extension| extension == "log")
    };
    assert!(
        std::fs::read_dir(wal.path().join("log"))
            .unwrap()
            .any(is_log)
    );
    assert!(!std::fs::read_dir(&data).unwrap().any(is_log));
    drop(chain);
    let store = Store::open(&data, apart).unwrap();
    assert_eq!(store.head().unwrap().height, 1);
}
