//! Log lines on standard error: for people, or one JSON object each.

use crate::config::{LogConfig, LogFormat};
use std::io::IsTerminal;
use tracing_subscriber::{EnvFilter, fmt, prelude::*};

/// Starts logging for this process. A second call changes nothing.
pub fn init(config: &LogConfig) {
    // The level was checked with the configuration.
    // tower-abci tells of each connection what CometBFT tells too; who names it in the level hears it.
    let level = format!("tower_abci=warn,{}", config.level);
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let registry = tracing_subscriber::registry().with(filter);
    let result = match config.format {
        LogFormat::Text => registry
            .with(
                fmt::layer()
                    .with_writer(std::io::stderr)
                    .with_ansi(std::io::stderr().is_terminal()),
            )
            .try_init(),
        LogFormat::Json => registry
            .with(fmt::layer().json().with_writer(std::io::stderr))
            .try_init(),
    };
    if result.is_err() {
        tracing::debug!("logging was started before");
    }
}
