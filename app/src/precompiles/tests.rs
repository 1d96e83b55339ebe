mod block;
mod evm;

use super::*;
use alloy_primitives::{hex, keccak256};
use cloister_groth16::{EncodingError, KeyError, KeyPoint};
use groth16::{REGISTERED, WITH_KEY};
use proptest::prelude::*;

const GAS: u64 = 10_000_000;

struct Case {
    key: Bytes,
    id: [u8; 32],
    statement: Vec<u8>,
    input_count: usize,
}

fn cases() -> Vec<Case> {
    [
        include_str!("../../../genesis/keys/dev/transfer_k2.json"),
        include_str!("../../../genesis/keys/dev/deposit_k2.json"),
        include_str!("../../../genesis/keys/dev/transfer_k6.json"),
    ]
    .map(|text| {
        let json: serde_json::Value = serde_json::from_str(text).expect("key files are JSON");
        let bytes = |name: &str| hex::decode(json[name].as_str().expect("text")).expect("hex");
        let inputs = bytes("public_inputs");
        Case {
            key: bytes("key").into(),
            id: bytes("id").try_into().expect("a word"),
            input_count: inputs.len() / 32,
            statement: [bytes("proof"), inputs].concat(),
        }
    })
    .into()
}

fn context(cases: &[Case]) -> Context {
    let keys: Vec<_> = cases
        .iter()
        .zip(0..)
        .map(|(case, n)| named(n, &case.key))
        .collect();
    Context::new(&keys).expect("keys may be used")
}

fn named(n: usize, key: &Bytes) -> GenesisVerifyingKey {
    GenesisVerifyingKey {
        name: format!("key {n}"),
        development: true,
        key: key.clone(),
    }
}

fn word(value: usize) -> [u8; 32] {
    B256::left_padding_from(&value.to_be_bytes()).0
}

fn by_index(index: usize, case: &Case) -> Vec<u8> {
    [&word(index)[..], &case.statement].concat()
}

fn with_key(case: &Case) -> Vec<u8> {
    [&word(case.key.len())[..], &case.key, &case.statement].concat()
}

fn call(address: Address, context: &Context, input: &[u8]) -> Outcome {
    (find(&address).expect("in the table").run)(context, input, GAS)
}

#[test]
fn the_table_is_in_order_within_the_reserved_range() {
    assert!(TABLE.is_sorted_by(|a, b| a.address < b.address));
    for row in TABLE {
        assert!(cloister_genesis::contracts::is_precompile(row.address));
    }
    assert!(find(&address!("0000000000000000000000000000000000000c00")).is_none());
    assert!(find(&address!("0000000000000000000000000000000000000c03")).is_none());
    assert!(find(&address!("1000000000000000000000000000000000000c01")).is_none());
}

#[test]
fn selectors_are_those_of_the_documentation() {
    let document = include_str!("../../../docs/precompiles.md");
    for (selector, signature) in [
        (InvalidLength::SELECTOR, "InvalidLength()"),
        (UnknownKey::SELECTOR, "UnknownKey()"),
        (InvalidKey::SELECTOR, "InvalidKey()"),
        (InvalidProof::SELECTOR, "InvalidProof()"),
        (InvalidPublicInput::SELECTOR, "InvalidPublicInput()"),
    ] {
        assert_eq!(selector, keccak256(signature)[..4]);
        let line = format!("| `{signature}` | `{}` |", hex::encode_prefixed(selector));
        assert!(
            document.contains(&line),
            "docs/precompiles.md lacks: {line}"
        );
    }
}

#[test]
fn prices_are_those_of_the_documentation() {
    let document = include_str!("../../../docs/precompiles.md");
    let dots = |gas: u64| {
        if gas < 1_000 {
            gas.to_string()
        } else {
            format!("{},{:03}", gas / 1_000, gas % 1_000)
        }
    };
    for price in [
        format!(
            "{} + {}·n",
            dots(REGISTERED.base_gas),
            dots(REGISTERED.input_gas)
        ),
        format!(
            "{} + {}·n",
            dots(WITH_KEY.base_gas),
            dots(WITH_KEY.input_gas)
        ),
        format!(
            "{} + {}·w",
            dots(ed25519::BASE_GAS),
            dots(ed25519::MESSAGE_WORD_GAS)
        ),
    ] {
        assert!(
            document.contains(&price),
            "docs/precompiles.md lacks: {price}"
        );
    }
}

#[test]
fn a_proof_verifies_by_index_by_id_and_with_its_key() {
    let cases = cases();
    let context = context(&cases);
    for (index, case) in cases.iter().enumerate() {
        let gas = REGISTERED.of(case.input_count);
        assert_eq!(
            call(GROTH16_VERIFY, &context, &by_index(index, case)),
            answer(gas, true)
        );
        let by_id = [&case.id[..], &case.statement].concat();
        assert_eq!(call(GROTH16_VERIFY, &context, &by_id), answer(gas, true));
        let gas = WITH_KEY.of(case.input_count);
        assert_eq!(
            call(
                GROTH16_VERIFY_WITH_KEY,
                &Context::default(),
                &with_key(case)
            ),
            answer(gas, true)
        );
    }
}

#[test]
fn a_false_proof_answers_zero_at_full_price() {
    let cases = cases();
    let context = context(&cases);
    for (index, case) in cases.iter().enumerate() {
        let mut case = Case {
            statement: case.statement.clone(),
            key: case.key.clone(),
            ..*case
        };
        // The statement with its last input changed by one.
        *case.statement.last_mut().expect("not empty") ^= 1;
        assert_eq!(
            call(GROTH16_VERIFY, &context, &by_index(index, &case)),
            answer(REGISTERED.of(case.input_count), false)
        );
        assert_eq!(
            call(GROTH16_VERIFY_WITH_KEY, &context, &with_key(&case)),
            answer(WITH_KEY.of(case.input_count), false)
        );
    }
}

#[test]
fn a_cached_success_costs_what_a_fresh_one_costs() {
    let cases = cases();
    let context = context(&cases);
    for address in [GROTH16_VERIFY, GROTH16_VERIFY_WITH_KEY] {
        for (index, case) in cases.iter().enumerate() {
            let input = if address == GROTH16_VERIFY {
                by_index(index, case)
            } else {
                with_key(case)
            };
            let fresh = call(address, &Context::new(&[]).expect("no keys"), &input);
            let (first, second) = (
                call(address, &context, &input),
                call(address, &context, &input),
            );
            assert_eq!(first, second);
            if address == GROTH16_VERIFY_WITH_KEY {
                assert_eq!(first, fresh);
            }
            let Outcome::Success { gas_used, .. } = first else {
                panic!("proof verifies");
            };
            let run = find(&address).expect("in the table").run;
            assert_eq!(run(&context, &input, gas_used - 1), Outcome::OutOfGas);
        }
    }
    assert_eq!(context.verified.count(), cases.len());
}

#[test]
fn the_cache_holds_no_failure() {
    let cases = cases();
    let context = context(&cases);
    let mut input = by_index(0, &cases[0]);
    *input.last_mut().expect("not empty") ^= 1;
    call(GROTH16_VERIFY, &context, &input);
    input[40] ^= 1;
    call(GROTH16_VERIFY, &context, &input);
    assert_eq!(context.verified.count(), 0);
}

#[test]
fn gas_is_asked_before_any_point_is_read() {
    let cases = cases();
    let context = context(&cases);
    let mut input = by_index(0, &cases[0]);
    input[32..].fill(0xff);
    let gas = REGISTERED.of(cases[0].input_count);
    let run = find(&GROTH16_VERIFY).expect("in the table").run;
    assert_eq!(run(&context, &input, gas - 1), Outcome::OutOfGas);
    assert_eq!(
        run(&context, &input, gas),
        revert::<InvalidPublicInput>(gas)
    );
}

#[test]
fn malformed_input_reverts_with_its_selector_and_takes_all_gas() {
    let cases = cases();
    let context = context(&cases);
    let good = by_index(0, &cases[0]);
    let expect = |input: &[u8], outcome: Outcome| {
        assert_eq!(call(GROTH16_VERIFY, &context, input), outcome);
    };
    for length in [0, 31, 32, 287, 288, good.len() - 32, good.len() - 1] {
        expect(&good[..length], revert::<InvalidLength>(GAS));
    }
    expect(&[&good[..], &[0]].concat(), revert::<InvalidLength>(GAS));
    expect(
        &[&good[..], &[0; 32]].concat(),
        revert::<InvalidLength>(GAS),
    );
    expect(&by_index(3, &cases[0]), revert::<UnknownKey>(GAS));
    let mut unknown = good.clone();
    unknown[0] = 1;
    expect(&unknown, revert::<UnknownKey>(GAS));
    let mut not_a_point = good.clone();
    not_a_point[32 + 31] ^= 1;
    expect(&not_a_point, revert::<InvalidProof>(GAS));
    let mut identity = good.clone();
    identity[32..96].fill(0);
    expect(&identity, revert::<InvalidProof>(GAS));
    let mut not_below_r = good.clone();
    let at = good.len() - 32;
    not_below_r[at..].fill(0xff);
    expect(&not_below_r, revert::<InvalidPublicInput>(GAS));
}

#[test]
fn malformed_input_with_a_key_reverts_with_its_selector_and_takes_all_gas() {
    let cases = cases();
    let context = Context::default();
    let case = &cases[0];
    let expect = |input: &[u8], outcome: Outcome| {
        assert_eq!(call(GROTH16_VERIFY_WITH_KEY, &context, input), outcome);
    };
    let good = with_key(case);
    for length in [0, 31, 32, 100, good.len() - 1] {
        expect(&good[..length], revert::<InvalidLength>(GAS));
    }
    expect(&[&good[..], &[0]].concat(), revert::<InvalidLength>(GAS));
    let mut huge = good.clone();
    huge[..32].fill(0xff);
    expect(&huge, revert::<InvalidLength>(GAS));
    let short_key = [&word(447)[..], &case.key[..447], &case.statement].concat();
    expect(&short_key, revert::<InvalidKey>(GAS));
    let no_inputs = [&word(512)[..], &case.key[..512], &case.statement[..256]].concat();
    expect(&no_inputs, revert::<InvalidKey>(GAS));
    // gamma = delta: anyone could forge a proof.
    let mut weak = good.clone();
    weak.copy_within(32 + 320..32 + 448, 32 + 192);
    expect(&weak, revert::<InvalidKey>(GAS));
    let mut identity = good;
    identity[32 + 448..32 + 512].fill(0);
    expect(&identity, revert::<InvalidKey>(GAS));
}

#[test]
fn genesis_with_a_key_that_must_not_be_used_is_refused() {
    let cases = cases();
    let mut weak = cases[1].key.to_vec();
    weak.copy_within(320..448, 192);
    let weak = [named(0, &cases[0].key), named(1, &weak.into())];
    assert_eq!(
        Context::new(&weak).expect_err("gamma = delta"),
        RegistryError::Key {
            index: 1,
            name: "key 1".into(),
            source: KeyError::Coincide {
                first: KeyPoint::Gamma,
                second: KeyPoint::Delta
            }
        }
    );
    let mut identity = cases[1].key.to_vec();
    identity[..64].fill(0);
    assert_eq!(
        Context::new(&[named(0, &identity.into())]).expect_err("alpha is the identity"),
        RegistryError::Key {
            index: 0,
            name: "key 0".into(),
            source: KeyError::Point {
                point: KeyPoint::Alpha,
                source: EncodingError::Identity
            }
        }
    );
    let twice = [named(0, &cases[0].key), named(1, &cases[0].key)];
    assert_eq!(
        Context::new(&twice).expect_err("one key twice"),
        RegistryError::Duplicate {
            index: 1,
            name: "key 1".into(),
            first: 0
        }
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_input_makes_a_precompile_panic(
        row in 0..TABLE.len(),
        input in proptest::collection::vec(any::<u8>(), 0..1_200),
        gas_limit in any::<u64>(),
    ) {
        (TABLE[row].run)(&Context::default(), &input, gas_limit);
    }

    #[test]
    fn no_change_of_good_input_makes_a_precompile_panic_or_verify(
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
        carries_key in any::<bool>(),
    ) {
        let cases = cases();
        let (address, mut input) = if carries_key {
            (GROTH16_VERIFY_WITH_KEY, with_key(&cases[0]))
        } else {
            (GROTH16_VERIFY, by_index(0, &cases[0]))
        };
        let byte = &mut input[at.index(cases[0].statement.len())];
        prop_assume!(*byte != value);
        *byte = value;
        let context = context(&cases);
        let verified = matches!(
            call(address, &context, &input),
            Outcome::Success { output, .. } if output[31] == 1
        );
        prop_assert!(!verified);
    }
}
