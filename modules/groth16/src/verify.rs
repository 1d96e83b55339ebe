//! The verification equation.
//!
//! Both forms answer alike; the prepared one has `e(alpha, beta)`, the lines of gamma and delta and multiples of `ic`
//! at hand (about 52 KB for each public input), made once in about half a millisecond per input.

use crate::{
    key::{KeyId, VerifyingKey},
    msm::{FixedBases, sum_variable, to_affine},
    pairing::{Evaluation, FixedTrace, final_exponentiation, miller_loop},
    proof::{Proof, PublicInputs},
};
use ark_bn254::{Fq12, G1Affine};
use ark_ec::AffineRepr;
use ark_ff::One;

/// The statement is not one of this key's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{got} public inputs, the verifying key has {expected}")]
pub struct InputCountMismatch {
    /// The key's number of inputs.
    pub expected: usize,
    /// The number given.
    pub got: usize,
}

/// A verifying key made ready for many verifications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedVerifyingKey {
    key: VerifyingKey,
    id: KeyId,
    ic_multiples: FixedBases,
    gamma: FixedTrace,
    delta: FixedTrace,
    alpha_beta: Fq12,
}

impl PreparedVerifyingKey {
    /// Prepares a key. Pure: two nodes hold the same value.
    pub fn new(key: VerifyingKey) -> Self {
        let alpha_beta = final_exponentiation(miller_loop(&[(key.alpha, &key.beta.trace)], &[]))
            .expect("a Miller loop of points on the curves is not zero");
        Self {
            id: key.id(),
            ic_multiples: FixedBases::new(&key.ic[1..]),
            gamma: key.gamma.trace.fix(),
            delta: key.delta.trace.fix(),
            alpha_beta,
            key,
        }
    }

    /// The key itself.
    pub const fn key(&self) -> &VerifyingKey {
        &self.key
    }

    /// SHA-256 of the key's bytes.
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// Whether the proof proves the statement that the key and the inputs name.
    pub fn verify(&self, proof: &Proof, inputs: &PublicInputs) -> Result<bool, InputCountMismatch> {
        check_count(&self.key, inputs)?;
        let folded = self.fold(inputs);
        let [folded, c] = Evaluation::of([-folded, -proof.c]);
        let fixed: Vec<_> = [(folded, &self.gamma), (c, &self.delta)]
            .into_iter()
            .filter_map(|(point, trace)| Some((point?, trace)))
            .collect();
        let product = miller_loop(&[(proof.a, &proof.b.trace)], &fixed);
        Ok(final_exponentiation(product) == Some(self.alpha_beta))
    }

    /// `ic[0] + Σ x_i·ic[i]` from the tables, for as many inputs as the key has.
    pub fn fold(&self, inputs: &PublicInputs) -> G1Affine {
        to_affine(self.ic_multiples.sum(self.key.ic[0], &inputs.0))
    }
}

impl VerifyingKey {
    /// `ic[0] + Σ x_i·ic[i]` without tables, for as many inputs as the key has.
    pub fn fold(&self, inputs: &PublicInputs) -> G1Affine {
        to_affine(sum_variable(self.ic[0], &self.ic[1..], &inputs.0))
    }
}

/// [`PreparedVerifyingKey::verify`] for a key that is met once.
pub fn verify_unprepared(
    key: &VerifyingKey,
    proof: &Proof,
    inputs: &PublicInputs,
) -> Result<bool, InputCountMismatch> {
    check_count(key, inputs)?;
    let folded = key.fold(inputs);
    let pairs = [
        (proof.a, &proof.b.trace),
        (-key.alpha, &key.beta.trace),
        (-folded, &key.gamma.trace),
        (-proof.c, &key.delta.trace),
    ];
    let pairs: Vec<_> = pairs
        .into_iter()
        .filter(|(point, _): &(G1Affine, _)| !point.is_zero())
        .collect();
    Ok(final_exponentiation(miller_loop(&pairs, &[])) == Some(Fq12::one()))
}

const fn check_count(key: &VerifyingKey, inputs: &PublicInputs) -> Result<(), InputCountMismatch> {
    let (expected, got) = (key.public_input_count(), inputs.count());
    if expected == got {
        Ok(())
    } else {
        Err(InputCountMismatch { expected, got })
    }
}
