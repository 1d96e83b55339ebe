use crate::{
    block::ConsensusAddress,
    execution::overlay::Overlay,
    rejection::Rejection,
    state::HashedAddress,
    testing::{BALANCE_WEI, CHAIN_ID, FEE_CAP_WEI, TestChain, TestKey},
};
use alloy_consensus::{TxEip1559, TxLegacy};
use alloy_eips::{eip2935::HISTORY_STORAGE_ADDRESS, eip4788::BEACON_ROOTS_ADDRESS};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, hex, keccak256};
use cloister_genesis::Fork;

const CONTRACT: Address = Address::repeat_byte(0xcc);
const GWEI: u128 = 1_000_000_000;

fn chain_with(code: impl Into<Bytes>) -> TestChain {
    TestChain::new(|_| {}, [(CONTRACT, code.into())])
}

fn key() -> TestKey {
    TestKey::new(0)
}

/// The only result of a block with one transaction.
fn rejection_of(chain: &TestChain, raw: Bytes) -> Rejection {
    let mut executed = chain.execute(vec![raw]);
    let result = executed.results.pop().unwrap();
    let rejection = result.placement.unwrap_err();
    assert_eq!(result.code, rejection.code());
    assert_eq!((result.gas_wanted, result.gas_used), (0, 0));
    assert!(executed.transactions.is_empty());
    let empty = chain.execute(Vec::new());
    assert_eq!(
        executed.header, empty.header,
        "a refused transaction changes nothing"
    );
    assert_eq!(executed.changes, empty.changes);
    rejection
}

#[test]
fn rejects_nonce_too_low() {
    let mut chain = TestChain::new(|_| {}, []);
    chain.run(vec![key().transfer(0, CONTRACT, 1)]);
    assert_eq!(
        rejection_of(&chain, key().transfer(0, CONTRACT, 1)),
        Rejection::NonceTooLow {
            expected: 1,
            got: 0
        }
    );
}

#[test]
fn rejects_nonce_gap() {
    let chain = TestChain::new(|_| {}, []);
    assert_eq!(
        rejection_of(&chain, key().transfer(4, CONTRACT, 1)),
        Rejection::NonceGap {
            expected: 0,
            got: 4
        }
    );
}

#[test]
fn rejects_insufficient_funds() {
    let chain = TestChain::new(|_| {}, []);
    let cost = BALANCE_WEI + 21_000 * FEE_CAP_WEI;
    assert_eq!(
        rejection_of(&chain, key().transfer(0, CONTRACT, BALANCE_WEI)),
        Rejection::InsufficientFunds {
            balance: U256::from(BALANCE_WEI),
            cost: U256::from(cost)
        }
    );
    let all = key().sign(TxLegacy {
        chain_id: Some(CHAIN_ID),
        gas_price: FEE_CAP_WEI,
        gas_limit: 21_000,
        to: TxKind::Call(CONTRACT),
        value: U256::MAX,
        ..Default::default()
    });
    assert!(matches!(
        rejection_of(&chain, all),
        Rejection::InsufficientFunds { .. }
    ));
}

#[test]
fn rejects_fee_cap_below_base_fee() {
    let chain = TestChain::new(|_| {}, []);
    let cheap = TxEip1559 {
        max_fee_per_gas: GWEI - 1,
        max_priority_fee_per_gas: 0,
        ..key().call_fields(0, TxKind::Call(CONTRACT), 0, Bytes::new())
    };
    assert_eq!(
        rejection_of(&chain, key().sign(cheap)),
        Rejection::FeeCapBelowBaseFee {
            fee_cap_wei: GWEI - 1,
            base_fee_wei: 1_000_000_000
        }
    );
}

/// EIP-3607; a delegation of EIP-7702 is no such code.
#[test]
fn rejects_sender_has_code() {
    let sender = key().address();
    let chain = TestChain::new(|_| {}, [(sender, Bytes::from_static(&[0]))]);
    assert_eq!(
        rejection_of(&chain, key().transfer(1, CONTRACT, 0)),
        Rejection::SenderHasCode
    );
    let delegation = [&hex!("ef0100")[..], CONTRACT.as_slice()].concat();
    let mut chain = TestChain::new(|_| {}, [(sender, delegation.into())]);
    let outcome = chain.run(vec![key().transfer(1, CONTRACT, 0)]);
    assert_eq!(outcome.block.results[0].code, 0);
}

#[test]
fn rejects_block_gas_exhausted() {
    let chain = TestChain::new(|parameters| parameters.gas_limit = 17_000_000, []);
    let big = TxEip1559 {
        gas_limit: 1 << 24,
        ..key().call_fields(1, TxKind::Call(CONTRACT), 0, Bytes::new())
    };
    // Both refuse: the second after 16 transfers no longer finds 2^24 gas in a block of 17 million.
    let transfers = (0..16).map(|nonce| TestKey::new(1).transfer(nonce, CONTRACT, 1));
    let mut raw: Vec<Bytes> = transfers.collect();
    raw.push(key().sign(big));
    let executed = chain.execute(raw);
    assert_eq!(
        executed.results[16].placement,
        Err(Rejection::BlockGasExhausted {
            left: 17_000_000 - 16 * 21_000,
            gas_limit: 1 << 24
        })
    );
}

#[test]
fn rejects_gas_limit_above_block() {
    let chain = TestChain::new(|parameters| parameters.gas_limit = 500_000, []);
    assert_eq!(
        rejection_of(
            &chain,
            key().call(0, TxKind::Call(CONTRACT), 0, Bytes::new())
        ),
        Rejection::GasLimitAboveBlock {
            block: 500_000,
            gas_limit: 1_000_000
        }
    );
}

/// D43: the core decides again what the pool checked.
#[test]
fn rejects_wrong_chain_id_in_a_decided_block() {
    let chain = TestChain::new(|_| {}, []);
    let foreign = TxEip1559 {
        chain_id: CHAIN_ID + 1,
        ..key().call_fields(0, TxKind::Call(CONTRACT), 1, Bytes::new())
    };
    assert_eq!(
        rejection_of(&chain, key().sign(foreign)),
        Rejection::WrongChainId {
            expected: CHAIN_ID,
            got: CHAIN_ID + 1
        }
    );
}

/// D42.
#[test]
fn self_transfer_keeps_the_balance() {
    let mut chain = TestChain::new(|_| {}, []);
    let sender = key().address();
    let fee = 21_000 * FEE_CAP_WEI;
    let mut balance = BALANCE_WEI;
    for (nonce, value) in [(0, 0), (1, 1), (2, BALANCE_WEI - 3 * fee)] {
        let outcome = chain.run(vec![key().transfer(nonce, sender, value)]);
        assert!(outcome.block.transactions[0].receipt.status());
        balance -= fee;
        assert_eq!(
            chain.account(sender).balance,
            U256::from(balance),
            "value {value}"
        );
    }
}

/// D19: whatever becomes of a transaction in the block, its nonce and fee are used up.
#[test]
fn an_included_transaction_always_uses_its_nonce() {
    let reverts = chain_with(hex!("60006000fd"));
    let runs_out_of_gas = chain_with(hex!("5b600056"));
    let halts = chain_with(hex!("fe"));
    for mut chain in [reverts, runs_out_of_gas, halts] {
        let outcome = chain.run(vec![key().call(0, TxKind::Call(CONTRACT), 0, Bytes::new())]);
        assert_eq!(outcome.block.results[0].code, 0);
        let executed = &outcome.block.transactions[0];
        assert!(!executed.receipt.status());
        assert!(executed.gas_used > 21_000);
        assert_eq!(chain.account(key().address()).nonce, 1);
        let spent = U256::from(executed.gas_used) * U256::from(2 * GWEI);
        assert_eq!(
            chain.account(key().address()).balance,
            U256::from(BALANCE_WEI) - spent
        );
    }
    let mut chain = TestChain::new(|_| {}, []);
    let outcome = chain.run(vec![key().call(0, TxKind::Create, 7, hex!("fe"))]);
    assert!(!outcome.block.transactions[0].receipt.status());
    assert_eq!(chain.account(key().address()).nonce, 1);
    assert_eq!(chain.account(key().address().create(0)).balance, U256::ZERO);
}

/// D13: value to a precompile costs more than 21,000; the transaction fails and still counts.
#[test]
fn value_to_a_precompile_needs_more_than_21000() {
    let mut chain = TestChain::new(|_| {}, []);
    let identity = Address::with_last_byte(4);
    let outcome = chain.run(vec![key().transfer(0, identity, 1)]);
    assert!(!outcome.block.transactions[0].receipt.status());
    assert_eq!(chain.account(key().address()).nonce, 1);
    assert_eq!(chain.account(identity).balance, U256::ZERO);
}

/// D01, D03.
#[test]
fn receipts_count_gas_over_the_block() {
    // LOG0 three times.
    let mut chain = chain_with(hex!("60006000a060006000a060006000a000"));
    let outcome = chain.run(vec![
        key().transfer(0, CONTRACT.create(9), 1),
        key().call(1, TxKind::Call(CONTRACT), 0, Bytes::new()),
        TestKey::new(1).call(0, TxKind::Call(CONTRACT), 0, Bytes::new()),
    ]);
    let transactions = &outcome.block.transactions;
    let mut sum = 0;
    for executed in transactions {
        sum += executed.gas_used;
        assert_eq!(executed.receipt.cumulative_gas_used(), sum);
    }
    assert_eq!(outcome.block.header.gas_used, sum);
    assert_eq!(transactions[1].receipt.logs().len(), 3);
    assert_eq!(transactions[2].receipt.logs().len(), 3);
    let bloom = transactions
        .iter()
        .fold(alloy_primitives::Bloom::ZERO, |bloom, executed| {
            bloom | *executed.receipt.logs_bloom()
        });
    assert_eq!(outcome.block.header.logs_bloom, bloom);
    assert_ne!(bloom, alloy_primitives::Bloom::ZERO);
}

/// D05: a refused transaction leaves the good ones and both orders of indices intact.
#[test]
fn a_refused_transaction_is_left_out() {
    let chain = TestChain::new(|_| {}, []);
    let executed = chain.execute(vec![
        key().transfer(0, CONTRACT, 1),
        key().transfer(0, CONTRACT, 1),
        b"garbage".into(),
        key().transfer(1, CONTRACT, 1),
    ]);
    let placements: Vec<_> = executed
        .results
        .iter()
        .map(|result| result.placement.clone().ok())
        .collect();
    assert_eq!(placements, [Some(0), None, None, Some(1)]);
    let codes: Vec<u32> = executed.results.iter().map(|result| result.code).collect();
    assert_eq!(codes, [0, 100, 3, 0]);
    assert_eq!(executed.transactions.len(), 2);
}

#[test]
fn base_fee_is_burnt_and_tips_and_reward_go_to_the_proposer() {
    let reward = U256::from(12_345);
    let mut chain = TestChain::new(|parameters| parameters.block_reward_wei = reward, []);
    let outcome = chain.run(vec![key().call(0, TxKind::Call(CONTRACT), 9, Bytes::new())]);
    let beneficiary = outcome.block.header.beneficiary;
    let tips = U256::from(21_000 * GWEI);
    assert_eq!(chain.account(beneficiary).balance, tips + reward);
    let supply = (0..10)
        .map(|index| chain.account(TestKey::new(index).address()).balance)
        .chain([
            chain.account(beneficiary).balance,
            chain.account(CONTRACT).balance,
        ])
        .fold(U256::ZERO, |sum, balance| sum + balance);
    let burnt = U256::from(21_000 * GWEI);
    assert_eq!(supply + burnt, U256::from(10 * BALANCE_WEI) + reward);
}

#[test]
fn system_contracts_hold_parent_hashes() {
    let mut chain = TestChain::new(|_| {}, []);
    let genesis_hash = chain.head.hash_slow();
    let first = chain.run(Vec::new());
    assert_eq!(
        chain.slot(HISTORY_STORAGE_ADDRESS, 0),
        U256::from_be_bytes(genesis_hash.0)
    );
    let second = chain.run(Vec::new());
    assert_eq!(
        chain.slot(HISTORY_STORAGE_ADDRESS, 1),
        U256::from_be_bytes(first.hash.0)
    );
    // EIP-4788: a ring of 8191 by timestamp, times at i, roots at i + 8191.
    let index = second.block.header.timestamp % 8191;
    let root = second.block.header.parent_beacon_block_root.unwrap();
    assert_eq!(
        chain.slot(BEACON_ROOTS_ADDRESS, index),
        U256::from(second.block.header.timestamp)
    );
    assert_eq!(
        chain.slot(BEACON_ROOTS_ADDRESS, index + 8191),
        U256::from_be_bytes(root.0)
    );
    assert_ne!(root, B256::ZERO);
}

#[test]
fn blockhash_and_environment_reach_the_code() {
    // slot 0 = BLOCKHASH(NUMBER - 1), 1 = PREVRANDAO, 2 = TIMESTAMP, 3 = CHAINID, 4 = COINBASE, 5 = BASEFEE,
    // 6 = BLOBBASEFEE, 7 = GASLIMIT
    let code = hex!("600143034060005544600155426002554660035541600455486005554a6006554560075500");
    let mut chain = chain_with(code);
    let head_hash = chain.run(Vec::new()).hash;
    let outcome = chain.run(vec![key().call(0, TxKind::Call(CONTRACT), 0, Bytes::new())]);
    let header = &outcome.block.header;
    assert!(outcome.block.transactions[0].receipt.status());
    let expected = [
        U256::from_be_bytes(head_hash.0),
        U256::from_be_bytes(header.mix_hash.0),
        U256::from(header.timestamp),
        U256::from(CHAIN_ID),
        U256::ZERO,
        U256::from(GWEI),
        U256::from(1),
        U256::from(header.gas_limit),
    ];
    for (slot, value) in (0..).zip(expected) {
        assert_eq!(chain.slot(CONTRACT, slot), value, "slot {slot}");
    }
}

/// A store that lost the hash of an ancestor must not pass for a chain where it is zero.
#[test]
fn a_missing_block_hash_is_a_fault() {
    let mut chain = chain_with(hex!("600143034060005500"));
    chain.run(Vec::new());
    chain.state.block_hashes.clear();
    let raw = key().call(0, TxKind::Call(CONTRACT), 0, Bytes::new());
    let fault = chain
        .app
        .execute_block(&chain.state, &chain.head, &chain.input(vec![raw]), &|_| {
            None
        })
        .unwrap_err();
    assert_eq!(
        fault.to_string(),
        "state read failed: hash of block 1 is not stored"
    );
}

/// EIP-6780 under Osaka, the old rule under Shanghai.
#[test]
fn selfdestruct_follows_the_fork() {
    for (fork, destroyed) in [(Fork::Shanghai, true), (Fork::Osaka, false)] {
        // Stores 5 in slot 5 if called without value, else destroys itself in favour of the caller.
        let code = hex!("34600a576005600555005b33ff");
        let mut chain = TestChain::new(
            |parameters| parameters.fork = fork,
            [(CONTRACT, code.into())],
        );
        chain.run(vec![key().call(0, TxKind::Call(CONTRACT), 0, Bytes::new())]);
        assert_eq!(chain.slot(CONTRACT, 5), U256::from(5));
        let outcome = chain.run(vec![key().call(1, TxKind::Call(CONTRACT), 3, Bytes::new())]);
        assert!(outcome.block.transactions[0].receipt.status());
        let exists = chain
            .state
            .accounts
            .contains_key(&HashedAddress::from(CONTRACT));
        assert_eq!(exists, !destroyed, "{fork:?}");
        assert_eq!(chain.slot(CONTRACT, 5).is_zero(), destroyed, "{fork:?}");
    }
}

/// Destroyed and funded again in one block: nothing of the old account shines through.
#[test]
fn a_destroyed_account_can_be_funded_in_the_same_block() {
    let code = hex!("34600a576005600555005b33ff");
    let mut chain = TestChain::new(
        |parameters| parameters.fork = Fork::Shanghai,
        [(CONTRACT, code.into())],
    );
    chain.run(vec![key().call(0, TxKind::Call(CONTRACT), 0, Bytes::new())]);
    chain.run(vec![
        key().call(1, TxKind::Call(CONTRACT), 3, Bytes::new()),
        key().transfer(2, CONTRACT, 11),
    ]);
    let account = chain.account(CONTRACT);
    assert_eq!(account.balance, U256::from(11));
    assert_eq!(
        (account.nonce, account.storage_root),
        (0, alloy_trie::EMPTY_ROOT_HASH)
    );
    assert_eq!(account.code_hash, alloy_primitives::KECCAK256_EMPTY);
}

/// EIP-161: an empty account is not created by a touch.
#[test]
fn a_touched_empty_account_stays_absent() {
    let mut chain = TestChain::new(|_| {}, []);
    let nobody = Address::repeat_byte(0x99);
    let outcome = chain.run(vec![key().transfer(0, nobody, 0)]);
    assert!(outcome.block.transactions[0].receipt.status());
    assert!(
        !outcome
            .block
            .changes
            .accounts
            .contains_key(&HashedAddress::from(nobody))
    );
}

/// Only real changes are written.
#[test]
fn a_slot_set_and_reset_in_one_block_is_not_written() {
    // slot[0] = calldata[0]
    let mut chain = chain_with(hex!("60003560005500"));
    let set = |nonce, value| {
        key().call(
            nonce,
            TxKind::Call(CONTRACT),
            0,
            B256::with_last_byte(value).to_vec(),
        )
    };
    chain.run(vec![set(0, 1)]);
    let outcome = chain.run(vec![set(1, 2), set(2, 1)]);
    let contract = HashedAddress::from(CONTRACT);
    assert!(!outcome.block.changes.accounts.contains_key(&contract));
    assert!(
        outcome
            .block
            .changes
            .storage
            .keys()
            .all(|(address, _)| *address != contract)
    );
    chain.run(vec![set(3, 0)]);
    assert_eq!(
        chain.account(CONTRACT).storage_root,
        alloy_trie::EMPTY_ROOT_HASH
    );
}

#[test]
fn an_authorization_delegates_and_a_second_clears() {
    // slot[0] = CALLER
    let mut chain = chain_with(hex!("3360005500"));
    let authority = TestKey::new(5);
    let outcome = chain.run(vec![key().delegate(
        0,
        authority.address(),
        vec![authority.authorize(CONTRACT, 0)],
    )]);
    assert!(outcome.block.transactions[0].receipt.status());
    let caller = U256::from_be_bytes(key().address().into_word().0);
    assert_eq!(chain.slot(authority.address(), 0), caller);
    let account = chain.account(authority.address());
    assert_eq!(account.nonce, 1);
    let delegation = [&hex!("ef0100")[..], CONTRACT.as_slice()].concat();
    assert_eq!(account.code_hash, keccak256(&delegation));
    assert_eq!(chain.state.code[&account.code_hash], delegation);
    chain.run(vec![key().delegate(
        1,
        authority.address(),
        vec![authority.authorize(Address::ZERO, 1)],
    )]);
    let account = chain.account(authority.address());
    assert_eq!(account.code_hash, alloy_primitives::KECCAK256_EMPTY);
    assert_eq!(chain.slot(authority.address(), 0), caller, "storage stays");
}

/// An account that a first transaction touched but left empty does not exist for a second one's authorization.
#[test]
fn a_touched_empty_authority_gives_no_refund() {
    let authority = TestKey::new(50);
    let delegate = |nonce| key().delegate(nonce, CONTRACT, vec![authority.authorize(CONTRACT, 0)]);
    let alone = TestChain::new(|_| {}, []).execute(vec![delegate(0)]);
    let after_touch = TestChain::new(|_| {}, [])
        .execute(vec![key().transfer(0, authority.address(), 0), delegate(1)]);
    assert_eq!(
        alone.transactions[0].gas_used,
        after_touch.transactions[1].gas_used
    );
}

#[test]
fn overlay_overrides_replace_code_and_storage() {
    let mut chain = chain_with(hex!("60003560005500"));
    chain.run(vec![key().call(
        0,
        TxKind::Call(CONTRACT),
        0,
        B256::with_last_byte(1).to_vec(),
    )]);
    let mut overlay = Overlay::new(&chain.state);
    assert_eq!(
        overlay.storage(CONTRACT, U256::ZERO).unwrap(),
        U256::from(1)
    );
    overlay.wipe_storage(CONTRACT).unwrap();
    overlay
        .set_storage(CONTRACT, [(U256::from(3), U256::from(4))].into_iter())
        .unwrap();
    overlay
        .set_code(CONTRACT, Bytes::from_static(&[0]))
        .unwrap();
    assert_eq!(overlay.storage(CONTRACT, U256::ZERO).unwrap(), U256::ZERO);
    assert_eq!(
        overlay.storage(CONTRACT, U256::from(3)).unwrap(),
        U256::from(4)
    );
    let record = overlay.account(CONTRACT).unwrap().unwrap();
    assert_eq!(
        overlay.code(record.code_hash).unwrap(),
        Bytes::from_static(&[0])
    );
    assert_eq!(record.nonce, 1);
}

#[test]
fn proposer_without_payout_address_pays_nobody() {
    let chain = TestChain::new(|_| {}, []);
    let mut input = chain.input(Vec::new());
    input.proposer = ConsensusAddress::repeat_byte(0xee);
    let executed = chain
        .app
        .execute_block(&chain.state, &chain.head, &input, &|_| None)
        .unwrap();
    assert_eq!(executed.header.beneficiary, Address::ZERO);
}
