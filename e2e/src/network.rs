//! Chains to test against: the development chain, and validators with real CometBFT.

use crate::{comet::Comet, process::Process, program, rpc::Rpc, wallet::Wallet};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::{
    collections::BTreeSet,
    fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
    time::Duration,
};
use tempfile::TempDir;

/// EVM chain id of the CometBFT networks of these tests.
pub const CHAIN_ID: u64 = 31_338;

/// Pace of CometBFT networks unless a test says otherwise, in milliseconds.
pub const TIMEOUT_COMMIT_MS: u64 = 200;

/// The durability modes, as the configuration names them.
pub const DURABILITY_MODES: [&str; 3] = ["every-block", "interval", "os"];

/// A port nobody uses, and that this process has not given out before.
pub fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().expect("nothing panics while the lock is held");
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let port = listener
            .local_addr()
            .expect("a bound listener has an address")
            .port();
        if given.insert(port) {
            return port;
        }
    }
}

/// A folder of a test; kept where `CLOISTER_E2E_KEEP=1`.
pub fn folder(prefix: &str) -> Result<TempDir> {
    // The socket's path must stay short.
    let mut folder = tempfile::Builder::new()
        .prefix(&format!("cl-{prefix}-"))
        .tempdir()?;
    if std::env::var_os("CLOISTER_E2E_KEEP").is_some_and(|value| value == "1") {
        folder.disable_cleanup(true);
        crate::report(&format!("kept: {}", folder.path().display()));
    }
    Ok(folder)
}

/// The node's program, to be given arguments.
pub fn cloister() -> Command {
    let mut command = Command::new(program("cloister"));
    command.env_remove("RUST_LOG").env("RUST_BACKTRACE", "1");
    command
}

/// Runs a command of the node that must fail: exit code and what it printed on standard error.
pub fn run_refused(arguments: &[&str]) -> Result<(i32, String)> {
    let output = cloister().args(arguments).output()?;
    let code = output.status.code().context("ended by a signal")?;
    ensure!(
        code != 0,
        "cloister {} was expected to fail",
        arguments.join(" ")
    );
    Ok((code, String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// Runs a command of the node to its end.
pub fn run(arguments: &[&str]) -> Result<String> {
    let output = cloister().args(arguments).output()?;
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    ensure!(
        output.status.success(),
        "cloister {} ended with {}:\n{out}{err}",
        arguments.join(" "),
        output.status
    );
    Ok(out.into_owned())
}

/// Text of a path in the temporary folders.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

/// The development chain: embedded engine, chain id 31337.
#[derive(Debug)]
pub struct Dev {
    /// The program.
    pub process: Process,
    /// HTTP.
    pub rpc: Rpc,
    /// `ws://HOST:PORT`
    pub ws: String,
    /// Its folder.
    pub home: TempDir,
}

impl Dev {
    /// Starts one, empty, with blocks at this pace ("200ms", "0").
    pub async fn start(block_time: &str) -> Result<Self> {
        let home = folder("dev")?;
        let (http, ws) = (free_port(), free_port());
        let process = Self::spawn(home.path(), http, ws, block_time)?;
        let dev = Self {
            process,
            rpc: Rpc::new(format!("http://127.0.0.1:{http}")),
            ws: format!("ws://127.0.0.1:{ws}"),
            home,
        };
        dev.ready().await?;
        Ok(dev)
    }

    /// Starts it again on the same folder and ports.
    pub async fn restart(&mut self, block_time: &str) -> Result<()> {
        let http = port_of(&self.rpc.url)?;
        let ws = port_of(&self.ws)?;
        self.process = Self::spawn(self.home.path(), http, ws, block_time)?;
        self.ready().await
    }

    async fn ready(&self) -> Result<()> {
        self.rpc
            .reach(0, Duration::from_secs(20))
            .await
            .with_context(|| self.process.log_tail(20))
            .map(drop)
    }

    fn spawn(home: &Path, http: u16, ws: u16, block_time: &str) -> Result<Process> {
        Process::start(
            cloister().args(["dev", "--home", text(home)]).args([
                "--http",
                &format!("127.0.0.1:{http}"),
                "--ws",
                &format!("127.0.0.1:{ws}"),
                "--block-time",
                block_time,
            ]),
            &home.join("cloister.log"),
        )
    }

    /// An account of the mnemonic.
    pub fn wallet(&self, index: u32) -> Wallet {
        Wallet::of_mnemonic(index, 31_337)
    }
}

fn port_of(url: &str) -> Result<u16> {
    Ok(url
        .rsplit(':')
        .next()
        .context("a port at the end")?
        .parse()?)
}

/// One node with real CometBFT.
#[derive(Debug)]
pub struct Node {
    /// Its folder.
    pub home: PathBuf,
    /// The program, while it runs.
    pub process: Option<Process>,
    /// HTTP.
    pub rpc: Rpc,
    /// `ws://HOST:PORT`
    pub ws: String,
    /// CometBFT's RPC.
    pub comet: Comet,
    /// Added to the environment at the next start.
    pub environment: Vec<(String, String)>,
}

impl Node {
    /// Starts it with `cloister start`, CometBFT as its child.
    pub fn start(&mut self) -> Result<()> {
        let mut command = cloister();
        command.args(["start", "--home", text(&self.home)]);
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        let process = Process::start(&mut command, &self.home.join("cloister.log"))?;
        self.process = Some(process.with_grandchild(self.home.join("cometbft.pid")));
        Ok(())
    }

    /// Starts it again after its process has ended, leaving to it what that process left behind.
    pub fn restart_keeping_child(&mut self) -> Result<()> {
        if let Some(ended) = self.process.take() {
            ended.forget();
        }
        self.start()
    }

    /// The running process.
    pub fn running(&mut self) -> Result<&mut Process> {
        self.process.as_mut().context("this node is not running")
    }

    /// Asks it to stop, expects a clean exit.
    pub fn stop(&mut self) -> Result<()> {
        let mut process = self.process.take().context("this node is not running")?;
        let status = process.stop(Duration::from_secs(20))?;
        ensure!(
            status.success(),
            "clean stop ended with {status}\n{}",
            process.log_tail(20)
        );
        Ok(())
    }

    /// Changes keys of its configuration: section, key, value.
    pub fn configure(&self, changes: &[(&str, &str, toml::Value)]) -> Result<()> {
        let path = self.home.join("cloister.toml");
        let mut table: toml::Table = fs::read_to_string(&path)?.parse()?;
        for (section, key, value) in changes {
            let section = table
                .entry(*section)
                .or_insert_with(|| toml::Value::Table(toml::Table::new()))
                .as_table_mut()
                .with_context(|| format!("[{section}] is a table"))?;
            section.insert((*key).to_owned(), value.clone());
        }
        fs::write(&path, table.to_string())?;
        Ok(())
    }

    /// Lines of its log that tell of trouble, for messages.
    pub fn log_tail(&self) -> String {
        let text = fs::read(self.home.join("cloister.log")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(25)..].join("\n")
    }

    /// Waits for a height; the error holds the log's end.
    pub async fn reach(&self, height: u64, limit: Duration) -> Result<u64> {
        self.rpc
            .reach(height, limit)
            .await
            .with_context(|| self.log_tail())
    }
}

/// Several nodes of one chain.
#[derive(Debug)]
pub struct Network {
    /// Validators first.
    pub nodes: Vec<Node>,
    folder: TempDir,
}

impl Network {
    /// Validators with real CometBFT at the tests' pace, not yet started.
    pub fn validators(count: usize) -> Result<Self> {
        Self::with_full_nodes(count, 0)
    }

    /// Validators, then nodes that do not vote.
    pub fn with_full_nodes(validators: usize, full_nodes: usize) -> Result<Self> {
        Self::make(validators, full_nodes, &[])
    }

    /// Validators and the accounts of a file.
    pub fn with_alloc(validators: usize, alloc: &Path) -> Result<Self> {
        Self::make(validators, 0, &["--alloc", text(alloc)])
    }

    fn make(validators: usize, full_nodes: usize, more: &[&str]) -> Result<Self> {
        let folder = folder("net")?;
        let mut arguments = more.to_vec();
        let (chain_id, validator_count, full_node_count) = (
            CHAIN_ID.to_string(),
            validators.to_string(),
            full_nodes.to_string(),
        );
        let pace = format!("{TIMEOUT_COMMIT_MS}ms");
        arguments.splice(
            0..0,
            [
                "testnet",
                "--home",
                text(folder.path()),
                "--chain-id",
                &chain_id,
                "--validators",
                &validator_count,
                "--full-nodes",
                &full_node_count,
                "--timeout-commit",
                &pace,
            ],
        );
        run(&arguments)?;
        let listed = fs::read_to_string(folder.path().join("testnet.json"))?;
        let listed: Listed = serde_json::from_str(&listed).context("testnet.json")?;
        ensure!(
            listed.chain_id == CHAIN_ID,
            "testnet.json names chain id {}",
            listed.chain_id
        );
        ensure!(
            listed.nodes.len() == validators + full_nodes,
            "testnet.json lists {} nodes",
            listed.nodes.len()
        );
        let nodes = listed.nodes.into_iter().map(|node| Node {
            rpc: Rpc::new(format!("http://{}", node.http)),
            ws: format!("ws://{}", node.ws),
            comet: Comet::new(format!("http://{}", node.cometbft_rpc)),
            home: node.home,
            process: None,
            environment: Vec::new(),
        });
        Ok(Self {
            nodes: nodes.collect(),
            folder,
        })
    }

    /// Folder of the network.
    pub fn home(&self) -> &Path {
        self.folder.path()
    }

    /// Starts all nodes and waits until each has made or received a block.
    pub async fn start(&mut self) -> Result<()> {
        for node in &mut self.nodes {
            node.start()?;
        }
        for node in &self.nodes {
            node.reach(1, Duration::from_secs(60)).await?;
        }
        Ok(())
    }

    /// HTTP endpoints of all nodes.
    pub fn rpcs(&self) -> Vec<Rpc> {
        self.nodes.iter().map(|node| node.rpc.clone()).collect()
    }

    /// An account of the mnemonic on this chain.
    pub fn wallet(&self, index: u32) -> Wallet {
        Wallet::of_mnemonic(index, CHAIN_ID)
    }

    /// Waits until all have the height, then compares: block hashes of all nodes at every height from `first`, and CometBFT's app
    /// hash of the next height. Gives the count of heights compared.
    pub async fn agree(&self, first: u64, last: u64) -> Result<u64> {
        for node in &self.nodes {
            // The app hash of the last height stands in the header of the next.
            node.reach(last + 1, Duration::from_secs(60)).await?;
        }
        for height in first..=last {
            let reference = self.nodes[0].rpc.block(height).await?;
            for (index, node) in self.nodes.iter().enumerate() {
                let block = node.rpc.block(height).await?;
                ensure!(
                    block == reference,
                    "node {index} has another block {height}:\n{block:?}\n{reference:?}"
                );
                ensure!(
                    block.header.inner.hash_slow() == block.header.hash,
                    "block {height}: hash is not that of its header"
                );
            }
            let app_hash = self.nodes[0].comet.app_hash(height + 1).await?;
            ensure!(
                app_hash == reference.header.hash,
                "height {height}: block hash {}, app hash {app_hash}",
                reference.header.hash
            );
        }
        Ok(last + 1 - first)
    }
}

/// What `cloister testnet` writes of the nodes it made.
#[derive(Debug, Deserialize)]
struct Listed {
    chain_id: u64,
    nodes: Vec<ListedNode>,
}

#[derive(Debug, Deserialize)]
struct ListedNode {
    home: PathBuf,
    http: SocketAddr,
    ws: SocketAddr,
    cometbft_rpc: SocketAddr,
}
