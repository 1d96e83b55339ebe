//! Tests of the store on chains made here: no EVM, only accounts that are funded, written to, destroyed and re-created.

mod crash;
mod durability;
mod faults;
mod golden;
mod history;
mod proofs;
mod records;

use super::{Durability, Store, StoreOptions};
use alloy_consensus::{
    Eip658Value, Header, Receipt, ReceiptEnvelope, SignableTransaction, TxEip1559, TxEnvelope,
    TxLegacy, TxType, constants::KECCAK_EMPTY,
};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, Log, Signature, TxKind, U256, keccak256};
use cloister_app::{
    app::GenesisOutcome,
    block::{BlockOutcome, ExecutedBlock, ExecutedTransaction, TransactionResult},
    rejection::Rejection,
    state::{Account, HashedAddress, HashedSlot, TrieRead, memory::MemoryState},
    transaction::Transaction,
    trie::{AccountRecord, AccountUpdate, PostState, commit},
};
use std::{collections::BTreeMap, sync::Arc};

fn options(durability: Durability) -> StoreOptions {
    StoreOptions {
        durability,
        wal_folder: None,
        block_cache_bytes: 8 << 20,
        history_blocks: 1_000,
        proof_window_blocks: 256,
    }
}

/// What a block does to one account.
#[derive(Debug, Clone)]
enum Step {
    Fund(u64),
    Write(BTreeMap<u8, u8>),
    Destroy,
    Recreate(BTreeMap<u8, u8>),
}

/// Accounts by name: balance and non-zero slots.
type Model = BTreeMap<u8, (u64, BTreeMap<u8, u8>)>;

fn address(name: u8) -> Address {
    Address::repeat_byte(name)
}

fn record(balance: u64) -> Option<AccountRecord> {
    Some(AccountRecord {
        nonce: balance % 7,
        balance: U256::from(balance),
        code_hash: KECCAK_EMPTY,
    })
}

fn hashed(slots: &BTreeMap<u8, u8>) -> BTreeMap<HashedSlot, U256> {
    let slots = slots.iter();
    slots
        .map(|(slot, value)| (HashedSlot::from(U256::from(*slot)), U256::from(*value)))
        .collect()
}

fn play(model: &mut Model, steps: &BTreeMap<u8, Step>) -> PostState {
    let mut post = PostState::default();
    for (&name, step) in steps {
        let update = match step {
            Step::Fund(balance) => {
                model.entry(name).or_default().0 = *balance;
                AccountUpdate {
                    account: record(*balance),
                    ..AccountUpdate::default()
                }
            }
            Step::Write(slots) => {
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
            Step::Recreate(slots) => {
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
        post.accounts
            .insert(HashedAddress::from(address(name)), update);
    }
    post
}

/// A header with a root for withdrawals and zero elsewhere.
fn header(height: u64, parent_hash: B256, state_root: B256) -> Header {
    Header {
        number: height,
        parent_hash,
        state_root,
        timestamp: height,
        gas_limit: 100_000_000,
        base_fee_per_gas: Some(7),
        withdrawals_root: Some(alloy_trie::EMPTY_ROOT_HASH),
        ..Header::default()
    }
}

/// A transaction of type 0 or 2 with a made-up signature: the store keeps the sender, it checks none.
fn transaction(height: u64, index: u8) -> Arc<Transaction> {
    let input = Bytes::from(vec![index; usize::from(index)]);
    let to = TxKind::Call(address(index));
    let envelope: TxEnvelope = if index.is_multiple_of(2) {
        TxLegacy {
            chain_id: Some(1),
            nonce: height,
            to,
            input,
            ..TxLegacy::default()
        }
        .into_signed(Signature::test_signature())
        .into()
    } else {
        TxEip1559 {
            chain_id: 1,
            nonce: height,
            to,
            input,
            ..TxEip1559::default()
        }
        .into_signed(Signature::test_signature())
        .into()
    };
    let raw = envelope.encoded_2718().into();
    Arc::new(Transaction::from_stored(raw, address(0xa0 + index)).unwrap())
}

fn executed(height: u64, count: u8) -> (Vec<ExecutedTransaction>, Vec<TransactionResult>) {
    let mut transactions = Vec::new();
    let mut results = Vec::new();
    for index in 0..count {
        let log = Log::new_unchecked(
            address(index),
            vec![B256::repeat_byte(index)],
            Bytes::from(vec![index]),
        );
        let receipt = Receipt {
            status: Eip658Value::Eip658(index != 1),
            cumulative_gas_used: 21_000 * (u64::from(index) + 1),
            logs: vec![log; usize::from(index)],
        };
        let transaction_type = if index % 2 == 0 {
            TxType::Legacy
        } else {
            TxType::Eip1559
        };
        transactions.push(ExecutedTransaction {
            transaction: transaction(height, index),
            receipt: ReceiptEnvelope::from_typed(transaction_type, receipt),
            gas_used: 21_000,
        });
        results.push(TransactionResult {
            code: 0,
            gas_wanted: 30_000,
            gas_used: 21_000,
            placement: Ok(u32::from(index)),
        });
    }
    let rejection = Rejection::NonceTooLow {
        expected: height,
        got: 0,
    };
    results.push(TransactionResult {
        code: rejection.code(),
        gas_wanted: 0,
        gas_used: 0,
        placement: Err(rejection),
    });
    (transactions, results)
}

fn genesis(model: &mut Model, steps: &BTreeMap<u8, Step>) -> GenesisOutcome {
    let (root, mut changes) = commit(&MemoryState::default(), play(model, steps)).unwrap();
    let code = Bytes::from_static(b"some code");
    changes.code.insert(keccak256(&code), code);
    let header = header(0, B256::ZERO, root);
    GenesisOutcome {
        hash: header.hash_slow(),
        header,
        changes,
    }
}

/// The block after `parent`, with as many transactions as asked and one rejected.
fn next_block(
    state: &dyn TrieRead,
    parent: &Header,
    post: PostState,
    transaction_count: u8,
) -> BlockOutcome {
    let (root, changes) = commit(state, post).unwrap();
    let height = parent.number + 1;
    let (transactions, results) = executed(height, transaction_count);
    let block = ExecutedBlock {
        header: header(height, parent.hash_slow(), root),
        transactions,
        results,
        validator_updates: Vec::new(),
        changes,
    };
    block.seal(keccak256(height.to_be_bytes()))
}

/// A store with the model of every height so far.
struct TestChain {
    store: Store,
    /// Index = height.
    models: Vec<Model>,
}

impl TestChain {
    fn new(folder: &std::path::Path, options: StoreOptions, steps: &BTreeMap<u8, Step>) -> Self {
        let store = Store::open(folder, options).unwrap();
        let mut model = Model::new();
        store.init(&genesis(&mut model, steps)).unwrap();
        Self {
            store,
            models: vec![model],
        }
    }

    fn next(&mut self, steps: &BTreeMap<u8, Step>, transaction_count: u8) -> BlockOutcome {
        let mut model = self.models.last().unwrap().clone();
        let post = play(&mut model, steps);
        let head = self.store.head().unwrap();
        let outcome = next_block(&self.store.current(), &head.header, post, transaction_count);
        self.models.push(model);
        outcome
    }

    fn commit(&mut self, steps: &BTreeMap<u8, Step>) -> BlockOutcome {
        let outcome = self.next(steps, 3);
        self.store.commit(&outcome).unwrap();
        outcome
    }
}

/// The account a model holds, its storage root aside.
fn check_account(got: Option<Account>, model: &Model, name: u8) {
    let expected = model.get(&name).and_then(|(balance, _)| record(*balance));
    let got = got.map(|account| AccountRecord {
        nonce: account.nonce,
        balance: account.balance,
        code_hash: account.code_hash,
    });
    assert_eq!(got, expected, "account {name}");
}

/// A small fixed world for tests that only need some history.
fn some_steps(height: u64) -> BTreeMap<u8, Step> {
    let byte = u8::try_from(height % 200).unwrap() + 1;
    let slots = |value: u8| {
        (0..20u8)
            .map(|slot| (slot, value.wrapping_mul(slot)))
            .collect()
    };
    let fourth = match height % 4 {
        0 => Step::Recreate(slots(byte)),
        1 => Step::Write(slots(byte)),
        2 => Step::Destroy,
        _ => Step::Fund(height + 1),
    };
    BTreeMap::from([
        (1, Step::Fund(height + 1)),
        (2, Step::Write(slots(byte))),
        (3, Step::Fund(height + 1_000)),
        (4, fourth),
        (byte, Step::Fund(height + 5)),
    ])
}
