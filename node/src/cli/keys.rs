//! `cloister keys`

use super::print;
use crate::{
    comet::keys::KeyPair,
    config::Config,
    failure::Failure,
    home::{self, OPERATOR_KEY_FILE},
};
use alloy_signer_local::PrivateKeySigner;
use serde_json::json;
use std::{fs, path::PathBuf};
use zeroize::Zeroizing;

/// Show the node's identities. Secrets stay in their files.
#[derive(Debug, clap::Args)]
pub(super) struct KeysArguments {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, clap::Subcommand)]
enum KeysCommand {
    /// Show node id, validator address and public key, and the operator's account.
    Show {
        /// Folder of the node.
        #[arg(long, value_name = "DIR")]
        home: PathBuf,
        /// As one JSON object.
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(arguments: &KeysArguments) -> Result<(), Failure> {
    let KeysCommand::Show {
        home,
        json: as_json,
    } = &arguments.command;
    let config = Config::load(home, std::env::vars())?;
    let comet = home::comet_home(home, &config);
    let node_id = KeyPair::read_node_key(&comet.node_key_file())?.node_id();
    let validator = match config.consensus.remote_signer_address {
        Some(_) => None,
        None => Some(KeyPair::read_validator_key(&comet.validator_key_file())?),
    };
    let validator = validator.map(|key| {
        (
            hex::encode_upper(key.address()),
            hex::encode(key.public_key()),
        )
    });
    let operator = operator_address(home)?;
    if *as_json {
        let shown = json!({
            "nodeId": node_id,
            "validatorAddress": validator.as_ref().map(|(address, _)| address),
            "validatorPublicKey": validator.as_ref().map(|(_, key)| key),
            "operator": operator,
            "p2pAddress": config.consensus.p2p_address,
        });
        print(&format!("{shown}\n"));
        return Ok(());
    }
    let mut text = format!(
        "node id               {node_id}\nas a peer             {node_id}@{}\n",
        config
            .consensus
            .external_address
            .clone()
            .unwrap_or_else(|| peer_address(config.consensus.p2p_address))
    );
    match validator {
        Some((address, key)) => text.push_str(&format!(
            "validator address     {address}\nvalidator public key  {key}\n"
        )),
        None => text.push_str("validator key         held by a remote signer\n"),
    }
    if let Some(operator) = operator {
        text.push_str(&format!("operator account      {operator}\n"));
    }
    print(&text);
    Ok(())
}

/// What others dial: a node that listens everywhere does not know its own name.
fn peer_address(listen: std::net::SocketAddr) -> String {
    if listen.ip().is_unspecified() {
        format!("<this machine's address>:{}", listen.port())
    } else {
        listen.to_string()
    }
}

/// The account whose key `cloister init` made, if it made one.
fn operator_address(home: &std::path::Path) -> Result<Option<String>, Failure> {
    let path = home.join(OPERATOR_KEY_FILE);
    if !path.exists() {
        return Ok(None);
    }
    let secret = Zeroizing::new(fs::read_to_string(&path).map_err(Failure::io(&path))?);
    let signer: PrivateKeySigner = secret.trim().parse().map_err(|_| {
        Failure::config(
            format!("{}: not 32 bytes in hex", path.display()),
            "restore the file from a backup",
        )
    })?;
    Ok(Some(signer.address().to_string()))
}
