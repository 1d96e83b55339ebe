//! The pool together with blocks.

use super::*;
use crate::pool::{Origin, Placement};
use cloister_app::rejection::Rejection;

fn transfer(nonce: u64) -> Draft {
    Draft {
        nonce,
        ..Draft::default()
    }
}

/// D15, D20: what waited for a gap is announced when it closes, then included, and nothing stays behind.
#[tokio::test]
async fn a_gap_that_closes_is_announced_and_included() {
    let rig = Rig::new(ChainOptions::default()).await;
    let (pool, wallet) = (rig.chain.pool(), Wallet::dev(0));
    let mut announced = pool.subscribe_pending();
    let second = wallet.sign(&transfer(1));
    assert_eq!(
        pool.add(second.clone(), Origin::Local),
        Ok(Placement::Queued)
    );
    assert_eq!(pool.pending_nonce(wallet.address()), Some(0));
    assert!(announced.try_recv().is_err());
    let (empty, _) = rig.make_block().await;
    assert!(empty.transactions.is_empty(), "a gap is not proposed");

    let first = wallet.sign(&transfer(0));
    assert_eq!(
        pool.add(first.clone(), Origin::Local),
        Ok(Placement::Pending)
    );
    assert_eq!(announced.try_recv().unwrap().hash(), first.hash());
    assert_eq!(announced.try_recv().unwrap().hash(), second.hash());
    assert_eq!(pool.pending_nonce(wallet.address()), Some(2));
    let (block, _) = rig.make_block().await;
    assert_eq!(
        block.transactions,
        [first.raw().clone(), second.raw().clone()]
    );
    assert_eq!(pool.size(), (0, 0));
    assert_eq!(pool.pending_nonce(wallet.address()), None);
    assert_eq!(pool.recheck(&first.hash()), Err(Rejection::NoLongerInPool));
}

/// D18.
#[tokio::test]
async fn what_a_drained_balance_dropped_can_be_sent_again_after_a_refund() {
    let rig = Rig::new(ChainOptions::default()).await;
    let (pool, rich, wallet) = (rig.chain.pool(), Wallet::dev(0), Wallet::numbered(77));
    let cost = U256::from(21_000 * 10 * GWEI);
    let fund = |nonce: u64| Draft {
        to: TxKind::Call(wallet.address()),
        value: cost * U256::from(3),
        ..transfer(nonce)
    };
    pool.add(rich.sign(&fund(0)), Origin::Local).unwrap();
    rig.make_block().await;
    let victim = wallet.sign(&transfer(1));
    pool.add(victim.clone(), Origin::Local).unwrap();
    // Another way than through the pool: a proposer of another node included this one.
    let drain = Draft {
        value: cost * U256::from(2),
        ..transfer(0)
    };
    rig.decide(rig.input(vec![wallet.raw(&drain)])).await;
    assert_eq!(pool.recheck(&victim.hash()), Err(Rejection::NoLongerInPool));
    assert!(matches!(
        pool.add(victim.clone(), Origin::Local),
        Err(Rejection::InsufficientFunds { .. })
    ));
    pool.add(rich.sign(&fund(1)), Origin::Local).unwrap();
    rig.make_block().await;
    assert_eq!(
        pool.add(victim.clone(), Origin::Local),
        Ok(Placement::Pending)
    );
    let (block, _) = rig.make_block().await;
    assert_eq!(block.transactions, [victim.raw().clone()]);
}

/// Our own transaction comes back by CheckTx when it is handed to CometBFT.
#[tokio::test]
async fn a_known_transaction_is_an_error_for_a_wallet_and_fine_from_a_peer() {
    let rig = Rig::new(ChainOptions::default()).await;
    let pool = rig.chain.pool();
    let transaction = Wallet::dev(0).sign(&transfer(0));
    pool.add(transaction.clone(), Origin::Local).unwrap();
    assert_eq!(
        pool.add(transaction.clone(), Origin::Local),
        Err(Rejection::AlreadyKnown)
    );
    assert_eq!(pool.add(transaction, Origin::Peer), Ok(Placement::Pending));
}

#[tokio::test]
async fn admission_applies_the_rules_of_state() {
    let rig = Rig::new(ChainOptions::default()).await;
    let pool = rig.chain.pool();
    rig.decide(rig.input(workload(1))).await;
    assert!(matches!(
        pool.add(
            Wallet::dev(0).sign(&Draft {
                value: U256::ZERO,
                ..transfer(0)
            }),
            Origin::Local
        ),
        Err(Rejection::NonceTooLow {
            expected: 1,
            got: 0
        })
    ));
    assert!(matches!(
        pool.add(Wallet::numbered(5).sign(&transfer(0)), Origin::Local),
        Err(Rejection::InsufficientFunds { .. })
    ));
    let cheap = Draft {
        fee_cap_wei: GWEI - 1,
        tip_wei: 0,
        ..transfer(1)
    };
    assert!(matches!(
        pool.add(Wallet::dev(0).sign(&cheap), Origin::Local),
        Err(Rejection::FeeCapBelowBaseFee { .. })
    ));
    assert_eq!(pool.size(), (0, 0));
}

#[tokio::test]
async fn content_lists_what_runs_and_what_waits() {
    let rig = Rig::new(ChainOptions::default()).await;
    let (pool, wallet) = (rig.chain.pool(), Wallet::dev(2));
    for nonce in [0, 1, 5] {
        pool.add(wallet.sign(&transfer(nonce)), Origin::Local)
            .unwrap();
    }
    let content = pool.content();
    assert_eq!(content.len(), 1);
    assert_eq!(content[0].sender, wallet.address());
    assert_eq!((content[0].pending.len(), content[0].queued.len()), (2, 1));
    assert!(pool.content_of(Wallet::dev(3).address()).pending.is_empty());
}

/// Admission races with commits: nothing is lost, nothing stale stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn admission_while_blocks_are_made_loses_nothing() {
    const COUNT: u64 = 60;
    let rig = Rig::new(ChainOptions::default()).await;
    let senders: Vec<_> = (0..3)
        .map(|index| {
            let pool = rig.chain.pool().clone();
            std::thread::spawn(move || {
                let wallet = Wallet::dev(index);
                for nonce in 0..COUNT {
                    let transaction = wallet.sign(&transfer(nonce));
                    while pool.add(transaction.clone(), Origin::Local) == Err(Rejection::PoolFull) {
                    }
                    assert!(
                        pool.get(&transaction.hash()).is_some()
                            || pool
                                .pending_nonce(wallet.address())
                                .is_none_or(|next| next > nonce)
                    );
                }
            })
        })
        .collect();
    while senders.iter().any(|sender| !sender.is_finished()) || rig.chain.pool().size() != (0, 0) {
        rig.make_block().await;
    }
    for sender in senders {
        sender.join().unwrap();
    }
    for index in 0..3 {
        assert_eq!(rig.nonce(Wallet::dev(index).address()), COUNT);
    }
}
