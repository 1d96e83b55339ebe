//! The client suites of `clients/`, against the embedded engine and against real CometBFT.

use anyhow::{Result, ensure};
use cloister_e2e::{
    network::{Dev, Network},
    not_run, report, root,
};
use std::process::Command;

/// Runs one suite; its lines about what did not run are passed on.
fn suite(name: &str, http: &str, ws: &str) -> Result<()> {
    let output = Command::new(root().join("e2e/clients/run.sh"))
        .args([http, ws, name])
        .output()?;
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    for line in out.lines() {
        match line
            .strip_prefix("not run: ")
            .and_then(|line| line.split_once(": "))
        {
            Some((what, why)) => not_run(what, why),
            None => report(line),
        }
    }
    ensure!(
        output.status.success(),
        "{name} against {http}:\n{out}{err}"
    );
    Ok(())
}

async fn against_dev(name: &str) -> Result<()> {
    let dev = Dev::start("200ms").await?;
    suite(name, &dev.rpc.url, &dev.ws)
}

#[tokio::test(flavor = "multi_thread")]
async fn cast_on_the_embedded_engine() -> Result<()> {
    against_dev("cast").await
}

#[tokio::test(flavor = "multi_thread")]
async fn forge_on_the_embedded_engine() -> Result<()> {
    against_dev("forge").await
}

#[tokio::test(flavor = "multi_thread")]
async fn viem_on_the_embedded_engine() -> Result<()> {
    against_dev("viem").await
}

#[tokio::test(flavor = "multi_thread")]
async fn ethers_on_the_embedded_engine() -> Result<()> {
    against_dev("ethers").await
}

#[tokio::test(flavor = "multi_thread")]
async fn web3py_on_the_embedded_engine() -> Result<()> {
    against_dev("web3py").await
}

/// All on one network, each with accounts of its own; one after another, so that a failure names its suite.
#[tokio::test(flavor = "multi_thread")]
async fn all_clients_on_cometbft() -> Result<()> {
    let mut network = Network::validators(2)?;
    network.start().await?;
    // Half of the clients on each validator: what one is sent, the other may propose.
    for (index, name) in ["cast", "forge", "viem", "ethers", "web3py"]
        .into_iter()
        .enumerate()
    {
        let node = &network.nodes[index % 2];
        suite(name, &node.rpc.url, &node.ws)?;
    }
    let height = network.nodes[0].rpc.height().await?;
    network.agree(1, height).await?;
    Ok(())
}
