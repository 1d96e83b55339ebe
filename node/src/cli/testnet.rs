//! `cloister testnet`

mod ports;
mod run;

use super::{init::now, init::with_alloc, parse_duration_ms, print};
use crate::{
    comet::pid_file::PidFile,
    config::Config,
    failure::Failure,
    home::{self, NewKeys},
};
use cloister_genesis::{
    DEV_ACCOUNTS, DEV_BALANCE_WEI, DEV_CHAIN_ID, Genesis, GenesisBuilder, GenesisValidator,
    VALIDATOR_POWER_DEFAULT, dev_genesis,
};
use ports::NodePorts;
use serde::{Deserialize, Serialize};
use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

/// Where the nodes and their ports are listed, in the network's folder.
const NETWORK_FILE: &str = "testnet.json";
/// Names the process of `--start`.
const SUPERVISOR_FILE: &str = "supervisor.pid";

/// Make, and run, a network of validators on this machine.
///
/// Each node gets a home of its own below --home and free loopback ports, all listed in testnet.json there. With --start the
/// nodes run under this process until Ctrl-C, or until `cloister testnet stop --home DIR` elsewhere; a network made before is
/// started again.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct TestnetArguments {
    #[command(subcommand)]
    command: Option<TestnetCommand>,
    /// Number of validators.
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    validators: usize,
    /// Number of further nodes that do not vote.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    full_nodes: usize,
    /// Folder of the network.
    #[arg(long, value_name = "DIR", required = true)]
    home: Option<PathBuf>,
    /// EVM chain id.
    #[arg(long, value_name = "N", default_value_t = DEV_CHAIN_ID)]
    chain_id: u64,
    /// Accounts of block 0: an Ethereum genesis file, or its alloc alone. Left out: the ten accounts of the well-known test
    /// mnemonic, 10,000 coins each.
    #[arg(long, value_name = "FILE")]
    alloc: Option<PathBuf>,
    /// Time between a block's commit and the next proposal, e.g. 200ms or 1s.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration_ms)]
    timeout_commit: u64,
    /// First of the ports, ten to a node: HTTP, WebSocket, CometBFT's RPC, peers. Left out: free ones.
    #[arg(long, value_name = "PORT")]
    base_port: Option<u16>,
    /// Run the network after making it.
    #[arg(long)]
    start: bool,
}

#[derive(Debug, clap::Subcommand)]
enum TestnetCommand {
    /// Stop a network that runs with --start.
    Stop {
        /// Folder of the network.
        #[arg(long, value_name = "DIR")]
        home: PathBuf,
    },
}

/// The file that lists the network's nodes.
#[derive(Debug, Serialize, Deserialize)]
struct Network {
    network: String,
    chain_id: u64,
    nodes: Vec<NetworkNode>,
}

/// One node of the list.
#[derive(Debug, Serialize, Deserialize)]
struct NetworkNode {
    name: String,
    validator: bool,
    home: PathBuf,
    node_id: String,
    validator_address: String,
    http: SocketAddr,
    ws: SocketAddr,
    cometbft_rpc: SocketAddr,
    p2p: SocketAddr,
}

pub(super) fn run(arguments: &TestnetArguments) -> Result<(), Failure> {
    if let Some(TestnetCommand::Stop { home }) = &arguments.command {
        return stop(home);
    }
    let home = arguments.home.as_ref().expect("clap asks for it");
    let path = home.join(NETWORK_FILE);
    let network = if path.exists() && arguments.start {
        read_network(&path)?
    } else {
        let network = make(arguments, home)?;
        let text = serde_json::to_string_pretty(&network).expect("plain fields");
        fs::write(&path, text + "\n").map_err(Failure::io(&path))?;
        network
    };
    print(&table(&network, &path));
    if arguments.start {
        let supervisor = PidFile::new(home.join(SUPERVISOR_FILE));
        return run::run(&network, &supervisor);
    }
    Ok(())
}

fn read_network(path: &Path) -> Result<Network, Failure> {
    let bytes = fs::read(path).map_err(Failure::io(path))?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Failure::config(
            format!("{}: {error}", path.display()),
            "remove the folder to make a new network",
        )
    })
}

struct NewNode {
    name: String,
    validator: bool,
    home: PathBuf,
    keys: NewKeys,
    ports: NodePorts,
}

fn make(arguments: &TestnetArguments, home: &Path) -> Result<Network, Failure> {
    if arguments.validators == 0 {
        return Err(Failure::config(
            "a network needs a validator",
            "give --validators 1 or more",
        ));
    }
    fs::create_dir_all(home).map_err(Failure::io(home))?;
    let home = fs::canonicalize(home).map_err(Failure::io(home))?;
    let count = arguments.validators + arguments.full_nodes;
    let ports = ports::assign(count, arguments.base_port)?;
    let nodes: Vec<NewNode> = ports
        .into_iter()
        .enumerate()
        .map(|(index, ports)| {
            let validator = index < arguments.validators;
            let name = if validator {
                format!("validator{index}")
            } else {
                format!("full{}", index - arguments.validators)
            };
            NewNode {
                home: home.join(&name),
                keys: NewKeys::generate(validator),
                name,
                validator,
                ports,
            }
        })
        .collect();
    for node in &nodes {
        home::refuse_existing(&node.home)?;
    }
    let genesis = genesis(arguments, &nodes)?;
    let genesis_json = genesis.to_json();
    let comet_json = genesis.to_cometbft_json(&genesis_json);
    for node in &nodes {
        let config = config(arguments, node, &nodes);
        home::create(&node.home, &config, &genesis_json, &comet_json, &node.keys)?;
    }
    Ok(Network {
        network: genesis.network,
        chain_id: genesis.parameters.chain_id,
        nodes: nodes.iter().map(listed).collect(),
    })
}

fn genesis(arguments: &TestnetArguments, nodes: &[NewNode]) -> Result<Genesis, Failure> {
    let validators = nodes
        .iter()
        .filter(|node| node.validator)
        .enumerate()
        .map(|(index, node)| {
            let operator = node
                .keys
                .operator_address()
                .expect("validators are made with one");
            GenesisValidator {
                // Accounts whose keys every client has, so that the registry can be tried out.
                member: DEV_ACCOUNTS.get(index).copied().unwrap_or(operator),
                public_key: node.keys.validator.public_key(),
                power: VALIDATOR_POWER_DEFAULT,
                payout: operator,
                name: node.name.clone(),
            }
        });
    let builder = GenesisBuilder::new(arguments.chain_id)
        .timestamp(now())
        .development(true)
        .verifying_keys(dev_genesis().verifying_keys)
        .validators(validators);
    let builder = match &arguments.alloc {
        Some(path) => with_alloc(builder, path)?,
        None => DEV_ACCOUNTS.into_iter().fold(builder, |builder, account| {
            builder.fund(account, DEV_BALANCE_WEI)
        }),
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

const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

fn config(arguments: &TestnetArguments, node: &NewNode, nodes: &[NewNode]) -> Config {
    let mut config = Config::default();
    config.node.name.clone_from(&node.name);
    config.consensus.timeout_commit_ms = arguments.timeout_commit;
    config.consensus.rpc_address = loopback(node.ports.cometbft_rpc);
    config.consensus.p2p_address = loopback(node.ports.p2p);
    config.consensus.allow_local_peers = true;
    config.consensus.persistent_peers = nodes
        .iter()
        .filter(|peer| peer.name != node.name)
        .map(|peer| format!("{}@{}", peer.keys.node.node_id(), loopback(peer.ports.p2p)))
        .collect();
    config.rpc.http_address = Some(loopback(node.ports.http));
    config.rpc.ws_address = Some(loopback(node.ports.ws));
    config
}

fn listed(node: &NewNode) -> NetworkNode {
    NetworkNode {
        name: node.name.clone(),
        validator: node.validator,
        home: node.home.clone(),
        node_id: node.keys.node.node_id(),
        validator_address: hex::encode_upper(node.keys.validator.address()),
        http: loopback(node.ports.http),
        ws: loopback(node.ports.ws),
        cometbft_rpc: loopback(node.ports.cometbft_rpc),
        p2p: loopback(node.ports.p2p),
    }
}

fn table(network: &Network, path: &Path) -> String {
    let mut text = format!(
        "network {} (EVM chain id {}), listed in {}\n{:<12}{:<24}{:<24}{:<24}{}\n",
        network.network,
        network.chain_id,
        path.display(),
        "node",
        "http",
        "ws",
        "cometbft rpc",
        "peers",
    );
    for node in &network.nodes {
        text.push_str(&format!(
            "{:<12}{:<24}{:<24}{:<24}{}\n",
            node.name,
            format!("http://{}", node.http),
            format!("ws://{}", node.ws),
            format!("http://{}", node.cometbft_rpc),
            node.p2p,
        ));
    }
    text
}

fn stop(home: &Path) -> Result<(), Failure> {
    let supervisor = PidFile::new(home.join(SUPERVISOR_FILE));
    let Some(process) = supervisor.running() else {
        print("the network is not running\n");
        return Ok(());
    };
    process.signal(rustix::process::Signal::TERM);
    if process.wait_ended(std::time::Duration::from_secs(30)) {
        print("stopped\n");
        return Ok(());
    }
    Err(Failure::other(
        format!("process {} does not stop within 30 s", process.pid),
        format!("look at the logs below {}", home.display()),
    ))
}
