//! The shell of cloister: consensus over ABCI, storage, JSON-RPC. The only crate with a clock, a disk and a socket.

pub mod abci;
pub mod broadcast;
pub mod chain;
pub mod cli;
pub mod comet;
pub mod config;
pub mod ending;
pub mod engine;
pub mod failure;
pub mod home;
pub mod logging;
pub mod node;
pub mod pool;
pub mod rpc;
pub mod store;

#[cfg(test)]
mod testing;
