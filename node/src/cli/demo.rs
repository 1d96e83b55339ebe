//! The first-run demonstration: an ordinary client of the JSON-RPC endpoint, over real HTTP. It sends a transfer, deploys
//! a contract and has it verify a Groth16 proof, and prints each receipt.

use super::print;
use crate::engine::accounts::dev_signer;
use alloy_consensus::{SignableTransaction as _, TxEip1559, TxEnvelope};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, hex, keccak256};
use alloy_signer::SignerSync as _;
use alloy_signer_local::PrivateKeySigner;
use cloister_genesis::{DevelopmentProof, development_proofs};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// The circuit whose development proof is shown.
const CIRCUIT: &str = "transfer_k2";
/// One coin: 10^18 wei.
const COIN_WEI: u64 = 1_000_000_000_000_000_000;
/// How long a receipt may take.
const RECEIPT_PATIENCE: Duration = Duration::from_secs(60);
const RECEIPT_POLL: Duration = Duration::from_millis(50);

/// Why the demonstration ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum DemoError {
    /// The endpoint cannot be reached, or what it says is no JSON.
    #[error("{method}: {source}")]
    Http {
        /// Method called.
        method: &'static str,
        /// What went wrong.
        source: reqwest::Error,
    },
    /// The endpoint answered with an error.
    #[error("{method}: {message} (code {code})")]
    Rpc {
        /// Method called.
        method: &'static str,
        /// JSON-RPC error code.
        code: i64,
        /// Its message.
        message: String,
    },
    /// The answer has another shape than the method's.
    #[error("{method}: unexpected answer: {answer}")]
    Answer {
        /// Method called.
        method: &'static str,
        /// What it answered.
        answer: String,
    },
    /// Not included in time.
    #[error("no receipt for {hash} within {} s", RECEIPT_PATIENCE.as_secs())]
    NoReceipt {
        /// Transaction.
        hash: B256,
    },
    /// Included, but reverted.
    #[error("transaction {hash} reverted")]
    Reverted {
        /// Transaction.
        hash: B256,
    },
    /// A forged proof was accepted.
    #[error("the chain accepted a proof with a flipped bit")]
    ForgedProofAccepted,
}

/// Runs the demonstration against the node at `address`.
pub(super) async fn run(address: SocketAddr) -> Result<(), DemoError> {
    let client = Client {
        http: reqwest::Client::new(),
        url: format!("http://{address}"),
        signer: dev_signer(0),
    };
    let receiver = dev_signer(1).address();
    print("Demonstration, through JSON-RPC over HTTP\n\n");

    print(&format!(
        "1. Transfer of 1 coin from {} to {receiver}\n",
        client.signer.address()
    ));
    let receipt = client
        .send(TxKind::Call(receiver), U256::from(COIN_WEI), Bytes::new())
        .await?;
    print(&shown(&receipt));
    let balance: U256 = client
        .call("eth_getBalance", json!([receiver, "latest"]))
        .await?;
    print(&format!("   balance of {receiver}: {balance} wei\n\n"));

    print("2. Deployment of a contract that has the Groth16 precompile check what it is sent\n");
    let receipt = client
        .send(TxKind::Create, U256::ZERO, gate_init_code())
        .await?;
    print(&shown(&receipt));
    let contract: Address = field(&receipt, "contractAddress")?;
    let code: Bytes = client
        .call("eth_getCode", json!([contract, "latest"]))
        .await?;
    print(&format!(
        "   contract {contract}, {} bytes of code\n\n",
        code.len()
    ));

    let proof = development_proof();
    print(&format!(
        "3. Groth16 proof (BN254, circuit {}, {} public inputs, key {}) sent to the contract\n",
        proof.name, proof.public_input_count, proof.id
    ));
    let input = proof.verify_input();
    let receipt = client
        .send(TxKind::Call(contract), U256::ZERO, input.clone())
        .await?;
    print(&shown(&receipt));
    let count: U256 = client
        .call("eth_getStorageAt", json!([contract, "0x0", "latest"]))
        .await?;
    print(&format!("   proofs the contract has verified: {count}\n"));
    let mut forged = input.to_vec();
    // The last bit of the last public input.
    if let Some(last) = forged.last_mut() {
        *last ^= 1;
    }
    match client.eth_call(contract, forged.into()).await {
        Ok(_) => return Err(DemoError::ForgedProofAccepted),
        Err(DemoError::Rpc { message, .. }) => {
            print(&format!(
                "   the same proof with one bit of a public input flipped: {message}\n\n"
            ));
        }
        Err(error) => return Err(error),
    }
    print("Demonstration complete. The chain goes on; Ctrl-C stops it.\n");
    Ok(())
}

fn development_proof() -> DevelopmentProof {
    development_proofs()
        .into_iter()
        .find(|proof| proof.name == CIRCUIT)
        .expect("the development keys include this circuit")
}

/// A client with a key.
struct Client {
    http: reqwest::Client,
    url: String,
    signer: PrivateKeySigner,
}

impl Client {
    async fn call<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<T, DemoError> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let http = |source| DemoError::Http { method, source };
        let response = self
            .http
            .post(&self.url)
            .json(&request)
            .send()
            .await
            .map_err(http)?;
        let mut answer: Value = response.json().await.map_err(http)?;
        if let Some(error) = answer.get("error") {
            return Err(DemoError::Rpc {
                method,
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
            });
        }
        let result = answer["result"].take();
        serde_json::from_value(result).map_err(|_| DemoError::Answer {
            method,
            answer: answer.to_string(),
        })
    }

    async fn eth_call(&self, to: Address, input: Bytes) -> Result<Bytes, DemoError> {
        let from = self.signer.address();
        self.call(
            "eth_call",
            json!([{"from": from, "to": to, "input": input}, "latest"]),
        )
        .await
    }

    /// Signs and sends a transaction, as a wallet does, and waits for its receipt.
    async fn send(&self, to: TxKind, value: U256, input: Bytes) -> Result<Value, DemoError> {
        let from = self.signer.address();
        let mut request = json!({"from": from, "value": value, "input": input});
        if let TxKind::Call(to) = to {
            request["to"] = json!(to);
        }
        let chain_id: U256 = self.call("eth_chainId", json!([])).await?;
        let nonce: U256 = self
            .call("eth_getTransactionCount", json!([from, "pending"]))
            .await?;
        let gas: U256 = self.call("eth_estimateGas", json!([request])).await?;
        let gas_price: U256 = self.call("eth_gasPrice", json!([])).await?;
        let tip: U256 = self.call("eth_maxPriorityFeePerGas", json!([])).await?;
        let transaction = TxEip1559 {
            chain_id: chain_id.saturating_to(),
            nonce: nonce.saturating_to(),
            gas_limit: gas.saturating_to(),
            // Room for the base fee to rise meanwhile.
            max_fee_per_gas: (gas_price * U256::from(2)).saturating_to(),
            max_priority_fee_per_gas: tip.saturating_to(),
            to,
            value,
            input,
            access_list: Default::default(),
        };
        let signature = self
            .signer
            .sign_hash_sync(&transaction.signature_hash())
            .expect("a local key signs any hash");
        let envelope = TxEnvelope::from(transaction.into_signed(signature));
        let raw = hex::encode_prefixed(envelope.encoded_2718());
        let hash: B256 = self.call("eth_sendRawTransaction", json!([raw])).await?;
        self.receipt(hash).await
    }

    async fn receipt(&self, hash: B256) -> Result<Value, DemoError> {
        let asked = Instant::now();
        while asked.elapsed() < RECEIPT_PATIENCE {
            let receipt: Value = self
                .call("eth_getTransactionReceipt", json!([hash]))
                .await?;
            if receipt.is_null() {
                tokio::time::sleep(RECEIPT_POLL).await;
                continue;
            }
            let status: U256 = field(&receipt, "status")?;
            if status.is_zero() {
                return Err(DemoError::Reverted { hash });
            }
            return Ok(receipt);
        }
        Err(DemoError::NoReceipt { hash })
    }
}

fn field<T: DeserializeOwned>(receipt: &Value, name: &str) -> Result<T, DemoError> {
    serde_json::from_value(receipt[name].clone()).map_err(|_| DemoError::Answer {
        method: "eth_getTransactionReceipt",
        answer: receipt.to_string(),
    })
}

/// The receipt as it came, indented, the 256 bytes of its bloom cut short.
fn shown(receipt: &Value) -> String {
    let mut receipt = receipt.clone();
    let blooms = receipt["logsBloom"]
        .as_str()
        .map(|bloom| format!("{}…", &bloom[..bloom.len().min(10)]));
    if let Some(bloom) = blooms {
        receipt["logsBloom"] = Value::String(bloom);
    }
    let text = serde_json::to_string_pretty(&receipt).unwrap_or_default();
    text.lines().map(|line| format!("   {line}\n")).collect()
}

/// Init code of a contract that hands its input to the precompile `groth16_verify`, reverts unless that answers 1, and
/// counts what passed: slot 0, event `ProofVerified(uint256 count)`, return value.
fn gate_init_code() -> Bytes {
    let topic = keccak256("ProofVerified(uint256)");
    let runtime = [
        // Copy the input to memory 0.
        &hex!("365f5f37")[..],
        // staticcall(gas, 0x0c01, 0, calldatasize, calldatasize, 32): the answer goes behind the input.
        &hex!("602036365f610c015afa"),
        // Go on at 0x17 if the call succeeded and answered 1, else revert.
        &hex!("3651166017575f5ffd5b"),
        // count = slot 0 + 1, stored and put in memory.
        &hex!("5f54600101805f555f52"),
        // log1(0, 32, topic)
        &hex!("7f"),
        topic.as_slice(),
        &hex!("60205fa1"),
        // return(0, 32)
        &hex!("60205ff3"),
    ]
    .concat();
    // codecopy(0, 9, length), return(0, length)
    let length = u8::try_from(runtime.len()).expect("the code above is short");
    [&[0x60, length][..], &hex!("8060095f395ff3"), &runtime]
        .concat()
        .into()
}
