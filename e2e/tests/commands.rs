//! The commands that people and scripts type.

use alloy_primitives::{Address, U256};
use anyhow::{Context, Result, ensure};
use cloister_e2e::{
    network::{Network, cloister, folder, free_port, run, run_refused, text},
    process::Process,
    report,
    rpc::Rpc,
};
use serde_json::{Value, json};
use std::{
    fs,
    time::{Duration, Instant},
};

/// What `make run` does after the build.
#[tokio::test(flavor = "multi_thread")]
async fn the_demonstration_prints_receipts_and_leaves_the_chain_running() -> Result<()> {
    let home = folder("demo")?;
    let (http, ws) = (free_port(), free_port());
    let started = Instant::now();
    let mut process = Process::start(
        cloister()
            .args([
                "dev",
                "--home",
                text(home.path()),
                "--block-time",
                "1s",
                "--demo",
            ])
            .args([
                "--http",
                &format!("127.0.0.1:{http}"),
                "--ws",
                &format!("127.0.0.1:{ws}"),
            ]),
        &home.path().join("demo.log"),
    )?;
    loop {
        let printed = process.log_tail(200);
        if printed.contains("Demonstration complete") {
            for word in [
                "Transfer",
                "contract 0x",
                "Groth16",
                "31337",
                "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
                &http.to_string(),
            ] {
                ensure!(printed.contains(word), "{word} is missing in:\n{printed}");
            }
            break;
        }
        ensure!(process.exited()?.is_none(), "it ended:\n{printed}");
        ensure!(
            started.elapsed() < Duration::from_secs(60),
            "no demonstration within a minute:\n{printed}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    report(&format!(
        "demonstration complete after {:.1} s",
        started.elapsed().as_secs_f64()
    ));
    let rpc = Rpc::new(format!("http://127.0.0.1:{http}"));
    let height = rpc.height().await?;
    rpc.reach(height + 1, Duration::from_secs(5)).await?;
    ensure!(
        process.stop(Duration::from_secs(10))?.success(),
        "a clean stop"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn status_tells_height_and_durable_height() -> Result<()> {
    let mut network = Network::validators(1)?;
    network.start().await?;
    let home = network.nodes[0].home.clone();
    network.nodes[0].reach(3, Duration::from_secs(20)).await?;
    let status: Value = serde_json::from_str(&run(&["status", "--home", text(&home), "--json"])?)?;
    let shown = status.to_string();
    let height = network.nodes[0].rpc.height().await?;
    let named = |name: &str| {
        status
            .as_object()
            .into_iter()
            .flatten()
            .find(|(key, _)| key.to_lowercase().replace('_', "") == name)
            .map(|(_, value)| value.clone())
    };
    let at = named("height")
        .and_then(|value| value.as_u64())
        .with_context(|| format!("height in {shown}"))?;
    ensure!(at >= 3 && at <= height, "height {at} in {shown}");
    named("durableheight").with_context(|| format!("durable height in {shown}"))?;
    ensure!(
        run(&["status", "--home", text(&home)])?.contains("height"),
        "status for people"
    );
    network.nodes[0].stop()?;
    let (code, message) = run_refused(&["status", "--home", text(&home)])?;
    ensure!(code == 1 || code == 74, "exit code {code}: {message}");
    ensure!(!message.contains("panicked"), "{message}");
    Ok(())
}

/// `make testnet` and `make testnet-stop`.
#[tokio::test(flavor = "multi_thread")]
async fn a_test_network_runs_under_one_process_and_stops_at_one_command() -> Result<()> {
    let network = Network::validators(4)?;
    let home = network.home().to_owned();
    let mut process = Process::start(
        cloister().args(["testnet", "--home", text(&home), "--start"]),
        &home.join("testnet.log"),
    )?;
    for node in &network.nodes {
        node.rpc
            .reach(3, Duration::from_secs(60))
            .await
            .with_context(|| process.log_tail(20))?;
    }
    network.agree(1, 2).await?;
    run(&["testnet", "stop", "--home", text(&home)])?;
    let status = process.wait(Duration::from_secs(20))?;
    ensure!(
        status.success(),
        "stopped with {status}\n{}",
        process.log_tail(20)
    );
    for node in &network.nodes {
        ensure!(
            node.rpc.height().await.is_err(),
            "a node still answers at {}",
            node.rpc.url
        );
        ensure!(
            node.comet.height().await.is_err(),
            "its CometBFT still answers"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_configuration_is_refused_with_all_its_errors() -> Result<()> {
    let network = Network::validators(1)?;
    let node = &network.nodes[0];
    node.configure(&[
        ("consensus", "timeout_commit_ms", (-1).into()),
        ("rpc", "http_address", "nowhere".into()),
        ("storage", "durabilty", "os".into()),
    ])?;
    let (code, message) = run_refused(&["start", "--home", text(&node.home)])?;
    assert_eq!(code, 78, "{message}");
    for word in ["timeout_commit_ms", "http_address", "durabilty"] {
        ensure!(message.contains(word), "{word} is missing in:\n{message}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_genesis_is_refused_and_nothing_is_written() -> Result<()> {
    let place = folder("bad")?;
    let alloc = place.path().join("alloc.json");
    for (bad, word) in [
        ("{", "line"),
        (r#"{"0x12": {"balance": "0x1"}}"#, "0x12"),
        (
            r#"{"0x1000000000000000000000000000000000000000": {"balance": "-1"}}"#,
            "balance",
        ),
    ] {
        fs::write(&alloc, bad)?;
        let home = place.path().join("home");
        let (code, message) = run_refused(&[
            "init",
            "--home",
            text(&home),
            "--chain-id",
            "5",
            "--alloc",
            text(&alloc),
        ])?;
        assert_eq!(code, 78, "{bad}: {message}");
        ensure!(
            message.to_lowercase().contains(word),
            "{bad}: {word} is missing in:\n{message}"
        );
        ensure!(!home.exists(), "{bad}: a home was made");
    }
    Ok(())
}

/// A large allocation is no part of any ABCI frame.
#[tokio::test(flavor = "multi_thread")]
async fn a_genesis_of_200_000_accounts_starts() -> Result<()> {
    let place = folder("big")?;
    let alloc: serde_json::Map<_, _> = (0..200_000_u64)
        .map(|index| {
            (
                account(index).to_string(),
                json!({ "balance": format!("{:#x}", index + 1) }),
            )
        })
        .collect();
    let file = place.path().join("alloc.json");
    fs::write(&file, Value::Object(alloc).to_string())?;
    let mut network = Network::with_alloc(1, &file)?;
    let started = Instant::now();
    network.nodes[0].start()?;
    network.nodes[0].reach(2, Duration::from_secs(60)).await?;
    report(&format!(
        "200,000 accounts: block 2 after {:.1} s",
        started.elapsed().as_secs_f64()
    ));
    for index in [0, 77_777, 199_999] {
        assert_eq!(
            network.nodes[0].rpc.balance(account(index)).await?,
            U256::from(index + 1)
        );
    }
    network.agree(1, 2).await?;
    Ok(())
}

fn account(index: u64) -> Address {
    let mut bytes = [0x11; 20];
    bytes[12..].copy_from_slice(&index.to_be_bytes());
    Address::from(bytes)
}

/// Two nodes on one folder, a port in use: an error that names it, and the first node goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_the_same_home_is_refused() -> Result<()> {
    let mut network = Network::validators(1)?;
    network.start().await?;
    let home = network.nodes[0].home.clone();
    let (code, message) = run_refused(&["start", "--home", text(&home)])?;
    ensure!(
        code != 101 && !message.contains("panicked"),
        "exit code {code}: {message}"
    );
    let height = network.nodes[0].rpc.height().await?;
    network.nodes[0]
        .reach(height + 3, Duration::from_secs(20))
        .await?;
    Ok(())
}

/// Start-up on a chain that exists. Measured here, judged in the benchmarks.
#[tokio::test(flavor = "multi_thread")]
async fn start_on_an_existing_chain_is_measured() -> Result<()> {
    let blocks = cloister_e2e::bounded_or_full(100, 10_000);
    let mut network = Network::validators(1)?;
    if cloister_e2e::is_soak() {
        network.nodes[0].configure(&[("consensus", "timeout_commit_ms", 1.into())])?;
    }
    network.start().await?;
    network.nodes[0]
        .reach(blocks, Duration::from_secs(60 + blocks))
        .await?;
    let resident = network.nodes[0].running()?.resident_mib()?;
    network.nodes[0].stop()?;
    let started = Instant::now();
    network.nodes[0].start()?;
    network.nodes[0]
        .rpc
        .reach(blocks, Duration::from_secs(30))
        .await?;
    let served = started.elapsed();
    let head = network.nodes[0].rpc.height().await?;
    network.nodes[0]
        .reach(head + 1, Duration::from_secs(30))
        .await?;
    report(&format!(
        "start on a chain of {blocks} blocks: RPC after {} ms, next block after {} ms; {resident} MiB resident before",
        served.as_millis(),
        started.elapsed().as_millis()
    ));
    network.agree(1, 1).await?;
    Ok(())
}
