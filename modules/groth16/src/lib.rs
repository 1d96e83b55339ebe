//! Groth16 over BN254: verifying keys, proofs, public inputs and their verification. Usable without revm or tokio.
//!
//! **Wire format**, the only one. Every number is a 32-byte big-endian word. Points are as in EIP-196 and EIP-197:
//!
//! | value | bytes | layout |
//! |---|---|---|
//! | scalar (public input) | 32 | below r |
//! | G1 point | 64 | `x \|\| y`, each below q |
//! | G2 point | 128 | `x.c1 \|\| x.c0 \|\| y.c1 \|\| y.c0`, each below q, element = c0 + c1·u |
//! | [`Proof`] | 256 | `a (G1) \|\| b (G2) \|\| c (G1)` |
//! | [`PublicInputs`] | 32·n | n scalars |
//! | [`VerifyingKey`] | 448 + 64·(n + 1) | `alpha (G1) \|\| beta (G2) \|\| gamma (G2) \|\| delta (G2) \|\| ic[0..=n] (G1)` |
//!
//! Lengths are exact; there are no flags, no compressed points and no room for a gnark commitment. Every point is on its
//! curve, every G2 point in the subgroup of order r, and the identity (all zero bytes) is refused in proofs and keys.
//! A parsed value is a checked value: nothing inside re-checks it.
//!
//! **Verification** of (a, b, c) for inputs x under a key asks
//! `e(a, b) · e(ic[0] + Σ x_i·ic[i], -gamma) · e(c, -delta) = e(alpha, beta)`: one multi-scalar multiplication, one
//! Miller loop over three pairs, one final exponentiation. It draws no randomness and gives the same answer everywhere.
//!
//! A valid proof can be turned into another valid proof of the same statement by anyone. Never use proof bytes, or
//! their hash, to recognise a statement seen before.
//!
//! Sources: J. Groth, "On the size of pairing-based non-interactive arguments", 2016; EIP-196; EIP-197.

mod decimal;
mod encoding;
mod key;
mod msm;
mod pairing;
mod proof;
mod verify;

pub use decimal::{DecimalError, word_from_decimal};
pub use encoding::{EncodingError, G1_BYTES, G2_BYTES, WORD_BYTES};
pub use key::{KeyError, KeyId, KeyPoint, PUBLIC_INPUT_COUNT_MAX, VerifyingKey};
pub use proof::{InputError, Proof, ProofError, PublicInputs};
pub use verify::{InputCountMismatch, PreparedVerifyingKey, verify_unprepared};
