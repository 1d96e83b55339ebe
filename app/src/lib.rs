//! The deterministic core of cloister: blocks in, outcomes out.
//!
//! Synchronous and pure. It reads state through [`state::StateRead`], returns what should happen as a value
//! ([`block::BlockOutcome`]) and never touches a clock, a disk, a socket or an environment. The node persists.
//!
//! The road of a transaction through this crate: [`transaction`] parses and checks the bytes, [`app::App`] answers the
//! calls of consensus, [`execution`] runs a block through the EVM, [`header`] builds the Ethereum header, [`trie`]
//! computes the state root.

pub mod app;
pub mod block;
mod empty_state;
pub mod evm;
pub mod execution;
pub mod header;
pub mod precompiles;
pub mod registry;
pub mod rejection;
pub mod simulation;
pub mod state;
#[cfg(any(test, feature = "test-support"))]
pub mod testing;
pub mod transaction;
pub mod trie;

#[cfg(test)]
mod vectors;
