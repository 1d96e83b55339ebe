//! `cloister start`

use super::{block_on, logging, until_told};
use crate::{
    config::{Config, ConsensusMode},
    ending::Ending,
    failure::Failure,
    node,
};
use std::path::PathBuf;

/// Start the node of a home folder, with CometBFT as its child.
///
/// Runs until SIGINT or SIGTERM; then CometBFT is stopped first, the store is closed, and the exit code is 0. A fault of
/// the application ends the process within a second with a code that says which part failed.
#[derive(Debug, clap::Args)]
pub(super) struct StartArguments {
    /// Folder made by `cloister init`.
    #[arg(long, value_name = "DIR")]
    home: PathBuf,
    /// Who runs CometBFT; overrides consensus.mode.
    #[arg(long, value_name = "MODE")]
    consensus: Option<ConsensusMode>,
}

pub(super) fn run(arguments: &StartArguments) -> Result<(), Failure> {
    let mut environment: Vec<(String, String)> = std::env::vars().collect();
    if let Some(mode) = arguments.consensus {
        let value = match mode {
            ConsensusMode::Managed => "managed",
            ConsensusMode::External => "external",
        };
        environment.push(("CLOISTER__CONSENSUS__MODE".to_owned(), value.to_owned()));
    }
    let config = Config::load(&arguments.home, environment)?;
    logging::init(&config.log);
    let ending = Ending::exiting();
    ending.install_panic_hook();
    block_on(async {
        let until_told = until_told()?;
        node::run(&arguments.home, &config, &ending, until_told).await
    })
}
