//! The commands.

mod demo;
pub mod dev;
