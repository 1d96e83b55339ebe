//! Crashes: CometBFT's own fail points, and kill -9 of our process, of CometBFT and of both, under load, in every durability
//! mode. After each the chain goes on, with the hashes of a validator that was never disturbed.

use alloy_primitives::Address;
use anyhow::{Context, Result, ensure};
use cloister_e2e::{
    bounded_or_full,
    contracts::counter_code,
    is_soak,
    load::Load,
    network::{DURABILITY_MODES, Network},
    report,
    wallet::{Action, Type},
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use rustix::process::{Signal, kill_process};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Fail points of CometBFT that blocks pass one after another: `FAIL_TEST_INDEX` 0..43.
const FAIL_POINTS: u64 = 44;

/// Homes under test at once.
const PARALLEL: u64 = 2;

/// After every fail point a validator alone starts again, replays, and goes on from the hashes it had.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_fail_point_of_cometbft_is_survived() -> Result<()> {
    let mut tasks = Vec::new();
    for lane in 0..PARALLEL {
        tasks.push(tokio::spawn(async move {
            let mut crashed = 0;
            for index in (lane..FAIL_POINTS).step_by(usize::try_from(PARALLEL)?) {
                crashed += u64::from(
                    fail_point(index)
                        .await
                        .with_context(|| format!("FAIL_TEST_INDEX={index}"))?,
                );
            }
            anyhow::Ok(crashed)
        }));
    }
    let mut crashed = 0;
    for task in tasks {
        crashed += task.await??;
    }
    report(&format!(
        "fail points: {crashed} of {FAIL_POINTS} ended CometBFT; the chain went on after each"
    ));
    ensure!(
        crashed >= FAIL_POINTS / 2,
        "only {crashed} fail points were met: the variable does not reach CometBFT"
    );
    Ok(())
}

/// True if CometBFT met the point.
async fn fail_point(index: u64) -> Result<bool> {
    let mut network = Network::validators(1)?;
    let mode = DURABILITY_MODES[usize::try_from(index)? % DURABILITY_MODES.len()];
    network.nodes[0].configure(&[("storage", "durability", mode.into())])?;
    network.nodes[0]
        .environment
        .push(("FAIL_TEST_INDEX".into(), index.to_string()));
    network.nodes[0].start()?;
    // The child dies at the point and is restarted with the same variable, so it dies again: watch for blocks as long as there are some.
    let rpc = network.nodes[0].rpc.clone();
    let wallet = network.wallet(0);
    let mut seen = BTreeMap::new();
    let mut nonce = 0;
    let started = Instant::now();
    let mut crashed = false;
    while started.elapsed() < Duration::from_secs(12) && !crashed {
        if let Ok(height) = rpc.height().await {
            if let Ok(block) = rpc.block(height).await {
                seen.insert(height, block.header.hash);
            }
            let raw = wallet.sign(
                &Type::DynamicFee,
                &Action::transfer(Address::repeat_byte(3), 1),
                nonce,
            );
            if rpc.send_raw(raw).await.is_ok() {
                nonce += 1;
            }
        }
        let log =
            std::fs::read_to_string(network.nodes[0].home.join("cloister.log")).unwrap_or_default();
        crashed = log.contains("fail-test");
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    network.nodes[0].process = None;
    network.nodes[0].environment.clear();
    network.nodes[0].start()?;
    let last = seen.keys().last().copied().unwrap_or_default();
    network.nodes[0]
        .reach(last + 2, Duration::from_secs(30))
        .await?;
    for (height, hash) in &seen {
        let block = rpc.block(*height).await?;
        ensure!(
            block.header.hash == *hash,
            "block {height} was {hash} and is {} after the restart",
            block.header.hash
        );
    }
    network.agree(1, last + 1).await?;
    Ok(crashed)
}

/// What is killed.
#[derive(Debug, Clone, Copy)]
enum Victim {
    Ours,
    CometBft,
    Both,
}

/// Two networks would differ in their times; so a validator with the power to go on alone is the twin of one that is
/// killed: four validators, of which one at a time dies, the first never.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn random_kills_under_load_leave_the_hashes_of_the_undisturbed() -> Result<()> {
    let seed = std::env::var("CLOISTER_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(rand::random);
    let kills = bounded_or_full(20, 1_000);
    report(&format!(
        "random kills: seed {seed} (CLOISTER_SEED repeats it)"
    ));
    let mut random = StdRng::seed_from_u64(seed);
    let mut network = Network::validators(4)?;
    network.start().await?;
    let counter = network
        .wallet(0)
        .deploy(&network.nodes[0].rpc, counter_code(0))
        .await?;
    let load = Load::start(
        network.rpcs(),
        (4..6).map(|index| network.wallet(index)).collect(),
        counter,
        10,
    );

    let mut recoveries_ms = Vec::new();
    for kill in 0..kills {
        let index = 1 + usize::try_from(kill % 3)?;
        let victim = [Victim::Ours, Victim::CometBft, Victim::Both][random.random_range(0..3)];
        let mode = DURABILITY_MODES[random.random_range(0..3)];
        tokio::time::sleep(Duration::from_millis(random.random_range(0..1_000))).await;
        let what = format!("kill {kill} of {kills}: {victim:?} of validator {index}, then {mode}");
        let recovered = kill_and_restart(&mut network, index, victim, mode)
            .await
            .with_context(|| what)?;
        recoveries_ms.push(recovered.as_millis());
        if is_soak() && kill % 50 == 49 {
            let head = network.nodes[0].rpc.height().await?;
            network.agree(head.saturating_sub(40).max(1), head).await?;
            report(&format!("{} kills, block {head}", kill + 1));
        }
    }
    let (accepted, _) = load.stop().await;
    let head = network.nodes[0].rpc.height().await?;
    let compared = network.agree(1, head).await?;
    for hash in &accepted {
        // What a node that was killed had only in memory may be gone; what the undisturbed one mined must be on all.
        if let Ok(receipt) = network.nodes[0].rpc.receipt(*hash, Duration::ZERO).await {
            assert_eq!(
                network.nodes[1]
                    .rpc
                    .receipt(*hash, Duration::from_secs(5))
                    .await?,
                receipt
            );
        }
    }
    recoveries_ms.sort_unstable();
    report(&format!(
        "{kills} kills: {compared} blocks equal to the undisturbed validator's; next block after {} ms (median), {} ms (most)",
        recoveries_ms[recoveries_ms.len() / 2],
        recoveries_ms[recoveries_ms.len() - 1]
    ));
    Ok(())
}

/// Time until the node has a block that it did not have.
async fn kill_and_restart(
    network: &mut Network,
    index: usize,
    victim: Victim,
    mode: &str,
) -> Result<Duration> {
    let before = network.nodes[0].rpc.height().await?;
    let node = &mut network.nodes[index];
    let process = node.running()?;
    let child = process.grandchild_pid();
    match victim {
        Victim::Ours => process.signal(Signal::KILL),
        Victim::CometBft => {
            kill_process(child.context("CometBFT's pid file names it")?, Signal::KILL)?
        }
        Victim::Both => {
            process.signal(Signal::KILL);
            kill_process(child.context("CometBFT's pid file names it")?, Signal::KILL)?;
        }
    }
    let started = Instant::now();
    if !matches!(victim, Victim::CometBft) {
        // Not through drop: CometBFT must be found by the next start as it was left.
        process.wait(Duration::from_secs(5))?;
        node.configure(&[("storage", "durability", mode.into())])?;
        node.restart_keeping_child()?;
    }
    node.reach(before + 1, Duration::from_secs(40)).await?;
    ensure!(
        network.nodes[0].rpc.height().await? >= before,
        "the undisturbed validator went back"
    );
    Ok(started.elapsed())
}

/// All at once, as in a power cut: nobody is left to learn from.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_validators_killed_at_once_go_on() -> Result<()> {
    let mut network = Network::validators(4)?;
    for (index, node) in network.nodes.iter().enumerate() {
        node.configure(&[("storage", "durability", DURABILITY_MODES[index % 3].into())])?;
    }
    network.start().await?;
    let counter = network
        .wallet(0)
        .deploy(&network.nodes[0].rpc, counter_code(0))
        .await?;
    let load = Load::start(network.rpcs(), vec![network.wallet(4)], counter, 10);
    for round in 0..bounded_or_full(3, 20) {
        let head = network.nodes[0].rpc.height().await?;
        network.nodes[0]
            .reach(head + 5, Duration::from_secs(30))
            .await?;
        let head = network.nodes[0].rpc.height().await?;
        let hash = network.nodes[0].rpc.block(head).await?.header.hash;
        for node in &mut network.nodes {
            node.process = None;
        }
        for node in &mut network.nodes {
            node.start()?;
        }
        for node in &network.nodes {
            node.reach(head + 2, Duration::from_secs(60))
                .await
                .with_context(|| format!("round {round}"))?;
        }
        ensure!(
            network.nodes[1].rpc.block(head).await?.header.hash == hash,
            "round {round}: block {head} changed"
        );
    }
    load.stop().await;
    let head = network.nodes[0].rpc.height().await?;
    network.agree(1, head).await?;
    Ok(())
}

/// SIGTERM and SIGINT end both processes, with code 0.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_stops_our_process_and_cometbft() -> Result<()> {
    let mut network = Network::validators(1)?;
    for signal in [Signal::TERM, Signal::INT] {
        network.nodes[0].start()?;
        network.nodes[0].reach(2, Duration::from_secs(30)).await?;
        let process = network.nodes[0].running()?;
        let child = process
            .grandchild_pid()
            .context("CometBFT's pid file names it")?;
        process.signal(signal);
        let status = process.wait(Duration::from_secs(15))?;
        ensure!(status.success(), "{signal:?} ended with {status}");
        ensure!(
            std::fs::read_to_string(format!("/proc/{}/comm", child.as_raw_nonzero())).is_err(),
            "CometBFT still runs after {signal:?}"
        );
        network.nodes[0].process = None;
    }
    Ok(())
}
