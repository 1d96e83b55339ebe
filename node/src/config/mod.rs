//! The node's configuration: one TOML file, `cloister.toml` in the home folder, and environment overrides.
//!
//! The struct, the defaults and the documentation of every key come from one source ([`sections`]); `cloister init`
//! writes them out with [`document::render`]. [`Config::load`] checks everything and reports all errors at once.
//! An override is `CLOISTER__SECTION__KEY=value`, the value written as in TOML (plain text needs no quotes).

pub mod document;
mod error;
mod options;
mod sections;
mod validate;

#[cfg(test)]
mod tests;

pub use error::{ConfigError, ConfigErrors};
pub use sections::*;

use serde::{Serialize, de::DeserializeOwned};
use std::path::{Path, PathBuf};

/// Name of the configuration file in a node's home.
pub const CONFIG_FILE: &str = "cloister.toml";

/// Prefix of the environment variables that override a key.
pub const ENVIRONMENT_PREFIX: &str = "CLOISTER__";

/// One section of the file, with the documentation of its keys.
pub(crate) trait Section: Serialize + DeserializeOwned + Default {
    /// Its name in brackets.
    const NAME: &'static str;
    /// Lines of comment above it.
    const DOC: &'static [&'static str];
    /// Keys with their lines of comment, in order.
    const KEYS: &'static [(&'static str, &'static [&'static str])];
}

/// The whole configuration, checked.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Config {
    /// `[node]`
    pub node: NodeConfig,
    /// `[consensus]`
    pub consensus: ConsensusConfig,
    /// `[storage]`
    pub storage: StorageConfig,
    /// `[pool]`
    pub pool: PoolConfig,
    /// `[rpc]`
    pub rpc: RpcConfig,
    /// `[log]`
    pub log: LogConfig,
}

impl Config {
    /// Reads `cloister.toml` in `home`, lays the environment over it and checks the whole.
    pub fn load(
        home: &Path,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigErrors> {
        let path = home.join(CONFIG_FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            ConfigErrors(vec![ConfigError::Unreadable {
                path: path.clone(),
                reason: error.to_string(),
            }])
        })?;
        Self::parse(&text, environment)
    }

    /// Parses the text of the file and the environment's overrides, and checks the whole.
    pub fn parse(
        text: &str,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigErrors> {
        let mut table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            ConfigErrors(vec![ConfigError::Syntax {
                reason: error.to_string().trim_end().replace('\n', "\n  "),
            }])
        })?;
        let mut errors = Vec::new();
        overlay(&mut table, environment, &mut errors);
        let config = Self {
            node: take_section(&mut table, &mut errors),
            consensus: take_section(&mut table, &mut errors),
            storage: take_section(&mut table, &mut errors),
            pool: take_section(&mut table, &mut errors),
            rpc: take_section(&mut table, &mut errors),
            log: take_section(&mut table, &mut errors),
        };
        for name in table.keys() {
            errors.push(ConfigError::UnknownSection {
                section: name.clone(),
                known: SECTION_NAMES.join(", "),
            });
        }
        validate::validate(&config, &mut errors);
        if errors.is_empty() {
            Ok(config)
        } else {
            Err(ConfigErrors(errors))
        }
    }
}

/// A path of the configuration: relative ones are below the home folder.
pub fn resolve(home: &Path, path: &Path) -> PathBuf {
    home.join(path)
}

const SECTION_NAMES: [&str; 6] = [
    NodeConfig::NAME,
    ConsensusConfig::NAME,
    StorageConfig::NAME,
    PoolConfig::NAME,
    RpcConfig::NAME,
    LogConfig::NAME,
];

/// Writes the overrides into the table as if the file had said so.
fn overlay(
    table: &mut toml::Table,
    environment: impl IntoIterator<Item = (String, String)>,
    errors: &mut Vec<ConfigError>,
) {
    for (name, value) in environment {
        let Some(rest) = name.strip_prefix(ENVIRONMENT_PREFIX) else {
            continue;
        };
        let Some((section, key)) = rest.split_once("__") else {
            errors.push(ConfigError::Environment { name });
            continue;
        };
        let (section, key) = (section.to_lowercase(), key.to_lowercase());
        if !SECTION_NAMES.contains(&section.as_str()) {
            errors.push(ConfigError::Environment { name });
            continue;
        }
        let entry = table
            .entry(section)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()));
        if let Some(section) = entry.as_table_mut() {
            section.insert(key, environment_value(&value));
        }
    }
}

/// A TOML value if it reads as one, else plain text.
fn environment_value(text: &str) -> toml::Value {
    format!("value = {text}")
        .parse::<toml::Table>()
        .ok()
        .and_then(|mut table| table.remove("value").filter(|_| table.is_empty()))
        .unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

/// Takes one section out of the table, key by key, so that each wrong key gets its own report.
fn take_section<S: Section>(table: &mut toml::Table, errors: &mut Vec<ConfigError>) -> S {
    let section = match table.remove(S::NAME) {
        None => return S::default(),
        Some(toml::Value::Table(section)) => section,
        Some(other) => {
            errors.push(ConfigError::WrongType {
                key: S::NAME.to_owned(),
                value: other.to_string(),
                reason: "expected a section, written in brackets".to_owned(),
            });
            return S::default();
        }
    };
    let mut accepted = toml::Table::new();
    for (key, value) in section {
        if !S::KEYS.iter().any(|(known, _)| *known == key) {
            errors.push(ConfigError::UnknownKey {
                suggestion: nearest(&key, S::KEYS.iter().map(|(known, _)| *known)),
                key: format!("{}.{key}", S::NAME),
            });
            continue;
        }
        match accept::<S>(&key, value.clone()) {
            Ok(value) => {
                accepted.insert(key, value);
            }
            Err(reason) => errors.push(ConfigError::WrongType {
                key: format!("{}.{key}", S::NAME),
                value: value.to_string(),
                reason,
            }),
        }
    }
    S::deserialize(toml::Value::Table(accepted))
        .expect("each key was deserialized alone just before")
}

/// The value if the section reads it; a number or truth value is also tried as text (overrides carry no quotes).
fn accept<S: Section>(key: &str, value: toml::Value) -> Result<toml::Value, String> {
    let reads = |value: &toml::Value| {
        S::deserialize(toml::Value::Table(toml::Table::from_iter([(
            key.to_owned(),
            value.clone(),
        )])))
        .map(|_| ())
        .map_err(|error| error.message().to_owned())
    };
    let reason = match reads(&value) {
        Ok(()) => return Ok(value),
        Err(reason) => reason,
    };
    let text = match &value {
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Boolean(truth) => truth.to_string(),
        _ => return Err(reason),
    };
    let text = toml::Value::String(text);
    reads(&text).map(|()| text).map_err(|_| reason)
}

/// The known name that differs least from `got`, if it is close enough to be meant.
fn nearest<'a>(got: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|name| (edit_distance(got, name), name))
        .min()
        .filter(|(distance, name)| *distance <= name.len() / 3)
        .map(|(_, name)| name.to_owned())
}

/// Levenshtein distance in bytes.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
