//! Our precompiles as contracts and callers meet them, inside the EVM.

use super::{super::*, GAS};
use crate::{
    app::App,
    simulation::{AccountOverride, CallRequest, Ending, Limits, Overrides, Scene, Simulated, call},
    state::memory::MemoryState,
};
use alloy_consensus::Header;
use alloy_primitives::{U256, hex};
use cloister_genesis::{DEV_ACCOUNTS, DevelopmentProof, dev_genesis, development_proofs};

const CONTRACT: Address = address!("00000000000000000000000000000000c0de0001");
const ECADD: Address = address!("0000000000000000000000000000000000000006");
const ECMUL: Address = address!("0000000000000000000000000000000000000007");
const ECPAIRING: Address = address!("0000000000000000000000000000000000000008");

/// Instructions that call with (gas, address[, value], input[, output]).
const CALL: u8 = 0xf1;
const CALLCODE: u8 = 0xf2;
const DELEGATECALL: u8 = 0xf4;
const STATICCALL: u8 = 0xfa;

struct Bench {
    app: App,
    state: MemoryState,
    header: Header,
}

impl Bench {
    fn new() -> Self {
        let genesis = dev_genesis();
        let app = App::new(&genesis);
        let outcome = app.init_chain(&genesis);
        let mut state = MemoryState::default();
        state.apply(&outcome.changes);
        Self {
            app,
            state,
            header: outcome.header,
        }
    }

    fn call(&self, to: Address, input: &[u8], gas_limit: u64, overrides: &Overrides) -> Simulated {
        let scene = Scene {
            app: &self.app,
            state: &self.state,
            header: &self.header,
            overrides,
            limits: Limits {
                gas_max: 4 * GAS,
                stop: &|| false,
            },
        };
        let request = CallRequest {
            from: DEV_ACCOUNTS[0],
            to: Some(to),
            gas_limit: Some(gas_limit),
            input: Bytes::copy_from_slice(input),
            ..CallRequest::default()
        };
        call(&scene, &request).expect("the call is no invalid transaction")
    }

    /// Return data of a call by eth_call.
    fn output(&self, to: Address, input: &[u8]) -> Bytes {
        match self.call(to, input, 4 * GAS, &Overrides::default()).ending {
            Ending::Success { output } => output,
            other => panic!("call to {to} fails: {other:?}"),
        }
    }

    /// What a contract sees that forwards its calldata to `target` by `instruction`, giving `gas` and sending `value`:
    /// success, return data, gas left to it in the end, balance of the target.
    fn through_contract(
        &self,
        instruction: u8,
        target: Address,
        gas: u32,
        value: u8,
        input: &[u8],
    ) -> Seen {
        // CALLDATACOPY all to 0; then the call's operands, last one first.
        let mut code = hex!("36600060003760006000366000").to_vec();
        if matches!(instruction, CALL | CALLCODE) {
            code.extend([0x60, value]);
        }
        code.push(0x73);
        code.extend(target);
        code.push(0x63);
        code.extend(gas.to_be_bytes());
        code.push(instruction);
        // Memory: success, length of return data, balance of the target, return data. All of it returned.
        code.extend(hex!("6000523d60205273"));
        code.extend(target);
        code.extend(hex!("316040523d600060603e3d6060016000f3"));
        let contract = AccountOverride {
            code: Some(code.into()),
            balance: Some(U256::from(100)),
            ..AccountOverride::default()
        };
        let overrides = Overrides {
            accounts: [(CONTRACT, contract)].into(),
            ..Overrides::default()
        };
        let run = self.call(CONTRACT, input, 4 * GAS, &overrides);
        let Ending::Success { output } = run.ending else {
            panic!("the contract itself does not fail: {run:?}");
        };
        let word = |index: usize| U256::from_be_slice(&output[index * 32..index * 32 + 32]);
        assert_eq!(word(1), U256::from(output.len() - 96));
        Seen {
            success: word(0) == U256::from(1),
            balance: word(2),
            data: output.slice(96..),
            gas_used: run.gas_used,
        }
    }
}

#[derive(Debug)]
struct Seen {
    success: bool,
    balance: U256,
    data: Bytes,
    gas_used: u64,
}

fn one() -> Bytes {
    B256::with_last_byte(1).0.into()
}

fn zero() -> Bytes {
    B256::ZERO.0.into()
}

/// With the last public input changed.
fn false_input(proof: &DevelopmentProof) -> Vec<u8> {
    let mut input = proof.verify_input().to_vec();
    *input.last_mut().expect("not empty") ^= 1;
    input
}

fn with_key_input(proof: &DevelopmentProof) -> Vec<u8> {
    let length = U256::from(proof.key.len()).to_be_bytes::<32>();
    [&length[..], &proof.key, &proof.proof, &proof.public_inputs].concat()
}

#[test]
fn every_development_proof_verifies_by_a_call() {
    let bench = Bench::new();
    for proof in development_proofs() {
        assert_eq!(bench.output(GROTH16_VERIFY, &proof.verify_input()), one());
        assert_eq!(bench.output(GROTH16_VERIFY, &false_input(&proof)), zero());
        assert_eq!(
            bench.output(GROTH16_VERIFY_WITH_KEY, &with_key_input(&proof)),
            one()
        );
    }
}

#[test]
fn every_kind_of_call_from_a_contract_gets_the_same_answer() {
    let bench = Bench::new();
    let proof = &development_proofs()[0];
    for instruction in [CALL, CALLCODE, DELEGATECALL, STATICCALL] {
        let see =
            |input: &[u8]| bench.through_contract(instruction, GROTH16_VERIFY, 1_000_000, 0, input);
        let seen = see(&proof.verify_input());
        assert!(
            seen.success && seen.data == one(),
            "{instruction:#x}: {seen:?}"
        );
        let seen = see(&false_input(proof));
        assert!(
            seen.success && seen.data == zero(),
            "{instruction:#x}: {seen:?}"
        );
        let seen = see(&proof.verify_input()[1..]);
        assert!(!seen.success, "{instruction:#x}");
        assert_eq!(seen.data[..], UnknownKey::SELECTOR, "{instruction:#x}");
        let seen = see(&proof.verify_input()[..400]);
        assert!(!seen.success, "{instruction:#x}");
        assert_eq!(seen.data[..], InvalidLength::SELECTOR, "{instruction:#x}");
    }
}

#[test]
fn the_price_is_charged_and_malformed_input_takes_all_the_gas_given() {
    let bench = Bench::new();
    let proof = &development_proofs()[0];
    let given = 1_000_000;
    let see = |input: &[u8]| {
        bench
            .through_contract(STATICCALL, GROTH16_VERIFY, given, 0, input)
            .gas_used
    };
    let price = groth16::REGISTERED.of(proof.public_input_count);
    let (good, wrong) = (see(&proof.verify_input()), see(&false_input(proof)));
    assert!((price..price + 60_000).contains(&good), "{good}");
    // The last byte differs and both are nonzero or zero at 16 and 4 gas of calldata.
    assert!(good.abs_diff(wrong) <= 40, "{good} and {wrong}");
    let mut malformed = proof.verify_input().to_vec();
    malformed[32..64].fill(0xff);
    let malformed = see(&malformed);
    assert!(malformed >= u64::from(given), "{malformed}");
}

#[test]
fn too_little_gas_fails_without_data() {
    let bench = Bench::new();
    let proof = &development_proofs()[0];
    let price = groth16::REGISTERED.of(proof.public_input_count);
    let price = u32::try_from(price).expect("far below 2^32");
    let see = |gas: u32| {
        bench.through_contract(STATICCALL, GROTH16_VERIFY, gas, 0, &proof.verify_input())
    };
    let seen = see(price);
    assert!(seen.success && seen.data == one());
    let seen = see(price - 1);
    assert!(!seen.success && seen.data.is_empty());
}

#[test]
fn value_stays_with_the_address_on_success_and_comes_back_on_a_revert() {
    let bench = Bench::new();
    let proof = &development_proofs()[0];
    for address in [GROTH16_VERIFY, ED25519_VERIFY] {
        let input = if address == GROTH16_VERIFY {
            proof.verify_input().to_vec()
        } else {
            vec![0; 96]
        };
        let seen = bench.through_contract(CALL, address, 1_000_000, 7, &input);
        assert!(seen.success);
        assert_eq!(seen.balance, U256::from(7));
        let seen = bench.through_contract(CALL, address, 1_000_000, 7, &input[..95]);
        assert!(!seen.success);
        assert_eq!(seen.data.len(), 4);
        assert_eq!(seen.balance, U256::ZERO);
    }
}

/// Ethereum's own precompiles answer the same statement: the inputs folded by 0x06 and 0x07, the equation by 0x08.
#[test]
fn agrees_with_ethereums_pairing_precompile() {
    let bench = Bench::new();
    let proofs = development_proofs();
    for proof in [&proofs[0], &proofs[5]] {
        let mut statements = vec![
            (proof.proof.to_vec(), proof.public_inputs.to_vec()),
            (proofs[1].proof.to_vec(), proof.public_inputs.to_vec()),
        ];
        let mut negated = proof.proof.to_vec();
        negate(&mut negated[..64]);
        statements.push((negated.clone(), proof.public_inputs.to_vec()));
        // (-a, -b, c) is another proof of the same statement: b's y is in two words.
        negate_word(&mut negated[128..160]);
        negate_word(&mut negated[160..192]);
        statements.push((negated, proof.public_inputs.to_vec()));
        for index in [0, proof.public_input_count - 1] {
            let mut inputs = proof.public_inputs.to_vec();
            inputs[index * 32 + 31] ^= 1;
            statements.push((proof.proof.to_vec(), inputs));
        }
        let mut verdicts = Vec::new();
        for (points, inputs) in statements {
            let ours = [&proof.id[..], &points, &inputs].concat();
            let ours = bench.output(GROTH16_VERIFY, &ours);
            let theirs = ethereum(&bench, &proof.key, &points, &inputs);
            assert_eq!(ours, theirs);
            verdicts.push(ours == one());
        }
        assert_eq!(verdicts, [true, false, false, true, false, false]);
    }
}

/// Negates a point of G1.
fn negate(point: &mut [u8]) {
    negate_word(&mut point[32..64]);
}

fn negate_word(word: &mut [u8]) {
    const Q: U256 = U256::from_be_bytes(hex!(
        "30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47"
    ));
    let value = U256::from_be_slice(word);
    word.copy_from_slice(&((Q - value) % Q).to_be_bytes::<32>());
}

fn ethereum(bench: &Bench, key: &[u8], proof: &[u8], inputs: &[u8]) -> Bytes {
    let (alpha, g2, ic) = (&key[..64], &key[64..448], &key[448..]);
    let mut folded = Bytes::copy_from_slice(&ic[..64]);
    for (input, point) in inputs.chunks(32).zip(ic[64..].chunks(64)) {
        let term = bench.output(ECMUL, &[point, input].concat());
        folded = bench.output(ECADD, &[&folded[..], &term].concat());
    }
    let minus = |point: &[u8]| {
        let mut point = point.to_vec();
        negate(&mut point);
        point
    };
    let pairs = [
        &proof[..192],
        &minus(alpha),
        &g2[..128],
        &minus(&folded),
        &g2[128..256],
        &minus(&proof[192..]),
        &g2[256..],
    ];
    bench.output(ECPAIRING, &pairs.concat())
}
