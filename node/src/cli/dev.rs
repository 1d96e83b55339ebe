//! `cloister dev`: a development chain in one process. The embedded engine takes the place of CometBFT; everything
//! else is what `cloister start` runs.

use super::demo;
use crate::{
    chain::{Chain, ChainHandle, ChainOptions, Fatal},
    engine::{
        Engine, EngineConfig,
        accounts::{DEV_MNEMONIC, dev_signer},
    },
    rpc::{self, ConsensusStatus, RpcConfig, RpcServer},
    store::{Durability, Store, StoreOptions},
};
use alloy_primitives::B256;
use cloister_genesis::{DEV_ACCOUNTS, Genesis, dev_genesis, file_hash};
use std::{
    fmt::Write as _,
    io::{ErrorKind, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tokio_util::sync::CancellationToken;

/// Where genesis is written in the home.
const GENESIS_FILE: &str = "genesis.json";
/// Folder of the database in the home.
const STORE_FOLDER: &str = "store";
/// Folder of the engine in the home.
const ENGINE_FOLDER: &str = "engine";
/// A wrong setting or file: `EX_CONFIG` of sysexits.h.
const EXIT_CONFIGURATION: u8 = 78;

/// Run a development chain: one process, funded accounts, no CometBFT.
#[derive(Debug, Clone, clap::Args)]
pub struct DevArguments {
    /// Folder of the chain's data, made if missing; a later start goes on from it. Left out: a temporary one,
    /// removed at the end.
    #[arg(long, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Address of JSON-RPC over HTTP.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8545")]
    pub http: SocketAddr,
    /// Address of JSON-RPC over WebSocket; the same as --http serves both on one port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8546")]
    pub ws: SocketAddr,
    /// Time from block to block, e.g. 1s or 200ms; 0 makes a block as soon as there is a transaction.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_block_time)]
    pub block_time: Duration,
    /// After the start send a transfer, deploy a contract and verify a Groth16 proof, and show the receipts.
    #[arg(long)]
    pub demo: bool,
}

/// Runs until SIGINT or SIGTERM, or until a fault.
pub async fn run(arguments: DevArguments) -> Result<(), Fatal> {
    // Before anything is written, so that a signal at any time stops cleanly.
    let mut interrupted = signal(SignalKind::interrupt()).map_err(|error| fault("signals", &error))?;
    let mut terminated = signal(SignalKind::terminate()).map_err(|error| fault("signals", &error))?;
    let home = Home::open(arguments.home.as_deref())?;
    let node = DevNode::start(&home, &arguments).await?;
    print(&node.banner(&home, &arguments));
    let http_address = node.http_address;
    let demo = async move {
        if arguments.demo {
            demo::run(http_address).await
        } else {
            Ok(())
        }
    };
    let until_told = async {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
    };
    node.run(demo, until_told).await
}

/// A home folder; a temporary one goes with it.
#[derive(Debug)]
struct Home {
    folder: PathBuf,
    temporary: bool,
}

impl Home {
    fn open(given: Option<&Path>) -> Result<Self, Fatal> {
        let folder = given.map_or_else(
            || std::env::temp_dir().join(format!("cloister-dev-{}", std::process::id())),
            Path::to_path_buf,
        );
        std::fs::create_dir_all(&folder)
            .map_err(|error| fault(&folder.display().to_string(), &error))?;
        Ok(Self {
            folder,
            temporary: given.is_none(),
        })
    }

    /// The genesis in the home, written there at the first start, and the hash of its file.
    fn genesis(&self) -> Result<(Genesis, B256), Fatal> {
        let path = self.folder.join(GENESIS_FILE);
        let json = match std::fs::read(&path) {
            Ok(json) => json,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let json = dev_genesis().to_json();
                let temporary = path.with_extension("new");
                std::fs::write(&temporary, &json)
                    .and_then(|()| std::fs::rename(&temporary, &path))
                    .map_err(|error| fault(&path.display().to_string(), &error))?;
                json
            }
            Err(error) => return Err(fault(&path.display().to_string(), &error)),
        };
        let genesis = Genesis::parse(&json).map_err(|error| Fatal {
            exit_code: EXIT_CONFIGURATION,
            report: format!("{}: {error}\nhint: {}", path.display(), error.hint()),
        })?;
        Ok((genesis, B256::from(file_hash(&json))))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.temporary {
            // What cannot be removed is left to the system's cleaning of its temporary folder.
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// A running development node.
struct DevNode {
    chain: Chain,
    handle: ChainHandle,
    engine: Engine,
    rpc: RpcServer,
    http_address: SocketAddr,
    ws_address: SocketAddr,
    /// There is no network to report on; the server listens as long as this lives.
    _consensus: watch::Sender<ConsensusStatus>,
}

impl DevNode {
    async fn start(home: &Home, arguments: &DevArguments) -> Result<Self, Fatal> {
        let (genesis, genesis_sha256) = home.genesis()?;
        let store = Store::open(&home.folder.join(STORE_FOLDER), store_options())?;
        let chain = Chain::new(
            Arc::new(genesis),
            genesis_sha256,
            store,
            ChainOptions::default(),
        );
        let handle =
            ChainHandle::start(chain.clone()).map_err(|error| fault("the block thread", &error))?;
        let engine = Engine::start(
            chain.clone(),
            handle.clone(),
            EngineConfig {
                folder: home.folder.join(ENGINE_FOLDER),
                block_time: arguments.block_time,
            },
        )
        .await?;
        let (consensus, status) = watch::channel(ConsensusStatus::default());
        let rpc = rpc::serve(chain.clone(), rpc_config(arguments), status)
            .await
            .map_err(|error| Fatal {
                exit_code: EXIT_CONFIGURATION,
                report: format!(
                    "{error}\nhint: stop what listens there, or choose other ports with --http and --ws"
                ),
            })?;
        Ok(Self {
            http_address: rpc.addresses.http.unwrap_or(arguments.http),
            ws_address: rpc.addresses.ws.unwrap_or(arguments.ws),
            chain,
            handle,
            engine,
            rpc,
            _consensus: consensus,
        })
    }

    /// Makes blocks until `until_told`; a failed demonstration is a failure of the command.
    async fn run(
        self,
        demo: impl Future<Output = Result<(), demo::DemoError>>,
        until_told: impl Future<Output = ()>,
    ) -> Result<(), Fatal> {
        let stop = CancellationToken::new();
        let engine = tokio::spawn(self.engine.run(stop.clone()));
        let demo_and_on = async {
            match demo.await {
                Ok(()) => std::future::pending().await,
                Err(error) => Fatal {
                    exit_code: 1,
                    report: format!("demonstration: {error}"),
                },
            }
        };
        let ended = tokio::select! {
            () = until_told => Ok(()),
            fault = self.handle.failed() => Err(fault),
            fault = demo_and_on => Err(fault),
        };
        // The block under way is finished, then readers go, then the store closes.
        stop.cancel();
        let engine = engine.await.map_err(|error| fault("the engine", &error))?;
        self.rpc.stop().await;
        self.chain.store().close()?;
        ended.and(engine)
    }

    fn banner(&self, home: &Home, arguments: &DevArguments) -> String {
        let mut text = String::from(
            "cloister development chain\n\n\
             Accounts (10,000 coins each at genesis) and their private keys\n",
        );
        for (index, account) in (0u32..).zip(DEV_ACCOUNTS) {
            let secret = dev_signer(index).to_bytes();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  ({index}) {account}  {secret}");
        }
        let parameters = self.chain.app().parameters();
        let pace = if arguments.block_time.is_zero() {
            "a block for each transaction".to_owned()
        } else {
            format!("a block every {:?}", arguments.block_time)
        };
        let _ = write!(
            text,
            "\nMnemonic    {DEV_MNEMONIC}\n\
             WARNING     development only: everyone knows these keys. Never send them coins of another network.\n\n\
             Chain id    {}\n\
             HTTP        http://{}\n\
             WebSocket   ws://{}\n\
             Pace        {pace}\n\
             Gas limit   {}\n\
             Base fee    {} wei at block 1, floor {}\n\
             Home        {}{}\n\n",
            parameters.chain_id,
            self.http_address,
            self.ws_address,
            parameters.gas_limit,
            parameters.base_fee.initial_wei,
            parameters.base_fee.floor_wei,
            home.folder.display(),
            if home.temporary { " (temporary)" } else { "" },
        );
        text
    }
}

/// A development chain outlives a crash of the process; only a power cut may take its last second.
fn store_options() -> StoreOptions {
    StoreOptions {
        durability: Durability::Interval {
            blocks: 64,
            ms: 1_000,
        },
        wal_folder: None,
        block_cache_bytes: 64 * 1024 * 1024,
        history_blocks: 100_000,
        proof_window_blocks: 256,
    }
}

fn rpc_config(arguments: &DevArguments) -> RpcConfig {
    RpcConfig {
        http: Some(arguments.http),
        ws: Some(arguments.ws),
        // Pages under development are served from anywhere; there is nothing to steal here.
        cors_origins: vec!["*".to_owned()],
        accounts: DEV_ACCOUNTS.to_vec(),
        ..RpcConfig::default()
    }
}

/// `1s`, `200ms`, `1.5s`, `2m`, or a plain number of seconds.
fn parse_block_time(text: &str) -> Result<Duration, String> {
    let end_of_number = text
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end_of_number);
    let seconds_per_unit = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        _ => return Err(format!("unknown unit {unit}; write 200ms, 1s or 2m")),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| "not a time; write 200ms, 1s or 2m".to_owned())?;
    let seconds = number * seconds_per_unit;
    if seconds > 3_600.0 {
        return Err("at most one hour".to_owned());
    }
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

pub(super) fn print(text: &str) {
    // Whoever closed our output does not stop the chain.
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(text.as_bytes());
    let _ = output.flush();
}

fn fault(what: &str, error: &dyn std::error::Error) -> Fatal {
    Fatal {
        exit_code: 74,
        report: format!("{what}: {error}"),
    }
}

#[cfg(test)]
mod tests;
