//! A chain in a temporary folder with a running server, and clients that know nothing of the server's code.

use crate::{
    chain::{Chain, ChainHandle, ChainOptions},
    rpc::{ConsensusStatus, RpcConfig, RpcServer, serve},
    store::{Durability, Store, StoreOptions},
};
use alloy_consensus::{SignableTransaction, TxEip1559, TxEip2930, TxEip7702, TxEnvelope, TxLegacy};
use alloy_eips::{eip2718::Encodable2718, eip7702::Authorization};
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, address, hex};
use alloy_signer::SignerSync;
use alloy_signer_local::{MnemonicBuilder, PrivateKeySigner, coins_bip39::English};
use cloister_app::block::{BlockInput, TransactionResult, Vote};
use futures::io::{BufReader, BufWriter};
use serde_json::{Value, json};
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{net::TcpStream, sync::watch};
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};

pub(super) const CHAIN_ID: u64 = 31_337;

/// Emits three logs with one word each; topics 0xa0, 0xa1, 0xa2.
pub(super) const LOGGER: Address = address!("00000000000000000000000000000000c0de0001");
/// Reverts with its calldata.
pub(super) const REVERTER: Address = address!("00000000000000000000000000000000c0de0002");
/// Slots 0 to 11 hold 1; a call clears them.
pub(super) const CLEARER: Address = address!("00000000000000000000000000000000c0de0003");
/// Never ends.
pub(super) const LOOPER: Address = address!("00000000000000000000000000000000c0de0004");
/// Calls itself with one byte of input less until none is left, then writes a slot; reverts when a call fails.
pub(super) const RECURSIVE: Address = address!("00000000000000000000000000000000c0de0005");
/// Returns slot 0.
pub(super) const READER: Address = address!("00000000000000000000000000000000c0de0006");
pub(super) const NOBODY: Address = address!("0000000000000000000000000000000000000b0b");

#[expect(
    clippy::type_complexity,
    reason = "a table of address, code and storage"
)]
fn contracts() -> Vec<(Address, Vec<u8>, Vec<(u64, u64)>)> {
    let logs = (0..3_u8)
        .flat_map(|i| [0x60, i, 0x5f, 0x52, 0x60, 0xa0 + i, 0x60, 0x20, 0x5f, 0xa1])
        .collect();
    let clears = (0..12_u8)
        .flat_map(|slot| [0x5f, 0x60, slot, 0x55])
        .collect();
    vec![
        (LOGGER, logs, vec![]),
        (REVERTER, hex!("365f5f37365ffd").to_vec(), vec![]),
        (CLEARER, clears, (0..12).map(|slot| (slot, 1)).collect()),
        (LOOPER, hex!("5b5f56").to_vec(), vec![]),
        (RECURSIVE, recursive(), vec![]),
        (READER, hex!("5f545f5260205ff3").to_vec(), vec![(0, 77)]),
    ]
}

fn recursive() -> Vec<u8> {
    // CALLDATASIZE ISZERO PUSH1 leaf JUMPI; CALL(gas, self, 0, 0, size - 1, 0, 0); ISZERO PUSH1 fail JUMPI STOP
    let mut code = hex!("3615600057 5f5f6001360360005f305af1 15600057 00").to_vec();
    let second = code
        .windows(2)
        .rposition(|pair| pair == [0x15, 0x60])
        .expect("the second jump");
    code[3] = code.len() as u8;
    code.extend_from_slice(&hex!("5b60015f5500"));
    code[second + 2] = code.len() as u8;
    code.extend_from_slice(&hex!("5b5f5ffd"));
    code
}

pub(super) struct Bench {
    pub(super) chain: Chain,
    pub(super) server: RpcServer,
    pub(super) consensus: watch::Sender<ConsensusStatus>,
    handle: ChainHandle,
    http: reqwest::Client,
    _folder: tempfile::TempDir,
}

impl Bench {
    /// A chain at block 0.
    pub(super) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(super) async fn with(configure: impl FnOnce(&mut RpcConfig)) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut genesis = cloister_genesis::dev_genesis();
        let word = |number: u64| B256::from(U256::from(number));
        for (address, code, slots) in contracts() {
            let account = GenesisAccount {
                code: Some(code.into()),
                storage: Some(
                    slots
                        .into_iter()
                        .map(|(slot, value)| (word(slot), word(value)))
                        .collect(),
                ),
                ..GenesisAccount::default()
            };
            genesis.alloc.insert(address, account);
        }
        let options = StoreOptions {
            durability: Durability::Os,
            wal_folder: None,
            block_cache_bytes: 1 << 20,
            history_blocks: 64,
            proof_window_blocks: 64,
        };
        let store = Store::open(folder.path(), options).expect("a fresh store opens");
        let network = genesis.network.clone();
        let chain = Chain::new(
            Arc::new(genesis),
            B256::ZERO,
            store,
            ChainOptions::default(),
        );
        let handle = ChainHandle::start(chain.clone()).expect("a thread starts");
        let app_state = format!(
            r#"{{"genesis_sha256":"{}","evm_chain_id":{CHAIN_ID}}}"#,
            hex::encode(B256::ZERO)
        );
        handle
            .init_chain(network, app_state.into_bytes().into(), 1)
            .await
            .expect("block 0");
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut config = RpcConfig {
            http: Some(free),
            ws: Some(free),
            ..RpcConfig::default()
        };
        configure(&mut config);
        let (consensus, status) = watch::channel(ConsensusStatus::default());
        let server = serve(chain.clone(), config, status)
            .await
            .expect("the server starts");
        Self {
            chain,
            server,
            consensus,
            handle,
            http: reqwest::Client::new(),
            _folder: folder,
        }
    }

    /// Decides a block of these transactions, valid or not.
    pub(super) async fn block(&self, transactions: &[Bytes]) -> Vec<TransactionResult> {
        let head = self.chain.store().head().expect("a chain");
        let validator = self.chain.genesis().validators[0].clone();
        let proposer = cloister_genesis::consensus_address(&validator.public_key).0;
        let vote = Vote {
            validator: proposer,
            power: validator.power,
            signed: true,
        };
        let input = BlockInput {
            height: head.height + 1,
            time_ms: (head.header.timestamp + 1) * 1_000,
            proposer,
            transactions: transactions.to_vec(),
            misbehaviour: Vec::new(),
            last_commit: if head.height == 0 {
                Vec::new()
            } else {
                vec![vote]
            },
        };
        let hash = B256::from(U256::from(head.height + 1_000));
        let answer = self
            .handle
            .finalize_block(input, hash)
            .await
            .expect("the block executes");
        self.handle.commit().await.expect("the block commits");
        answer.results
    }

    pub(super) async fn post(&self, body: impl Into<reqwest::Body>) -> (u16, String) {
        let address = self.server.addresses.http.expect("HTTP is served");
        let request = self
            .http
            .post(format!("http://{address}"))
            .header("content-type", "application/json");
        let response = request.body(body).send().await.expect("the server answers");
        (
            response.status().as_u16(),
            response.text().await.expect("a body"),
        )
    }

    /// The whole response.
    pub(super) async fn ask(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (_, text) = self.post(body.to_string()).await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{method}: {error}: {text}"))
    }

    pub(super) async fn result(&self, method: &str, params: Value) -> Value {
        let response = self.ask(method, params.clone()).await;
        match response.get("result") {
            Some(result) => result.clone(),
            None => panic!("{method} {params}: {response}"),
        }
    }

    /// Code and message.
    pub(super) async fn error(&self, method: &str, params: Value) -> (i64, String) {
        let response = self.ask(method, params.clone()).await;
        match response.get("error") {
            Some(error) => (
                error["code"].as_i64().expect("a code"),
                error["message"].as_str().expect("a message").to_owned(),
            ),
            None => panic!("{method} {params}: {response}"),
        }
    }

    pub(super) async fn web_socket(&self) -> WebSocket {
        WebSocket::open(self.server.addresses.ws.expect("WebSocket is served")).await
    }
}

/// A WebSocket client on another implementation than the server's wrapper.
pub(super) struct WebSocket {
    sender: soketto::Sender<BufReader<BufWriter<Compat<TcpStream>>>>,
    receiver: soketto::Receiver<BufReader<BufWriter<Compat<TcpStream>>>>,
    next_id: u64,
    notifications: std::collections::VecDeque<Value>,
}

impl WebSocket {
    pub(super) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address)
            .await
            .expect("the server accepts");
        let host = address.to_string();
        let stream = BufReader::new(BufWriter::new(stream.compat()));
        let mut client = soketto::handshake::Client::new(stream, &host, "/");
        let answer = client.handshake().await.expect("the server shakes hands");
        assert!(
            matches!(answer, soketto::handshake::ServerResponse::Accepted { .. }),
            "{answer:?}"
        );
        let (sender, receiver) = client.into_builder().finish();
        Self {
            sender,
            receiver,
            next_id: 0,
            notifications: Default::default(),
        }
    }

    async fn receive(&mut self) -> Value {
        let mut data = Vec::new();
        let received = tokio::time::timeout(
            Duration::from_secs(10),
            self.receiver.receive_data(&mut data),
        )
        .await;
        received
            .expect("a message in time")
            .expect("an open connection");
        serde_json::from_slice(&data).expect("JSON")
    }

    /// The whole response.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let body =
            json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        self.sender.send_text(body.to_string()).await.expect("sent");
        self.sender.flush().await.expect("flushed");
        loop {
            let message = self.receive().await;
            if message["id"] == json!(self.next_id) {
                return message;
            }
            self.notifications.push_back(message);
        }
    }

    pub(super) async fn subscribe(&mut self, params: Value) -> String {
        let response = self.ask("eth_subscribe", params).await;
        response["result"]
            .as_str()
            .unwrap_or_else(|| panic!("{response}"))
            .to_owned()
    }

    /// The next notification of a subscription.
    pub(super) async fn next(&mut self, subscription: &str) -> Value {
        loop {
            let message = match self.notifications.pop_front() {
                Some(message) => message,
                None => self.receive().await,
            };
            assert_eq!(message["method"], "eth_subscription", "{message}");
            if message["params"]["subscription"] == subscription {
                return message["params"]["result"].clone();
            }
        }
    }

    /// The next notification of any subscription.
    pub(super) async fn next_any(&mut self) -> (String, Value) {
        let message = match self.notifications.pop_front() {
            Some(message) => message,
            None => self.receive().await,
        };
        let subscription = message["params"]["subscription"]
            .as_str()
            .expect("a subscription")
            .to_owned();
        (subscription, message["params"]["result"].clone())
    }

    /// Whether nothing arrives for a while. The socket is of no use afterwards.
    pub(super) async fn is_silent(&mut self) -> bool {
        let mut data = Vec::new();
        let wait = tokio::time::timeout(
            Duration::from_millis(300),
            self.receiver.receive_data(&mut data),
        );
        self.notifications.is_empty() && wait.await.is_err()
    }
}

/// Development account `index`.
pub(super) fn signer(index: u32) -> PrivateKeySigner {
    MnemonicBuilder::<English>::default()
        .phrase("test test test test test test test test test test test junk")
        .index(index)
        .and_then(|builder| builder.build())
        .expect("the development mnemonic is valid")
}

fn sealed<T: SignableTransaction<alloy_primitives::Signature>>(
    signer: &PrivateKeySigner,
    transaction: T,
) -> TxEnvelope
where
    TxEnvelope: From<alloy_consensus::Signed<T>>,
{
    let signature = signer
        .sign_hash_sync(&transaction.signature_hash())
        .expect("a local key signs");
    transaction.into_signed(signature).into()
}

/// What tests vary of a transaction.
#[derive(Clone)]
pub(super) struct Sending {
    pub(super) from: u32,
    pub(super) nonce: u64,
    pub(super) to: TxKind,
    pub(super) value: U256,
    pub(super) gas_limit: u64,
    pub(super) input: Bytes,
    pub(super) fee_cap_wei: u128,
    pub(super) tip_wei: u128,
}

/// A call of `to` by development account `from`.
pub(super) fn sending(from: u32, nonce: u64, to: Address) -> Sending {
    Sending {
        from,
        nonce,
        to: TxKind::Call(to),
        value: U256::ZERO,
        gas_limit: 200_000,
        input: Bytes::new(),
        fee_cap_wei: 20_000_000_000,
        tip_wei: 1_000_000_000,
    }
}

impl Sending {
    pub(super) fn dynamic(&self) -> TxEnvelope {
        sealed(
            &signer(self.from),
            TxEip1559 {
                chain_id: CHAIN_ID,
                nonce: self.nonce,
                gas_limit: self.gas_limit,
                max_fee_per_gas: self.fee_cap_wei,
                max_priority_fee_per_gas: self.tip_wei,
                to: self.to,
                value: self.value,
                access_list: Default::default(),
                input: self.input.clone(),
            },
        )
    }

    pub(super) fn legacy(&self) -> TxEnvelope {
        sealed(
            &signer(self.from),
            TxLegacy {
                chain_id: Some(CHAIN_ID),
                nonce: self.nonce,
                gas_price: self.fee_cap_wei,
                gas_limit: self.gas_limit,
                to: self.to,
                value: self.value,
                input: self.input.clone(),
            },
        )
    }

    pub(super) fn with_access_list(&self) -> TxEnvelope {
        sealed(
            &signer(self.from),
            TxEip2930 {
                chain_id: CHAIN_ID,
                nonce: self.nonce,
                gas_price: self.fee_cap_wei,
                gas_limit: self.gas_limit,
                to: self.to,
                value: self.value,
                access_list: Default::default(),
                input: self.input.clone(),
            },
        )
    }

    /// Delegates development account `authority`, at `nonce`, to [`READER`].
    pub(super) fn set_code(&self, authority: u32, nonce: u64) -> TxEnvelope {
        let authorization = Authorization {
            chain_id: U256::from(CHAIN_ID),
            address: READER,
            nonce,
        };
        let signature = signer(authority)
            .sign_hash_sync(&authorization.signature_hash())
            .expect("a local key signs");
        sealed(
            &signer(self.from),
            TxEip7702 {
                chain_id: CHAIN_ID,
                nonce: self.nonce,
                gas_limit: self.gas_limit,
                max_fee_per_gas: self.fee_cap_wei,
                max_priority_fee_per_gas: self.tip_wei,
                to: *self.to.to().expect("type 4 calls"),
                value: self.value,
                access_list: Default::default(),
                authorization_list: vec![authorization.into_signed(signature)],
                input: self.input.clone(),
            },
        )
    }
}

pub(super) fn raw(envelope: &TxEnvelope) -> Bytes {
    envelope.encoded_2718().into()
}
