//! Why a command failed, in one line with a hint, and the exit code that goes with it.

use crate::{
    abci::socket::SocketError,
    chain::Fatal,
    comet::CometError,
    config::ConfigErrors,
    ending::{EXIT_CONFIG, EXIT_OTHER, EXIT_STORE},
    rpc::RpcStartError,
    store::StoreError,
};
use cloister_genesis::GenesisError;
use std::{fmt, path::Path};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// 70 consensus or our bug, 74 store, 78 configuration or genesis, 1 anything else.
    pub exit_code: u8,
    /// What happened.
    pub message: String,
    /// What the operator can do.
    pub hint: Option<String>,
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(formatter, "\n  hint: {}", hint.replace('\n', "\n        ")),
            None => Ok(()),
        }
    }
}

impl Failure {
    /// Something the operator must set right before trying again.
    pub fn config(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            exit_code: EXIT_CONFIG,
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    /// Anything without a code of its own.
    pub fn other(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            exit_code: EXIT_OTHER,
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    /// A file or folder that cannot be read or written.
    pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |error| {
            Self::config(
                format!("{}: {error}", path.display()),
                "check the path, and that this user may use it",
            )
        }
    }

    /// A genesis file.
    pub fn genesis(path: &Path, error: &GenesisError) -> Self {
        Self::config(format!("{}: {error}", path.display()), error.hint())
    }
}

impl From<ConfigErrors> for Failure {
    fn from(errors: ConfigErrors) -> Self {
        Self {
            exit_code: EXIT_CONFIG,
            message: errors.to_string(),
            hint: None,
        }
    }
}

impl From<CometError> for Failure {
    fn from(error: CometError) -> Self {
        Self::config(error.to_string(), error.hint())
    }
}

impl From<SocketError> for Failure {
    fn from(error: SocketError) -> Self {
        Self::config(error.to_string(), error.hint())
    }
}

impl From<RpcStartError> for Failure {
    fn from(error: RpcStartError) -> Self {
        Self::config(
            error.to_string(),
            "stop the program that uses the port, or change rpc.http_address and rpc.ws_address",
        )
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self {
            exit_code: EXIT_STORE,
            message: format!("store: {error}"),
            hint: error.hint().map(str::to_owned),
        }
    }
}

impl From<Fatal> for Failure {
    fn from(fatal: Fatal) -> Self {
        Self {
            exit_code: fatal.exit_code,
            message: fatal.report,
            hint: None,
        }
    }
}
