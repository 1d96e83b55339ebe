//! Proofs made by another implementation verify, and nothing near them does.

mod common;

use cloister_groth16::{
    EncodingError, InputCountMismatch, InputError, KeyError, KeyPoint, PreparedVerifyingKey, Proof,
    ProofError, PublicInputs, VerifyingKey, verify_unprepared,
};
use common::{CIRCUITS, Case, UNBOUND, add, case, r};

fn prepared(case: &Case) -> PreparedVerifyingKey {
    PreparedVerifyingKey::new(VerifyingKey::parse(&case.key).expect("key may be used"))
}

fn accepts(key: &PreparedVerifyingKey, proof: &[u8], inputs: &[u8]) -> bool {
    let (Ok(proof), Ok(inputs)) = (Proof::parse(proof), PublicInputs::parse(inputs)) else {
        return false;
    };
    key.verify(&proof, &inputs).unwrap_or(false)
}

#[test]
fn every_gnark_proof_verifies_both_ways() {
    for circuit in CIRCUITS {
        let case = case(circuit);
        let key = prepared(&case);
        let proof = Proof::parse(&case.proof).expect("points");
        let inputs = PublicInputs::parse(&case.inputs).expect("scalars");
        assert_eq!(key.verify(&proof, &inputs), Ok(true), "{circuit}");
        assert_eq!(
            verify_unprepared(key.key(), &proof, &inputs),
            Ok(true),
            "{circuit}"
        );
        assert_eq!(key.key().to_bytes(), case.key);
        assert_eq!(proof.to_bytes(), case.proof);
        assert_eq!(inputs.to_bytes(), case.inputs);
    }
}

#[test]
fn no_bit_of_the_smallest_statement_can_change() {
    let case = case("transfer_k2");
    let key = prepared(&case);
    for bit in 0..case.proof.len() * 8 {
        let mut proof = case.proof.clone();
        proof[bit / 8] ^= 1 << (bit % 8);
        assert!(!accepts(&key, &proof, &case.inputs), "proof bit {bit}");
    }
    for bit in 0..case.inputs.len() * 8 {
        let mut inputs = case.inputs.clone();
        inputs[bit / 8] ^= 1 << (bit % 8);
        assert!(!accepts(&key, &case.proof, &inputs), "input bit {bit}");
    }
}

#[test]
fn no_sampled_bit_of_the_other_statements_can_change() {
    for circuit in &CIRCUITS[1..] {
        let case = case(circuit);
        let key = prepared(&case);
        for bit in (0..case.proof.len() * 8).step_by(61) {
            let mut proof = case.proof.clone();
            proof[bit / 8] ^= 1 << (bit % 8);
            assert!(
                !accepts(&key, &proof, &case.inputs),
                "{circuit} proof bit {bit}"
            );
        }
        for bit in (0..case.inputs.len() * 8).step_by(97) {
            let mut inputs = case.inputs.clone();
            inputs[bit / 8] ^= 1 << (bit % 8);
            assert!(
                !accepts(&key, &case.proof, &inputs),
                "{circuit} input bit {bit}"
            );
        }
    }
}

#[test]
fn no_sampled_bit_of_a_key_can_change() {
    let case = case("transfer_k2");
    let proof = Proof::parse(&case.proof).expect("points");
    let inputs = PublicInputs::parse(&case.inputs).expect("scalars");
    for bit in (0..case.key.len() * 8).step_by(7) {
        let mut key = case.key.clone();
        key[bit / 8] ^= 1 << (bit % 8);
        if let Ok(key) = VerifyingKey::parse(&key) {
            assert_eq!(
                verify_unprepared(&key, &proof, &inputs),
                Ok(false),
                "bit {bit}"
            );
        }
    }
}

#[test]
fn refuses_an_input_plus_any_multiple_of_r() {
    for circuit in CIRCUITS {
        let case = case(circuit);
        for index in 0..case.inputs.len() / 32 {
            let at = index * 32..index * 32 + 32;
            let mut value: [u8; 32] = case.inputs[at.clone()].try_into().expect("a word");
            let mut tried = 0;
            while let Some(alias) = add(value, r()) {
                let mut inputs = case.inputs.clone();
                inputs[at.clone()].copy_from_slice(&alias);
                assert_eq!(
                    PublicInputs::parse(&inputs),
                    Err(InputError::NotCanonical {
                        index,
                        value: alias
                    })
                );
                value = alias;
                tried += 1;
            }
            assert!(
                tried >= 4,
                "2^256 holds at least five aliases of every scalar"
            );
        }
    }
}

#[test]
fn refuses_a_wrong_number_of_inputs() {
    let case = case("transfer_k3");
    let key = prepared(&case);
    let proof = Proof::parse(&case.proof).expect("points");
    for got in [0, 1, 25, 27, 512] {
        let mut inputs = case.inputs.clone();
        inputs.resize(got * 32, 0);
        let inputs = PublicInputs::parse(&inputs).expect("scalars");
        let mismatch = Err(InputCountMismatch { expected: 26, got });
        assert_eq!(key.verify(&proof, &inputs), mismatch);
        assert_eq!(verify_unprepared(key.key(), &proof, &inputs), mismatch);
    }
    for got in [513, 10_000] {
        assert_eq!(
            PublicInputs::parse(&vec![0; got * 32]),
            Err(InputError::TooMany { got })
        );
    }
    assert_eq!(
        PublicInputs::parse(&case.inputs[1..]),
        Err(InputError::Length { got_bytes: 831 })
    );
}

#[test]
fn refuses_proofs_and_keys_of_another_length() {
    let case = case("transfer_k2");
    for got_bytes in [0, 1, 255, 257, 256 + 164] {
        let mut proof = case.proof.clone();
        proof.resize(got_bytes, 0);
        assert_eq!(Proof::parse(&proof), Err(ProofError::Length { got_bytes }));
    }
    // The compressed form ends in a count of commitments, here none, and a proof of knowledge of them.
    assert_eq!(case.gnark_compressed.len(), 164);
    assert_eq!(
        Proof::parse(&case.gnark_compressed),
        Err(ProofError::Length { got_bytes: 164 })
    );
    for got_bytes in [0, 447, 448, 511, case.key.len() - 1, case.key.len() + 1] {
        let mut key = case.key.clone();
        key.resize(got_bytes, 1);
        assert_eq!(
            VerifyingKey::parse(&key),
            Err(KeyError::Length { got_bytes })
        );
    }
}

#[test]
fn a_key_accepts_no_other_circuits_proof() {
    let cases = CIRCUITS.map(case);
    for (index, own) in cases.iter().enumerate() {
        let key = prepared(own);
        for (other_index, other) in cases.iter().enumerate() {
            assert_eq!(
                accepts(&key, &other.proof, &own.inputs),
                index == other_index
            );
        }
    }
}

#[test]
fn refuses_published_keys_that_leave_inputs_unbound() {
    for (circuit, unbound) in UNBOUND {
        let case = case(circuit);
        assert_eq!(
            VerifyingKey::parse(&case.key),
            Err(KeyError::Point {
                point: KeyPoint::Ic(unbound[0] + 1),
                source: EncodingError::Identity
            })
        );
        let key = VerifyingKey::parse_unchecked(&case.key).expect("all else is well formed");
        assert!(key.check().is_err());
        let key = PreparedVerifyingKey::new(key);
        assert!(accepts(&key, &case.proof, &case.inputs), "{circuit}");
        let parse = |inputs: &[u8]| PublicInputs::parse(inputs).expect("scalars");
        let proof = Proof::parse(&case.proof).expect("points");
        for index in 0..case.inputs.len() / 32 {
            let mut inputs = case.inputs.clone();
            inputs[index * 32 + 31] ^= 1;
            let verdict = Ok(unbound.contains(&index));
            assert_eq!(
                key.verify(&proof, &parse(&inputs)),
                verdict,
                "{circuit} {index}"
            );
            assert_eq!(
                verify_unprepared(key.key(), &proof, &parse(&inputs)),
                verdict
            );
        }
        for bit in (0..case.proof.len() * 8).step_by(61) {
            let mut proof = case.proof.clone();
            proof[bit / 8] ^= 1 << (bit % 8);
            assert!(
                !accepts(&key, &proof, &case.inputs),
                "{circuit} proof bit {bit}"
            );
        }
    }
}
