//! Folding of public inputs: `cargo bench -p cloister-groth16 --bench inputs [rounds]`.
//!
//! For each number of inputs the least time, over rounds, of the loop of single multiplications, of the sum without tables,
//! of the sum from a prepared key's tables, and of a whole verification; and the tables' time as a part of the loop's.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a bench has a clock and arguments"
)]

#[path = "../tests/common/simulated.rs"]
mod simulated;

use ark_bn254::{Fr, G1Affine, G1Projective};
use ark_ec::{AffineRepr, PrimeGroup};
use ark_ff::UniformRand;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use cloister_groth16::{PreparedVerifyingKey, Proof, PublicInputs, VerifyingKey};
use simulated::{Setup, scalars};
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

fn main() {
    let rounds = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(100);
    println!("| n | loop µs | no tables µs | tables µs | tables / loop | verify µs |");
    println!("|---|---|---|---|---|---|");
    for count in [1, 10, 50, 100] {
        row(count, rounds);
    }
}

fn row(count: usize, rounds: usize) {
    let rng = &mut StdRng::seed_from_u64(4);
    let setup = Setup::random(count, rng);
    let values: Vec<_> = (0..count).map(|_| Fr::rand(rng)).collect();
    let key = VerifyingKey::parse(&setup.key()).expect("key may be used");
    let prepared = PreparedVerifyingKey::new(key.clone());
    let proof = Proof::parse(&setup.prove(&values, rng)).expect("points");
    let inputs = PublicInputs::parse(&scalars(&values)).expect("scalars");
    let points: Vec<G1Affine> = setup
        .ic
        .iter()
        .map(|exponent| (G1Projective::generator() * exponent).into())
        .collect();
    let naive = || {
        values
            .iter()
            .zip(&points[1..])
            .fold(points[0].into_group(), |sum, (x, point)| sum + *point * x)
    };
    assert_eq!(G1Affine::from(naive()), prepared.fold(&inputs));
    assert_eq!(key.fold(&inputs), prepared.fold(&inputs));
    let mut least = [Duration::MAX; 4];
    for _ in 0..rounds {
        let times = [
            time(naive),
            time(|| key.fold(&inputs)),
            time(|| prepared.fold(&inputs)),
            time(|| prepared.verify(&proof, &inputs)),
        ];
        for (least, time) in least.iter_mut().zip(times) {
            *least = time.min(*least);
        }
    }
    let [naive, variable, tables, verify] = least.map(|time| time.as_secs_f64() * 1e6);
    println!(
        "| {count} | {naive:.1} | {variable:.1} | {tables:.1} | {:.3} | {verify:.1} |",
        tables / naive
    );
}

fn time<T>(run: impl Fn() -> T) -> Duration {
    let start = Instant::now();
    black_box(run());
    start.elapsed()
}
