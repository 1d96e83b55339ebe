//! What ends the process, and with which code.

use super::*;

fn exit_code<T: std::fmt::Debug>(result: Result<T, Fatal>) -> u8 {
    result.unwrap_err().exit_code
}

#[tokio::test]
async fn commit_without_finalize_is_a_fault() {
    let rig = Rig::new(ChainOptions::default()).await;
    assert_eq!(exit_code(rig.handle.commit().await), 70);
}

#[tokio::test]
async fn finalize_of_another_height_than_the_next_is_a_fault() {
    for height in [0, 2] {
        let rig = Rig::new(ChainOptions::default()).await;
        let result = rig
            .handle
            .finalize_block(input(height, Vec::new()), B256::ZERO)
            .await;
        assert_eq!(exit_code(result), 70, "height {height}");
    }
}

#[tokio::test]
async fn a_block_before_init_chain_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let chain = open_chain(folder.path(), ChainOptions::default());
    let handle = ChainHandle::start(chain).unwrap();
    assert_eq!(handle.info().await, Ok((0, B256::ZERO)));
    assert_eq!(
        exit_code(
            handle
                .finalize_block(input(1, Vec::new()), B256::ZERO)
                .await
        ),
        70
    );
}

#[tokio::test]
async fn a_fault_answers_every_later_call_and_is_told() {
    let rig = Rig::new(ChainOptions::default()).await;
    let fault = rig.handle.commit().await.unwrap_err();
    assert_eq!(rig.handle.info().await, Err(fault.clone()));
    assert_eq!(rig.handle.failed().await, fault);
}

#[tokio::test]
async fn a_panic_of_the_block_thread_is_a_fault() {
    let rig = Rig::new(ChainOptions::default()).await;
    let result: Result<(), Fatal> = rig.handle.call(|_| panic!("a bug of ours")).await;
    let fault = result.unwrap_err();
    assert_eq!(fault.exit_code, 70);
    assert!(fault.report.contains("a bug of ours"));
    assert_eq!(rig.handle.failed().await, fault);
}

#[tokio::test]
async fn init_chain_again_before_block_1_answers_the_same() {
    let rig = Rig::new(ChainOptions::default()).await;
    let first = rig.init_chain().await.unwrap();
    let rig = rig.restart(ChainOptions::default()).await;
    assert_eq!(rig.handle.info().await, Ok((0, first.app_hash)));
    assert_eq!(rig.init_chain().await.unwrap(), first);
    assert_eq!(first.validators.len(), 1);
}

#[tokio::test]
async fn init_chain_over_a_store_that_has_blocks_is_refused() {
    let rig = Rig::new(ChainOptions::default()).await;
    rig.decide(rig.input(Vec::new())).await;
    assert_eq!(exit_code(rig.init_chain().await), 78);
}

#[tokio::test]
async fn init_chain_of_another_genesis_is_refused() {
    let other_chain_id = Bytes::from(
        format!(
            r#"{{"genesis_sha256":"{}","evm_chain_id":1}}"#,
            alloy_primitives::hex::encode(GENESIS_SHA256)
        )
        .into_bytes(),
    );
    for app_state in [
        app_state(B256::repeat_byte(1)),
        other_chain_id,
        Bytes::from_static(b"{}"),
        Bytes::new(),
    ] {
        let rig = Rig::new(ChainOptions::default()).await;
        let result = rig
            .handle
            .init_chain("cloister-test".to_owned(), app_state, 1)
            .await;
        assert_eq!(exit_code(result), 78);
    }
}

#[tokio::test]
async fn init_chain_at_another_height_than_1_is_refused() {
    let rig = Rig::new(ChainOptions::default()).await;
    let state = app_state(GENESIS_SHA256);
    let result = rig
        .handle
        .init_chain("cloister-test".to_owned(), state, 7)
        .await;
    assert_eq!(exit_code(result), 78);
}

/// Invariant 7.
#[tokio::test]
async fn retain_height_follows_the_configured_window_and_never_passes_the_durable_height() {
    let options = ChainOptions {
        retain_blocks: 3,
        ..ChainOptions::default()
    };
    for (durability, synced) in [(Durability::EveryBlock, true), (Durability::Os, false)] {
        let folder = tempfile::tempdir().unwrap();
        let chain = try_open_chain(folder.path(), options, durability).unwrap();
        let handle = ChainHandle::start(chain.clone()).unwrap();
        let state = app_state(GENESIS_SHA256);
        handle
            .init_chain("cloister-test".to_owned(), state, 1)
            .await
            .unwrap();
        for height in 1..=10 {
            handle
                .finalize_block(input(height, Vec::new()), B256::ZERO)
                .await
                .unwrap();
            let durable_before = chain.store().durable_height();
            let retain_height = handle.commit().await.unwrap();
            assert!(retain_height <= chain.store().durable_height());
            if synced {
                assert_eq!(retain_height, height.saturating_sub(3));
            } else {
                assert!(retain_height >= durable_before.min(height.saturating_sub(3)));
            }
        }
    }
}

#[tokio::test]
async fn all_blocks_are_retained_unless_configured() {
    let rig = Rig::new(ChainOptions::default()).await;
    for _ in 0..5 {
        let hash = B256::ZERO;
        rig.handle
            .finalize_block(rig.input(Vec::new()), hash)
            .await
            .unwrap();
        assert_eq!(rig.handle.commit().await, Ok(0));
    }
}
