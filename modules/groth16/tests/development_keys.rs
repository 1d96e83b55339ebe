//! The development genesis' key files hold the keys, proofs and inputs of the vectors, and verify.

mod common;

use cloister_groth16::{PreparedVerifyingKey, Proof, PublicInputs, VerifyingKey};
use common::{CIRCUITS, case, hex};
use serde_json::Value;

#[allow(clippy::disallowed_methods, reason = "tests read key files")]
fn file(path: &str) -> Value {
    let path = format!("{}/../../genesis/keys/{path}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).expect("key files are JSON")
}

fn bytes(value: &Value) -> Vec<u8> {
    hex(value.as_str().expect("text"))
}

#[test]
fn the_manifest_lists_every_key_with_its_id() {
    let manifest = file("manifest.json");
    let entries = manifest["keys"].as_array().expect("a list");
    assert_eq!(entries.len(), CIRCUITS.len());
    for (entry, circuit) in entries.iter().zip(CIRCUITS) {
        assert_eq!(entry["name"], circuit);
        assert_eq!(entry["development"], true);
        let data = file(entry["file"].as_str().expect("text"));
        let key = VerifyingKey::parse(&bytes(&data["key"])).expect("key may be used");
        assert_eq!(bytes(&entry["id"]), key.id().0);
        assert_eq!(bytes(&data["id"]), key.id().0);
        assert_eq!(data["development"], true);
        assert_eq!(data["public_input_count"], key.public_input_count());
        assert_eq!(entry["public_input_count"], key.public_input_count());
    }
}

#[test]
fn each_file_carries_a_proof_that_verifies() {
    for circuit in CIRCUITS {
        let data = file(&format!("dev/{circuit}.json"));
        let case = case(circuit);
        assert_eq!(bytes(&data["key"]), case.key);
        let key = PreparedVerifyingKey::new(VerifyingKey::parse(&case.key).expect("key"));
        let proof = Proof::parse(&bytes(&data["proof"])).expect("points");
        let inputs = PublicInputs::parse(&bytes(&data["public_inputs"])).expect("scalars");
        assert_eq!(key.verify(&proof, &inputs), Ok(true), "{circuit}");
    }
}
