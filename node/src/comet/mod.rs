//! CometBFT: its program, its home folder, its keys, its process and its RPC.
//!
//! Everything here follows the formats and behaviour of CometBFT v0.38.26. In managed mode its configuration is
//! written from ours at each start; its keys are made once, by `cloister init`.

pub mod binary;
pub mod child;
pub mod home;
pub mod keys;
mod log_lines;
pub mod pid_file;
pub mod rpc;

use std::{net::SocketAddr, path::PathBuf};

/// What stands in the way of running CometBFT.
#[derive(Debug, thiserror::Error)]
pub enum CometError {
    /// No program at any of the places looked at.
    #[error("CometBFT not found; looked at: {}", searched.join(", "))]
    NotFound {
        /// The places, in order.
        searched: Vec<String>,
    },
    /// The program named by configuration or environment does not run.
    #[error("cannot run {}: {reason}", path.display())]
    NotRunnable {
        /// The program.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// A version this node must not run with.
    #[error("{} is CometBFT {found}; {} or later of the 0.38 line is needed", path.display(), binary::VERSION_MIN)]
    Version {
        /// The program.
        path: PathBuf,
        /// What it said.
        found: String,
    },
    /// A key file that is not as CometBFT writes it.
    #[error("key file {}: {reason}", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// The field and what is wrong with it.
        reason: String,
    },
    /// Another process listens where CometBFT should.
    #[error("{key} = {address} cannot be used: {reason}")]
    Address {
        /// `section.key` of the configuration.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// The system's words.
        reason: String,
    },
    /// The child of an earlier run does not end.
    #[error("CometBFT of an earlier run (process {pid}) does not end")]
    OldChild {
        /// Its process.
        pid: u32,
    },
    /// A file or folder.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
}

impl CometError {
    /// What the operator can do.
    pub fn hint(&self) -> String {
        match self {
            Self::NotFound { .. } | Self::Version { .. } => binary::INSTALL_HINT.to_owned(),
            Self::NotRunnable { .. } => {
                "check consensus.cometbft_binary and $CLOISTER_COMETBFT".to_owned()
            }
            Self::KeyFile { .. } => "restore the file from a backup; never start a validator with a new key and an old state file, \
                 nor two nodes with one key"
                .to_owned(),
            Self::Address { key, .. } => {
                format!("stop the program that uses the port, or set {key} to another")
            }
            Self::OldChild { pid } => format!("end process {pid}, then start again"),
            Self::Io { .. } => "check that the folder exists and this user may write to it".to_owned(),
        }
    }

    /// For keys and the signing state: one that is missing must never be answered by making another.
    pub(crate) fn secret(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        |source| match source.kind() {
            std::io::ErrorKind::NotFound => Self::KeyFile {
                path: path.to_owned(),
                reason: "there is no such file".to_owned(),
            },
            _ => Self::io(path)(source),
        }
    }

    pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}
