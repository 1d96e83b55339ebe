//! Words and points from and to bytes, strictly.
//!
//! Shape: see the crate documentation. Errors: [`EncodingError`]. Source: EIP-196 and EIP-197, without their identity.

use crate::pairing::Trace;
use ark_bn254::{Fq, Fq2, Fr, G1Affine, G2Affine};
use ark_ff::{BigInt, BigInteger, PrimeField};

/// Bytes of a number.
pub const WORD_BYTES: usize = 32;
/// Bytes of a point of G1.
pub const G1_BYTES: usize = 64;
/// Bytes of a point of G2.
pub const G2_BYTES: usize = 128;

/// A number in 32 big-endian bytes.
pub(crate) type Word = [u8; WORD_BYTES];

/// Why bytes are not a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// A coordinate is q or more. `word` counts 32-byte words from the start of the point.
    #[error(
        "coordinate in word {word} is not below the field modulus: 0x{}",
        Hex(value)
    )]
    CoordinateNotCanonical { word: usize, value: [u8; 32] },
    /// The coordinates do not satisfy the curve equation.
    #[error("point is not on the curve")]
    NotOnCurve,
    /// A point of the twist outside the subgroup of order r.
    #[error("point is not in the subgroup of order r")]
    NotInSubgroup,
    /// All coordinates are zero.
    #[error("point is the identity")]
    Identity,
}

pub(crate) struct Hex<'a>(pub(crate) &'a Word);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The identity is let through here and named by those who refuse it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    Refused,
    #[cfg_attr(not(feature = "test-support"), expect(dead_code))]
    Allowed,
}

pub(crate) fn read_scalar(word: &Word) -> Option<Fr> {
    Fr::from_bigint(integer(word))
}

pub(crate) fn read_g1(
    bytes: &[u8; G1_BYTES],
    identity: Identity,
) -> Result<G1Affine, EncodingError> {
    let [x, y] = words(bytes);
    if bytes.iter().all(|byte| *byte == 0) {
        return match identity {
            Identity::Refused => Err(EncodingError::Identity),
            Identity::Allowed => Ok(G1Affine::identity()),
        };
    }
    let point = G1Affine::new_unchecked(coordinate(0, &x)?, coordinate(1, &y)?);
    // G1 has cofactor 1: on the curve is in the group.
    if point.is_on_curve() {
        Ok(point)
    } else {
        Err(EncodingError::NotOnCurve)
    }
}

/// Reads a point of G2 with the lines of its Miller loop: tracing them is what shows that it is in the subgroup.
pub(crate) fn read_g2(bytes: &[u8; G2_BYTES]) -> Result<(G2Affine, Trace), EncodingError> {
    let [x1, x0, y1, y0] = words(bytes);
    if bytes.iter().all(|byte| *byte == 0) {
        return Err(EncodingError::Identity);
    }
    let (x1, x0) = (coordinate(0, &x1)?, coordinate(1, &x0)?);
    let (y1, y0) = (coordinate(2, &y1)?, coordinate(3, &y0)?);
    let point = G2Affine::new_unchecked(Fq2::new(x0, x1), Fq2::new(y0, y1));
    if !point.is_on_curve() {
        return Err(EncodingError::NotOnCurve);
    }
    let trace = Trace::of(&point).ok_or(EncodingError::NotInSubgroup)?;
    Ok((point, trace))
}

pub(crate) fn write_g1(point: &G1Affine, out: &mut Vec<u8>) {
    write_field(&point.x, out);
    write_field(&point.y, out);
}

pub(crate) fn write_g2(point: &G2Affine, out: &mut Vec<u8>) {
    write_field(&point.x.c1, out);
    write_field(&point.x.c0, out);
    write_field(&point.y.c1, out);
    write_field(&point.y.c0, out);
}

pub(crate) fn write_field(value: &impl PrimeField, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.into_bigint().to_bytes_be());
}

fn coordinate(word: usize, value: &Word) -> Result<Fq, EncodingError> {
    Fq::from_bigint(integer(value)).ok_or(EncodingError::CoordinateNotCanonical {
        word,
        value: *value,
    })
}

fn integer(word: &Word) -> BigInt<4> {
    let (limbs, _) = word.as_chunks::<8>();
    let mut limbs_le = [0; 4];
    for (limb, bytes) in limbs_le.iter_mut().rev().zip(limbs) {
        *limb = u64::from_be_bytes(*bytes);
    }
    BigInt::new(limbs_le)
}

fn words<const BYTES: usize, const COUNT: usize>(bytes: &[u8; BYTES]) -> [Word; COUNT] {
    const { assert!(BYTES == COUNT * WORD_BYTES) };
    let (words, _) = bytes.as_chunks::<WORD_BYTES>();
    std::array::from_fn(|index| words[index])
}
