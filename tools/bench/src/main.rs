//! `cloister-bench`: measures cloister against named baselines in the same run. Every figure is a median of samples or
//! a count over a window; ratios are what docs/benchmarks.md quotes.

mod consensus;
mod execution;
mod growth;
mod node;
mod output;
mod process;
mod stats;
mod workload;

use alloy_genesis::GenesisAccount;
use alloy_primitives::Address;
use anyhow::Context as _;
use clap::{Parser, Subcommand};
use cloister_genesis::{Genesis, GenesisBuilder, GenesisValidator, VALIDATOR_POWER_DEFAULT};
use cloister_node::store::{Durability, StoreOptions};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
};

#[derive(Debug, Parser)]
#[command(name = "cloister-bench", version, about, long_about = None)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Blocks through execution, state root and store, against revm in memory
    Execution(execution::Options),
    /// The same block against a small and a large state
    Growth(growth::Options),
    /// Transfers per second of one validator under real CometBFT, against CometBFT's kvstore
    Consensus(consensus::Options),
    /// Resident memory of an idle node, and time from start to the first block on a long chain
    Node(node::Options),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Execution(options) => execution::run(&options),
        Command::Growth(options) => growth::run(&options),
        Command::Consensus(options) => consensus::run(&options),
        Command::Node(options) => node::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "cloister-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A store as the node opens it, synced at every block or left to the system.
const fn store_options(sync: bool) -> StoreOptions {
    StoreOptions {
        durability: if sync {
            Durability::EveryBlock
        } else {
            Durability::Os
        },
        wal_folder: None,
        block_cache_bytes: 64 << 20,
        history_blocks: 100_000,
        proof_window_blocks: 256,
    }
}

/// The genesis of a network of one validator with this allocation.
fn network(alloc: &BTreeMap<Address, GenesisAccount>) -> anyhow::Result<Genesis> {
    let validator = GenesisValidator {
        member: Address::repeat_byte(1),
        public_key: ed25519_consensus::SigningKey::from([7; 32])
            .verification_key()
            .to_bytes(),
        power: VALIDATOR_POWER_DEFAULT,
        payout: Address::repeat_byte(1),
        name: "bench".to_owned(),
    };
    alloc
        .iter()
        .fold(
            GenesisBuilder::new(workload::CHAIN_ID),
            |builder, (address, account)| builder.account(*address, account.clone()),
        )
        .validators([validator])
        .build()
        .context("building the genesis of the bench")
}

/// Finds a program in `folders`, beside this program, or in PATH.
fn find_program(name: &str, folders: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|me| me.parent().map(Path::to_owned));
    let from_path =
        std::env::var_os("PATH").map(|value| std::env::split_paths(&value).collect::<Vec<_>>());
    folders
        .iter()
        .cloned()
        .chain(beside)
        .chain(from_path.unwrap_or_default())
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
        .with_context(|| {
            format!(
                "{name} not found: `make setup` installs it, or name its folder with --binaries"
            )
        })
}
