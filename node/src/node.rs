//! A node with CometBFT, put together: store, chain, ABCI, CometBFT, broadcaster, JSON-RPC; and taken apart in order.

use crate::{
    abci::{AbciServer, socket::AbciAddress},
    broadcast::{Broadcaster, Carried},
    chain::{Chain, ChainHandle, Fatal},
    comet::{
        CometError, binary::CometBinary, child::Supervisor, home::CometHome, pid_file,
        rpc::CometRpc,
    },
    config::{Config, ConsensusMode, resolve},
    ending::Ending,
    failure::Failure,
    home::{self, HomeLock},
    rpc::{self, ConsensusStatus, RpcServer},
    store::Store,
};
use alloy_primitives::B256;
use cloister_genesis::Genesis;
use std::{
    future::Future,
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// Time between two looks at CometBFT's status.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the node of a home until `until_told`, or until a fault ends it.
pub async fn run(
    home: &Path,
    config: &Config,
    ending: &Ending,
    until_told: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let _lock = HomeLock::take(home)?;
    let node = Node::start(home, config, ending).await?;
    tokio::select! {
        () = until_told => tracing::info!("stopping"),
        fatal = ending.wait() => {
            // The process is about to exit; the child is told, and ends by itself at the latest when its connections break.
            node.stop.cancel();
            tokio::time::sleep(Duration::from_millis(50)).await;
            return Err(fatal.into());
        }
    }
    node.shut_down().await
}

/// A running node.
struct Node {
    chain: Chain,
    rpc: RpcServer,
    stop: CancellationToken,
    /// Ends when CometBFT has ended.
    supervisor: Option<tokio::task::JoinHandle<()>>,
    abci: AbciServer,
    /// Ended by drop.
    _tasks: JoinSet<()>,
}

impl Node {
    async fn start(home: &Path, config: &Config, ending: &Ending) -> Result<Self, Failure> {
        let (genesis, genesis_sha256) = home::read_genesis(home, config)?;
        let comet_home = home::comet_home(home, config);
        let binary = match config.consensus.mode {
            ConsensusMode::Managed => Some(prepare_managed(
                config,
                &comet_home,
                &genesis,
                genesis_sha256,
            )?),
            ConsensusMode::External => None,
        };
        let store_folder = resolve(home, &config.storage.folder);
        let store = Store::open(&store_folder, config.store_options(home))?;
        let chain = Chain::new(
            Arc::new(genesis),
            genesis_sha256,
            store,
            config.chain_options(),
        );
        let handle = ChainHandle::start(chain.clone()).map_err(|error| Fatal {
            exit_code: crate::ending::EXIT_CONSENSUS,
            report: format!("no thread for blocks: {error}"),
        })?;
        if let Some(head) = chain.store().head() {
            tracing::info!(height = head.height, hash = %head.hash, "store opened");
            if binary.is_some() {
                home::check_comet_data(&comet_home, &store_folder, head.height)?;
            }
        }

        let mut tasks = JoinSet::new();
        let carried = Carried::default();
        let abci = start_abci(home, config, &chain, &handle, &carried, ending).await?;
        tracing::info!(address = %abci.address, "waiting for CometBFT");
        watch_block_thread(&mut tasks, handle, ending.clone());

        let comet_rpc = CometRpc::new(config.consensus.rpc_address);
        let (status_sender, status) = watch::channel(ConsensusStatus::default());
        let rpc = rpc::serve(chain.clone(), config.rpc_options(), status.clone()).await?;
        tracing::info!(http = ?rpc.addresses.http, ws = ?rpc.addresses.ws, "JSON-RPC listens");

        let stop = CancellationToken::new();
        let (supervisor, starts) = match binary {
            Some(binary) => {
                comet_home.write_config(config, &abci.address.to_string())?;
                let supervisor =
                    start_supervisor(binary, comet_home, chain.clone(), config, &stop, ending)
                        .await?;
                (Some(supervisor.0), supervisor.1)
            }
            // Nobody counts the starts of a CometBFT run elsewhere: losing sight of it counts as one.
            None => (None, watch_starts(&mut tasks, status.clone())),
        };
        tasks.spawn(follow_status(comet_rpc.clone(), status_sender));
        tasks.spawn(Broadcaster::new(chain.clone(), comet_rpc, carried, starts, status).run());
        Ok(Self {
            chain,
            rpc,
            stop,
            supervisor,
            abci,
            _tasks: tasks,
        })
    }

    /// CometBFT first, so that it ends between two blocks; then readers; the store last.
    async fn shut_down(self) -> Result<(), Failure> {
        self.stop.cancel();
        if let Some(supervisor) = self.supervisor {
            // A panic of the task has been recorded by the panic hook.
            let _ = supervisor.await;
        }
        drop(self.abci);
        self.rpc.stop().await;
        self.chain.store().close()?;
        tracing::info!("stopped");
        Ok(())
    }
}

/// Everything that can be refused before anything is started.
fn prepare_managed(
    config: &Config,
    comet_home: &CometHome,
    genesis: &Genesis,
    genesis_sha256: B256,
) -> Result<CometBinary, Failure> {
    let binary = CometBinary::find(config.consensus.cometbft_binary.as_deref())?;
    comet_home.check_keys(config)?;
    home::check_comet_genesis(comet_home, genesis, genesis_sha256)?;
    Ok(binary)
}

async fn start_abci(
    home: &Path,
    config: &Config,
    chain: &Chain,
    handle: &ChainHandle,
    carried: &Carried,
    ending: &Ending,
) -> Result<AbciServer, Failure> {
    let consensus = &config.consensus;
    let tcp = consensus.abci_address.strip_prefix("tcp://");
    let address = match tcp.and_then(|address| address.parse::<SocketAddr>().ok()) {
        Some(address) => {
            tracing::warn!(%address, "every user of this machine can connect to the application and feed it blocks");
            AbciAddress::Tcp(address)
        }
        None => AbciAddress::unix_for_home(home, consensus.abci_group.as_deref())?,
    };
    Ok(AbciServer::start(address, chain, handle, carried, ending).await?)
}

async fn start_supervisor(
    binary: CometBinary,
    comet_home: CometHome,
    chain: Chain,
    config: &Config,
    stop: &CancellationToken,
    ending: &Ending,
) -> Result<(tokio::task::JoinHandle<()>, watch::Receiver<u64>), Failure> {
    let pid_file = pid_file::beside(comet_home.folder());
    // Waits for a child of an earlier run: not on a thread of the runtime.
    let supervisor =
        tokio::task::spawn_blocking(move || Supervisor::new(binary, comet_home, pid_file, chain))
            .await
            .map_err(|panic| {
                Failure::other(panic.to_string(), "this is a bug: please report it")
            })??;
    for (key, address) in [
        ("consensus.rpc_address", config.consensus.rpc_address),
        ("consensus.p2p_address", config.consensus.p2p_address),
    ] {
        // CometBFT would end with a Go panic instead.
        TcpListener::bind(address).map_err(|error| CometError::Address {
            key,
            address,
            reason: error.to_string(),
        })?;
    }
    let starts = supervisor.starts();
    let (stop, ending) = (stop.clone(), ending.clone());
    let task = tokio::spawn(async move {
        if let Err(fatal) = supervisor.run(stop).await {
            ending.record(fatal);
        }
    });
    Ok((task, starts))
}

/// A fault on the block thread ends the process even if nobody waits for the call's answer.
fn watch_block_thread(tasks: &mut JoinSet<()>, handle: ChainHandle, ending: Ending) {
    tasks.spawn(async move {
        let fatal = handle.failed().await;
        ending.record(fatal);
    });
}

/// Counts how often CometBFT came into sight.
fn watch_starts(
    tasks: &mut JoinSet<()>,
    mut status: watch::Receiver<ConsensusStatus>,
) -> watch::Receiver<u64> {
    let (sender, receiver) = watch::channel(0);
    tasks.spawn(async move {
        let mut seen = false;
        while status.changed().await.is_ok() {
            let sees = status.borrow().highest_height > 0;
            if sees && !seen {
                sender.send_modify(|starts| *starts += 1);
            }
            seen = sees;
        }
    });
    receiver
}

/// Asks CometBFT about peers and progress, for JSON-RPC and the broadcaster. No answer reads as no peers.
async fn follow_status(comet: CometRpc, sender: watch::Sender<ConsensusStatus>) {
    let mut pace = tokio::time::interval(STATUS_INTERVAL);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        let now = match (comet.status().await, comet.peer_count().await) {
            (Ok(status), Ok(peers)) => ConsensusStatus {
                peers: u32::try_from(peers).unwrap_or(u32::MAX),
                catching_up: status.catching_up,
                highest_height: status.height,
            },
            _ => ConsensusStatus {
                catching_up: true,
                ..ConsensusStatus::default()
            },
        };
        sender.send_if_modified(|old| {
            let changed = *old != now;
            *old = now;
            changed
        });
    }
}
