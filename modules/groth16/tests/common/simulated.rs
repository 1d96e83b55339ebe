//! Keys whose secrets are known: whoever knows them proves anything. Good for keys of any size and for weak keys.

use ark_bn254::{Fr, G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{BigInteger, Field, PrimeField, UniformRand};
use ark_std::rand::rngs::StdRng;

#[derive(Clone)]
pub struct Setup {
    pub alpha: Fr,
    pub beta: Fr,
    pub gamma: Fr,
    pub delta: Fr,
    pub ic: Vec<Fr>,
}

impl Setup {
    pub fn random(input_count: usize, rng: &mut StdRng) -> Self {
        Self {
            alpha: Fr::rand(rng),
            beta: Fr::rand(rng),
            gamma: Fr::rand(rng),
            delta: Fr::rand(rng),
            ic: (0..=input_count).map(|_| Fr::rand(rng)).collect(),
        }
    }

    pub fn key(&self) -> Vec<u8> {
        let mut bytes = g1(self.alpha);
        for exponent in [self.beta, self.gamma, self.delta] {
            bytes.extend(g2(exponent));
        }
        for exponent in &self.ic {
            bytes.extend(g1(*exponent));
        }
        bytes
    }

    /// Exponent of `ic[0] + Σ x_i·ic[i]`.
    pub fn folded(&self, inputs: &[Fr]) -> Fr {
        inputs
            .iter()
            .zip(&self.ic[1..])
            .fold(self.ic[0], |sum, (x, ic)| sum + *x * ic)
    }

    /// A proof made with the secrets.
    pub fn prove(&self, inputs: &[Fr], rng: &mut StdRng) -> Vec<u8> {
        let (a, b) = (Fr::rand(rng), Fr::rand(rng));
        let rest = a * b - self.alpha * self.beta - self.folded(inputs) * self.gamma;
        let c = rest * self.delta.inverse().expect("delta is not zero");
        [g1(a), g2(b), g1(c)].concat()
    }
}

pub fn g1(exponent: Fr) -> Vec<u8> {
    g1_bytes((G1Projective::generator() * exponent).into_affine())
}

pub fn g2(exponent: Fr) -> Vec<u8> {
    g2_bytes((G2Projective::generator() * exponent).into_affine())
}

pub fn g1_bytes(point: G1Affine) -> Vec<u8> {
    match point.xy() {
        Some((x, y)) => [word(x), word(y)].concat(),
        None => vec![0; 64],
    }
}

pub fn g2_bytes(point: G2Affine) -> Vec<u8> {
    match point.xy() {
        Some((x, y)) => [word(x.c1), word(x.c0), word(y.c1), word(y.c0)].concat(),
        None => vec![0; 128],
    }
}

pub fn scalars(values: &[Fr]) -> Vec<u8> {
    values.iter().flat_map(|value| word(*value)).collect()
}

pub fn word(value: impl PrimeField) -> Vec<u8> {
    value.into_bigint().to_bytes_be()
}
