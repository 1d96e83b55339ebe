use super::*;
use crate::testing::{CHAIN_ID, FEE_CAP_WEI, TestChain, TestKey};
use alloy_consensus::TxEip1559;
use alloy_primitives::{TxKind, hex};
use proptest::prelude::*;

const STORE: Address = Address::repeat_byte(0xcc);

fn decode(raw: Bytes) -> Arc<Transaction> {
    Arc::new(Transaction::decode(raw, CHAIN_ID).expect("well formed"))
}

fn nothing_known(_: &B256) -> Option<Arc<Transaction>> {
    None
}

fn chain() -> TestChain {
    // slot[calldata[0]] = calldata[1]
    let store = hex!("6020356000355500");
    TestChain::new(|_| {}, [(STORE, store.into())])
}

fn prepare(
    chain: &TestChain,
    candidates: Vec<Bytes>,
    max_bytes: u64,
) -> Result<Proposal, ProposalFault> {
    let input = chain.input(Vec::new());
    chain.app.prepare_proposal(
        &chain.state,
        &chain.head,
        &input,
        &mut candidates.into_iter().map(decode),
        max_bytes,
    )
}

fn process(chain: &TestChain, transactions: Vec<Bytes>) -> Result<ExecutedBlock, ProposalFault> {
    let input = chain.input(transactions);
    chain
        .app
        .process_proposal(&chain.state, &chain.head, &input, &nothing_known)
}

fn assert_same(left: &ExecutedBlock, right: &ExecutedBlock) {
    assert_eq!(left.header, right.header);
    assert_eq!(left.results, right.results);
    assert_eq!(left.changes, right.changes);
    assert_eq!(left.validator_updates, right.validator_updates);
    let parts = |block: &ExecutedBlock| -> Vec<_> {
        block
            .transactions
            .iter()
            .map(|executed| {
                (
                    executed.transaction.hash(),
                    executed.receipt.clone(),
                    executed.gas_used,
                )
            })
            .collect()
    };
    assert_eq!(parts(left), parts(right));
}

#[test]
fn prepare_skips_what_breaks_a_rule_and_what_then_has_a_gap() {
    let chain = chain();
    let (a, b) = (TestKey::new(0), TestKey::new(1));
    let good = a.transfer(0, STORE, 1);
    let candidates = vec![
        good.clone(),
        b.transfer(1, STORE, 1),
        b.transfer(2, STORE, 1),
        a.transfer(0, STORE, 2),
        a.transfer(1, STORE, 3),
    ];
    let proposal = prepare(&chain, candidates, u64::MAX).unwrap();
    assert_eq!(proposal.transactions, [good]);
    assert!(
        proposal
            .executed
            .results
            .iter()
            .all(|result| result.code == 0)
    );
}

#[test]
fn prepare_counts_protobuf_framing() {
    let chain = chain();
    let transfers: Vec<Bytes> = (0..3)
        .map(|nonce| TestKey::new(0).transfer(nonce, STORE, 1))
        .collect();
    let two = framed_size(&transfers[0]) + framed_size(&transfers[1]);
    let kept = |max_bytes| {
        prepare(&chain, transfers.clone(), max_bytes)
            .unwrap()
            .transactions
            .len()
    };
    assert_eq!(kept(two), 2);
    assert_eq!(kept(two - 1), 1);
    assert_eq!(kept(0), 0);
}

#[test]
fn framed_size_is_tag_length_and_bytes() {
    for (length, framed) in [
        (0, 2),
        (1, 3),
        (127, 129),
        (128, 131),
        (16_383, 16_386),
        (16_384, 16_388),
    ] {
        assert_eq!(framed_size(&vec![0; length].into()), framed, "{length}");
    }
}

#[test]
fn prepare_respects_the_block_gas_limit() {
    let chain = TestChain::new(|parameters| parameters.gas_limit = 1_050_000, []);
    let (a, b) = (TestKey::new(0), TestKey::new(1));
    let candidates = vec![
        a.transfer(0, STORE, 1),
        a.transfer(1, STORE, 1),
        a.transfer(2, STORE, 1),
        // Asks for a million and no longer fits; the next still does.
        a.call(3, TxKind::Call(STORE), 0, Bytes::new()),
        b.transfer(0, STORE, 1),
    ];
    let proposal = prepare(&chain, candidates, u64::MAX).unwrap();
    assert_eq!(proposal.transactions.len(), 4);
    assert!(process(&chain, proposal.transactions).is_ok());
}

#[test]
fn process_refuses_an_invalid_transaction() {
    let chain = chain();
    let good = TestKey::new(0).transfer(0, STORE, 1);
    for bad in [Bytes::from_static(b"bad"), good.clone()] {
        let fault = process(&chain, vec![good.clone(), bad]).unwrap_err();
        assert!(
            matches!(fault, ProposalFault::InvalidTransaction { index: 1, .. }),
            "{fault}"
        );
    }
}

#[test]
fn process_refuses_too_large() {
    let mut chain = chain();
    let transfer = TestKey::new(0).transfer(0, STORE, 1);
    chain.app.parameters.max_block_bytes = framed_size(&transfer) - 1;
    let fault = process(&chain, vec![transfer]).unwrap_err();
    assert!(matches!(fault, ProposalFault::TooLarge { .. }), "{fault}");
}

#[test]
fn process_refuses_more_gas_than_the_block_has() {
    let chain = TestChain::new(|parameters| parameters.gas_limit = 30_000, []);
    let transfers = (0..2).map(|nonce| TestKey::new(0).transfer(nonce, STORE, 1));
    let fault = process(&chain, transfers.collect()).unwrap_err();
    assert!(
        matches!(
            fault,
            ProposalFault::InvalidTransaction {
                index: 1,
                rejection: Rejection::BlockGasExhausted {
                    left: 9_000,
                    gas_limit: 21_000
                }
            }
        ),
        "{fault}"
    );
}

#[test]
fn refuses_a_wrong_height() {
    let chain = chain();
    for height in [0, 2, u64::MAX] {
        let mut input = chain.input(Vec::new());
        input.height = height;
        let proposal =
            chain
                .app
                .process_proposal(&chain.state, &chain.head, &input, &nothing_known);
        assert!(matches!(
            proposal,
            Err(ProposalFault::WrongHeight { parent: 0, .. })
        ));
        let decided = chain
            .app
            .execute_block(&chain.state, &chain.head, &input, &nothing_known);
        assert!(matches!(
            decided,
            Err(ConsensusFault::WrongHeight { parent: 0, .. })
        ));
    }
}

fn check(chain: &TestChain, raw: Bytes) -> Result<(), Rejection> {
    chain
        .app
        .check_transaction(&chain.state, &chain.head, &decode(raw))
}

#[test]
fn check_leaves_gaps_and_rising_base_fees_to_the_pool() {
    let mut chain = chain();
    let key = TestKey::new(0);
    chain.run(vec![key.transfer(0, STORE, 1)]);
    assert_eq!(check(&chain, key.transfer(1, STORE, 1)), Ok(()));
    assert_eq!(check(&chain, key.transfer(9, STORE, 1)), Ok(()));
    assert_eq!(
        check(&chain, key.transfer(0, STORE, 1)),
        Err(Rejection::NonceTooLow {
            expected: 1,
            got: 0
        })
    );
    let with_fee_cap = |max_fee_per_gas| {
        key.sign(TxEip1559 {
            max_fee_per_gas,
            max_priority_fee_per_gas: 0,
            ..key.call_fields(1, TxKind::Call(STORE), 0, Bytes::new())
        })
    };
    chain.head.base_fee_per_gas = Some(5_000_000_000);
    assert_eq!(check(&chain, with_fee_cap(1_000_000_000)), Ok(()));
    assert_eq!(
        check(&chain, with_fee_cap(999_999_999)),
        Err(Rejection::FeeCapBelowBaseFee {
            fee_cap_wei: 999_999_999,
            base_fee_wei: 1_000_000_000
        })
    );
}

#[test]
fn check_refuses_what_the_state_forbids() {
    let sender = TestKey::new(3);
    let with_code = TestChain::new(|_| {}, [(sender.address(), Bytes::from_static(&[0]))]);
    assert_eq!(
        check(&with_code, sender.transfer(1, STORE, 1)),
        Err(Rejection::SenderHasCode)
    );
    let chain = chain();
    let poor = TestKey::new(77);
    assert_eq!(
        check(&chain, poor.transfer(0, STORE, 1)),
        Err(Rejection::InsufficientFunds {
            balance: U256::ZERO,
            cost: U256::from(21_000 * FEE_CAP_WEI + 1)
        })
    );
    let small = TestChain::new(|parameters| parameters.gas_limit = 100_000, []);
    assert_eq!(
        check(&small, poor.call(0, TxKind::Call(STORE), 0, Bytes::new())),
        Err(Rejection::GasLimitAboveBlock {
            block: 100_000,
            gas_limit: 1_000_000
        })
    );
}

/// A block of 10,000 random byte strings: each gets a code, none gets in, nothing changes.
#[test]
fn a_block_of_garbage_is_an_empty_block() {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let starts = [
        0x00, 0x01, 0x02, 0x03, 0x04, 0x80, 0xb8, 0xc0, 0xf8, 0xf9, 0xff,
    ];
    let garbage: Vec<Bytes> = (0..10_000)
        .map(|index: usize| {
            let length = (next() % 300) as usize;
            let mut bytes: Vec<u8> = (0..length).map(|_| next() as u8).collect();
            if let Some(first) = bytes.first_mut() {
                *first = starts[index % starts.len()];
            }
            bytes.into()
        })
        .collect();
    let chain = chain();
    let executed = chain.execute(garbage);
    assert_eq!(executed.results.len(), 10_000);
    assert!(executed.results.iter().all(|result| result.code != 0));
    let empty = chain.execute(Vec::new());
    assert_eq!(executed.header, empty.header);
    assert_eq!(executed.changes, empty.changes);
}

/// The app hash of a decided block hangs on the request and the committed state alone (D22): not on what was parsed
/// before, nor on the number of threads.
#[test]
fn outcome_is_the_same_on_one_thread_and_on_many() {
    let chain = chain();
    let raw: Vec<Bytes> = (0..10)
        .flat_map(|index| {
            (0..20).map(move |nonce| {
                let key = TestKey::new(index);
                let call = [
                    B256::with_last_byte(nonce as u8),
                    B256::with_last_byte(index as u8),
                ]
                .concat();
                match nonce % 3 {
                    0 => key.transfer(nonce, TestKey::new(index + nonce).address(), 7),
                    1 => key.call(nonce, TxKind::Call(STORE), 0, call),
                    _ => key.call(nonce, TxKind::Create, 1, hex!("600160005560016000f3")),
                }
            })
        })
        .collect();
    let many = chain.execute(raw.clone());
    assert_eq!(many.transactions.len(), 200);
    let one = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap()
        .install(|| chain.execute(raw.clone()));
    assert_same(&many, &one);
    let parsed: BTreeMap<B256, Arc<Transaction>> = raw
        .iter()
        .map(|raw| decode(raw.clone()))
        .map(|transaction| (transaction.hash(), transaction))
        .collect();
    let known = chain
        .app
        .execute_block(&chain.state, &chain.head, &chain.input(raw), &|hash| {
            parsed.get(hash).cloned()
        })
        .unwrap();
    assert_same(&many, &known);
}

/// One step of a random workload.
#[derive(Debug, Clone)]
enum Step {
    Transfer {
        from: u64,
        to: u64,
        value_wei: u128,
        nonce_shift: u64,
    },
    Store {
        from: u64,
        slot: u8,
        value: u8,
    },
    Create {
        from: u64,
        fails: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let value = prop_oneof![Just(0), Just(1), 0..2 * crate::testing::BALANCE_WEI];
    let shift = prop_oneof![9 => Just(0u64), 1 => 1..3u64];
    let step = prop_oneof![
        (0..6u64, 0..12u64, value, shift).prop_map(|(from, to, value_wei, nonce_shift)| {
            Step::Transfer {
                from,
                to,
                value_wei,
                nonce_shift,
            }
        }),
        (0..6u64, 0..4u8, 0..3u8).prop_map(|(from, slot, value)| Step::Store { from, slot, value }),
        (0..6u64, any::<bool>()).prop_map(|(from, fails)| Step::Create { from, fails }),
    ];
    proptest::collection::vec(step, 0..40)
}

fn signed(steps: &[Step], nonces: &mut BTreeMap<u64, u64>) -> Vec<Bytes> {
    let mut next = |from: u64, shift: u64| {
        let nonce = nonces.entry(from).or_default();
        let used = *nonce + shift;
        *nonce += 1;
        (TestKey::new(from), used)
    };
    steps
        .iter()
        .map(|step| match *step {
            Step::Transfer {
                from,
                to,
                value_wei,
                nonce_shift,
            } => {
                let (key, nonce) = next(from, nonce_shift);
                key.transfer(nonce, TestKey::new(to).address(), value_wei)
            }
            Step::Store { from, slot, value } => {
                let (key, nonce) = next(from, 0);
                let input = [B256::with_last_byte(slot), B256::with_last_byte(value)].concat();
                key.call(nonce, TxKind::Call(STORE), 0, input)
            }
            Step::Create { from, fails } => {
                let (key, nonce) = next(from, 0);
                let code = if fails {
                    hex!("60006000fd").to_vec()
                } else {
                    hex!("600160005560016000f3").to_vec()
                };
                key.call(nonce, TxKind::Create, 3, code)
            }
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// What one node prepares, every other accepts and executes alike.
    #[test]
    fn process_accepts_what_prepare_proposes(first in steps(), second in steps(), max_bytes in 0..4_000u64) {
        let mut chain = chain();
        let mut nonces = BTreeMap::new();
        for (steps, max_bytes) in [(first, u64::MAX), (second, max_bytes)] {
            let candidates = signed(&steps, &mut nonces);
            let proposal = prepare(&chain, candidates.clone(), max_bytes).unwrap();
            prop_assert!(proposal.transactions.iter().map(framed_size).sum::<u64>() <= max_bytes);
            let processed = process(&chain, proposal.transactions.clone()).unwrap();
            assert_same(&proposal.executed, &processed);
            assert_same(&processed, &chain.execute(proposal.transactions));
            // Deciding the raw candidates refuses some and must not panic or fault.
            chain.execute(candidates);
            chain.apply(processed);
        }
    }

    #[test]
    fn a_decided_block_of_anything_executes(raw in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..120), 0..20)) {
        let chain = chain();
        let count = raw.len();
        let executed = chain.execute(raw.into_iter().map(Bytes::from).collect());
        prop_assert_eq!(executed.results.len(), count);
    }
}
