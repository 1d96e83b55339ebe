//! One validator under real CometBFT: our native transfers per second through JSON-RPC against CometBFT's own kvstore
//! application with transactions of the same size, over the same kind of socket, in the same run.
//!
//! Both are measured alike: committed transactions between two blocks, divided by the difference of their times.

use crate::{
    process::{Process, free_port},
    workload::{self, Kind},
};
use alloy_primitives::Bytes;
use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Seconds measured, after five to warm up
    #[arg(long, default_value_t = 15)]
    seconds: u64,
    /// Pause between blocks of both networks, in milliseconds
    #[arg(long, default_value_t = 1_000)]
    timeout_commit_ms: u64,
    /// Transactions in one JSON-RPC batch
    #[arg(long, default_value_t = 100)]
    batch: usize,
    /// Connections that send at once
    #[arg(long, default_value_t = 4)]
    connections: usize,
    /// Accounts that send
    #[arg(long, default_value_t = 2_000)]
    senders: u64,
    /// Transactions signed beforehand; the run ends early if they are used up
    #[arg(long, default_value_t = 150_000)]
    signed: u64,
    /// Durability of our store: every-block, interval or os
    #[arg(long, default_value = "every-block")]
    durability: String,
    /// Folder of `cloister`, `cometbft` and `abci-cli` (default: beside this program, then PATH)
    #[arg(long)]
    binaries: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, serde::Serialize)]
struct Figure {
    tps: f64,
    blocks: u64,
    transactions: u64,
    seconds: f64,
}

#[derive(Debug, serde::Serialize)]
struct Report {
    transaction_bytes: usize,
    timeout_commit_ms: u64,
    durability: String,
    kvstore: Figure,
    cloister: Figure,
    /// cloister.tps / kvstore.tps.
    ratio: f64,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let report = runtime.block_on(measure(options))?;
    let row = |name: &str, figure: &Figure| {
        format!(
            "{name:<10} {:9.0} tx/s  {:4} blocks  {:7} transactions  {:5.1} s\n",
            figure.tps, figure.blocks, figure.transactions, figure.seconds
        )
    };
    let table = format!(
        "one validator, timeout_commit {} ms, transactions of {} bytes, durability {}\n{}{}ratio      {:9.3}\n",
        report.timeout_commit_ms,
        report.transaction_bytes,
        report.durability,
        row("kvstore", &report.kvstore),
        row("cloister", &report.cloister),
        report.ratio,
    );
    crate::output::print(options.json, &report, &table)
}

async fn measure(options: &Options) -> anyhow::Result<Report> {
    let senders = (0..options.senders)
        .map(workload::signer)
        .collect::<anyhow::Result<Vec<_>>>()?;
    let rounds = options.signed.div_ceil(options.senders.max(1));
    let mut transfers = Vec::new();
    for nonce in 0..rounds {
        transfers.extend(workload::block(Kind::Native, &senders, nonce, 10_000)?);
    }
    let transaction_bytes = transfers.first().context("nothing was signed")?.len();
    let kvstore = kvstore(options, transaction_bytes)
        .await
        .context("measuring kvstore")?;
    let cloister = cloister(options, &senders, transfers)
        .await
        .context("measuring cloister")?;
    let ratio = cloister.tps / kvstore.tps;
    Ok(Report {
        transaction_bytes,
        timeout_commit_ms: options.timeout_commit_ms,
        durability: options.durability.clone(),
        kvstore,
        cloister,
        ratio,
    })
}

async fn kvstore(options: &Options, transaction_bytes: usize) -> anyhow::Result<Figure> {
    let folder = tempfile::tempdir()?;
    let home = folder.path().join("cometbft");
    let cometbft = crate::find_program("cometbft", &options.binaries)?;
    let application = crate::find_program("abci-cli", &options.binaries)?;
    let mut init = Process::start(
        &cometbft,
        &["init", "--home", path(&home)?],
        &[],
        &folder.path().join("init.log"),
    )?;
    init.wait().context("cometbft init")?;
    let (rpc, p2p) = (free_port()?, free_port()?);
    let socket = format!("unix://{}", path(&folder.path().join("app.sock"))?);
    edit_config(
        &home.join("config/config.toml"),
        &[
            ("proxy_app", &format!("\"{socket}\"")),
            (
                "timeout_commit",
                &format!("\"{}ms\"", options.timeout_commit_ms),
            ),
            ("flush_throttle_timeout", "\"10ms\""),
            ("indexer", "\"null\""),
            ("max_request_batch_size", "0"),
            ("max_body_bytes", "10000000"),
            ("size", "20000"),
            ("cache_size", "40000"),
        ],
        rpc,
        p2p,
    )?;
    let store = path(&folder.path().join("kvstore"))?.to_owned();
    let _application = Process::start(
        &application,
        &[
            "kvstore",
            "--address",
            &socket,
            "--persist",
            &store,
            "--log_level",
            "error",
        ],
        &[],
        &folder.path().join("kvstore.log"),
    )?;
    let _node = Process::start(
        &cometbft,
        &["start", "--home", path(&home)?, "--log_level", "error"],
        &[],
        &folder.path().join("cometbft.log"),
    )?;
    let endpoint = format!("http://127.0.0.1:{rpc}");
    wait_for_height(&endpoint, 2, &folder.path().join("cometbft.log")).await?;
    let requests = (0..options.signed).map(|index| {
        // The application wants key=value; padded to the size of a transfer.
        let key = format!("k{index}=");
        let transaction = format!("{key}{}", "v".repeat(transaction_bytes.saturating_sub(key.len())));
        json!({"jsonrpc": "2.0", "id": index, "method": "broadcast_tx_sync", "params": {"tx": base64(transaction.as_bytes())}})
    });
    drive(options, &endpoint, &endpoint, requests.collect()).await
}

async fn cloister(
    options: &Options,
    senders: &[alloy_signer_local::PrivateKeySigner],
    transfers: Vec<Bytes>,
) -> anyhow::Result<Figure> {
    let folder = tempfile::tempdir()?;
    let network = crate::node::Network::init(
        folder.path(),
        &workload::alloc(senders, 10_000)?,
        &options.binaries,
    )?;
    let node = network.start(options.timeout_commit_ms, &options.durability)?;
    wait_for_height(&node.cometbft_rpc, 2, &node.log).await?;
    let requests = transfers
        .iter()
        .enumerate()
        .map(|(index, raw)| json!({"jsonrpc": "2.0", "id": index, "method": "eth_sendRawTransaction", "params": [raw]}));
    drive(options, &node.http, &node.cometbft_rpc, requests.collect()).await
}

/// Sends all requests in batches over `connections`, and counts what `comet` commits meanwhile.
async fn drive(
    options: &Options,
    target: &str,
    comet: &str,
    requests: Vec<Value>,
) -> anyhow::Result<Figure> {
    let batches: Arc<Vec<Vec<Value>>> = Arc::new(
        requests
            .chunks(options.batch.max(1))
            .map(<[Value]>::to_vec)
            .collect(),
    );
    let (next, stop) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let tasks: Vec<_> = (0..options.connections.max(1))
        .map(|_| {
            let (batches, next, stop, target) = (
                batches.clone(),
                next.clone(),
                stop.clone(),
                target.to_owned(),
            );
            tokio::spawn(async move {
                let client = reqwest::Client::new();
                while !stop.load(Ordering::Relaxed) {
                    let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        break;
                    };
                    send(&client, &target, batch.clone(), &stop).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let first = height(comet).await?;
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(options.seconds)
        && next.load(Ordering::Relaxed) < batches.len()
    {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let last = height(comet).await?;
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await??;
    }
    ensure!(last > first, "no block in {} s", options.seconds);
    let (mut transactions, mut from, mut to) = (0u64, 0f64, 0f64);
    for at in first..=last {
        let (count, time) = block(comet, at).await?;
        if at == first {
            from = time;
        } else {
            transactions += count;
        }
        to = time;
    }
    let seconds = to - from;
    Ok(Figure {
        tps: transactions as f64 / seconds,
        blocks: last - first,
        transactions,
        seconds,
    })
}

/// Sends a batch; what is refused because a pool is full is sent again until it is taken.
async fn send(
    client: &reqwest::Client,
    target: &str,
    mut batch: Vec<Value>,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    while !batch.is_empty() && !stop.load(Ordering::Relaxed) {
        let answers: Vec<Value> = client
            .post(target)
            .json(&batch)
            .send()
            .await?
            .json()
            .await
            .context("reading a batch's answer")?;
        let refused: std::collections::BTreeSet<u64> = answers
            .iter()
            .filter(|answer| is_full(answer))
            .filter_map(|answer| answer["id"].as_u64())
            .collect();
        if let Some(other) = answers
            .iter()
            .find(|answer| !answer["error"].is_null() && !is_full(answer))
        {
            bail!("{target} answered {other}");
        }
        batch.retain(|request| {
            request["id"]
                .as_u64()
                .is_some_and(|id| refused.contains(&id))
        });
        if !batch.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}

/// Whether an answer says that a pool has no room now.
fn is_full(answer: &Value) -> bool {
    let error = answer["error"].to_string();
    [
        "mempool is full",
        "txpool is full",
        "account limit exceeded",
    ]
    .iter()
    .any(|text| error.contains(text))
}

async fn get(comet: &str, request: &str) -> anyhow::Result<Value> {
    let answer: Value = reqwest::get(format!("{comet}/{request}"))
        .await?
        .json()
        .await?;
    ensure!(answer["error"].is_null(), "{request}: {}", answer["error"]);
    Ok(answer["result"].clone())
}

pub(crate) async fn height(comet: &str) -> anyhow::Result<u64> {
    let status = get(comet, "status").await?;
    let text = status["sync_info"]["latest_block_height"]
        .as_str()
        .context("no height in /status")?;
    text.parse().with_context(|| format!("height {text}"))
}

/// Transactions of a block and its time in seconds since the start of its day.
async fn block(comet: &str, at: u64) -> anyhow::Result<(u64, f64)> {
    let answer = get(comet, &format!("blockchain?minHeight={at}&maxHeight={at}")).await?;
    let meta = &answer["block_metas"][0];
    let count = meta["num_txs"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .context("no num_txs")?;
    let time = meta["header"]["time"].as_str().context("no block time")?;
    Ok((
        count,
        seconds_of_day(time).with_context(|| format!("block time {time}"))?,
    ))
}

/// `2026-01-02T03:04:05.678Z` as seconds since midnight. A run across midnight is refused by its negative length.
fn seconds_of_day(time: &str) -> Option<f64> {
    let clock = time.split('T').nth(1)?.trim_end_matches('Z');
    let mut parts = clock.split(':').map(|part| part.parse::<f64>().ok());
    Some(parts.next()?? * 3_600.0 + parts.next()?? * 60.0 + parts.next()??)
}

pub(crate) async fn wait_for_height(comet: &str, wanted: u64, log: &Path) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        if height(comet).await.is_ok_and(|now| now >= wanted) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let tail: Vec<&str> = text.lines().rev().take(20).collect();
    bail!(
        "no block {wanted} at {comet} within 60 s; the log ends (newest first):\n{}",
        tail.join("\n")
    )
}

/// Sets `key = value` lines of CometBFT's config, and the two listen addresses by their section.
fn edit_config(file: &Path, values: &[(&str, &str)], rpc: u16, p2p: u16) -> anyhow::Result<()> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let mut section = String::new();
    let edited = text.lines().map(|line| {
        if line.starts_with('[') {
            section = line.to_owned();
        }
        let key = line.split(" = ").next().unwrap_or_default();
        match (key, section.as_str()) {
            ("laddr", "[rpc]") => format!("laddr = \"tcp://127.0.0.1:{rpc}\""),
            ("laddr", "[p2p]") => format!("laddr = \"tcp://127.0.0.1:{p2p}\""),
            _ => match values.iter().find(|(name, _)| *name == key) {
                Some((name, value)) => format!("{name} = {value}"),
                None => line.to_owned(),
            },
        }
    });
    let edited = edited.collect::<Vec<_>>().join("\n");
    std::fs::write(file, edited).with_context(|| format!("writing {}", file.display()))
}

fn path(path: &Path) -> anyhow::Result<&str> {
    path.to_str()
        .with_context(|| format!("{} is not UTF-8", path.display()))
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::{is_full, seconds_of_day};
    use serde_json::json;

    #[test]
    fn reads_block_times() {
        assert_eq!(seconds_of_day("2026-01-02T01:02:03.5Z"), Some(3_723.5));
        assert_eq!(seconds_of_day("yesterday"), None);
    }

    #[test]
    fn tells_a_full_pool_from_a_refusal() {
        assert!(is_full(
            &json!({"error": {"data": "mempool is full: number of txs 5000"}})
        ));
        assert!(!is_full(&json!({"error": {"message": "nonce too low"}})));
        assert!(!is_full(&json!({"result": "0x00"})));
    }
}
