//! Proofs and public inputs. Shapes: see the crate documentation.

use crate::{
    encoding::{
        EncodingError, G1_BYTES, G2_BYTES, Identity, WORD_BYTES, read_g1, read_g2, read_scalar,
        write_field, write_g1, write_g2,
    },
    key::{PUBLIC_INPUT_COUNT_MAX, TracedPoint},
};
use ark_bn254::{Fr, G1Affine};

/// Why bytes are not a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// Not 256 bytes. Proofs with a gnark commitment are longer and not supported.
    #[error("proof has {got_bytes} bytes, expected {}", Proof::BYTES)]
    Length { got_bytes: usize },
    /// A point does not decode, or is the identity. `point` is a, b or c.
    #[error("proof's {point}: {source}")]
    Point { point: char, source: EncodingError },
}

/// A checked proof: three points, none the identity. Whether it proves anything is for verification to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    pub(crate) a: G1Affine,
    pub(crate) b: TracedPoint,
    pub(crate) c: G1Affine,
}

impl Proof {
    /// Length of a proof.
    pub const BYTES: usize = 2 * G1_BYTES + G2_BYTES;

    /// Reads a proof.
    pub fn parse(bytes: &[u8]) -> Result<Self, ProofError> {
        let length = ProofError::Length {
            got_bytes: bytes.len(),
        };
        let (a, rest) = bytes.split_first_chunk().ok_or(length)?;
        let (b, rest) = rest.split_first_chunk().ok_or(length)?;
        let c = rest.try_into().map_err(|_| length)?;
        let at = |point| move |source| ProofError::Point { point, source };
        // G2 last: it costs a hundred times as much.
        let a = read_g1(a, Identity::Refused).map_err(at('a'))?;
        let c = read_g1(c, Identity::Refused).map_err(at('c'))?;
        let (point, trace) = read_g2(b).map_err(at('b'))?;
        Ok(Self {
            a,
            b: TracedPoint { point, trace },
            c,
        })
    }

    /// The proof's bytes in the wire format.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::BYTES);
        write_g1(&self.a, &mut out);
        write_g2(&self.b.point, &mut out);
        write_g1(&self.c, &mut out);
        out
    }
}

/// Why bytes are not public inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// Not a whole number of words.
    #[error("public inputs have {got_bytes} bytes, expected a multiple of {WORD_BYTES}")]
    Length { got_bytes: usize },
    /// More than any key has.
    #[error("{got} public inputs, at most {PUBLIC_INPUT_COUNT_MAX}")]
    TooMany { got: usize },
    /// An input is r or more. Its remainder mod r would verify too, under another name.
    #[error(
        "public input {index} is not below the scalar modulus: 0x{}",
        crate::encoding::Hex(value)
    )]
    NotCanonical { index: usize, value: [u8; 32] },
}

/// Public inputs, each below r. Their number is checked against the key at verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicInputs(pub(crate) Vec<Fr>);

impl PublicInputs {
    /// Reads all of `bytes` as inputs.
    pub fn parse(bytes: &[u8]) -> Result<Self, InputError> {
        let (words, remainder) = bytes.as_chunks::<WORD_BYTES>();
        if !remainder.is_empty() {
            return Err(InputError::Length {
                got_bytes: bytes.len(),
            });
        }
        if words.len() > PUBLIC_INPUT_COUNT_MAX {
            return Err(InputError::TooMany { got: words.len() });
        }
        words
            .iter()
            .enumerate()
            .map(|(index, word)| {
                read_scalar(word).ok_or(InputError::NotCanonical {
                    index,
                    value: *word,
                })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Number of inputs.
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// The inputs' bytes in the wire format.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len() * WORD_BYTES);
        for input in &self.0 {
            write_field(input, &mut out);
        }
        out
    }
}
