use super::*;
use crate::{GenesisBuilder, GenesisError, Rule, dev_genesis};
use cloister_groth16::{KeyError, PreparedVerifyingKey, Proof, PublicInputs, VerifyingKey};

fn refusal(keys: Vec<GenesisVerifyingKey>) -> (String, Rule) {
    let error: GenesisError = GenesisBuilder::new(1)
        .development(true)
        .verifying_keys(keys)
        .build()
        .expect_err("a key is refused");
    let fault = error
        .faults()
        .iter()
        .find(|fault| fault.field.starts_with("verifying_keys"))
        .expect("the key is named");
    (fault.field.clone(), fault.rule.clone())
}

#[test]
fn the_development_network_registers_keys_that_accept_their_proofs() {
    assert_eq!(dev_genesis().verifying_keys, development_keys());
    for proof in development_proofs() {
        assert!(proof.development);
        let key = VerifyingKey::parse(&proof.key).expect("key may be used");
        assert_eq!(key.id().0, proof.id.0);
        assert_eq!(key.public_input_count(), proof.public_input_count);
        let parsed = Proof::parse(&proof.proof).expect("points");
        let inputs = PublicInputs::parse(&proof.public_inputs).expect("scalars");
        let verdict = PreparedVerifyingKey::new(key).verify(&parsed, &inputs);
        assert_eq!(verdict, Ok(true), "{}", proof.name);
    }
}

#[test]
fn refuses_a_key_whose_gamma_is_its_delta() {
    let mut keys = development_keys();
    let mut key = keys[3].key.to_vec();
    key.copy_within(320..448, 192);
    keys[3].key = key.into();
    let (field, rule) = refusal(keys);
    assert_eq!(field, "verifying_keys[3].key");
    let Rule::VerifyingKey { reason } = rule else {
        panic!("another rule: {rule:?}");
    };
    assert!(reason.contains("gamma and delta"), "{reason}");
}

#[test]
fn refuses_a_key_of_another_length() {
    let mut keys = development_keys();
    keys[0].key = keys[0].key.slice(1..);
    let got_bytes = keys[0].key.len();
    let reason = KeyError::Length { got_bytes }.to_string();
    assert_eq!(
        refusal(keys),
        (
            "verifying_keys[0].key".into(),
            Rule::VerifyingKey { reason }
        )
    );
}

#[test]
fn refuses_one_key_under_two_names() {
    let mut keys = development_keys();
    keys[1].key = keys[0].key.clone();
    assert_eq!(
        refusal(keys),
        (
            "verifying_keys[1].key".into(),
            Rule::DuplicateVerifyingKey { first: 0 }
        )
    );
}
