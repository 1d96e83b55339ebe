//! Verifying keys: bytes, identity, and the keys that nobody may use.
//!
//! Shape: see the crate documentation. Errors: [`KeyError`].
//!
//! A key is refused when a false proof for it can be written down without the setup's secrets, or when it leaves an
//! input unbound:
//! - gamma = ±delta: `(alpha, beta, ∓Σ)` is a proof of anything;
//! - beta = ±gamma: `(alpha ± Σ, beta + s·delta, s·(alpha ± Σ))` is;
//! - beta, gamma or delta the generator of G2 or its negative, alpha that of G1: the secret exponent is ±1, the mark of
//!   a setup whose second phase was never done;
//! - an identity point: the exponent is 0, and for an input's point the input says nothing;
//! - the points of two inputs equal or opposite: only the sum or difference of the two is bound.

use crate::{
    encoding::{EncodingError, G1_BYTES, G2_BYTES, Identity, read_g1, read_g2, write_g1, write_g2},
    pairing::Trace,
};
use ark_bn254::{G1Affine, G2Affine};
use ark_ec::AffineRepr;
use sha2::{Digest, Sha256};

/// Most public inputs of a key. The largest statement of this project has 282.
pub const PUBLIC_INPUT_COUNT_MAX: usize = 512;

const HEAD_BYTES: usize = G1_BYTES + 3 * G2_BYTES;

/// SHA-256 of a verifying key's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 32]);

/// A point of a verifying key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPoint {
    /// In G1.
    Alpha,
    /// In G2.
    Beta,
    /// In G2.
    Gamma,
    /// In G2.
    Delta,
    /// In G1: 0 is the constant, i belongs to public input i - 1.
    Ic(usize),
}

impl std::fmt::Display for KeyPoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Alpha => f.write_str("alpha"),
            Self::Beta => f.write_str("beta"),
            Self::Gamma => f.write_str("gamma"),
            Self::Delta => f.write_str("delta"),
            Self::Ic(index) => write!(f, "ic[{index}]"),
        }
    }
}

/// Why bytes are not a verifying key that may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not 448 + 64·(n + 1) bytes for any n.
    #[error("verifying key has {got_bytes} bytes, expected 448 + 64·(n + 1) for n public inputs")]
    Length { got_bytes: usize },
    /// No input, or more than [`PUBLIC_INPUT_COUNT_MAX`].
    #[error("verifying key has {got} public inputs, expected 1 to {PUBLIC_INPUT_COUNT_MAX}")]
    InputCount { got: usize },
    /// A point does not decode, or is the identity.
    #[error("verifying key's {point}: {source}")]
    Point {
        point: KeyPoint,
        source: EncodingError,
    },
    /// The point is the group's generator or its negative.
    #[error("verifying key's {point} is the generator or its negative: its setup was not finished")]
    Generator { point: KeyPoint },
    /// Two of beta, gamma and delta are equal or opposite.
    #[error("verifying key's {first} and {second} are equal or opposite: anyone can forge proofs")]
    Coincide { first: KeyPoint, second: KeyPoint },
    /// Two inputs' points are equal or opposite.
    #[error("verifying key's {first} and {second} are equal or opposite: neither input is bound")]
    UnboundInputs { first: KeyPoint, second: KeyPoint },
}

/// A checked verifying key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    pub(crate) alpha: G1Affine,
    pub(crate) beta: TracedPoint,
    pub(crate) gamma: TracedPoint,
    pub(crate) delta: TracedPoint,
    pub(crate) ic: Vec<G1Affine>,
}

/// A point of G2 with the lines of its Miller loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TracedPoint {
    pub(crate) point: G2Affine,
    pub(crate) trace: Trace,
}

impl VerifyingKey {
    /// Reads a key and checks it: [`VerifyingKey::check`] needs no second call.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyError> {
        let key = Self::decode(bytes, Identity::Refused)?;
        key.check()?;
        Ok(key)
    }

    /// Reads a key whose `ic` may hold the identity, without [`VerifyingKey::check`]: an input with such a point is not
    /// bound by any proof. For tests against published keys of that kind.
    #[cfg(feature = "test-support")]
    pub fn parse_unchecked(bytes: &[u8]) -> Result<Self, KeyError> {
        Self::decode(bytes, Identity::Allowed)
    }

    /// Refuses keys for which proofs can be forged or whose inputs are not bound: see the module documentation.
    pub fn check(&self) -> Result<(), KeyError> {
        self.check_identities()?;
        self.check_generators()?;
        self.check_distinct()?;
        self.check_inputs_bound()
    }

    /// The key's bytes in the wire format.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD_BYTES + self.ic.len() * G1_BYTES);
        write_g1(&self.alpha, &mut out);
        for traced in [&self.beta, &self.gamma, &self.delta] {
            write_g2(&traced.point, &mut out);
        }
        for point in &self.ic {
            write_g1(point, &mut out);
        }
        out
    }

    /// SHA-256 of [`VerifyingKey::to_bytes`].
    pub fn id(&self) -> KeyId {
        KeyId(Sha256::digest(self.to_bytes()).into())
    }

    /// Number of public inputs, n.
    pub const fn public_input_count(&self) -> usize {
        self.ic.len() - 1
    }

    /// Number of public inputs of a key of so many bytes, read from the length alone.
    pub const fn public_input_count_of_length(key_bytes: usize) -> Result<usize, KeyError> {
        let length = KeyError::Length {
            got_bytes: key_bytes,
        };
        let Some(tail_bytes) = key_bytes.checked_sub(HEAD_BYTES + G1_BYTES) else {
            return Err(length);
        };
        if !tail_bytes.is_multiple_of(G1_BYTES) {
            return Err(length);
        }
        let got = tail_bytes / G1_BYTES;
        if got == 0 || got > PUBLIC_INPUT_COUNT_MAX {
            return Err(KeyError::InputCount { got });
        }
        Ok(got)
    }

    fn decode(bytes: &[u8], identity: Identity) -> Result<Self, KeyError> {
        Self::public_input_count_of_length(bytes.len())?;
        let too_short = KeyError::Length {
            got_bytes: bytes.len(),
        };
        let (alpha, rest) = bytes.split_first_chunk().ok_or(too_short)?;
        let (beta, rest) = rest.split_first_chunk().ok_or(too_short)?;
        let (gamma, rest) = rest.split_first_chunk().ok_or(too_short)?;
        let (delta, rest) = rest.split_first_chunk().ok_or(too_short)?;
        let (ic, _) = rest.as_chunks::<G1_BYTES>();
        Ok(Self {
            alpha: g1(KeyPoint::Alpha, alpha, Identity::Refused)?,
            beta: g2(KeyPoint::Beta, beta)?,
            gamma: g2(KeyPoint::Gamma, gamma)?,
            delta: g2(KeyPoint::Delta, delta)?,
            ic: ic
                .iter()
                .enumerate()
                .map(|(index, bytes)| g1(KeyPoint::Ic(index), bytes, identity))
                .collect::<Result<_, _>>()?,
        })
    }

    fn check_identities(&self) -> Result<(), KeyError> {
        let source = EncodingError::Identity;
        match self.ic.iter().position(G1Affine::is_zero) {
            Some(index) => Err(KeyError::Point {
                point: KeyPoint::Ic(index),
                source,
            }),
            None => Ok(()),
        }
    }

    fn check_generators(&self) -> Result<(), KeyError> {
        if self.alpha.x == G1Affine::generator().x {
            return Err(KeyError::Generator {
                point: KeyPoint::Alpha,
            });
        }
        // Points with one x are equal or opposite.
        let x = G2Affine::generator().x;
        match self.g2_points().into_iter().find(|(_, p)| p.x == x) {
            Some((point, _)) => Err(KeyError::Generator { point }),
            None => Ok(()),
        }
    }

    fn check_distinct(&self) -> Result<(), KeyError> {
        let [beta, gamma, delta] = self.g2_points();
        for (one, other) in [(gamma, delta), (beta, gamma), (beta, delta)] {
            if one.1.x == other.1.x {
                return Err(KeyError::Coincide {
                    first: one.0,
                    second: other.0,
                });
            }
        }
        Ok(())
    }

    fn check_inputs_bound(&self) -> Result<(), KeyError> {
        let mut by_x: Vec<_> = self.ic.iter().map(|p| p.x).zip(0..).skip(1).collect();
        by_x.sort_unstable();
        match by_x.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(KeyError::UnboundInputs {
                first: KeyPoint::Ic(pair[0].1),
                second: KeyPoint::Ic(pair[1].1),
            }),
            None => Ok(()),
        }
    }

    const fn g2_points(&self) -> [(KeyPoint, &G2Affine); 3] {
        [
            (KeyPoint::Beta, &self.beta.point),
            (KeyPoint::Gamma, &self.gamma.point),
            (KeyPoint::Delta, &self.delta.point),
        ]
    }
}

fn g1(point: KeyPoint, bytes: &[u8; G1_BYTES], identity: Identity) -> Result<G1Affine, KeyError> {
    read_g1(bytes, identity).map_err(|source| KeyError::Point { point, source })
}

fn g2(point: KeyPoint, bytes: &[u8; G2_BYTES]) -> Result<TracedPoint, KeyError> {
    match read_g2(bytes) {
        Ok((point, trace)) => Ok(TracedPoint { point, trace }),
        Err(source) => Err(KeyError::Point { point, source }),
    }
}
