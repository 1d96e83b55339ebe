//! Keys, proofs and inputs made by gnark, in the wire format.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test program uses its part of this module"
)]
#![allow(clippy::disallowed_methods, reason = "tests read vector files")]

pub mod simulated;

use cloister_groth16::word_from_decimal;
use serde_json::Value;

/// Proofs whose keys hold no identity point.
pub const CIRCUITS: [&str; 7] = [
    "transfer_k2",
    "transfer_k3",
    "transfer_k4",
    "transfer_k5",
    "transfer_k6",
    "deposit_k2",
    "withdraw_k2",
];

/// Circuits whose keys hold identity points, with the inputs that these leave unbound.
pub const UNBOUND: [(&str, &[usize]); 2] = [
    ("joinsplit", &[0, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30]),
    ("erc721", &[0, 3]),
];

pub struct Case {
    pub key: Vec<u8>,
    pub proof: Vec<u8>,
    pub inputs: Vec<u8>,
    pub gnark_compressed: Vec<u8>,
}

pub fn case(circuit: &str) -> Case {
    let json = json(&format!("groth16_{circuit}.json"));
    let (key, proof) = (&json["verifying_key"], &json["proof"]);
    let mut ic = Vec::new();
    for point in list(&key["ic"]) {
        ic.extend(g1(point));
    }
    Case {
        key: [
            g1(&key["alpha_g1"]),
            g2(&key["beta_g2"]),
            g2(&key["gamma_g2"]),
            g2(&key["delta_g2"]),
            ic,
        ]
        .concat(),
        proof: [g1(&proof["a"]), g2(&proof["b"]), g1(&proof["c"])].concat(),
        inputs: list(&json["public_inputs"]).iter().flat_map(word).collect(),
        gnark_compressed: hex(proof["gnark_compressed_hex"].as_str().expect("text")),
    }
}

pub fn json(name: &str) -> Value {
    let path = format!("{}/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).expect("vector files are JSON")
}

pub fn hex(text: &str) -> Vec<u8> {
    let digits = text.trim_start_matches("0x").as_bytes();
    digits
        .chunks(2)
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("ASCII");
            u8::from_str_radix(pair, 16).expect("hexadecimal digits")
        })
        .collect()
}

pub fn word(value: &Value) -> [u8; 32] {
    word_from_decimal(value.as_str().expect("numbers are texts")).expect("decimal")
}

/// Adds two big-endian numbers; `None` where the sum does not fit.
pub fn add(left: [u8; 32], right: [u8; 32]) -> Option<[u8; 32]> {
    let mut sum = [0; 32];
    let mut carry = 0;
    for index in (0..32).rev() {
        let value = u16::from(left[index]) + u16::from(right[index]) + carry;
        sum[index] = (value & 0xff) as u8;
        carry = value >> 8;
    }
    (carry == 0).then_some(sum)
}

pub fn r() -> [u8; 32] {
    word_from_decimal(
        "21888242871839275222246405745257275088548364400416034343698204186575808495617",
    )
    .expect("decimal")
}

pub fn q() -> [u8; 32] {
    word_from_decimal(
        "21888242871839275222246405745257275088696311157297823662689037894645226208583",
    )
    .expect("decimal")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn g1(value: &Value) -> Vec<u8> {
    [word(&value[0]), word(&value[1])].concat()
}

fn g2(value: &Value) -> Vec<u8> {
    let (x, y) = (&value[0], &value[1]);
    [word(&x[1]), word(&x[0]), word(&y[1]), word(&y[0])].concat()
}
