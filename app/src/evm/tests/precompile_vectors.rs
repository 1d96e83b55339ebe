//! Ethereum's precompiles as they are mounted: output, gas and refusals of the public vectors.

#![expect(clippy::disallowed_methods, reason = "tests read their data")]

use crate::vectors;
use alloy_primitives::{Address, Bytes, hex};
use revm::{
    handler::EthPrecompiles,
    precompile::{PrecompileOutput, PrecompileStatus},
    primitives::hardfork::SpecId,
};
use serde_json::Value;

/// File, address and fork of the prices; `None` for prices before the first fork we know.
const FILES: &[(&str, Option<(u16, SpecId)>)] = &[
    ("blake2F", Some((0x09, SpecId::OSAKA))),
    ("blsG1Add", Some((0x0b, SpecId::OSAKA))),
    ("blsG1Mul", Some((0x0c, SpecId::OSAKA))),
    ("blsG1MultiExp", Some((0x0c, SpecId::OSAKA))),
    ("blsG2Add", Some((0x0d, SpecId::OSAKA))),
    ("blsG2Mul", Some((0x0e, SpecId::OSAKA))),
    ("blsG2MultiExp", Some((0x0e, SpecId::OSAKA))),
    ("blsMapG1", Some((0x10, SpecId::OSAKA))),
    ("blsMapG2", Some((0x11, SpecId::OSAKA))),
    ("blsPairing", Some((0x0f, SpecId::OSAKA))),
    ("bn256Add", Some((0x06, SpecId::OSAKA))),
    ("bn256Pairing", Some((0x08, SpecId::OSAKA))),
    ("bn256ScalarMul", Some((0x07, SpecId::OSAKA))),
    ("ecRecover", Some((0x01, SpecId::OSAKA))),
    ("modexp", None),
    ("modexp_eip2565", Some((0x05, SpecId::PRAGUE))),
    ("modexp_eip7883", Some((0x05, SpecId::OSAKA))),
    ("p256Verify", Some((0x100, SpecId::OSAKA))),
    ("pointEvaluation", Some((0x0a, SpecId::OSAKA))),
];

#[test]
fn ethereum_precompile_vectors() {
    let Some(files) = vectors::files("ethereum/precompiles") else {
        return;
    };
    let (mut met, mut refused, mut not_run) = (0, 0, 0);
    for file in files {
        let stem = file
            .file_stem()
            .and_then(|stem| stem.to_str())
            .expect("a name");
        let name = stem.strip_prefix("fail-").unwrap_or(stem);
        let (_, target) = FILES
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .unwrap_or_else(|| panic!("which precompile is {name}?"));
        let text = std::fs::read_to_string(&file).expect("readable");
        let cases: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        let Some((low, spec)) = *target else {
            not_run += cases.len();
            continue;
        };
        let mut address = Address::ZERO;
        address.0[18..].copy_from_slice(&low.to_be_bytes());
        for case in cases {
            let label = format!("{stem} {}", case["Name"]);
            let output = run(spec, address, &case);
            if let Some(expected) = case["Expected"].as_str() {
                assert_eq!(output.status, PrecompileStatus::Success, "{label}");
                let expected: Bytes = hex::decode(expected).expect("hex").into();
                assert_eq!(output.bytes, expected, "{label}");
                if let Some(gas) = case["Gas"].as_u64() {
                    assert_eq!(output.gas_used, gas, "{label}");
                }
                met += 1;
            } else {
                assert!(output.is_halt(), "{label}");
                refused += 1;
            }
        }
    }
    println!(
        "precompile vectors: {met} met, {refused} refused as they should, {not_run} not run (prices before Berlin)"
    );
    assert!(met > 0);
}

fn run(spec: SpecId, address: Address, case: &Value) -> PrecompileOutput {
    let input = hex::decode(case["Input"].as_str().expect("text")).expect("hex");
    EthPrecompiles::new(spec)
        .precompiles
        .get(&address)
        .unwrap_or_else(|| panic!("no precompile at {address}"))
        .execute(&input, u64::MAX / 2, 0)
        .expect("no precompile gives up")
}
