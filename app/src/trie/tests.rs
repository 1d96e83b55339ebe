#![expect(clippy::disallowed_methods, reason = "tests read their data")]

use super::{
    AccountRecord, AccountUpdate, Overlay, PostState, TrieFault, commit,
    node::Node,
    prove,
    sparse::{self, Update},
    stored_state_root,
};
use crate::state::{
    Account, ChangeSet, HashedAddress, HashedSlot, StateError,
    memory::{FaultyState, InjectedFault, MemoryState},
};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use alloy_trie::{
    EMPTY_ROOT_HASH, HashBuilder, Nibbles, TrieAccount,
    proof::verify_proof,
    root::{state_root, storage_root},
};
use proptest::{collection, prelude::*};
use std::collections::BTreeMap;

/// A stored trie by itself: nodes by path, and the root its owner records.
#[derive(Debug, Clone)]
struct StoredTrie {
    nodes: BTreeMap<Nibbles, Bytes>,
    root: B256,
}

impl StoredTrie {
    fn new() -> Self {
        Self {
            nodes: BTreeMap::new(),
            root: EMPTY_ROOT_HASH,
        }
    }

    fn load(&self) -> impl Fn(&Nibbles) -> Result<Option<Bytes>, StateError> + Sync + '_ {
        |path| Ok(self.nodes.get(path).cloned())
    }

    fn update(&mut self, updates: &BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
        let updates: Vec<Update> = updates
            .iter()
            .map(|(key, value)| (Nibbles::unpack(key), value.clone().map(Bytes::from)))
            .collect();
        let updated = sparse::update(&self.load(), Some(self.root), &updates).unwrap();
        self.root = updated.root;
        for (path, node) in updated.nodes {
            match node {
                Some(node) => assert_ne!(
                    self.nodes.insert(path, node.clone()),
                    Some(node),
                    "{path:?} is written in vain"
                ),
                None => assert!(
                    self.nodes.remove(&path).is_some(),
                    "{path:?} is deleted in vain"
                ),
            }
        }
    }
}

/// Another implementation's root. It has no keys that are prefixes of others.
fn root_from_scratch(pairs: &BTreeMap<Vec<u8>, Vec<u8>>) -> B256 {
    let mut builder = HashBuilder::default();
    for (key, value) in pairs {
        builder.add_leaf(Nibbles::unpack(key), value);
    }
    builder.root()
}

fn apply_to_model(
    model: &mut BTreeMap<Vec<u8>, Vec<u8>>,
    updates: &BTreeMap<Vec<u8>, Option<Vec<u8>>>,
) {
    for (key, value) in updates {
        match value {
            Some(value) => model.insert(key.clone(), value.clone()),
            None => model.remove(key),
        };
    }
}

/// Keys that share long prefixes and values of one byte and more: extensions, splits, collapses and embedded nodes.
fn batches() -> impl Strategy<Value = Vec<BTreeMap<Vec<u8>, Option<Vec<u8>>>>> {
    let byte = prop_oneof![
        Just(0x00u8),
        Just(0x01),
        Just(0x10),
        Just(0x11),
        any::<u8>()
    ];
    let key = collection::vec(byte, 6);
    let value = prop_oneof![
        2 => Just(None),
        2 => collection::vec(1u8..0x80, 1).prop_map(Some),
        1 => collection::vec(any::<u8>(), 33..40).prop_map(Some),
    ];
    collection::vec(collection::btree_map(key, value, 0..80), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn batches_give_the_root_built_from_scratch(batches in batches()) {
        let mut trie = StoredTrie::new();
        let mut model = BTreeMap::new();
        for updates in &batches {
            trie.update(updates);
            apply_to_model(&mut model, updates);
            prop_assert_eq!(trie.root, root_from_scratch(&model));
            // The stored nodes are those of a trie built at once: no more, no fewer.
            let mut fresh = StoredTrie::new();
            fresh.update(&model.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect());
            prop_assert_eq!(&fresh.nodes, &trie.nodes);
        }
    }

    #[test]
    fn walks_verify_and_find_the_value(batches in batches(), strangers in collection::vec(collection::vec(any::<u8>(), 6), 4)) {
        let mut trie = StoredTrie::new();
        let mut model = BTreeMap::new();
        for updates in &batches {
            trie.update(updates);
            apply_to_model(&mut model, updates);
        }
        let touched = batches.iter().flat_map(|updates| updates.keys().cloned());
        for key in touched.chain(strangers) {
            let path = Nibbles::unpack(&key);
            let (proof, value) = sparse::walk(&trie.load(), Some(trie.root), &path).unwrap();
            let expected = model.get(&key).cloned();
            prop_assert_eq!(value.map(|value| value.to_vec()), expected.clone());
            match proof.first() {
                // The verifier knows no root shorter than a hash. Hashed keys never make one: their leaf alone is longer.
                Some(root) if root.len() < 32 => prop_assert_eq!(keccak256(root), trie.root),
                _ => prop_assert!(verify_proof(trie.root, path, expected, &proof).is_ok()),
            }
        }
    }

    #[test]
    fn node_bytes_that_decode_encode_to_themselves(bytes in collection::vec(any::<u8>(), 0..80)) {
        if let Ok(node) = Node::decode(&bytes) {
            prop_assert_eq!(node.encode(), bytes);
        }
    }
}

fn vector_file(name: &str) -> Option<serde_json::Value> {
    let folder = std::env::var("CLOISTER_VECTORS").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/vectors/public").to_owned()
    });
    let path = format!("{folder}/ethereum/TrieTests/{name}");
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(serde_json::from_str(&text).unwrap()),
        Err(_) => {
            println!("not run: trie vectors, no file {path}");
            None
        }
    }
}

fn vector_bytes(text: &str) -> Vec<u8> {
    match text.strip_prefix("0x") {
        Some(digits) => alloy_primitives::hex::decode(digits).unwrap(),
        None => text.as_bytes().to_vec(),
    }
}

/// Keys and values of a case, in file order.
fn vector_pairs(case: &serde_json::Value) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    match &case["in"] {
        serde_json::Value::Array(pairs) => pairs
            .iter()
            .map(|pair| {
                (
                    vector_bytes(pair[0].as_str().unwrap()),
                    pair[1].as_str().map(vector_bytes),
                )
            })
            .collect(),
        serde_json::Value::Object(pairs) => pairs
            .iter()
            .map(|(key, value)| (vector_bytes(key), value.as_str().map(vector_bytes)))
            .collect(),
        other => panic!("pairs expected, got {other}"),
    }
}

fn check_vectors(name: &str, hash_keys: bool) {
    let Some(file) = vector_file(name) else {
        return;
    };
    let cases = file.as_object().unwrap();
    assert!(!cases.is_empty());
    for (case_name, case) in cases {
        let root: B256 = case["root"].as_str().unwrap().parse().unwrap();
        let mut pairs = vector_pairs(case);
        if hash_keys {
            for (key, _) in &mut pairs {
                *key = keccak256(&*key).to_vec();
            }
        }
        let mut one_by_one = StoredTrie::new();
        for (key, value) in &pairs {
            one_by_one.update(&BTreeMap::from([(key.clone(), value.clone())]));
        }
        assert_eq!(one_by_one.root, root, "{name} {case_name}, one by one");
        let mut at_once = StoredTrie::new();
        at_once.update(&pairs.into_iter().collect());
        assert_eq!(at_once.root, root, "{name} {case_name}, at once");
        assert_eq!(at_once.nodes, one_by_one.nodes, "{name} {case_name}");
    }
}

#[test]
fn ethereum_trie_vectors() {
    check_vectors("trietest.json", false);
    check_vectors("trieanyorder.json", false);
    check_vectors("hex_encoded_securetrie_test.json", true);
}

/// A small world in which accounts are funded, written to, destroyed and re-created.
#[derive(Debug, Clone)]
enum Step {
    Fund { balance: u64 },
    Write { slots: BTreeMap<u8, u8> },
    Destroy,
    Recreate { slots: BTreeMap<u8, u8> },
}

fn steps() -> impl Strategy<Value = Vec<BTreeMap<u8, Step>>> {
    let slots = collection::btree_map(0u8..40, 0u8..4, 0..30);
    let step = prop_oneof![
        (1u64..9).prop_map(|balance| Step::Fund { balance }),
        slots.clone().prop_map(|slots| Step::Write { slots }),
        Just(Step::Destroy),
        slots.prop_map(|slots| Step::Recreate { slots }),
    ];
    collection::vec(collection::btree_map(0u8..24, step, 0..12), 1..10)
}

type Model = BTreeMap<u8, (u64, BTreeMap<u8, u8>)>;

fn address(name: u8) -> HashedAddress {
    HashedAddress::from(Address::repeat_byte(name))
}

fn slot(number: u8) -> HashedSlot {
    HashedSlot::from(U256::from(number))
}

fn hashed(slots: &BTreeMap<u8, u8>) -> BTreeMap<HashedSlot, U256> {
    slots
        .iter()
        .map(|(number, value)| (slot(*number), U256::from(*value)))
        .collect()
}

fn record(balance: u64) -> Option<AccountRecord> {
    Some(AccountRecord {
        nonce: balance,
        balance: U256::from(balance),
        code_hash: KECCAK256_EMPTY,
    })
}

fn play(model: &mut Model, block: &BTreeMap<u8, Step>) -> PostState {
    let mut post = PostState::default();
    for (&name, step) in block {
        let update = match step {
            Step::Fund { balance } => {
                model.entry(name).or_default().0 = *balance;
                AccountUpdate {
                    account: record(*balance),
                    ..AccountUpdate::default()
                }
            }
            Step::Write { slots } => {
                let (balance, storage) = model.entry(name).or_default();
                storage.extend(slots);
                AccountUpdate {
                    account: record(*balance),
                    wipe_storage: false,
                    storage: hashed(slots),
                }
            }
            Step::Destroy => {
                model.remove(&name);
                AccountUpdate::default()
            }
            Step::Recreate { slots } => {
                model.insert(name, (1, slots.clone()));
                AccountUpdate {
                    account: record(1),
                    wipe_storage: true,
                    storage: hashed(slots),
                }
            }
        };
        if let Some((_, storage)) = model.get_mut(&name) {
            storage.retain(|_, value| *value != 0);
        }
        post.accounts.insert(address(name), update);
    }
    post
}

fn account_of(balance: u64, slots: &BTreeMap<u8, u8>) -> Account {
    Account {
        nonce: balance,
        balance: U256::from(balance),
        code_hash: KECCAK256_EMPTY,
        storage_root: storage_root(
            hashed(slots)
                .into_iter()
                .map(|(slot, value)| (slot.0, value)),
        ),
    }
}

fn trie_account(account: &Account) -> TrieAccount {
    TrieAccount::new(
        account.nonce,
        account.balance,
        account.storage_root,
        account.code_hash,
    )
}

fn model_root(model: &Model) -> B256 {
    let sorted: BTreeMap<_, _> = model
        .iter()
        .map(|(name, (balance, slots))| {
            (address(*name).0, trie_account(&account_of(*balance, slots)))
        })
        .collect();
    state_root(sorted)
}

/// Values before each change, newest block first, so that the oldest wins.
fn overlay(changes: &[ChangeSet], of: HashedAddress) -> Overlay {
    let mut overlay = Overlay::default();
    for block in changes.iter().rev() {
        for (address, change) in &block.accounts {
            overlay.accounts.insert(*address, change.before);
        }
        for ((address, slot), change) in &block.storage {
            if *address == of {
                overlay.storage.insert(*slot, change.before);
            }
        }
    }
    overlay
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn state_follows_a_model_and_every_block_can_be_proved(blocks in steps()) {
        let mut model = Model::new();
        let mut state = MemoryState::default();
        let mut history = vec![model.clone()];
        let mut changes = Vec::new();
        for block in &blocks {
            let (root, change) = commit(&state, play(&mut model, block)).unwrap();
            state.apply(&change);
            prop_assert_eq!(root, model_root(&model));
            prop_assert_eq!(root, stored_state_root(&state).unwrap());
            history.push(model.clone());
            changes.push(change);
        }
        let stored: usize = model.values().map(|(_, slots)| slots.len()).sum();
        prop_assert_eq!(state.storage.len(), stored);
        for (height, then) in history.iter().enumerate() {
            for name in [0u8, 1, 2, 3, 99] {
                let overlay = overlay(&changes[height..], address(name));
                let numbers: Vec<u8> = (0..42).collect();
                let slots: Vec<_> = numbers.iter().map(|number| slot(*number)).collect();
                let proof = prove(&state, &overlay, address(name), &slots).unwrap();
                prop_assert_eq!(proof.state_root, model_root(then));
                let expected = then.get(&name).map(|(balance, slots)| account_of(*balance, slots));
                prop_assert_eq!(proof.account, expected);
                let leaf = expected.as_ref().map(|account| alloy_rlp::encode(trie_account(account)));
                let key = Nibbles::unpack(address(name).0);
                verify_proof(proof.state_root, key, leaf, &proof.account_proof).unwrap();
                let root = expected.map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
                for (number, slot) in numbers.iter().zip(&proof.storage) {
                    let value = then.get(&name).and_then(|(_, slots)| slots.get(number)).copied().unwrap_or_default();
                    prop_assert_eq!(slot.value, U256::from(value));
                    let leaf = (value != 0).then(|| alloy_rlp::encode(slot.value));
                    verify_proof(root, Nibbles::unpack(slot.slot.0), leaf, &slot.proof).unwrap();
                }
            }
        }
    }
}

fn many_accounts(count: u64) -> PostState {
    let mut post = PostState::default();
    for number in 0..count {
        let key = keccak256(number.to_be_bytes());
        let storage = if number % 100 == 0 {
            (0..20u64)
                .map(|slot| {
                    (
                        HashedSlot(keccak256(slot.to_be_bytes())),
                        U256::from(slot + 1),
                    )
                })
                .collect()
        } else {
            BTreeMap::new()
        };
        let update = AccountUpdate {
            account: record(number + 1),
            wipe_storage: false,
            storage,
        };
        post.accounts.insert(HashedAddress(key), update);
    }
    post
}

#[test]
fn change_sets_are_the_same_for_any_number_of_threads() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let mut state = MemoryState::default();
            let (_, first) = commit(&state, many_accounts(3_000)).unwrap();
            state.apply(&first);
            let mut post = many_accounts(2_000);
            for (index, update) in post.accounts.values_mut().enumerate() {
                if index % 3 == 0 {
                    *update = AccountUpdate::default();
                } else if let Some(record) = &mut update.account {
                    record.nonce += 1;
                }
            }
            (first, commit(&state, post).unwrap())
        })
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(7));
}

#[test]
fn two_hundred_thousand_accounts_at_once_give_the_root_built_from_scratch() {
    let post = many_accounts(200_000);
    let slots = (0..20u64).map(|slot| (keccak256(slot.to_be_bytes()), U256::from(slot + 1)));
    let storage = storage_root(slots.collect::<BTreeMap<_, _>>());
    let expected = state_root(post.accounts.iter().map(|(address, update)| {
        let record = update.account.unwrap();
        let root = if update.storage.is_empty() {
            EMPTY_ROOT_HASH
        } else {
            storage
        };
        (
            address.0,
            TrieAccount::new(record.nonce, record.balance, root, record.code_hash),
        )
    }));
    let (root, changes) = commit(&MemoryState::default(), post).unwrap();
    assert_eq!(root, expected);
    assert_eq!(changes.accounts.len(), 200_000);
}

#[test]
fn touching_one_account_loads_and_writes_one_path() {
    let mut state = MemoryState::default();
    state.apply(&commit(&state, many_accounts(10_000)).unwrap().1);
    let mut post = PostState::default();
    let key = HashedAddress(keccak256(7u64.to_be_bytes()));
    post.accounts.insert(
        key,
        AccountUpdate {
            account: record(1_000),
            ..AccountUpdate::default()
        },
    );
    let (_, changes) = commit(&state, post).unwrap();
    assert!(
        changes.account_nodes.len() <= 6,
        "{} nodes written",
        changes.account_nodes.len()
    );
}

#[test]
fn unchanged_accounts_and_slots_leave_no_change() {
    let mut state = MemoryState::default();
    let (root, changes) = commit(&state, many_accounts(500)).unwrap();
    state.apply(&changes);
    let (same, changes) = commit(&state, many_accounts(500)).unwrap();
    assert_eq!(root, same);
    assert_eq!(changes, ChangeSet::default());
    let absent = PostState {
        accounts: BTreeMap::from([(address(1), AccountUpdate::default())]),
        ..PostState::default()
    };
    assert_eq!(
        commit(&state, absent).unwrap(),
        (root, ChangeSet::default())
    );
}

/// Work is counted in reads: the same on every machine.
#[test]
fn reads_grow_with_the_touched_accounts_not_with_the_state() {
    let reads = |accounts: u64| {
        let mut state = MemoryState::default();
        state.apply(&commit(&state, many_accounts(accounts)).unwrap().1);
        let mut post = many_accounts(1_000);
        for update in post.accounts.values_mut() {
            update.account = record(7_777_777);
        }
        let counted = FaultyState::new(&state, usize::MAX);
        commit(&counted, post).unwrap();
        counted.reads()
    };
    let (small, large) = (reads(10_000), reads(300_000));
    println!("1,000 touched accounts: {small} reads among 10,000, {large} among 300,000");
    assert!(
        large < small * 2,
        "{small} reads among 10,000 accounts, {large} among 300,000"
    );
}

#[test]
fn every_failed_read_fails_the_commit_and_the_proof() {
    let mut state = MemoryState::default();
    state.apply(&commit(&state, many_accounts(200)).unwrap().1);
    let owner = HashedAddress(keccak256(0u64.to_be_bytes()));
    let mut post = many_accounts(20);
    for (index, update) in post.accounts.values_mut().enumerate() {
        *update = match index % 3 {
            0 => AccountUpdate::default(),
            1 => AccountUpdate {
                account: record(7),
                wipe_storage: true,
                ..AccountUpdate::default()
            },
            _ => AccountUpdate {
                account: record(7),
                ..AccountUpdate::default()
            },
        };
    }
    post.accounts.insert(
        owner,
        AccountUpdate {
            account: record(8),
            wipe_storage: false,
            storage: BTreeMap::from([(slot(1), U256::from(1))]),
        },
    );
    let overlay = Overlay {
        accounts: BTreeMap::from([(address(5), None)]),
        storage: BTreeMap::new(),
    };
    let all = FaultyState::new(&state, usize::MAX);
    commit(&all, post.clone()).unwrap();
    let commit_reads = all.reads();
    prove(&all, &overlay, owner, &[slot(1), slot(2)]).unwrap();
    let proof_reads = all.reads() - commit_reads;
    for fails_at in 0..commit_reads {
        let faulty = FaultyState::new(&state, fails_at);
        let error = commit(&faulty, post.clone()).unwrap_err();
        assert_eq!(error.0.downcast_ref(), Some(&InjectedFault(fails_at)));
    }
    for fails_at in 0..proof_reads {
        let faulty = FaultyState::new(&state, fails_at);
        let error = prove(&faulty, &overlay, owner, &[slot(1), slot(2)]).unwrap_err();
        assert_eq!(error.0.downcast_ref(), Some(&InjectedFault(fails_at)));
    }
}

fn fault(error: &StateError) -> Option<&TrieFault> {
    error.0.downcast_ref::<TrieFault>()
}

#[test]
fn a_missing_or_altered_node_is_a_fault() {
    let mut state = MemoryState::default();
    state.apply(&commit(&state, many_accounts(500)).unwrap().1);
    let mut post = many_accounts(500);
    for update in post.accounts.values_mut() {
        update.account = record(77);
    }
    let victim = *state
        .account_nodes
        .keys()
        .find(|path| path.len() == 2)
        .unwrap();
    let mut without = state.clone();
    without.account_nodes.remove(&victim);
    let error = commit(&without, post.clone()).unwrap_err();
    assert_eq!(
        fault(&error),
        Some(&TrieFault::MissingNode { path: victim })
    );

    let mut altered = state.clone();
    let mut rlp = altered.account_nodes[&victim].to_vec();
    *rlp.last_mut().unwrap() ^= 1;
    altered.account_nodes.insert(victim, rlp.into());
    let error = commit(&altered, post).unwrap_err();
    assert!(
        matches!(fault(&error), Some(TrieFault::NodeHash { path, .. }) if *path == victim),
        "{error}"
    );
}

#[test]
fn a_storage_root_that_is_not_the_accounts_is_a_fault() {
    let mut state = MemoryState::default();
    state.apply(&commit(&state, many_accounts(101)).unwrap().1);
    let owner = HashedAddress(keccak256(0u64.to_be_bytes()));
    state.accounts.get_mut(&owner).unwrap().storage_root = B256::repeat_byte(1);
    let mut post = PostState::default();
    let update = AccountUpdate {
        account: record(1),
        wipe_storage: false,
        storage: BTreeMap::from([(slot(9), U256::from(9))]),
    };
    post.accounts.insert(owner, update);
    let error = commit(&state, post).unwrap_err();
    assert!(
        matches!(fault(&error), Some(TrieFault::NodeHash { .. })),
        "{error}"
    );
}

#[test]
#[should_panic(expected = "execution writes no slot of an account it removes")]
fn slots_of_a_removed_account_are_a_bug() {
    let update = AccountUpdate {
        account: None,
        wipe_storage: true,
        storage: BTreeMap::from([(slot(1), U256::from(1))]),
    };
    let post = PostState {
        accounts: BTreeMap::from([(address(1), update)]),
        ..PostState::default()
    };
    let _ = commit(&MemoryState::default(), post);
}

#[test]
fn rejects_malformed_nodes() {
    for (bytes, why) in [
        ("", "nothing"),
        ("80", "a string"),
        ("c0", "no items"),
        ("c22001", "trailing byte is part of a list of two: a leaf"),
        ("c3200102", "three items"),
        ("c24001", "unknown hex-prefix flag"),
        ("c22101", "padding nibble set"),
        ("c20001", "an extension with an empty path"),
        ("c21180", "an extension without child"),
        ("c2118101", "child of one byte"),
    ] {
        let decoded = Node::decode(&alloy_primitives::hex::decode(bytes).unwrap());
        if bytes == "c22001" {
            assert!(decoded.is_ok(), "{why}");
        } else {
            assert!(decoded.is_err(), "{why}: {decoded:?}");
        }
    }
    // A branch child of 31 bytes is neither empty nor a hash.
    let mut branch = vec![0xf8, 0x30, 0x9f];
    branch.extend([1; 31]);
    branch.extend([0x80; 16]);
    assert!(Node::decode(&branch).is_err());
}
