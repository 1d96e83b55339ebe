//! CometBFT's own RPC: what the application is compared with.

use alloy_primitives::B256;
use anyhow::{Context, Result};
use serde_json::Value;
use std::time::Duration;

/// One CometBFT.
#[derive(Debug, Clone)]
pub struct Comet {
    url: String,
    http: reqwest::Client,
}

impl Comet {
    /// A client for `http://HOST:PORT`.
    pub fn new(url: impl Into<String>) -> Self {
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(10))
            .build()
            .expect("a client without TLS needs nothing of the system");
        Self {
            url: url.into(),
            http,
        }
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let answer: Value = self
            .http
            .get(format!("{}/{path}", self.url))
            .send()
            .await?
            .json()
            .await?;
        answer
            .get("result")
            .cloned()
            .with_context(|| format!("{path} answered {answer}"))
    }

    /// Latest height.
    pub async fn height(&self) -> Result<u64> {
        let status = self.get("status").await?;
        let height = status["sync_info"]["latest_block_height"]
            .as_str()
            .context("latest_block_height in status")?;
        Ok(height.parse()?)
    }

    /// The app hash in the header of a height: the result of the block before.
    pub async fn app_hash(&self, height: u64) -> Result<B256> {
        let block = self.get(&format!("block?height={height}")).await?;
        let text = block["block"]["header"]["app_hash"]
            .as_str()
            .context("app_hash in header")?;
        Ok(text.parse::<B256>()?)
    }

    /// CometBFT's hash of a block.
    pub async fn block_hash(&self, height: u64) -> Result<B256> {
        let block = self.get(&format!("block?height={height}")).await?;
        Ok(block["block_id"]["hash"]
            .as_str()
            .context("hash in block_id")?
            .parse()?)
    }

    /// Peers connected.
    pub async fn peer_count(&self) -> Result<u64> {
        let info = self.get("net_info").await?;
        Ok(info["n_peers"]
            .as_str()
            .context("n_peers in net_info")?
            .parse()?)
    }
}
