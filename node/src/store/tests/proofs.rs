use super::{Step, TestChain, address, options, some_steps};
use crate::store::{Durability, Store, StoreError, StoreOptions};
use alloy_primitives::{B256, KECCAK256_EMPTY, U256, keccak256};
use alloy_trie::{EMPTY_ROOT_HASH, Nibbles, TrieAccount, proof::verify_proof};
use proptest::{collection, prelude::*};
use std::collections::BTreeMap;

/// Checks a proof with a verifier that is not ours, against the header's root and the model's values.
fn check_proof(store: &Store, models: &[super::Model], height: u64, name: u8) {
    let numbers: Vec<u8> = (0..14).collect();
    let slots: Vec<_> = numbers.iter().map(|number| U256::from(*number)).collect();
    let proof = store.proof(height, address(name), &slots).unwrap();
    let (header, _) = store.header(height).unwrap().unwrap();
    let entry = models[usize::try_from(height).unwrap()].get(&name);
    let account = &proof.account;
    let leaf = entry.map(|(balance, _)| {
        assert_eq!(account.balance, U256::from(*balance));
        alloy_rlp::encode(TrieAccount::new(
            account.nonce,
            account.balance,
            account.storage_root,
            account.code_hash,
        ))
    });
    if leaf.is_none() {
        assert_eq!(account.storage_root, EMPTY_ROOT_HASH);
        assert_eq!(account.code_hash, KECCAK256_EMPTY);
    }
    let key = Nibbles::unpack(keccak256(address(name)));
    verify_proof(header.state_root, key, leaf, &proof.account_proof).unwrap();
    for (number, slot) in numbers.iter().zip(&proof.storage) {
        let value = entry
            .and_then(|(_, slots)| slots.get(number))
            .copied()
            .unwrap_or_default();
        assert_eq!(
            (slot.slot, slot.value),
            (U256::from(*number), U256::from(value))
        );
        let key = Nibbles::unpack(keccak256(B256::from(slot.slot)));
        let leaf = (value != 0).then(|| alloy_rlp::encode(slot.value));
        verify_proof(account.storage_root, key, leaf, &slot.proof).unwrap();
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
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn proofs_at_every_height_verify(blocks in collection::vec(collection::btree_map(0u8..12, step(), 0..8), 1..10)) {
        let folder = tempfile::tempdir().unwrap();
        let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
        for block in &blocks {
            chain.commit(block);
        }
        for height in 0..chain.models.len() {
            for name in [0, 1, 2, 3, 4, 99] {
                check_proof(&chain.store, &chain.models, u64::try_from(height).unwrap(), name);
            }
        }
    }
}

#[test]
fn an_account_destroyed_and_recreated_within_the_window_is_proved_at_each_height() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    let slots = |value| {
        (0..10u8)
            .map(|slot| (slot, value))
            .collect::<BTreeMap<_, _>>()
    };
    for steps in [
        Step::Recreate(slots(1)),
        Step::Destroy,
        Step::Fund(5),
        Step::Write(slots(2)),
        Step::Recreate(slots(3)),
        Step::Recreate(BTreeMap::new()),
        Step::Destroy,
    ] {
        chain.commit(&BTreeMap::from([(7, steps)]));
    }
    for height in 0..=7 {
        check_proof(&chain.store, &chain.models, height, 7);
        check_proof(&chain.store, &chain.models, height, 8);
    }
}

#[test]
fn proofs_are_given_in_the_window_and_refused_outside() {
    let folder = tempfile::tempdir().unwrap();
    let window = StoreOptions {
        history_blocks: 1_000,
        proof_window_blocks: 8,
        ..options(Durability::Os)
    };
    let mut chain = TestChain::new(folder.path(), window, &some_steps(0));
    for height in 1..=20 {
        chain.commit(&some_steps(height));
    }
    for height in 12..=20 {
        for name in [1, 2, 4] {
            check_proof(&chain.store, &chain.models, height, name);
        }
    }
    let error = chain.store.proof(11, address(1), &[]).unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::HistoryPruned {
                height: 11,
                oldest: 12
            }
        ),
        "{error}"
    );
    let error = chain.store.proof(21, address(1), &[]).unwrap_err();
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
}

#[test]
fn proofs_verify_while_blocks_are_committed() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    for height in 1..=5 {
        chain.commit(&some_steps(height));
    }
    let store = chain.store.clone();
    let models = chain.models.clone();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            for round in 0..60u64 {
                check_proof(&store, &models, round % 6, 4);
            }
        });
        for height in 6..=60 {
            chain.commit(&some_steps(height));
        }
        reader.join().unwrap();
    });
}

#[test]
fn a_proof_whose_root_is_not_the_headers_is_an_error() {
    use crate::store::{database, schema, schema::Family};
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    chain.commit(&some_steps(1));
    // A well-formed record of another account's past.
    let owner = keccak256(address(1));
    let database = &chain.store.inner.database;
    let handle = database::handle(database, Family::AccountHistory);
    let wrong = schema::encode_account(&cloister_app::state::Account::default());
    database
        .put_cf(handle, schema::history_key(owner.as_slice(), 1), wrong)
        .unwrap();
    let error = chain.store.proof(0, address(3), &[]).unwrap_err();
    assert!(
        matches!(error, StoreError::StateRoot { height: 0, .. }),
        "{error}"
    );
}

#[test]
fn a_proof_of_a_damaged_trie_is_an_error() {
    use crate::store::{database, schema::Family};
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    chain.commit(&some_steps(1));
    let database = &chain.store.inner.database;
    let handle = database::handle(database, Family::AccountNodes);
    let mut root = database.get_cf(handle, []).unwrap().unwrap();
    *root.last_mut().unwrap() ^= 1;
    database.put_cf(handle, [], root).unwrap();
    assert!(chain.store.proof(1, address(1), &[]).is_err());
}
