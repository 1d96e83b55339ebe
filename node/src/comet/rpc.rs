//! Client of CometBFT's JSON-RPC on loopback: status, peers, and handing over transactions.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{net::SocketAddr, time::Duration};

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum RpcError {
    /// Not listening, or it closed the connection: CometBFT is starting, stopping or gone.
    #[error("CometBFT's RPC at {address}: {source}")]
    Transport {
        /// Where we called.
        address: SocketAddr,
        /// The client's words.
        source: reqwest::Error,
    },
    /// It answered with an error.
    #[error("CometBFT's RPC: {message}")]
    Answer {
        /// Its words.
        message: String,
    },
}

/// What became of a transaction handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handover {
    /// CometBFT took it and will ask CheckTx.
    Taken,
    /// CometBFT has it, or had it lately.
    Known,
    /// Its mempool is full: try again after the next block.
    Full,
    /// Anything else, in its words.
    Refused(String),
}

/// The part of `/status` we use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Height of the newest block in its store.
    pub height: u64,
    /// Whether it is still fetching old blocks from peers.
    pub catching_up: bool,
    /// Its id among peers.
    pub node_id: String,
}

/// Cheap to clone; keeps connections alive.
#[derive(Debug, Clone)]
pub struct CometRpc {
    address: SocketAddr,
    client: reqwest::Client,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    id: Value,
    result: Option<Value>,
    error: Option<AnswerError>,
}

#[derive(Deserialize)]
struct AnswerError {
    message: String,
    #[serde(default)]
    data: Value,
}

impl AnswerError {
    fn text(&self) -> String {
        match &self.data {
            Value::String(data) => format!("{}: {data}", self.message),
            _ => self.message.clone(),
        }
    }
}

impl CometRpc {
    /// A client for the RPC at `address`; nothing is sent yet.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            client: reqwest::Client::builder()
                .no_proxy()
                .timeout(Duration::from_secs(5))
                .build()
                .expect("a client without TLS needs nothing of the system"),
        }
    }

    /// Height, whether it catches up, its id.
    pub async fn status(&self) -> Result<Status, RpcError> {
        let result = self.call("status").await?;
        let text = |pointer: &str| result.pointer(pointer).and_then(Value::as_str);
        let status = (|| {
            Some(Status {
                height: text("/sync_info/latest_block_height")?.parse().ok()?,
                catching_up: result.pointer("/sync_info/catching_up")?.as_bool()?,
                node_id: text("/node_info/id")?.to_owned(),
            })
        })();
        status.ok_or_else(|| RpcError::Answer {
            message: "status lacks a field".to_owned(),
        })
    }

    /// Number of connected peers.
    pub async fn peer_count(&self) -> Result<u64, RpcError> {
        let result = self.call("net_info").await?;
        result
            .get("n_peers")
            .and_then(Value::as_str)
            .and_then(|count| count.parse().ok())
            .ok_or_else(|| RpcError::Answer {
                message: "net_info lacks n_peers".to_owned(),
            })
    }

    /// Hands transactions over in one request; the answers are in their order. `broadcast_tx_async` does not wait for CheckTx.
    pub async fn broadcast(&self, transactions: &[&[u8]]) -> Result<Vec<Handover>, RpcError> {
        if transactions.is_empty() {
            return Ok(Vec::new());
        }
        let batch: Vec<Value> = transactions
            .iter()
            .enumerate()
            .map(|(id, bytes)| {
                request(
                    id,
                    "broadcast_tx_async",
                    json!({ "tx": BASE64.encode(bytes) }),
                )
            })
            .collect();
        let answers: Value = self.post(&Value::Array(batch)).await?;
        // CometBFT answers a batch of one without the brackets.
        let answers: Vec<Answer> = match answers {
            Value::Array(_) => serde_json::from_value(answers),
            single => serde_json::from_value(single).map(|answer| vec![answer]),
        }
        .map_err(|_| RpcError::Answer {
            message: "not a JSON-RPC answer".to_owned(),
        })?;
        let mut handovers = vec![Handover::Refused("no answer".to_owned()); transactions.len()];
        for answer in answers {
            let index = answer.id.as_u64().and_then(|id| usize::try_from(id).ok());
            if let Some(slot) = index.and_then(|index| handovers.get_mut(index)) {
                *slot = handover(&answer);
            }
        }
        Ok(handovers)
    }

    async fn call(&self, method: &str) -> Result<Value, RpcError> {
        let answer: Answer = self.post(&request(0, method, json!({}))).await?;
        match (answer.result, answer.error) {
            (Some(result), None) => Ok(result),
            (_, Some(error)) => Err(RpcError::Answer {
                message: error.text(),
            }),
            (None, None) => Err(RpcError::Answer {
                message: "neither result nor error".to_owned(),
            }),
        }
    }

    async fn post<T: serde::de::DeserializeOwned>(&self, body: &Value) -> Result<T, RpcError> {
        let transport = |source| RpcError::Transport {
            address: self.address,
            source,
        };
        self.client
            .post(format!("http://{}/", self.address))
            .json(body)
            .send()
            .await
            .map_err(transport)?
            .json()
            .await
            .map_err(transport)
    }
}

fn request(id: usize, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn handover(answer: &Answer) -> Handover {
    match &answer.error {
        None => Handover::Taken,
        Some(error) => {
            let text = error.text();
            if text.contains("tx already exists in cache") {
                Handover::Known
            } else if text.contains("mempool is full") {
                Handover::Full
            } else {
                Handover::Refused(text)
            }
        }
    }
}
