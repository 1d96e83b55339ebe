//! Encodings that are not the documented one are refused by name, and no bytes at all make a parser panic.

mod common;

use cloister_groth16::{
    EncodingError, InputError, KeyError, KeyPoint, Proof, ProofError, PublicInputs, VerifyingKey,
};
use common::{add, case, hex, json, q};
use proptest::prelude::*;

/// Offset and length of the points of a proof and of a key of two inputs or more.
const PROOF_POINTS: [(usize, usize); 3] = [(0, 64), (64, 128), (192, 64)];
const KEY_POINTS: [(usize, usize); 7] = [
    (0, 64),
    (64, 128),
    (192, 128),
    (320, 128),
    (448, 64),
    (512, 64),
    (576, 64),
];

fn is_refused(bytes: &[u8], proof: bool) -> bool {
    if proof {
        Proof::parse(bytes).is_err()
    } else {
        VerifyingKey::parse(bytes).is_err()
    }
}

/// Wrong forms of a good point.
fn malformed(point: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut forms = Vec::new();
    let mut push = |what: String, bytes: Vec<u8>| {
        assert_ne!(bytes, point, "{what}");
        forms.push((what, bytes));
    };
    push("identity".into(), vec![0; point.len()]);
    push("all ones".into(), vec![0xff; point.len()]);
    push("all q".into(), q().repeat(point.len() / 32));
    push(
        "little-endian".into(),
        point
            .chunks(32)
            .flat_map(|word| word.iter().rev().copied())
            .collect(),
    );
    push(
        "x and y swapped".into(),
        [&point[point.len() / 2..], &point[..point.len() / 2]].concat(),
    );
    if point.len() == 128 {
        let swap = |coordinate: &[u8]| [&coordinate[32..], &coordinate[..32]].concat();
        push(
            "c0 before c1".into(),
            [swap(&point[..64]), swap(&point[64..])].concat(),
        );
    }
    for index in 0..point.len() / 32 {
        let at = index * 32..index * 32 + 32;
        let word: [u8; 32] = point[at.clone()].try_into().expect("a word");
        let mut with = |what: &str, word: [u8; 32]| {
            let mut bytes = point.to_vec();
            bytes[at.clone()].copy_from_slice(&word);
            push(format!("word {index}: {what}"), bytes);
        };
        let mut alias = word;
        for times in 1..=4 {
            alias = add(alias, q()).expect("5q is below 2^256");
            with(&format!("plus {times}·q"), alias);
        }
        with("q itself", q());
        with("zero", [0; 32]);
        for (flag, what) in [
            (0x80, "flag 0x80"),
            (0x40, "flag 0x40"),
            (0xc0, "flag 0xc0"),
        ] {
            let mut flagged = word;
            flagged[0] |= flag;
            with(what, flagged);
        }
        let mut next = word;
        next[31] ^= 1;
        with("last bit", next);
    }
    forms
}

#[test]
fn every_malformed_point_is_refused_in_every_place() {
    let case = case("transfer_k2");
    let mut count = 0;
    for (bytes, points, proof) in [
        (&case.proof, &PROOF_POINTS[..], true),
        (&case.key, &KEY_POINTS[..], false),
    ] {
        for &(offset, length) in points {
            let at = offset..offset + length;
            for (what, point) in malformed(&bytes[at.clone()]) {
                let mut changed = bytes.clone();
                changed[at.clone()].copy_from_slice(&point);
                assert!(is_refused(&changed, proof), "{what} at {offset}");
                count += 1;
            }
        }
    }
    assert!(count >= 200, "{count} encodings");
}

#[test]
fn every_length_but_the_right_one_is_refused() {
    let case = case("transfer_k2");
    let long = case.proof.repeat(3);
    for length in (0..long.len()).filter(|length| *length != case.proof.len()) {
        assert_eq!(
            Proof::parse(&long[..length]),
            Err(ProofError::Length { got_bytes: length })
        );
    }
}

#[test]
fn says_which_word_is_not_canonical_and_its_value() {
    let case = case("transfer_k2");
    let mut proof = case.proof;
    let value = add(proof[96..128].try_into().expect("a word"), q()).expect("below 2^256");
    proof[96..128].copy_from_slice(&value);
    let error = Proof::parse(&proof).expect_err("x.c0 of b is not below q");
    let source = EncodingError::CoordinateNotCanonical { word: 1, value };
    assert_eq!(error, ProofError::Point { point: 'b', source });
    let digits: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        error.to_string(),
        format!("proof's b: coordinate in word 1 is not below the field modulus: 0x{digits}")
    );
}

#[test]
fn refuses_g2_points_outside_the_subgroup() {
    let case = case("transfer_k2");
    let source = EncodingError::NotInSubgroup;
    let edges = json("crypto_edge.json");
    for edge in edges["g2_outside_subgroup"].as_array().expect("a list") {
        let word = |name: &str| hex(edge[name].as_str().expect("text"));
        let point = [word("x_im"), word("x_re"), word("y_im"), word("y_re")].concat();
        let mut proof = case.proof.clone();
        proof[64..192].copy_from_slice(&point);
        assert_eq!(
            Proof::parse(&proof),
            Err(ProofError::Point { point: 'b', source })
        );
        for (offset, name) in [
            (64, KeyPoint::Beta),
            (192, KeyPoint::Gamma),
            (320, KeyPoint::Delta),
        ] {
            let mut key = case.key.clone();
            key[offset..offset + 128].copy_from_slice(&point);
            assert_eq!(
                VerifyingKey::parse(&key),
                Err(KeyError::Point {
                    point: name,
                    source
                })
            );
        }
    }
}

#[test]
fn refuses_the_other_edge_encodings() {
    let case = case("transfer_k2");
    let edges = json("crypto_edge.json");
    let mut count = 0;
    for edge in edges["bn254_encodings"].as_array().expect("a list") {
        let what = edge["what"].as_str().expect("text");
        let mut proof = case.proof.clone();
        if let Some(pair) = edge["ecPairing_0x08_input"].as_str() {
            proof[64..192].copy_from_slice(&hex(pair)[64..192]);
        } else {
            let point = edge["ecAdd_0x06_input"]
                .as_str()
                .or_else(|| edge["ecMul_0x07_input"].as_str());
            proof[..64].copy_from_slice(&hex(point.expect("an input"))[..64]);
        }
        assert!(Proof::parse(&proof).is_err(), "{what}");
        count += 1;
    }
    assert_eq!(count, 4);
    for alias in edges["groth16_public_inputs"]["public_input_aliases"]
        .as_array()
        .expect("a list")
    {
        let value = hex(alias["hex"].as_str().expect("text"));
        assert_eq!(
            PublicInputs::parse(&value),
            Err(InputError::NotCanonical {
                index: 0,
                value: value.clone().try_into().expect("a word")
            })
        );
    }
}

/// The largest scalar and coordinate are read, the next are not.
#[test]
fn bounds_are_exact() {
    let mut largest = common::r();
    largest[31] -= 1;
    assert_eq!(
        PublicInputs::parse(&largest).expect("r - 1").to_bytes(),
        largest
    );
    assert!(PublicInputs::parse(&common::r()).is_err());
    let inputs = PublicInputs::parse(&[]).expect("no inputs are no malformed inputs");
    assert_eq!(inputs.count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn no_bytes_make_a_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1_024)) {
        let _ = Proof::parse(&bytes);
        let _ = VerifyingKey::parse(&bytes);
        let _ = PublicInputs::parse(&bytes);
    }

    #[test]
    fn random_bytes_of_the_right_length_are_no_proof_and_no_key(
        proof in proptest::collection::vec(0u8..0x30, 256),
        key in proptest::collection::vec(0u8..0x30, 576),
    ) {
        prop_assert!(Proof::parse(&proof).is_err());
        prop_assert!(VerifyingKey::parse(&key).is_err());
    }

    #[test]
    fn what_parses_is_written_back_unchanged(words in proptest::collection::vec(any::<[u8; 32]>(), 0..20)) {
        let bytes = words.concat();
        match PublicInputs::parse(&bytes) {
            Ok(inputs) => prop_assert_eq!(inputs.to_bytes(), bytes),
            Err(InputError::NotCanonical { index, value }) => prop_assert!(words[index] == value && value >= common::r()),
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn a_mutated_key_panics_nowhere(at in 0usize..576, value in any::<u8>(), length in 0usize..700) {
        let mut key = case("transfer_k2").key;
        key[at] = value;
        key.truncate(length.max(at + 1));
        if let Ok(key) = VerifyingKey::parse(&key) {
            prop_assert!(key.check().is_ok());
        }
    }
}
