//! `cloister init`

use super::{parse_duration_ms, print};
use crate::{
    config::Config,
    failure::Failure,
    home::{self, NewKeys, OPERATOR_KEY_FILE},
};
use alloy_primitives::Address;
use cloister_genesis::{
    DEV_BALANCE_WEI, Genesis, GenesisBuilder, GenesisValidator, VALIDATOR_POWER_DEFAULT,
    dev_genesis,
};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// Make a home folder: configuration, keys, and the genesis of a new network with this node as its validator.
///
/// With --genesis the node joins an existing network instead. Nothing that exists is overwritten.
#[derive(Debug, clap::Args)]
pub(super) struct InitArguments {
    /// Folder to make.
    #[arg(long, value_name = "DIR")]
    home: PathBuf,
    /// EVM chain id of the new network (EIP-155).
    #[arg(
        long,
        value_name = "N",
        required_unless_present = "genesis",
        conflicts_with = "genesis"
    )]
    chain_id: Option<u64>,
    /// Accounts of block 0: an Ethereum genesis file, or its alloc alone. Left out: the operator's account gets 10,000 coins.
    #[arg(long, value_name = "FILE", conflicts_with = "genesis")]
    alloc: Option<PathBuf>,
    /// Name of the network, CometBFT's chain id [default: cloister-<chain id>].
    #[arg(long, value_name = "NAME", conflicts_with = "genesis")]
    network: Option<String>,
    /// Account that votes for this validator [default: a new one, its key in operator_key.hex].
    #[arg(long, value_name = "ADDRESS", conflicts_with = "genesis")]
    member: Option<Address>,
    /// Account that receives the fees of this validator's blocks [default: the member].
    #[arg(long, value_name = "ADDRESS", conflicts_with = "genesis")]
    payout: Option<Address>,
    /// Register the development verifying keys: anyone can forge proofs for them.
    #[arg(long, conflicts_with = "genesis")]
    development: bool,
    /// genesis.json of an existing network to join.
    #[arg(long, value_name = "FILE")]
    genesis: Option<PathBuf>,
    /// Peers to connect to, as nodeid@host:port, separated by commas.
    #[arg(long, value_name = "PEERS", value_delimiter = ',')]
    persistent_peers: Vec<String>,
    /// Name of this node among its peers.
    #[arg(long, value_name = "NAME", default_value = "cloister")]
    moniker: String,
    /// Time between a block's commit and the next proposal, e.g. 200ms or 1s. The same on all validators.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration_ms)]
    timeout_commit: u64,
}

pub(super) fn run(arguments: &InitArguments) -> Result<(), Failure> {
    home::refuse_existing(&arguments.home)?;
    let mut config = Config::default();
    config.node.name.clone_from(&arguments.moniker);
    config.consensus.timeout_commit_ms = arguments.timeout_commit;
    config
        .consensus
        .persistent_peers
        .clone_from(&arguments.persistent_peers);
    // The rules of the file apply to what comes from the command line too.
    Config::parse(&crate::config::document::render(&config), [])?;

    let keys = NewKeys::generate(arguments.genesis.is_none() && arguments.member.is_none());
    let (genesis, genesis_json) = match &arguments.genesis {
        Some(path) => {
            let bytes = fs::read(path).map_err(Failure::io(path))?;
            let genesis = Genesis::parse(&bytes).map_err(|error| Failure::genesis(path, &error))?;
            (genesis, bytes)
        }
        None => {
            let genesis = new_network(arguments, &keys)?;
            let json = genesis.to_json();
            (genesis, json)
        }
    };
    let comet_json = genesis.to_cometbft_json(&genesis_json);
    home::create(&arguments.home, &config, &genesis_json, &comet_json, &keys)?;
    print(&summary(arguments, &genesis, &keys));
    Ok(())
}

fn new_network(arguments: &InitArguments, keys: &NewKeys) -> Result<Genesis, Failure> {
    let chain_id = arguments.chain_id.unwrap_or_default();
    let member = arguments
        .member
        .or_else(|| keys.operator_address())
        .expect("an account is made unless one is given");
    let mut builder =
        GenesisBuilder::new(chain_id)
            .timestamp(now())
            .validators([GenesisValidator {
                member,
                public_key: keys.validator.public_key(),
                power: VALIDATOR_POWER_DEFAULT,
                payout: arguments.payout.unwrap_or(member),
                name: arguments.moniker.clone(),
            }]);
    if let Some(network) = &arguments.network {
        builder = builder.network(network.clone());
    }
    if arguments.development {
        builder = builder
            .development(true)
            .verifying_keys(dev_genesis().verifying_keys);
    }
    builder = match &arguments.alloc {
        Some(path) => with_alloc(builder, path)?,
        None => builder.fund(member, DEV_BALANCE_WEI),
    };
    builder.build().map_err(|error| {
        Failure::genesis(
            arguments
                .alloc
                .as_deref()
                .unwrap_or_else(|| Path::new("genesis")),
            &error,
        )
    })
}

/// Adds the accounts of a file.
pub(super) fn with_alloc(builder: GenesisBuilder, path: &Path) -> Result<GenesisBuilder, Failure> {
    let bytes = fs::read(path).map_err(Failure::io(path))?;
    Ok(builder.alloc_ethereum(&bytes))
}

/// Seconds since the epoch.
pub(super) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

fn summary(arguments: &InitArguments, genesis: &Genesis, keys: &NewKeys) -> String {
    let home = arguments.home.display();
    let mut text = format!(
        "network            {} (EVM chain id {})\nhome               {home}\nnode id            {}\n",
        genesis.network,
        genesis.parameters.chain_id,
        keys.node.node_id(),
    );
    if arguments.genesis.is_none() {
        text.push_str(&format!(
            "validator address  {}\n",
            hex::encode_upper(keys.validator.address())
        ));
    }
    if let Some(operator) = keys.operator_address() {
        text.push_str(&format!(
            "operator account   {operator} (key in {OPERATOR_KEY_FILE}: keep it)\n"
        ));
    }
    text.push_str(&format!(
        "\nEvery setting is explained in {home}/cloister.toml.\nStart it with: cloister start --home {home}\n"
    ));
    text
}
