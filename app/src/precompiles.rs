//! The precompiles of this chain, beside Ethereum's: one table.
//!
//! Each is a pure function of its input and the genesis keys. It charges gas that depends on the input's shape alone,
//! and refuses by a fixed revert of four bytes or by taking all gas; text never leaves it.

use alloy_primitives::{Address, Bytes, address};

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
    /// Refused; the rest of the gas stays with the caller.
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

/// What precompiles know besides their input: fixed by genesis.
#[derive(Debug, Default)]
pub struct Context {}

/// Address of the first row; row `i` sits `i` above it.
pub const FIRST_ADDRESS: Address = address!("0000000000000000000000000000000000000c01");

/// All rows, in address order without gaps.
pub const TABLE: &[Precompile] = &[];

/// The row at `address`.
pub fn find(address: &Address) -> Option<&'static Precompile> {
    let (prefix, low) = address.0.split_at(18);
    let (first_prefix, first_low) = FIRST_ADDRESS.0.split_at(18);
    if prefix != first_prefix {
        return None;
    }
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0usize, |n, byte| n << 8 | usize::from(*byte))
    };
    let index = number(low).checked_sub(number(first_low))?;
    TABLE.get(index)
}
