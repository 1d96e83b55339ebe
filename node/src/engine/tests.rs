//! The engine on a real store.

use super::*;
use crate::{
    chain::ChainOptions,
    pool::Origin,
    testing::{Draft, Wallet, open_chain},
};
use std::path::Path;

async fn engine(home: &Path, block_time: Duration) -> Engine {
    let chain = open_chain(&home.join("store"), ChainOptions::default());
    let handle = ChainHandle::start(chain.clone()).unwrap();
    let config = EngineConfig {
        folder: home.join("engine"),
        block_time,
    };
    Engine::start(chain, handle, config).await.unwrap()
}

/// Lets the block thread close the store, so that it can be opened again.
async fn end(engine: Engine) {
    let store = engine.chain.store().clone();
    store.close().unwrap();
    drop((engine, store));
    tokio::time::sleep(Duration::from_millis(200)).await;
}

#[tokio::test]
async fn goes_on_after_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let mut first = engine(home.path(), Duration::ZERO).await;
    for height in 1..=3 {
        first.make_block().await.unwrap();
        assert_eq!(first.height, height);
    }
    let (app_hash, time_ms) = (first.app_hash, first.time_ms);
    end(first).await;
    let mut second = engine(home.path(), Duration::ZERO).await;
    assert_eq!(
        (second.height, second.app_hash, second.time_ms),
        (3, app_hash, time_ms)
    );
    second.make_block().await.unwrap();
    let (header, _) = second.chain.store().header(4).unwrap().unwrap();
    assert_eq!(header.parent_hash, app_hash);
}

#[tokio::test]
async fn a_block_interrupted_before_commit_is_decided_again() {
    let home = tempfile::tempdir().unwrap();
    let mut first = engine(home.path(), Duration::ZERO).await;
    first.make_block().await.unwrap();
    let transaction = Wallet::dev(0).sign(&Draft::default());
    let block = EngineBlock {
        height: 2,
        time_ms: first.time_ms + 5,
        parent_hash: first.app_hash,
        proposer: first.proposer,
        transactions: vec![transaction.raw().clone()],
        signers: first.signers(),
    };
    first.journal.save(&block).unwrap();
    let lost = first
        .handle
        .finalize_block(block.input(), block.hash())
        .await
        .unwrap();
    end(first).await;
    let second = engine(home.path(), Duration::ZERO).await;
    assert_eq!((second.height, second.app_hash), (2, lost.app_hash));
    assert_eq!(
        second
            .chain
            .store()
            .block(2)
            .unwrap()
            .unwrap()
            .transactions
            .len(),
        1
    );
}

#[tokio::test]
async fn a_torn_journal_is_ignored() {
    let home = tempfile::tempdir().unwrap();
    let mut first = engine(home.path(), Duration::ZERO).await;
    first.make_block().await.unwrap();
    end(first).await;
    let path = home.path().join("engine/last_block.rlp");
    let bytes = std::fs::read(&path).unwrap();
    for length in [0, 1, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let mut again = engine(home.path(), Duration::ZERO).await;
        again.make_block().await.unwrap();
        end(again).await;
    }
}

#[tokio::test]
async fn block_time_never_steps_back_with_the_clock() {
    let home = tempfile::tempdir().unwrap();
    let mut engine = engine(home.path(), Duration::ZERO).await;
    engine.make_block().await.unwrap();
    let ahead_ms = now_ms() + 1_000_000;
    engine.time_ms = ahead_ms;
    engine.make_block().await.unwrap();
    assert_eq!(engine.time_ms, ahead_ms);
    let (header, _) = engine.chain.store().header(2).unwrap().unwrap();
    assert_eq!(header.timestamp, ahead_ms / 1_000);
}

#[tokio::test]
async fn the_header_names_the_engines_block() {
    let home = tempfile::tempdir().unwrap();
    let mut engine = engine(home.path(), Duration::ZERO).await;
    engine.make_block().await.unwrap();
    let block = engine.journal.load().unwrap().unwrap();
    let (header, _) = engine.chain.store().header(1).unwrap().unwrap();
    assert_eq!(header.extra_data.as_ref(), block.hash().as_slice());
    assert_eq!(header.timestamp, block.time_ms / 1_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_pace_a_transaction_makes_a_block_and_nothing_else_does() {
    let home = tempfile::tempdir().unwrap();
    let engine = engine(home.path(), Duration::ZERO).await;
    let chain = engine.chain.clone();
    let mut blocks = chain.subscribe_blocks();
    let stop = CancellationToken::new();
    let running = tokio::spawn(engine.run(stop.clone()));
    let waited = tokio::time::timeout(Duration::from_millis(300), blocks.recv()).await;
    assert!(waited.is_err(), "no block without a transaction");
    for nonce in 0..3 {
        let draft = Draft {
            nonce,
            ..Draft::default()
        };
        chain
            .pool()
            .add(Wallet::dev(0).sign(&draft), Origin::Local)
            .unwrap();
        let block = tokio::time::timeout(Duration::from_secs(10), blocks.recv())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(block.outcome.block.header.number, nonce + 1);
        assert_eq!(block.outcome.block.transactions.len(), 1);
    }
    stop.cancel();
    assert_eq!(running.await.unwrap(), Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_its_pace_until_told_to_stop() {
    let home = tempfile::tempdir().unwrap();
    let engine = engine(home.path(), Duration::from_millis(20)).await;
    let chain = engine.chain.clone();
    let mut blocks = chain.subscribe_blocks();
    let stop = CancellationToken::new();
    let running = tokio::spawn(engine.run(stop.clone()));
    for height in 1..=10 {
        assert_eq!(
            blocks.recv().await.unwrap().outcome.block.header.number,
            height
        );
    }
    stop.cancel();
    assert_eq!(running.await.unwrap(), Ok(()));
    let height = chain.store().head().unwrap().height;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(chain.store().head().unwrap().height, height);
}
