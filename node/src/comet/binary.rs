//! Finds CometBFT's program and checks its version.

use super::CometError;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Oldest version that holds all security fixes we rely on.
pub const VERSION_MIN: Version = Version {
    major: 0,
    minor: 38,
    patch: 26,
};

/// How to get it.
pub const INSTALL_HINT: &str = "install it with Go 1.22 or later: `GOBIN=$HOME/.cache/cloister/bin go install \
     github.com/cometbft/cometbft/cmd/cometbft@v0.38.26` (`make` does the same), or name another copy in \
     consensus.cometbft_binary or $CLOISTER_COMETBFT";

/// Environment variable naming the program.
pub const ENVIRONMENT: &str = "CLOISTER_COMETBFT";

/// A release of CometBFT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// 0 so far.
    pub major: u64,
    /// The line: wire formats and configuration hold within it.
    pub minor: u64,
    /// Fixes.
    pub patch: u64,
}

impl std::fmt::Display for Version {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Version {
    /// Reads what `cometbft version` prints, e.g. `0.38.26` or `v0.38.26+abcdef`.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().trim_start_matches('v').splitn(3, '.');
        let major = parts.next()?.parse().ok()?;
        let minor = parts.next()?.parse().ok()?;
        let patch = parts.next()?;
        let digits = patch
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(patch.len());
        // A pre-release of the oldest version accepted comes before it.
        let patch = if patch[digits..].starts_with('-') {
            patch[..digits].parse::<u64>().ok()?.checked_sub(1)?
        } else {
            patch[..digits].parse().ok()?
        };
        Some(Self {
            major,
            minor,
            patch,
        })
    }

    const fn is_supported(self) -> bool {
        self.major == VERSION_MIN.major
            && self.minor == VERSION_MIN.minor
            && self.patch >= VERSION_MIN.patch
    }
}

/// A program checked to be of a version we run with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CometBinary {
    /// Where it is.
    pub path: PathBuf,
    /// What it said of itself.
    pub version: Version,
}

impl CometBinary {
    /// Looks at the configured path, `$CLOISTER_COMETBFT`, beside our own program, `~/.cache/cloister/bin` and `$PATH`, in
    /// this order, and checks the version of the first found. One named on purpose must exist.
    pub fn find(configured: Option<&Path>) -> Result<Self, CometError> {
        if let Some(path) = configured {
            return Self::check(path.to_owned());
        }
        if let Some(path) = std::env::var_os(ENVIRONMENT).filter(|path| !path.is_empty()) {
            return Self::check(path.into());
        }
        let mut candidates = Vec::new();
        if let Some(folder) = std::env::current_exe()
            .ok()
            .and_then(|program| program.parent().map(Path::to_owned))
        {
            candidates.push(folder.join("cometbft"));
        }
        if let Some(home) = std::env::var_os("HOME") {
            candidates.push(Path::new(&home).join(".cache/cloister/bin/cometbft"));
        }
        if let Some(path) = std::env::var_os("PATH") {
            candidates.extend(std::env::split_paths(&path).map(|folder| folder.join("cometbft")));
        }
        match candidates.iter().find(|path| path.is_file()) {
            Some(path) => Self::check(path.clone()),
            None => Err(CometError::NotFound {
                searched: candidates
                    .iter()
                    .take(2)
                    .map(|path| path.display().to_string())
                    .chain(["$PATH".to_owned()])
                    .collect(),
            }),
        }
    }

    /// Runs `PROGRAM version` and compares.
    pub fn check(path: PathBuf) -> Result<Self, CometError> {
        let output = Command::new(&path)
            .arg("version")
            .output()
            .map_err(|error| CometError::NotRunnable {
                path: path.clone(),
                reason: error.to_string(),
            })?;
        let said = String::from_utf8_lossy(&output.stdout);
        match Version::parse(&said)
            .filter(|version| output.status.success() && version.is_supported())
        {
            Some(version) => Ok(Self { path, version }),
            None => Err(CometError::Version {
                path,
                found: match said.lines().next() {
                    Some(line) if !line.trim().is_empty() => line.trim().chars().take(60).collect(),
                    _ => "of unknown version".to_owned(),
                },
            }),
        }
    }
}

#[cfg(test)]
mod tests;
