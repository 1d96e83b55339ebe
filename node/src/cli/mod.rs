//! The command line: one file for each command.
//!
//! Exit codes: 0 done or clean stop; 1 anything not listed; 2 wrong usage; 70 consensus fault or a bug of ours; 74 the store;
//! 78 configuration or genesis.

mod demo;
pub mod dev;
mod init;
mod keys;
mod start;
mod status;
mod testnet;
mod version;

use crate::{
    config::LogConfig, ending::Ending, failure::Failure, logging, store::wait_until_closed,
};
use clap::{Parser, Subcommand};
use std::{future::Future, io::Write, process::ExitCode, time::Duration};
use tokio::signal::unix::{SignalKind, signal};

/// A sovereign EVM app-chain node: CometBFT consensus, Ethereum execution, JSON-RPC.
///
/// A first chain in two commands: `cloister init --home ~/chain --chain-id 4242`, then `cloister start --home ~/chain`. For
/// development `cloister dev` needs nothing but itself.
#[derive(Debug, Parser)]
#[command(
    name = "cloister",
    version,
    disable_help_subcommand = true,
    max_term_width = 110,
    after_help = "Exit codes: 0 clean stop, 2 usage, 70 consensus fault or bug, 74 store, 78 configuration or genesis, 1 other.\n\
                  Environment: CLOISTER__SECTION__KEY overrides a key of cloister.toml, CLOISTER_COMETBFT names CometBFT's program."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::InitArguments),
    Start(start::StartArguments),
    Dev(dev::DevArguments),
    Testnet(testnet::TestnetArguments),
    Status(status::StatusArguments),
    Keys(keys::KeysArguments),
    Version(version::VersionArguments),
}

/// How long the end of a command waits for the store to be closed.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// Parses the command line, runs the command, and says on standard error why it failed.
pub fn main() -> ExitCode {
    let result = run(Cli::parse().command);
    // Threads that end by themselves may hold it for a moment yet.
    wait_until_closed(CLOSE_PATIENCE);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Nobody may be reading; the exit code tells too.
            let _ = writeln!(std::io::stderr().lock(), "{failure}");
            ExitCode::from(failure.exit_code)
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Init(arguments) => init::run(&arguments),
        Command::Start(arguments) => start::run(&arguments),
        Command::Dev(arguments) => {
            logging::init(&LogConfig::default());
            Ending::exiting().install_panic_hook();
            block_on(dev::run(arguments))
        }
        Command::Testnet(arguments) => testnet::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Keys(arguments) => keys::run(&arguments),
        Command::Version(arguments) => version::run(&arguments),
    }
}

/// Runs a future on a runtime with a thread for each core.
fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::other(
                error.to_string(),
                "check the limits of this user (ulimit -a)",
            )
        })?;
    let result = runtime.block_on(future);
    // A read that still waits for the disk does not hold the end up.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// Ends at the first SIGINT or SIGTERM. Made before anything is started, so that no signal is missed.
fn until_told() -> Result<impl Future<Output = ()>, Failure> {
    let listen = |kind| {
        signal(kind)
            .map_err(|error| Failure::other(format!("signals: {error}"), "check the system"))
    };
    let mut interrupted = listen(SignalKind::interrupt())?;
    let mut terminated = listen(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
    })
}

/// Writes to standard output. Whoever closed it does not want the rest.
fn print(text: &str) {
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(text.as_bytes());
    let _ = output.flush();
}

/// `200ms`, `1.5s`, `2m`.
fn parse_duration_ms(text: &str) -> Result<u64, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1.0,
        "s" => 1_000.0,
        "m" => 60_000.0,
        _ => return Err("write a time with its unit: 200ms, 1.5s, 2m".to_owned()),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| format!("not a number: {number:?}"))?;
    let ms = (number * unit_ms).round();
    if !(1.0..=600_000.0).contains(&ms) {
        return Err("between 1ms and 10m".to_owned());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be 1 to 600,000"
    )]
    Ok(ms as u64)
}

#[cfg(test)]
mod tests;
