//! A node's home folder: its lock, its genesis, and making a new one.

use crate::{
    comet::{
        home::{CometHome, NewHome},
        keys::KeyPair,
    },
    config::{self, CONFIG_FILE, Config},
    failure::Failure,
};
use alloy_primitives::{Address, B256};
use alloy_signer_local::PrivateKeySigner;
use cloister_genesis::{AppState, Genesis, file_hash};
use rustix::fs::{FlockOperation, flock};
use std::{
    fs,
    io::{Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};
use zeroize::Zeroizing;

/// The account key that `cloister init` makes for the validator's member, hex.
pub const OPERATOR_KEY_FILE: &str = "operator_key.hex";

/// CometBFT's home for a configuration.
pub fn comet_home(home: &Path, config: &Config) -> CometHome {
    CometHome::new(config::resolve(home, &config.consensus.cometbft_home))
}

/// Held while a process uses the home; freed by the system when the process ends, however it ends.
#[derive(Debug)]
pub struct HomeLock {
    _file: fs::File,
}

impl HomeLock {
    /// Takes the lock, or tells who has it.
    pub fn take(home: &Path) -> Result<Self, Failure> {
        let path = home.join("lock");
        let mut file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(Failure::io(&path))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut owner = String::new();
            // Only for the message.
            let _ = file.read_to_string(&mut owner);
            return Err(Failure::config(
                format!("{} is in use by process {}", home.display(), owner.trim()),
                "stop that node first; two nodes on one home would sign against each other",
            ));
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(Failure::io(&path))?;
        Ok(Self { _file: file })
    }
}

/// Reads and checks `genesis.json`; gives its SHA-256 too.
pub fn read_genesis(home: &Path, config: &Config) -> Result<(Genesis, B256), Failure> {
    let path = config::resolve(home, &config.node.genesis_file);
    let bytes = fs::read(&path).map_err(Failure::io(&path))?;
    let genesis = Genesis::parse(&bytes).map_err(|error| Failure::genesis(&path, &error))?;
    Ok((genesis, B256::from(file_hash(&bytes))))
}

/// CometBFT's genesis must be the one that belongs to ours: else InitChain would fail in the middle of the start, or CometBFT
/// would run a network that no other node is in.
pub fn check_comet_genesis(
    comet: &CometHome,
    genesis: &Genesis,
    genesis_sha256: B256,
) -> Result<(), Failure> {
    let path = comet.genesis_file();
    let bytes = fs::read(&path).map_err(Failure::io(&path))?;
    let hint =
        "copy both genesis.json and cometbft/config/genesis.json from one home of the network";
    let file: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::config(format!("{}: {error}", path.display()), hint))?;
    let state = file
        .get("app_state")
        .map(ToString::to_string)
        .unwrap_or_default();
    let named = AppState::parse(state.as_bytes()).map_err(|error| {
        Failure::config(format!("{}: app_state: {error}", path.display()), hint)
    })?;
    if named.genesis_sha256 != genesis_sha256.0 {
        return Err(Failure::config(
            format!(
                "{} names a genesis with SHA-256 {}, ours has {}",
                path.display(),
                hex::encode(named.genesis_sha256),
                hex::encode(genesis_sha256)
            ),
            hint,
        ));
    }
    // Its hash in `app_state` has just been checked.
    let mut expected: serde_json::Value =
        serde_json::from_slice(&genesis.to_cometbft_json(&[])).expect("our own text is JSON");
    if let Some(fields) = expected.as_object_mut() {
        fields.remove("app_state");
    }
    match difference(&expected, Some(&file), "") {
        None => Ok(()),
        Some(difference) => Err(Failure::config(
            format!("{}: {difference}", path.display()),
            hint,
        )),
    }
}

/// The first value of `expected` that `found` lacks or has otherwise. What `found` has besides is CometBFT's business.
fn difference(
    expected: &serde_json::Value,
    found: Option<&serde_json::Value>,
    field: &str,
) -> Option<String> {
    use serde_json::Value;
    let parts: Vec<(String, &Value, Option<&Value>)> = match (expected, found) {
        (Value::Object(fields), Some(Value::Object(found))) => fields
            .iter()
            .map(|(name, value)| {
                let separator = if field.is_empty() { "" } else { "." };
                (format!("{field}{separator}{name}"), value, found.get(name))
            })
            .collect(),
        (Value::Array(items), Some(Value::Array(found))) if items.len() == found.len() => items
            .iter()
            .zip(found)
            .enumerate()
            .map(|(index, (item, found))| (format!("{field}[{index}]"), item, Some(found)))
            .collect(),
        (Value::Array(items), Some(Value::Array(found))) => {
            return Some(format!(
                "{field} has {} entries, genesis.json makes it {}",
                found.len(),
                items.len()
            ));
        }
        (expected, Some(found)) if expected == found => return None,
        (expected, found) => {
            let found = found.map_or_else(|| "missing".to_owned(), ToString::to_string);
            return Some(format!(
                "{field} is {found}, genesis.json makes it {expected}"
            ));
        }
    };
    parts
        .into_iter()
        .find_map(|(field, expected, found)| difference(expected, found, &field))
}

/// CometBFT cannot go on from an empty store of blocks under a chain that has some: it would end with a Go panic, for ever.
pub fn check_comet_data(
    comet: &CometHome,
    store_folder: &Path,
    height: u64,
) -> Result<(), Failure> {
    if height == 0 {
        return Ok(());
    }
    match comet.databases().into_iter().find(|path| !path.exists()) {
        None => Ok(()),
        Some(path) => Err(Failure::config(
            format!(
                "{} is missing, but the store {} holds block {height}: CometBFT's data was lost",
                path.display(),
                store_folder.display()
            ),
            format!(
                "restore CometBFT's data folder from a backup; or remove what is left of its databases and move {} away, to \
                 fetch all blocks from peers again. Keep priv_validator_state.json as it is: without it this validator could \
                 sign a block twice",
                store_folder.display()
            ),
        )),
    }
}

/// The keys of a new node.
#[derive(Debug)]
pub struct NewKeys {
    /// Identifies the node to its peers.
    pub node: KeyPair,
    /// Signs votes.
    pub validator: KeyPair,
    /// The account of the validator's member, if one was made for it.
    pub operator: Option<PrivateKeySigner>,
}

impl NewKeys {
    /// Makes the node's keys, and an account unless one is given.
    pub fn generate(with_operator: bool) -> Self {
        let mut rng = rand::rng();
        Self {
            node: KeyPair::generate(&mut rng),
            validator: KeyPair::generate(&mut rng),
            operator: with_operator.then(PrivateKeySigner::random),
        }
    }

    /// The made account.
    pub fn operator_address(&self) -> Option<Address> {
        self.operator.as_ref().map(PrivateKeySigner::address)
    }
}

/// Writes a new home: configuration, both genesis files, keys. Refuses to touch one that exists.
pub fn create(
    home: &Path,
    config: &Config,
    genesis_json: &[u8],
    comet_genesis_json: &[u8],
    keys: &NewKeys,
) -> Result<(), Failure> {
    refuse_existing(home)?;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(home)
        .map_err(Failure::io(home))?;
    let comet_genesis_json = std::str::from_utf8(comet_genesis_json)
        .expect("the genesis writer gives JSON, which is UTF-8");
    comet_home(home, config).create(&NewHome {
        node_key: &keys.node,
        validator_key: &keys.validator,
        genesis_json: comet_genesis_json,
    })?;
    if let Some(operator) = &keys.operator {
        let secret = Zeroizing::new(format!("{}\n", operator.to_bytes()));
        write_new(&home.join(OPERATOR_KEY_FILE), secret.as_bytes(), 0o600)?;
    }
    let genesis_file = config::resolve(home, &config.node.genesis_file);
    write_new(&genesis_file, genesis_json, 0o644)?;
    // Last: a home without it was not finished, and start says so.
    let text = config::document::render(config);
    write_new(&home.join(CONFIG_FILE), text.as_bytes(), 0o644)
}

/// A home must be empty of what we write: keys and history are never overwritten.
pub fn refuse_existing(home: &Path) -> Result<(), Failure> {
    for name in [CONFIG_FILE, "genesis.json", "cometbft", "store"] {
        let path: PathBuf = home.join(name);
        if path.exists() {
            return Err(Failure::config(
                format!("{} exists already", path.display()),
                "choose another --home, or move this one away; keys and history are never overwritten",
            ));
        }
    }
    Ok(())
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .map_err(Failure::io(path))
}

#[cfg(test)]
mod tests;
