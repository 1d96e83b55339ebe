//! A real node as an operator starts it: `cloister init`, `cloister start`, CometBFT its child. Measures resident memory
//! when idle, and the time from start to the first new block on a long chain.

use crate::{
    consensus::{height, wait_for_height},
    process::{Process, free_port},
    stats::{Samples, Summary},
    workload,
};
use alloy_genesis::GenesisAccount;
use alloy_primitives::Address;
use anyhow::{Context as _, ensure};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Blocks of the chain on which starts are timed
    #[arg(long, default_value_t = 10_000)]
    blocks: u64,
    /// Starts timed
    #[arg(long, default_value_t = 5)]
    starts: u64,
    /// Seconds of idling before memory is read
    #[arg(long, default_value_t = 30)]
    idle_seconds: u64,
    /// Folder of `cloister` and `cometbft` (default: beside this program, then PATH)
    #[arg(long)]
    binaries: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, serde::Serialize)]
struct Report {
    idle_resident_mib: f64,
    resident_mib_after_blocks: f64,
    blocks: u64,
    blocks_per_second: f64,
    start_to_first_block: Summary,
}

/// A home folder made by `cloister init`.
pub(crate) struct Network {
    program: PathBuf,
    home: PathBuf,
    rpc: u16,
    p2p: u16,
    http: u16,
}

/// A running node.
pub(crate) struct Node {
    pub(crate) process: Process,
    pub(crate) http: String,
    pub(crate) cometbft_rpc: String,
    pub(crate) log: PathBuf,
}

impl Network {
    /// A network of one validator with this allocation, on free ports.
    pub(crate) fn init(
        folder: &Path,
        alloc: &BTreeMap<Address, GenesisAccount>,
        binaries: &[PathBuf],
    ) -> anyhow::Result<Self> {
        let program = crate::find_program("cloister", binaries)?;
        let (home, file) = (folder.join("home"), folder.join("alloc.json"));
        std::fs::write(&file, serde_json::to_vec(alloc)?)
            .with_context(|| format!("writing {}", file.display()))?;
        let chain_id = workload::CHAIN_ID.to_string();
        let arguments = [
            "init".as_ref(),
            "--home".as_ref(),
            home.as_os_str(),
            "--chain-id".as_ref(),
            chain_id.as_ref(),
            "--alloc".as_ref(),
            file.as_os_str(),
        ];
        let log = folder.join("init.log");
        let mut init = Process::start(&program, &arguments, &[], &log)?;
        init.wait().with_context(|| {
            format!(
                "cloister init: {}",
                std::fs::read_to_string(&log).unwrap_or_default()
            )
        })?;
        Ok(Self {
            program,
            home,
            rpc: free_port()?,
            p2p: free_port()?,
            http: free_port()?,
        })
    }

    /// Starts it; overrides go through the environment, as an operator would give them.
    pub(crate) fn start(&self, timeout_commit_ms: u64, durability: &str) -> anyhow::Result<Node> {
        let loopback = |port: u16| format!("127.0.0.1:{port}");
        let environment = [
            (
                "CLOISTER__CONSENSUS__TIMEOUT_COMMIT_MS",
                timeout_commit_ms.to_string(),
            ),
            ("CLOISTER__CONSENSUS__RPC_ADDRESS", loopback(self.rpc)),
            ("CLOISTER__CONSENSUS__P2P_ADDRESS", loopback(self.p2p)),
            ("CLOISTER__RPC__HTTP_ADDRESS", loopback(self.http)),
            ("CLOISTER__RPC__WS_ADDRESS", loopback(self.http)),
            ("CLOISTER__STORAGE__DURABILITY", durability.to_owned()),
            ("CLOISTER__LOG__LEVEL", "warn".to_owned()),
        ];
        let log = self.home.with_extension("log");
        let arguments = ["start".as_ref(), "--home".as_ref(), self.home.as_os_str()];
        let process = Process::start(&self.program, &arguments, &environment, &log)?;
        Ok(Node {
            process,
            http: format!("http://{}", loopback(self.http)),
            cometbft_rpc: format!("http://{}", loopback(self.rpc)),
            log,
        })
    }
}

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let report = runtime.block_on(measure(options))?;
    let start = report.start_to_first_block;
    let table = format!(
        "resident memory, idle            {:8.1} MiB\n\
         resident memory at block {:<7} {:8.1} MiB\n\
         empty blocks per second          {:8.1}\n\
         start to first block             median {:.2} s  min {:.2}  max {:.2}\n",
        report.idle_resident_mib,
        report.blocks,
        report.resident_mib_after_blocks,
        report.blocks_per_second,
        start.median_ms / 1e3,
        start.min_ms / 1e3,
        start.max_ms / 1e3,
    );
    crate::output::print(options.json, &report, &table)
}

async fn measure(options: &Options) -> anyhow::Result<Report> {
    let folder = tempfile::tempdir()?;
    let senders = [workload::signer(0)?];
    let network = Network::init(
        folder.path(),
        &workload::alloc(&senders, 10)?,
        &options.binaries,
    )?;

    let mut node = network.start(1_000, "every-block")?;
    wait_for_height(&node.cometbft_rpc, 2, &node.log).await?;
    tokio::time::sleep(Duration::from_secs(options.idle_seconds)).await;
    let idle_resident_mib = node.process.resident_kib()? as f64 / 1024.0;
    node.process.stop();

    // The long chain is made as fast as CometBFT goes.
    let mut node = network.start(1, "os")?;
    let (started, from) = (Instant::now(), wait_any(&node).await?);
    let mut now = from;
    while now < options.blocks {
        tokio::time::sleep(Duration::from_millis(500)).await;
        now = height(&node.cometbft_rpc).await?;
        ensure!(
            started.elapsed() < Duration::from_secs(1_800),
            "only {now} blocks after half an hour"
        );
    }
    let blocks_per_second = (now - from) as f64 / started.elapsed().as_secs_f64();
    let resident_mib_after_blocks = node.process.resident_kib()? as f64 / 1024.0;
    node.process.stop();

    let mut samples = Samples::default();
    for _ in 0..options.starts.max(1) {
        // With the default pace, the height that it stopped at is known to within a block.
        let started = Instant::now();
        let mut node = network.start(1_000, "every-block")?;
        let held = wait_any(&node).await?;
        wait_for_height(&node.cometbft_rpc, held + 1, &node.log).await?;
        samples.push(started.elapsed());
        node.process.stop();
    }
    Ok(Report {
        idle_resident_mib,
        resident_mib_after_blocks,
        blocks: options.blocks,
        blocks_per_second,
        start_to_first_block: samples.summary(),
    })
}

async fn wait_any(node: &Node) -> anyhow::Result<u64> {
    wait_for_height(&node.cometbft_rpc, 1, &node.log).await?;
    height(&node.cometbft_rpc)
        .await
        .context("height after start")
}
