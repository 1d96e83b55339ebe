//! ed25519 verification, strict. Input: `public key (32 bytes) || signature R || s (64 bytes) || message (the rest)`.
//!
//! Answers 1 if the signature holds by RFC 8032 with these rules on top, else 0: the key and R are the one canonical
//! encoding of their point (y below 2^255 - 19, no sign on x = 0) and not of small order, s is below the group's order;
//! the equation is the one with the cofactor. So there is one public key for a key's bytes and no signature that holds
//! for many messages. Input shorter than 96 bytes reverts.
//!
//! Sources: RFC 8032; Chalkias, Garillot, Nikolaenko, "Taming the many EdDSAs", 2020/1244.

use super::{Context, InvalidLength, Outcome, answer, revert};
use ed25519_consensus::{Signature, VerificationKey};

/// Price of a verification. `cargo bench -p cloister-app --bench gas 300`, machine as for the Groth16 prices: 46 to 53 µs
/// without a message, where an ecrecover takes 42.3: 4,500 to 5,000 gas with a quarter on top.
pub(super) const BASE_GAS: u64 = 5_500;
/// Price of hashing 32 bytes of message, or part of them: 512 of them take 27 µs more, 4 gas each.
pub(super) const MESSAGE_WORD_GAS: u64 = 5;

pub(super) const fn price(message_bytes: usize) -> u64 {
    BASE_GAS + MESSAGE_WORD_GAS * message_bytes.div_ceil(32) as u64
}

pub(super) fn verify(_: &Context, input: &[u8], gas_limit: u64) -> Outcome {
    let Some((key, rest)) = input.split_first_chunk() else {
        return revert::<InvalidLength>(gas_limit);
    };
    let Some((signature, message)) = rest.split_first_chunk() else {
        return revert::<InvalidLength>(gas_limit);
    };
    let gas = price(message.len());
    if gas > gas_limit {
        return Outcome::OutOfGas;
    }
    answer(gas, holds(key, signature, message))
}

/// Whether the signature holds under the strict rules.
pub(crate) fn holds(key: &[u8; 32], signature: &[u8; 64], message: &[u8]) -> bool {
    let Some(r) = signature.first_chunk() else {
        return false;
    };
    // The library checks s and the equation but takes every encoding of a point.
    is_strict(key)
        && is_strict(r)
        && VerificationKey::try_from(*key)
            .is_ok_and(|key| key.verify(&Signature::from(*signature), message).is_ok())
}

/// The y of the eight points of small order, little-endian without sign: ±1, 0 and two pairs of order 8.
const SMALL_ORDER_Y: [[u8; 32]; 5] = [
    [0; 32],
    one(),
    minus_one(),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67,
        0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac,
        0x03, 0x7a,
    ],
];

const fn one() -> [u8; 32] {
    let mut y = [0; 32];
    y[0] = 1;
    y
}

/// 2^255 - 20.
const fn minus_one() -> [u8; 32] {
    let mut y = [0xff; 32];
    y[0] = 0xec;
    y[31] = 0x7f;
    y
}

/// Canonical and not of small order. x = 0 happens only at y = ±1, so the sign on it falls to the second rule.
fn is_strict(encoding: &[u8; 32]) -> bool {
    let mut y = *encoding;
    y[31] &= 0x7f;
    let below_modulus = y.iter().rev().le(minus_one().iter().rev());
    below_modulus && !SMALL_ORDER_Y.contains(&y)
}

#[cfg(test)]
mod tests;
