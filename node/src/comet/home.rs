//! CometBFT's home folder: its configuration written from ours, the places of its files.
//!
//! Settings we own and why: the peers' flush throttle is 10 ms (at the default 100 ms each hop of a vote waits that
//! long); the transaction index is off, since it is most of a node's disk and ours serves queries; responses of
//! FinalizeBlock are kept for the last block alone; the double-sign look-back is 0, since it also keeps honest
//! validators from restarting; invalid transactions leave the mempool's cache, so that one dropped can be sent again.

use super::{CometError, keys};
use crate::config::Config;
use cloister_app::transaction::TRANSACTION_SIZE_BYTES_MAX;
use std::{
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// Framing that protobuf may add to a transaction in a message.
const TRANSACTION_ENVELOPE_BYTES: usize = 1024;

/// Calls that one batch to CometBFT's RPC may hold, as the broadcaster sends them.
pub const RPC_BATCH_MAX: usize = 200;

/// Bytes that one request to CometBFT's RPC may have: some batches of the largest transactions, in base64.
pub const RPC_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The folder and the names in it.
#[derive(Debug, Clone)]
pub struct CometHome(PathBuf);

/// What a fresh home needs.
#[derive(Debug)]
pub struct NewHome<'a> {
    /// Identifies the node to its peers.
    pub node_key: &'a keys::KeyPair,
    /// Signs votes, if its public key is among the validators.
    pub validator_key: &'a keys::KeyPair,
    /// CometBFT's genesis, JSON.
    pub genesis_json: &'a str,
}

impl CometHome {
    /// Names a folder; does not touch the disk.
    pub const fn new(folder: PathBuf) -> Self {
        Self(folder)
    }
    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.0
    }
    /// `config/config.toml`
    pub fn config_file(&self) -> PathBuf {
        self.0.join("config/config.toml")
    }
    /// `config/genesis.json`
    pub fn genesis_file(&self) -> PathBuf {
        self.0.join("config/genesis.json")
    }
    /// `config/node_key.json`
    pub fn node_key_file(&self) -> PathBuf {
        self.0.join("config/node_key.json")
    }
    /// `config/priv_validator_key.json`
    pub fn validator_key_file(&self) -> PathBuf {
        self.0.join("config/priv_validator_key.json")
    }
    /// `data/priv_validator_state.json`
    pub fn validator_state_file(&self) -> PathBuf {
        self.0.join("data/priv_validator_state.json")
    }

    /// The databases without which CometBFT knows no block.
    pub fn databases(&self) -> [PathBuf; 2] {
        [
            self.0.join("data/blockstore.db"),
            self.0.join("data/state.db"),
        ]
    }

    /// Creates the folders, keys, empty signing state and genesis. Refuses to overwrite any of them.
    pub fn create(&self, new: &NewHome<'_>) -> Result<(), CometError> {
        for folder in ["config", "data"] {
            let folder = self.0.join(folder);
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&folder)
                .map_err(CometError::io(&folder))?;
        }
        new.node_key.write_node_key(&self.node_key_file())?;
        new.validator_key
            .write_validator_key(&self.validator_key_file())?;
        keys::write_new_secret(
            &self.validator_state_file(),
            "{\n  \"height\": \"0\",\n  \"round\": 0,\n  \"step\": 0\n}",
        )?;
        keys::write_new_secret(&self.genesis_file(), new.genesis_json)
    }

    /// Writes `config.toml`. `abci` is the application's address, `unix://…` or `tcp://…`.
    pub fn write_config(&self, config: &Config, abci: &str) -> Result<(), CometError> {
        let path = self.config_file();
        // By rename: a crash in mid-write leaves the old file, never half a one.
        let temporary = path.with_extension("toml.new");
        fs::write(&temporary, render_config(config, abci)).map_err(CometError::io(&temporary))?;
        fs::rename(&temporary, &path).map_err(CometError::io(&path))
    }

    /// Checks keys and their permissions, so that a mistake is told in our words and not in a Go panic.
    pub fn check_keys(&self, config: &Config) -> Result<(), CometError> {
        keys::KeyPair::read_node_key(&self.node_key_file())?;
        if config.consensus.remote_signer_address.is_none() {
            keys::KeyPair::read_validator_key(&self.validator_key_file())?;
            check_validator_state(&self.validator_state_file())?;
        }
        Ok(())
    }
}

/// A damaged signing state must stop the start: without it the validator could sign a height twice.
fn check_validator_state(path: &Path) -> Result<(), CometError> {
    let text = fs::read_to_string(path).map_err(CometError::secret(path))?;
    let refuse = |reason: &str| CometError::KeyFile {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let state: serde_json::Value = serde_json::from_str(&text).map_err(|_| refuse("not JSON"))?;
    let height = state.get("height").and_then(|height| height.as_str());
    if height
        .and_then(|height| height.parse::<i64>().ok())
        .is_none()
    {
        return Err(refuse("height is missing or not a number in quotes"));
    }
    for field in ["round", "step"] {
        if state
            .get(field)
            .and_then(serde_json::Value::as_i64)
            .is_none()
        {
            return Err(refuse(&format!("{field} is missing or not a number")));
        }
    }
    Ok(())
}

fn render_config(config: &Config, abci: &str) -> String {
    let consensus = &config.consensus;
    let text = |value: &str| toml::Value::String(value.to_owned()).to_string();
    let optional = |value: &Option<String>| text(value.as_deref().unwrap_or_default());
    let commit_ms = consensus.timeout_commit_ms;
    let propose_ms = consensus.timeout_propose_ms;
    let vote_ms = (propose_ms / 3).max(50);
    let delta_ms = (propose_ms / 6).max(50);
    format!(
        r#"# Written by cloister at each start from cloister.toml: change that file, not this one.
proxy_app = {abci}
moniker = {moniker}
db_backend = "goleveldb"
log_level = {log_level}
log_format = "json"
priv_validator_laddr = {remote_signer}
abci = "socket"

[rpc]
laddr = "tcp://{rpc_address}"
max_request_batch_size = {RPC_BATCH_MAX}
max_body_bytes = {RPC_BODY_BYTES_MAX}

[p2p]
laddr = "tcp://{p2p_address}"
external_address = {external_address}
persistent_peers = {persistent_peers}
seeds = {seeds}
pex = {pex}
addr_book_strict = {strict}
allow_duplicate_ip = {local}
flush_throttle_timeout = "10ms"

[mempool]
type = "flood"
recheck = true
size = {mempool_size}
cache_size = {cache_size}
keep-invalid-txs-in-cache = false
max_tx_bytes = {max_tx_bytes}

[consensus]
timeout_propose = "{propose_ms}ms"
timeout_propose_delta = "{delta_ms}ms"
timeout_prevote = "{vote_ms}ms"
timeout_prevote_delta = "{delta_ms}ms"
timeout_precommit = "{vote_ms}ms"
timeout_precommit_delta = "{delta_ms}ms"
timeout_commit = "{commit_ms}ms"
double_sign_check_height = 0

[storage]
discard_abci_responses = true

[tx_index]
indexer = "null"

[instrumentation]
prometheus = {prometheus}
prometheus_listen_addr = {prometheus_address}
"#,
        abci = text(abci),
        moniker = text(&config.node.name),
        log_level = text(&consensus.log_level),
        remote_signer = optional(&consensus.remote_signer_address),
        rpc_address = consensus.rpc_address,
        p2p_address = consensus.p2p_address,
        external_address = optional(&consensus.external_address),
        persistent_peers = text(&consensus.persistent_peers.join(",")),
        seeds = text(&consensus.seeds.join(",")),
        pex = consensus.peer_exchange,
        strict = !consensus.allow_local_peers,
        local = consensus.allow_local_peers,
        mempool_size = config.pool.gossiped_max,
        // The cache also remembers what left the mempool, so that an echo from a peer costs no call.
        cache_size = config.pool.gossiped_max.saturating_mul(2),
        max_tx_bytes = TRANSACTION_SIZE_BYTES_MAX + TRANSACTION_ENVELOPE_BYTES,
        prometheus = consensus.prometheus_address.is_some(),
        prometheus_address = text(
            &consensus
                .prometheus_address
                .map(|address| address.to_string())
                .unwrap_or_default()
        ),
    )
}

#[cfg(test)]
mod tests;
