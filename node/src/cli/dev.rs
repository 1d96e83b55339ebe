//! `cloister dev`: a development chain in one process. The embedded engine takes the place of CometBFT; everything
//! else is what `cloister start` runs.

use super::{CLOSE_PATIENCE, demo, print, until_told};
use crate::{
    chain::{Chain, ChainHandle, ChainOptions, Fatal},
    config::{self, Config},
    ending::{EXIT_CONSENSUS, EXIT_OTHER},
    engine::{
        Engine, EngineConfig,
        accounts::{DEV_MNEMONIC, dev_signer},
    },
    failure::Failure,
    home::{self, HomeLock},
    rpc::{self, ConsensusStatus, RpcConfig, RpcServer},
    store::{Durability, Store, StoreOptions, wait_until_closed},
};
use cloister_genesis::{DEV_ACCOUNTS, dev_genesis};
use std::{
    fmt::Write as _,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch, task::JoinError};
use tokio_util::sync::CancellationToken;

/// Folder of the engine in the home.
const ENGINE_FOLDER: &str = "engine";

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
pub async fn run(arguments: DevArguments) -> Result<(), Failure> {
    let until_told = until_told()?;
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
    node.run(demo, until_told).await
}

/// A locked home folder with a genesis in it. A temporary one goes at the end.
#[derive(Debug)]
struct Home {
    folder: PathBuf,
    config: Config,
    temporary: bool,
    _lock: HomeLock,
}

impl Home {
    fn open(given: Option<&Path>) -> Result<Self, Failure> {
        let folder = given.map_or_else(
            || std::env::temp_dir().join(format!("cloister-dev-{}", std::process::id())),
            Path::to_path_buf,
        );
        fs::create_dir_all(&folder).map_err(Failure::io(&folder))?;
        let home = Self {
            _lock: HomeLock::take(&folder)?,
            temporary: given.is_none(),
            config: Config::default(),
            folder,
        };
        home.write_missing_genesis()?;
        Ok(home)
    }

    /// Whole or not at all: a crash in between leaves no half genesis behind.
    fn write_missing_genesis(&self) -> Result<(), Failure> {
        let path = config::resolve(&self.folder, &self.config.node.genesis_file);
        if path.exists() {
            return Ok(());
        }
        let new = path.with_extension("new");
        fs::write(&new, dev_genesis().to_json())
            .and_then(|()| fs::rename(&new, &path))
            .map_err(Failure::io(&path))
    }
}

impl Home {
    /// The chain outlives a crash of the process; only a power cut may take its last second.
    fn store_options(&self) -> StoreOptions {
        StoreOptions {
            durability: Durability::Interval {
                blocks: 64,
                ms: 1_000,
            },
            ..self.config.store_options(&self.folder)
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.temporary {
            // RocksDB would go on writing into it.
            wait_until_closed(CLOSE_PATIENCE);
            // What cannot be removed is left to the system's cleaning of its temporary folder.
            let _ = fs::remove_dir_all(&self.folder);
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
    async fn start(home: &Home, arguments: &DevArguments) -> Result<Self, Failure> {
        let (genesis, genesis_sha256) = home::read_genesis(&home.folder, &home.config)?;
        let folder = config::resolve(&home.folder, &home.config.storage.folder);
        let store = Store::open(&folder, home.store_options())?;
        let options = ChainOptions::default();
        let chain = Chain::new(Arc::new(genesis), genesis_sha256, store, options);
        let handle = ChainHandle::start(chain.clone()).map_err(|error| {
            Failure::other(
                format!("the block thread: {error}"),
                "check the limits of this user (ulimit -a)",
            )
        })?;
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
            .map_err(|error| {
                let hint = "stop what listens there, or choose other ports with --http and --ws";
                Failure::config(error.to_string(), hint)
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
    ) -> Result<(), Failure> {
        let stop = CancellationToken::new();
        let mut engine = tokio::spawn(self.engine.run(stop.clone()));
        let demo_failed = async {
            match demo.await {
                Ok(()) => std::future::pending().await,
                Err(error) => error,
            }
        };
        let ended = tokio::select! {
            () = until_told => Ok(()),
            fault = self.handle.failed() => Err(Failure::from(fault)),
            error = demo_failed => Err(Failure {
                exit_code: EXIT_OTHER,
                message: format!("demonstration: {error}"),
                hint: None,
            }),
            // It ends by itself only for a fault of its own, such as a full disk.
            engine = &mut engine => return Err(engine_failure(engine)),
        };
        // The block under way is finished, then readers go, then the store closes.
        stop.cancel();
        let engine = engine.await;
        self.rpc.stop().await;
        self.chain.store().close()?;
        ended?;
        match engine {
            Ok(Ok(())) => Ok(()),
            engine => Err(engine_failure(engine)),
        }
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

fn engine_failure(ended: Result<Result<(), Fatal>, JoinError>) -> Failure {
    match ended {
        Ok(Err(fatal)) => fatal.into(),
        Ok(Ok(())) => Failure {
            exit_code: EXIT_CONSENSUS,
            message: "the engine stopped by itself".to_owned(),
            hint: None,
        },
        Err(error) => Failure {
            exit_code: EXIT_CONSENSUS,
            message: format!("the engine: {error}"),
            hint: None,
        },
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

#[cfg(test)]
mod tests;
