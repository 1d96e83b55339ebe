//! The shell of cloister: consensus over ABCI, storage, JSON-RPC. The only crate with a clock, a disk and a socket.

pub mod chain;
pub mod pool;
pub mod store;
