//! `cloister status`

use super::{block_on, print};
use crate::{config::Config, failure::Failure};
use serde_json::{Value, json};
use std::{fmt::Write, path::PathBuf, time::Duration};

/// Show how a running node is doing: head, durable height, peers, pool.
#[derive(Debug, clap::Args)]
pub(super) struct StatusArguments {
    /// Folder of the node.
    #[arg(long, value_name = "DIR")]
    home: PathBuf,
    /// As one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &StatusArguments) -> Result<(), Failure> {
    let config = Config::load(&arguments.home, std::env::vars())?;
    let Some(address) = config.rpc.http_address else {
        return Err(Failure::config(
            "this node serves no JSON-RPC over HTTP",
            "set rpc.http_address, which status asks",
        ));
    };
    let status = block_on(ask(address))?;
    if arguments.json {
        print(&format!("{status}\n"));
        return Ok(());
    }
    print(&table(&status));
    Ok(())
}

async fn ask(address: std::net::SocketAddr) -> Result<Value, Failure> {
    let not_running = |reason: String| {
        Failure::other(
            format!("no node answers at http://{address}: {reason}"),
            "start it with `cloister start`, or look at its log if it should be running",
        )
    };
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(5))
        .build()
        .map_err(|error| not_running(error.to_string()))?;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "cloister_status", "params": [] });
    let answer: Value = async {
        client
            .post(format!("http://{address}/"))
            .json(&body)
            .send()
            .await?
            .json()
            .await
    }
    .await
    .map_err(|error: reqwest::Error| {
        not_running(if error.is_connect() {
            "connection refused".to_owned()
        } else {
            error.to_string()
        })
    })?;
    match answer.get("result") {
        Some(status) => Ok(status.clone()),
        None => Err(Failure::other(
            format!(
                "the node at http://{address} cannot tell its status: {}",
                answer.pointer("/error/message").unwrap_or(&answer)
            ),
            "if the chain has not begun yet, wait for its first block",
        )),
    }
}

fn table(status: &Value) -> String {
    let mut text = String::new();
    for (key, label) in [
        ("version", "version"),
        ("chainId", "chain id"),
        ("height", "height"),
        ("appHash", "app hash"),
        ("blockTimeSeconds", "block time"),
        ("durableHeight", "durable height"),
        ("peers", "peers"),
        ("catchingUp", "catching up"),
        ("highestHeight", "highest height"),
        ("poolPending", "pool: pending"),
        ("poolQueued", "pool: queued"),
    ] {
        let value = match status.get(key) {
            Some(Value::String(value)) => value.clone(),
            Some(value) => value.to_string(),
            None => continue,
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{label:<16}{value}");
    }
    text
}
