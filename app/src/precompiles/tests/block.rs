//! Proofs verified by transactions in blocks.

use super::super::*;
use crate::testing::{BALANCE_WEI, TestChain, TestKey};
use alloy_genesis::GenesisAccount;
use alloy_primitives::{TxKind, U256, hex};
use cloister_genesis::{dev_genesis, development_proofs};

const CONTRACT: Address = address!("00000000000000000000000000000000c0de0001");

/// A contract that hands its calldata to `groth16_verify` and stores the answer, or 0 if the call fails, in slot 0.
const STORE_VERDICT: [u8; 26] = hex!("36600060003760206000366000610c015afa6000510260005500");

fn chain() -> TestChain {
    let mut genesis = dev_genesis();
    let contract = GenesisAccount {
        code: Some(STORE_VERDICT.into()),
        ..GenesisAccount::default()
    };
    let funded = GenesisAccount {
        balance: U256::from(BALANCE_WEI),
        ..GenesisAccount::default()
    };
    genesis.alloc.insert(CONTRACT, contract);
    genesis.alloc.insert(TestKey::new(0).address(), funded);
    TestChain::from_genesis(&genesis)
}

fn send(nonce: u64, input: impl Into<Bytes>) -> Bytes {
    TestKey::new(0).call(nonce, TxKind::Call(CONTRACT), 0, input)
}

#[test]
fn a_transaction_acts_on_the_verdict() {
    let mut chain = chain();
    let mut nonce = 0;
    let mut verdict_of = |input: Bytes| {
        let outcome = chain.run(vec![send(nonce, input)]);
        nonce += 1;
        assert_eq!(outcome.block.results[0].code, 0);
        (chain.slot(CONTRACT, 0), outcome.block.results[0].gas_used)
    };
    for proof in development_proofs() {
        let price = groth16::REGISTERED.of(proof.public_input_count);
        let input = proof.verify_input();
        let (verdict, gas_used) = verdict_of(input.clone());
        assert_eq!(verdict, U256::from(1), "{}", proof.name);
        assert!(gas_used > price, "{}", proof.name);
        let mut changed = input.to_vec();
        *changed.last_mut().expect("not empty") ^= 1;
        assert_eq!(verdict_of(changed.into()).0, U256::ZERO, "{}", proof.name);
        assert_eq!(verdict_of(input.slice(1..)).0, U256::ZERO, "{}", proof.name);
    }
}

/// A node that has seen the proofs before and one that has not make the same block.
#[test]
fn remembered_proofs_leave_no_trace_in_a_block() {
    let transactions: Vec<_> = development_proofs()
        .iter()
        .zip(0..)
        .map(|(proof, nonce)| send(nonce, proof.verify_input()))
        .collect();
    let (cold, warm) = (chain(), chain());
    for proof in development_proofs() {
        let run = find(&GROTH16_VERIFY).expect("in the table").run;
        run(warm.app.precompiles(), &proof.verify_input(), u64::MAX);
    }
    assert_eq!(warm.app.precompiles().verified.count(), 7);
    assert_eq!(cold.app.precompiles().verified.count(), 0);
    let cold = cold.execute(transactions.clone());
    let warm = warm.execute(transactions);
    assert_eq!(cold.header, warm.header);
    assert_eq!(cold.results, warm.results);
}
