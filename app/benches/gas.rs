//! Prices of our precompiles, measured against ecrecover of this same binary.
//!
//! `cargo bench -p cloister-app --bench gas [rounds]` prints, for each call, the median and the 99th percentile of its
//! time, its time in units of ecrecover, the gas that follows (3,000 gas for an ecrecover, a quarter on top, rounded up
//! to 500) and the pinned price. It exits 1 if a pinned price is below that without the quarter.
//! A round times each call once, one after the other, so that a noisy machine slows all alike; figures are medians over
//! rounds of the ratio within a round.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "a bench has a clock, arguments and an exit code"
)]

use alloy_primitives::{Address, Bytes, U256, hex};
use cloister_app::precompiles::{
    Context, ED25519_VERIFY, GROTH16_VERIFY, GROTH16_VERIFY_WITH_KEY, Outcome, find,
};
use cloister_genesis::GenesisVerifyingKey;
use std::{hint::black_box, time::Instant};

const ECRECOVER_GAS: f64 = 3_000.0;
const MARGIN: f64 = 1.25;
const INPUT_COUNTS: [usize; 4] = [1, 10, 50, 100];

struct Operation {
    name: String,
    /// Number of inputs or message words, and the line that its price lies on.
    line: Option<(&'static str, usize)>,
    run: Box<dyn Fn() -> u64>,
    nanoseconds: Vec<f64>,
}

fn main() {
    let rounds = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(400);
    let mut operations = operations();
    for _ in 0..rounds {
        for operation in &mut operations {
            let start = Instant::now();
            black_box((operation.run)());
            operation
                .nanoseconds
                .push(start.elapsed().as_nanos() as f64);
        }
    }
    let ecrecover = operations[0].nanoseconds.clone();
    println!(
        "{rounds} rounds; ecrecover median {:.1} µs, least {:.1} µs",
        median(ecrecover.clone()) / 1e3,
        quantile(ecrecover.clone(), 0.0) / 1e3
    );
    println!(
        "| call | least µs | median µs | p99 µs | ecrecovers (median) | gas (median) | gas (least) | pinned | pinned / measured |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut too_cheap = false;
    let mut points: Vec<(&'static str, usize, f64)> = Vec::new();
    for operation in &operations {
        let ratios = operation
            .nanoseconds
            .iter()
            .zip(&ecrecover)
            .map(|(op, ec)| op / ec)
            .collect();
        let ratio = median(ratios);
        let least = quantile(operation.nanoseconds.clone(), 0.0);
        let least_ratio = least / quantile(ecrecover.clone(), 0.0);
        let pinned = (operation.run)() as f64;
        let measured = ratio * ECRECOVER_GAS;
        too_cheap |= pinned < measured.min(least_ratio * ECRECOVER_GAS);
        println!(
            "| {} | {:.1} | {:.1} | {:.1} | {:.2} | {:.0} | {:.0} | {pinned:.0} | {:.2} |",
            operation.name,
            least / 1e3,
            median(operation.nanoseconds.clone()) / 1e3,
            quantile(operation.nanoseconds.clone(), 0.99) / 1e3,
            ratio,
            priced(measured),
            priced(least_ratio * ECRECOVER_GAS),
            pinned / measured,
        );
        if let Some((line, count)) = operation.line {
            points.push((line, count, measured * MARGIN));
        }
    }
    for line in ["registered", "with key", "ed25519"] {
        let points: Vec<_> = points
            .iter()
            .filter(|p| p.0 == line)
            .map(|p| (p.1 as f64, p.2))
            .collect();
        let (base, slope, r_squared) = fit(&points);
        println!("{line}: {base:.0} + {slope:.0}·n gas, R² {r_squared:.4}");
    }
    std::process::exit(i32::from(too_cheap));
}

fn priced(gas: f64) -> f64 {
    (gas * MARGIN / 500.0).ceil() * 500.0
}

fn operations() -> Vec<Operation> {
    let mut operations = vec![operation("ecrecover", None, ecrecover)];
    for count in INPUT_COUNTS {
        let (key, statement) = statement(count);
        let context = Context::new(&[GenesisVerifyingKey {
            name: "bench".into(),
            development: true,
            key: key.clone(),
        }])
        .expect("key may be used");
        let input = [&[0; 32][..], &statement].concat();
        operations.push(operation(
            &format!("groth16_verify n={count}"),
            Some(("registered", count)),
            move || call(GROTH16_VERIFY, &context, &input),
        ));
        let input = [
            &U256::from(key.len()).to_be_bytes::<32>()[..],
            &key,
            &statement,
        ]
        .concat();
        let context = Context::default();
        operations.push(operation(
            &format!("groth16_verify_with_key n={count}"),
            Some(("with key", count)),
            move || call(GROTH16_VERIFY_WITH_KEY, &context, &input),
        ));
    }
    for words in [0, 1, 8, 64, 512] {
        let message = vec![0xa5; words * 32];
        let key = ed25519_consensus::SigningKey::from([7; 32]);
        let input = [
            &key.verification_key().to_bytes()[..],
            &key.sign(&message).to_bytes(),
            &message,
        ]
        .concat();
        let context = Context::default();
        operations.push(operation(
            &format!("ed25519_verify words={words}"),
            Some(("ed25519", words)),
            move || call(ED25519_VERIFY, &context, &input),
        ));
    }
    operations
}

fn operation(
    name: &str,
    line: Option<(&'static str, usize)>,
    run: impl Fn() -> u64 + 'static,
) -> Operation {
    Operation {
        name: name.into(),
        line,
        run: Box::new(run),
        nanoseconds: Vec::new(),
    }
}

fn call(address: Address, context: &Context, input: &[u8]) -> u64 {
    match (find(&address).expect("in the table").run)(context, input, u64::MAX) {
        Outcome::Success { gas_used, .. } => gas_used,
        refused => panic!("well-formed input is refused: {refused:?}"),
    }
}

/// A signature from EIP-155's example.
fn ecrecover() -> u64 {
    let input = hex!(
        "daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53"
        "0000000000000000000000000000000000000000000000000000000000000025"
        "28ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276"
        "67cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83"
    );
    let mut input = input;
    input[63] = 27;
    let output = revm::precompile::secp256k1::ec_recover_run(&input, 3_000).expect("enough gas");
    assert_eq!(output.bytes.len(), 32);
    output.gas_used
}

/// A key of `count` inputs made of points of the development keys, and a well-formed false statement for it: it fails
/// last, and failures are not cached. All digits of the inputs are in use.
fn statement(count: usize) -> (Bytes, Vec<u8>) {
    let mut head = Vec::new();
    let mut points = Vec::new();
    let mut proof = Vec::new();
    for text in [
        include_str!("../../genesis/keys/dev/transfer_k2.json"),
        include_str!("../../genesis/keys/dev/transfer_k4.json"),
        include_str!("../../genesis/keys/dev/transfer_k6.json"),
    ] {
        let json: serde_json::Value = serde_json::from_str(text).expect("key files are JSON");
        let bytes = |name: &str| hex::decode(json[name].as_str().expect("text")).expect("hex");
        let key = bytes("key");
        head = key[..448].to_vec();
        points.extend_from_slice(&key[448..]);
        proof = bytes("proof");
    }
    let key = [head, points[..64 * (count + 1)].to_vec()].concat();
    let inputs = (0..count).flat_map(|index| {
        let mut word = alloy_primitives::keccak256(index.to_be_bytes()).0;
        word[0] = 0x2f;
        word
    });
    let statement = proof.into_iter().chain(inputs).collect();
    (key.into(), statement)
}

fn median(values: Vec<f64>) -> f64 {
    quantile(values, 0.5)
}

fn quantile(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part) as usize]
}

/// Least squares: intercept, slope, R².
fn fit(points: &[(f64, f64)]) -> (f64, f64, f64) {
    let count = points.len() as f64;
    let mean = |f: fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / count;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |f: &dyn Fn(f64, f64) -> f64| points.iter().map(|p| f(p.0 - x, p.1 - y)).sum::<f64>();
    let slope = sum(&|dx, dy| dx * dy) / sum(&|dx, _| dx * dx);
    let rest = sum(&|dx, dy| (dy - slope * dx).powi(2));
    (y - slope * x, slope, 1.0 - rest / sum(&|_, dy| dy * dy))
}
