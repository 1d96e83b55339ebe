//! The precompiles of this chain, beside Ethereum's: one table.
//!
//! Each is a pure function of its input and of the keys that genesis registers. Its price hangs on the input's shape
//! alone and is charged before any work. Input that is not well formed reverts with a fixed selector and takes all gas of
//! the call; a well-formed statement that is false answers 0 at the price of a true one. Text never leaves here.
//! ABI, prices, errors and examples: `docs/precompiles.md`.

mod ed25519;
mod groth16;
mod keys;

pub use keys::{KeyRegistry, RegistryError};

use alloy_primitives::{Address, B256, Bytes, address};
use alloy_sol_types::{SolError, sol};
use cloister_genesis::GenesisVerifyingKey;
use groth16::VerifiedProofs;

/// What a precompile answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done.
    Success {
        /// Gas charged.
        gas_used: u64,
        /// Return data.
        output: Bytes,
    },
    /// Refused.
    Revert {
        /// Gas charged.
        gas_used: u64,
        /// The fixed selector.
        output: Bytes,
    },
    /// The gas does not cover the price; all of it is taken.
    OutOfGas,
}

/// One row of the table.
#[derive(Clone, Copy)]
pub struct Precompile {
    /// Where it is called.
    pub address: Address,
    /// Its name in documents and errors.
    pub name: &'static str,
    /// Input and gas limit to outcome.
    pub run: fn(&Context, &[u8], u64) -> Outcome,
}

impl std::fmt::Debug for Precompile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Precompile")
            .field("address", &self.address)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What precompiles know besides their input: fixed by genesis. The cache changes how long an answer takes, never the
/// answer or its price.
#[derive(Debug, Default)]
pub struct Context {
    keys: KeyRegistry,
    verified: VerifiedProofs,
}

impl Context {
    /// Registers the keys of a genesis in order.
    pub fn new(keys: &[GenesisVerifyingKey]) -> Result<Self, RegistryError> {
        Ok(Self {
            keys: KeyRegistry::new(keys)?,
            verified: VerifiedProofs::default(),
        })
    }

    /// The registered keys.
    pub const fn keys(&self) -> &KeyRegistry {
        &self.keys
    }
}

/// Groth16 verification under a registered key.
pub const GROTH16_VERIFY: Address = address!("0000000000000000000000000000000000000c01");
/// Groth16 verification under a key that the input carries.
pub const GROTH16_VERIFY_WITH_KEY: Address = address!("0000000000000000000000000000000000000c02");
/// ed25519 signature verification.
pub const ED25519_VERIFY: Address = address!("0000000000000000000000000000000000000c07");
/// All rows, in address order.
pub const TABLE: &[Precompile] = &[
    Precompile {
        address: GROTH16_VERIFY,
        name: "groth16_verify",
        run: groth16::verify_registered,
    },
    Precompile {
        address: GROTH16_VERIFY_WITH_KEY,
        name: "groth16_verify_with_key",
        run: groth16::verify_with_key,
    },
    Precompile {
        address: ED25519_VERIFY,
        name: "ed25519_verify",
        run: ed25519::verify,
    },
];

/// The row at `address`.
pub fn find(address: &Address) -> Option<&'static Precompile> {
    TABLE.iter().find(|row| row.address == *address)
}

sol! {
    /// Input has another length than its parts add up to.
    error InvalidLength();
    /// No key of this index or id is registered.
    error UnknownKey();
    /// The key in the input is not a key that may be used.
    error InvalidKey();
    /// A point of the proof does not decode.
    error InvalidProof();
    /// A public input is not below r.
    error InvalidPublicInput();
}

/// Refuses malformed input: the selector of `E`, and all gas, as a failed precompile takes it.
fn revert<E: SolError>(gas_limit: u64) -> Outcome {
    Outcome::Revert {
        gas_used: gas_limit,
        output: Bytes::copy_from_slice(&E::SELECTOR),
    }
}

/// A verdict as a 32-byte word, 1 or 0.
fn answer(gas_used: u64, holds: bool) -> Outcome {
    Outcome::Success {
        gas_used,
        output: Bytes::from(B256::with_last_byte(u8::from(holds)).0),
    }
}

#[cfg(test)]
mod tests;
