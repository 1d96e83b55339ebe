use super::{Model, TestChain, genesis, next_block, options, some_steps};
use crate::store::{Durability, Store, StoreError, StoredBlock, TransactionLocation, schema};
use alloy_consensus::{Block, BlockBody, TxEnvelope};
use alloy_primitives::{B256, Bytes, keccak256};
use alloy_rlp::Encodable;
use cloister_app::{
    block::BlockOutcome,
    state::{StateRead, memory::MemoryState},
    trie::{AccountUpdate, PostState, commit},
};
use std::collections::BTreeMap;

fn check_block(store: &Store, outcome: &BlockOutcome) {
    let header = &outcome.block.header;
    let height = header.number;
    assert_eq!(
        store.header(height).unwrap(),
        Some((header.clone(), outcome.hash))
    );
    assert_eq!(store.height_by_hash(outcome.hash).unwrap(), Some(height));
    let block = store.block(height).unwrap().unwrap();
    assert_eq!((block.hash, &block.header), (outcome.hash, header));
    let receipts = store.receipts(height).unwrap().unwrap();
    assert_eq!(block.transactions.len(), outcome.block.transactions.len());
    assert_eq!(receipts.len(), outcome.block.transactions.len());
    for (index, executed) in outcome.block.transactions.iter().enumerate() {
        assert_eq!(block.transactions[index], executed.transaction);
        assert_eq!(receipts[index], executed.receipt);
        let index = u32::try_from(index).unwrap();
        let location = store
            .transaction_location(executed.transaction.hash())
            .unwrap();
        assert_eq!(location, Some(TransactionLocation { height, index }));
    }
    let results = store.results(height).unwrap().unwrap();
    assert_eq!(results.len(), outcome.block.results.len());
    for (stored, result) in results.iter().zip(&outcome.block.results) {
        assert_eq!(stored.code, result.code);
        assert_eq!(
            (stored.gas_wanted, stored.gas_used),
            (result.gas_wanted, result.gas_used)
        );
        let expected = result
            .placement
            .as_ref()
            .copied()
            .map_err(ToString::to_string);
        assert_eq!(stored.placement, expected);
    }
}

#[test]
fn every_record_reads_back_from_memory_and_from_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    let outcomes: Vec<_> = (1..=5)
        .map(|height| chain.commit(&some_steps(height)))
        .collect();
    for outcome in &outcomes {
        check_block(&chain.store, outcome);
    }
    let head = chain.store.head().unwrap();
    chain.store.close().unwrap();
    drop(chain);

    let store = Store::open(folder.path(), options(Durability::Os)).unwrap();
    assert_eq!(store.head().unwrap(), head);
    assert_eq!(store.durable_height(), 5);
    for outcome in &outcomes {
        check_block(&store, outcome);
    }
    let code = Bytes::from_static(b"some code");
    let view = store.state_latest().unwrap();
    assert_eq!(view.code(keccak256(&code)).unwrap(), code);
    assert_eq!(view.block_hash(3).unwrap(), Some(outcomes[2].hash));
    assert_eq!(view.block_hash(6).unwrap(), None);
    assert_eq!(store.state_at(2).unwrap().block_hash(3).unwrap(), None);
    assert_eq!(
        store.current().block_hash(5).unwrap(),
        Some(outcomes[4].hash)
    );
}

#[test]
fn unknown_blocks_and_transactions_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    let store = &chain.store;
    assert!(store.block(1).unwrap().is_none());
    assert!(store.header(1).unwrap().is_none());
    assert!(store.receipts(1).unwrap().is_none());
    assert!(store.results(1).unwrap().is_none());
    assert!(store.height_by_hash(B256::ZERO).unwrap().is_none());
    assert!(store.transaction_location(B256::ZERO).unwrap().is_none());
    assert!(store.block(0).unwrap().unwrap().transactions.is_empty());
}

#[test]
fn a_block_is_invisible_until_the_head_moves_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    let outcome = chain.commit(&some_steps(1));
    let hash = outcome.block.transactions[0].transaction.hash();
    // As if the batch were written and the head not moved yet.
    let inner = &chain.store.inner;
    let mut head = (**inner.head.read().as_ref().unwrap()).clone();
    head.height = 0;
    *inner.head.write() = Some(head.into());
    assert!(chain.store.block(1).unwrap().is_none());
    assert!(chain.store.header(1).unwrap().is_none());
    assert!(chain.store.receipts(1).unwrap().is_none());
    assert!(chain.store.results(1).unwrap().is_none());
    assert!(chain.store.height_by_hash(outcome.hash).unwrap().is_none());
    assert!(chain.store.transaction_location(hash).unwrap().is_none());
}

#[test]
fn block_size_is_that_of_the_rlp_block() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    for transaction_count in [0, 1, 6] {
        let outcome = chain.next(&some_steps(1), transaction_count);
        let header = outcome.block.header.clone();
        let transactions = outcome.block.transactions.iter();
        let transactions: Vec<_> = transactions
            .map(|executed| executed.transaction.clone())
            .collect();
        let envelopes = transactions
            .iter()
            .map(|transaction| transaction.envelope().clone());
        let body = BlockBody::<TxEnvelope> {
            transactions: envelopes.collect(),
            ommers: Vec::new(),
            withdrawals: Some(Default::default()),
        };
        let expected = Block::new(header.clone(), body).length();
        let stored = StoredBlock {
            hash: outcome.hash,
            header,
            transactions,
        };
        assert_eq!(
            stored.size_bytes(),
            expected,
            "{transaction_count} transactions"
        );
    }
}

#[test]
fn rejects_block_that_does_not_follow_the_head() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    let first = chain.commit(&some_steps(1));
    let error = chain.store.commit(&first).unwrap_err();
    assert!(
        matches!(error, StoreError::NotNext { got: 1, .. }),
        "{error}"
    );
    let mut orphan = chain.next(&some_steps(2), 0);
    orphan.block.header.parent_hash = B256::ZERO;
    let error = chain.store.commit(&orphan).unwrap_err();
    assert!(
        matches!(error, StoreError::NotNext { got: 2, .. }),
        "{error}"
    );
    assert_eq!(chain.store.head().unwrap().hash, first.hash);
}

#[test]
fn rejects_block_before_block_zero() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), options(Durability::Os)).unwrap();
    let state = MemoryState::default();
    let mut model = Model::new();
    let parent = genesis(&mut model, &BTreeMap::new()).header;
    let outcome = next_block(&state, &parent, PostState::default(), 0);
    let error = store.commit(&outcome).unwrap_err();
    assert!(
        matches!(error, StoreError::NotNext { head: None, .. }),
        "{error}"
    );
    assert!(store.head().is_none());
    assert!(matches!(
        store.state_latest(),
        Err(StoreError::AboveHead { .. })
    ));
}

#[test]
fn rejects_block_whose_trie_has_another_root() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    let mut outcome = chain.next(&some_steps(1), 0);
    outcome.block.header.state_root = B256::ZERO;
    let error = chain.store.commit(&outcome).unwrap_err();
    assert!(
        matches!(error, StoreError::StateRoot { height: 1, .. }),
        "{error}"
    );
}

#[test]
fn rejects_a_second_genesis() {
    let folder = tempfile::tempdir().unwrap();
    let chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    let again = genesis(&mut Model::new(), &some_steps(0));
    let error = chain.store.init(&again).unwrap_err();
    assert!(
        matches!(error, StoreError::Initialised { height: 0 }),
        "{error}"
    );
}

#[test]
fn what_an_interrupted_genesis_left_is_gone_after_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), options(Durability::Os)).unwrap();
    // Another network's genesis, cut short before its last batch.
    let (_, other) = commit(&MemoryState::default(), many_accounts(50)).unwrap();
    let mut batch = crate::store::Batch::new(&store.inner.database);
    batch.put(
        crate::store::Family::Meta,
        schema::META_UNFINISHED_GENESIS,
        [],
    );
    for (address, change) in &other.accounts {
        let account = schema::encode_account(&change.after.unwrap());
        batch.put(crate::store::Family::Accounts, address.0, account);
    }
    store.inner.database.write(batch.writes).unwrap();
    drop(store);

    let store = Store::open(folder.path(), options(Durability::Os)).unwrap();
    assert!(store.head().is_none());
    store
        .init(&genesis(&mut Model::new(), &some_steps(0)))
        .unwrap();
    let view = store.state_latest().unwrap();
    for address in other.accounts.keys() {
        assert_eq!(view.account(*address).unwrap(), None);
    }
    assert!(view.account(super::address(1).into()).unwrap().is_some());
}

fn many_accounts(count: u64) -> PostState {
    let accounts = (0..count).map(|number| {
        let update = AccountUpdate {
            account: super::record(number + 1),
            ..AccountUpdate::default()
        };
        (
            cloister_app::state::HashedAddress(keccak256(number.to_be_bytes())),
            update,
        )
    });
    PostState {
        accounts: accounts.collect(),
        ..PostState::default()
    }
}

#[test]
fn a_genesis_of_200_000_accounts_is_written_and_can_be_continued() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), options(Durability::EveryBlock)).unwrap();
    let started = std::time::Instant::now();
    let (root, changes) = commit(&MemoryState::default(), many_accounts(200_000)).unwrap();
    let header = super::header(0, B256::ZERO, root);
    let outcome = cloister_app::app::GenesisOutcome {
        hash: header.hash_slow(),
        header,
        changes,
    };
    let built = started.elapsed();
    store.init(&outcome).unwrap();
    println!("trie {built:?}, with store {:?}", started.elapsed());
    assert_eq!(store.durable_height(), 0);
    let block = next_block(&store.current(), &outcome.header, many_accounts(0), 1);
    store.commit(&block).unwrap();
    store.close().unwrap();
    drop(store);
    let store = Store::open(folder.path(), options(Durability::EveryBlock)).unwrap();
    assert_eq!(store.head().unwrap().height, 1);
    let last = cloister_app::state::HashedAddress(keccak256(199_999u64.to_be_bytes()));
    let account = store.state_at(0).unwrap().account(last).unwrap().unwrap();
    assert_eq!(account.balance, alloy_primitives::U256::from(200_000));
}
