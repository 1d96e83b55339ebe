//! A small JSON-RPC client over HTTP.

use alloy_primitives::{Address, B256, Bytes, U64, U256};
use alloy_rpc_types_eth::{Block, EIP1186AccountProofResponse, TransactionReceipt};
use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// An error that the node answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorAnswer {
    /// JSON-RPC code.
    pub code: i64,
    /// For people.
    pub message: String,
}

impl std::fmt::Display for ErrorAnswer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ErrorAnswer {}

/// One endpoint.
#[derive(Debug, Clone)]
pub struct Rpc {
    /// `http://HOST:PORT`
    pub url: String,
    http: reqwest::Client,
}

impl Rpc {
    /// A client for the address; connects when first used.
    pub fn new(url: impl Into<String>) -> Self {
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(30))
            .build()
            .expect("a client without TLS needs nothing of the system");
        Self {
            url: url.into(),
            http,
        }
    }

    /// The raw answer to a raw body.
    pub async fn post(&self, body: impl Into<reqwest::Body>) -> Result<(u16, String)> {
        let answer = self
            .http
            .post(&self.url)
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    }

    /// Calls a method. An error answer is an [`ErrorAnswer`] in the error's chain.
    pub async fn call<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer: Value = self
            .http
            .post(&self.url)
            .json(&body)
            .send()
            .await?
            .json()
            .await?;
        if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
            return Err(ErrorAnswer {
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
            }
            .into());
        }
        let result = answer
            .get("result")
            .with_context(|| format!("{method} answered {answer}"))?;
        serde_json::from_value(result.clone())
            .with_context(|| format!("{method} answered {result}"))
    }

    /// The error that a call is expected to give.
    pub async fn refused(&self, method: &str, params: Value) -> Result<ErrorAnswer> {
        match self.call::<Value>(method, params).await {
            Ok(value) => bail!("{method} was answered with {value} and should have been refused"),
            Err(error) => error.downcast::<ErrorAnswer>(),
        }
    }

    /// Head.
    pub async fn height(&self) -> Result<u64> {
        Ok(self.call::<U64>("eth_blockNumber", json!([])).await?.to())
    }

    /// EVM chain id.
    pub async fn chain_id(&self) -> Result<u64> {
        Ok(self.call::<U64>("eth_chainId", json!([])).await?.to())
    }

    /// Balance at the head, in wei.
    pub async fn balance(&self, address: Address) -> Result<U256> {
        self.call("eth_getBalance", json!([address, "latest"]))
            .await
    }

    /// Next nonce, transactions of the pool counted.
    pub async fn pending_nonce(&self, address: Address) -> Result<u64> {
        Ok(self
            .call::<U64>("eth_getTransactionCount", json!([address, "pending"]))
            .await?
            .to())
    }

    /// Next nonce at the head.
    pub async fn nonce(&self, address: Address) -> Result<u64> {
        Ok(self
            .call::<U64>("eth_getTransactionCount", json!([address, "latest"]))
            .await?
            .to())
    }

    /// A block with the hashes of its transactions.
    pub async fn block(&self, height: u64) -> Result<Block> {
        self.call(
            "eth_getBlockByNumber",
            json!([format!("{height:#x}"), false]),
        )
        .await
    }

    /// Code at the head.
    pub async fn code(&self, address: Address) -> Result<Bytes> {
        self.call("eth_getCode", json!([address, "latest"])).await
    }

    /// `eth_call` at the head.
    pub async fn eth_call(&self, to: Address, data: impl Into<Bytes>) -> Result<Bytes> {
        self.call(
            "eth_call",
            json!([{ "to": to, "data": data.into() }, "latest"]),
        )
        .await
    }

    /// Account proof at a height.
    pub async fn proof(
        &self,
        address: Address,
        slots: &[B256],
        height: u64,
    ) -> Result<EIP1186AccountProofResponse> {
        self.call(
            "eth_getProof",
            json!([address, slots, format!("{height:#x}")]),
        )
        .await
    }

    /// Sends raw bytes.
    pub async fn send_raw(&self, raw: impl Into<Bytes>) -> Result<B256> {
        self.call("eth_sendRawTransaction", json!([raw.into()]))
            .await
    }

    /// The receipt, once mined.
    pub async fn receipt(&self, hash: B256, limit: Duration) -> Result<TransactionReceipt> {
        let started = Instant::now();
        loop {
            if let Some(receipt) = self
                .call("eth_getTransactionReceipt", json!([hash]))
                .await?
            {
                return Ok(receipt);
            }
            if started.elapsed() > limit {
                bail!("transaction {hash} was not mined within {limit:?}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the head is at least at the height.
    pub async fn reach(&self, height: u64, limit: Duration) -> Result<u64> {
        let started = Instant::now();
        let mut last;
        loop {
            match self.height().await {
                Ok(at) if at >= height => return Ok(at),
                Ok(at) => last = format!("head is {at}"),
                Err(error) => last = error.to_string(),
            }
            if started.elapsed() > limit {
                bail!(
                    "{} did not reach block {height} within {limit:?}: {last}",
                    self.url
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
