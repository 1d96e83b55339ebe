//! The `cloister` command.

use clap::Parser;
use cloister_node::cli::dev;
use std::process::ExitCode;

#[derive(Parser)]
enum Command {
    Dev(dev::DevArguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let Command::Dev(arguments) = Command::parse();
    match dev::run(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(fatal) => {
            tracing::error!("{fatal}");
            ExitCode::from(fatal.exit_code)
        }
    }
}
