use super::{Model, Step, TestChain, address, check_account, options, some_steps};
use crate::store::{
    Durability, StateView, Store, StoreError, StoreOptions, history::account_before,
};
use alloy_primitives::U256;
use cloister_app::state::{HashedAddress, HashedSlot, StateRead};
use proptest::{collection, prelude::*};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

fn check_view(view: &StateView, model: &Model) {
    for name in (0u8..12).chain([99]) {
        let hashed = HashedAddress::from(address(name));
        check_account(view.account(hashed).unwrap(), model, name);
        for slot in 0u8..12 {
            let got = view
                .storage(hashed, HashedSlot::from(U256::from(slot)))
                .unwrap();
            let slots = model.get(&name).map(|(_, slots)| slots);
            let expected = slots
                .and_then(|slots| slots.get(&slot))
                .copied()
                .unwrap_or_default();
            assert_eq!(got, U256::from(expected), "account {name} slot {slot}");
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let slots = collection::btree_map(0u8..12, 0u8..4, 0..10);
    prop_oneof![
        (1u64..9).prop_map(Step::Fund),
        slots.clone().prop_map(Step::Write),
        Just(Step::Destroy),
        slots.prop_map(Step::Recreate),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn state_at_every_height_is_the_models(blocks in collection::vec(collection::btree_map(0u8..12, step(), 0..8), 1..12)) {
        let folder = tempfile::tempdir().unwrap();
        let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
        let mut early_views = vec![chain.store.state_latest().unwrap()];
        for block in &blocks {
            chain.commit(block);
            early_views.push(chain.store.state_latest().unwrap());
        }
        for (height, model) in chain.models.iter().enumerate() {
            // Taken while it was the head, and taken now.
            check_view(&early_views[height], model);
            check_view(&chain.store.state_at(u64::try_from(height).unwrap()).unwrap(), model);
        }
    }
}

#[test]
fn heights_outside_what_is_kept_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let window = StoreOptions {
        history_blocks: 3,
        proof_window_blocks: 5,
        ..options(Durability::Os)
    };
    let mut chain = TestChain::new(folder.path(), window.clone(), &some_steps(0));
    for height in 1..=20 {
        chain.commit(&some_steps(height));
    }
    // The proof window is the longer one, so history is kept that long.
    assert_eq!(chain.store.oldest_state_height(), 15);
    for height in 15..=20u64 {
        let model = &chain.models[usize::try_from(height).unwrap()];
        check_view(&chain.store.state_at(height).unwrap(), model);
    }
    let error = chain.store.state_at(14).unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::HistoryPruned {
                height: 14,
                oldest: 15
            }
        ),
        "{error}"
    );
    let error = chain.store.state_at(21).unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::AboveHead {
                height: 21,
                head: 20
            }
        ),
        "{error}"
    );
    drop(chain);
    let store = Store::open(folder.path(), window).unwrap();
    assert_eq!(store.oldest_state_height(), 15);
}

#[test]
fn a_view_that_pruning_overtook_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let window = StoreOptions {
        history_blocks: 2,
        proof_window_blocks: 2,
        ..options(Durability::Os)
    };
    let mut chain = TestChain::new(folder.path(), window, &some_steps(0));
    let view = chain.store.state_latest().unwrap();
    for height in 1..=4 {
        chain.commit(&some_steps(height));
    }
    let error = view.account(HashedAddress::from(address(1))).unwrap_err();
    let error = error.0.downcast_ref::<StoreError>();
    assert!(
        matches!(
            error,
            Some(StoreError::HistoryPruned {
                height: 0,
                oldest: 2
            })
        ),
        "{error:?}"
    );
}

#[test]
fn a_smaller_window_is_caught_up_with_a_few_heights_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    for height in 1..=20 {
        chain.commit(&some_steps(height));
    }
    let models = chain.models.clone();
    drop(chain);
    let window = StoreOptions {
        history_blocks: 4,
        proof_window_blocks: 1,
        ..options(Durability::Os)
    };
    let mut chain = TestChain {
        store: Store::open(folder.path(), window).unwrap(),
        models,
    };
    chain.commit(&some_steps(21));
    assert_eq!(chain.store.oldest_state_height(), 4);
    for height in 22..=30 {
        chain.commit(&some_steps(height));
    }
    assert_eq!(chain.store.oldest_state_height(), 26);
    check_view(&chain.store.state_at(26).unwrap(), &chain.models[26]);
}

#[test]
fn pruned_history_leaves_no_records() {
    use crate::store::{database, schema::Family};
    let folder = tempfile::tempdir().unwrap();
    let window = StoreOptions {
        history_blocks: 2,
        proof_window_blocks: 2,
        ..options(Durability::Os)
    };
    let mut chain = TestChain::new(folder.path(), window, &some_steps(0));
    for height in 1..=30 {
        chain.commit(&some_steps(height));
    }
    let database = &chain.store.inner.database;
    for family in [
        Family::AccountHistory,
        Family::StorageHistory,
        Family::ChangesByHeight,
    ] {
        let handle = database::handle(database, family);
        for record in database.iterator_cf(handle, rocksdb::IteratorMode::Start) {
            let (key, _) = record.unwrap();
            let height = key.last_chunk::<8>().copied().map(u64::from_be_bytes);
            assert!(height > Some(28), "{} {}", family.name(), hex::encode(&key));
        }
    }
}

/// Two interleavings that no amount of luck is needed for: a block is committed just before the first read of a view, and
/// between its two reads.
#[test]
fn a_commit_between_the_two_reads_of_a_view_is_seen_through() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    let owner = HashedAddress::from(address(1));
    for commit_first in [true, false] {
        let view = chain.store.state_latest().unwrap();
        let height = view.height();
        let mut commit = || chain.commit(&BTreeMap::from([(1, Step::Fund(height + 50))]));
        let account = view.read(
            |source| {
                if commit_first {
                    commit();
                }
                let account = source.account_record(owner);
                if !commit_first {
                    commit();
                }
                account
            },
            |source| account_before(source, owner, height),
        );
        let model = &chain.models[usize::try_from(height).unwrap()];
        check_account(account.unwrap(), model, 1);
    }
}

#[test]
fn views_do_not_move_while_blocks_are_committed() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    for height in 1..=5 {
        chain.commit(&some_steps(height));
    }
    let store = chain.store.clone();
    let models = chain.models.clone();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut checks = 0;
                    let mut old = Vec::new();
                    while !done.load(Ordering::SeqCst) {
                        for height in 0..=5u64 {
                            let model = &models[usize::try_from(height).unwrap()];
                            check_view(&store.state_at(height).unwrap(), model);
                        }
                        // The balance of account 1 names the height: a view must be whole and stay what it was.
                        let view = store.state_latest().unwrap();
                        old.push(view);
                        for view in &old {
                            let account = view.account(HashedAddress::from(address(1))).unwrap();
                            let balance = account.unwrap().balance;
                            assert_eq!(balance, U256::from(view.height() + 1));
                        }
                        if old.len() > 50 {
                            old.clear();
                        }
                        checks += 1;
                    }
                    checks
                })
            })
            .collect();
        for height in 6..=150 {
            let mut steps: BTreeMap<u8, Step> = some_steps(height);
            steps.insert(1, Step::Fund(height + 1));
            chain.commit(&steps);
        }
        done.store(true, Ordering::SeqCst);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
}
