//! What is wrong with a configuration, and what to do about it.

use std::path::PathBuf;

/// One mistake in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file is not there or may not be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The file is not TOML.
    #[error("not a TOML file: {reason}")]
    Syntax {
        /// Line, column and what was expected.
        reason: String,
    },
    /// A section this build does not know.
    #[error("unknown section [{section}]")]
    UnknownSection {
        /// As written.
        section: String,
        /// The names it could have had.
        known: String,
    },
    /// A key this build does not know.
    #[error("unknown key {key}")]
    UnknownKey {
        /// `section.key` as written.
        key: String,
        /// The known key that is nearest.
        suggestion: Option<String>,
    },
    /// A value of the wrong kind.
    #[error("{key} = {value}: {reason}")]
    WrongType {
        /// `section.key`.
        key: String,
        /// As written.
        value: String,
        /// What was expected.
        reason: String,
    },
    /// A value outside its bounds, or at odds with another.
    #[error("{key} = {value}: {rule}")]
    Invalid {
        /// `section.key`.
        key: &'static str,
        /// As given.
        value: String,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// An override that names no section and key.
    #[error("environment variable {name} names no key of the configuration")]
    Environment {
        /// As set.
        name: String,
    },
}

impl ConfigError {
    /// What the operator can do.
    pub fn hint(&self) -> String {
        match self {
            Self::Unreadable { path, .. } => format!(
                "create a home with `cloister init --home {} --chain-id N`, or give the right folder with --home",
                path.parent().unwrap_or(path).display()
            ),
            Self::Syntax { .. } => "correct the line named above".to_owned(),
            Self::UnknownSection { known, .. } => format!("the sections are {known}"),
            Self::UnknownKey {
                suggestion: Some(name),
                ..
            } => format!("did you mean {name}?"),
            Self::UnknownKey {
                suggestion: None, ..
            } => "remove it; the file that `cloister init` writes lists every key".to_owned(),
            Self::WrongType { .. } => {
                "see the comment on this key in the file that `cloister init` writes".to_owned()
            }
            Self::Invalid { rule, .. } => format!("set it so that this holds: {rule}"),
            Self::Environment { .. } => {
                "write CLOISTER__SECTION__KEY, e.g. CLOISTER__CONSENSUS__TIMEOUT_COMMIT_MS=500"
                    .to_owned()
            }
        }
    }
}

/// All mistakes found, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl std::error::Error for ConfigErrors {}

impl std::fmt::Display for ConfigErrors {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.0.len();
        let noun = if count == 1 { "error" } else { "errors" };
        write!(formatter, "configuration refused: {count} {noun}")?;
        for error in &self.0 {
            write!(formatter, "\n- {error}\n  hint: {}", error.hint())?;
        }
        Ok(())
    }
}
