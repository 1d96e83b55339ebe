//! The application over its socket, driven by a stand-in for CometBFT: the grammar of calls with a real store.

mod common;

use alloy_consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use alloy_eips::Encodable2718;
use alloy_primitives::{Address, B256, TxKind, U256};
use alloy_signer::SignerSync;
use cloister_genesis::{DEV_CHAIN_ID, Genesis, dev_genesis, file_hash};
use cloister_node::{
    abci::{AbciServer, socket::AbciAddress},
    broadcast::Carried,
    chain::{Chain, ChainHandle, ChainOptions},
    ending::Ending,
    engine::accounts::dev_signer,
    store::{Durability, Store, StoreOptions},
};
use common::{Answer, Block, Connection};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// A listening application on a fresh home.
struct Application {
    runtime: tokio::runtime::Runtime,
    _server: AbciServer,
    chain: Chain,
    ending: Ending,
    genesis: Genesis,
    genesis_json: Vec<u8>,
    socket: PathBuf,
    _home: tempfile::TempDir,
}

impl Application {
    fn start() -> Self {
        let home = tempfile::Builder::new()
            .prefix("cl-abci-")
            .tempdir()
            .expect("a temporary folder");
        let genesis = dev_genesis();
        let genesis_json = genesis.to_json();
        let store = Store::open(
            &home.path().join("store"),
            StoreOptions {
                durability: Durability::EveryBlock,
                wal_folder: None,
                block_cache_bytes: 8 << 20,
                history_blocks: 100,
                proof_window_blocks: 16,
            },
        )
        .expect("a fresh store");
        let chain = Chain::new(
            Arc::new(genesis.clone()),
            B256::from(file_hash(&genesis_json)),
            store,
            ChainOptions::default(),
        );
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let ending = Ending::recording();
        let (server, socket) = runtime.block_on(async {
            let handle = ChainHandle::start(chain.clone()).expect("a thread");
            let address = AbciAddress::unix_for_home(home.path(), None).expect("a path");
            let server = AbciServer::start(address, &chain, &handle, &Carried::default(), &ending)
                .await
                .expect("a fresh socket");
            let AbciAddress::Unix { path, .. } = server.address.clone() else {
                panic!("a unix socket was asked for")
            };
            (server, path)
        });
        Self {
            runtime,
            _server: server,
            chain,
            ending,
            genesis,
            genesis_json,
            socket,
            _home: home,
        }
    }

    fn connect(&self) -> Connection {
        Connection::open(&self.socket)
    }

    /// A connection on which InitChain has been answered, and the hash of block 0.
    fn begun(&self) -> (Connection, Vec<u8>) {
        let mut consensus = self.connect();
        let answer = consensus.call(common::init_chain(&self.genesis, &self.genesis_json));
        (
            consensus,
            expect_answer!(answer, InitChain).app_hash.to_vec(),
        )
    }

    fn block(&self, height: i64, transactions: Vec<Vec<u8>>) -> Block {
        Block::new(&self.genesis, height, transactions)
    }

    fn healthy(&self) {
        assert_eq!(self.ending.fatal(), None);
    }
}

fn transfer(sender: u32, nonce: u64) -> Vec<u8> {
    let transaction = TxEip1559 {
        chain_id: DEV_CHAIN_ID,
        nonce,
        gas_limit: 21_000,
        max_fee_per_gas: 10_000_000_000,
        max_priority_fee_per_gas: 1_000_000_000,
        to: TxKind::Call(Address::repeat_byte(0x42)),
        value: U256::from(1),
        ..Default::default()
    };
    let signature = dev_signer(sender)
        .sign_hash_sync(&transaction.signature_hash())
        .expect("a local key");
    TxEnvelope::from(transaction.into_signed(signature)).encoded_2718()
}

fn last(connection: &mut Connection) -> (i64, Vec<u8>) {
    let info = expect_answer!(connection.call(common::info()), Info);
    (info.last_block_height, info.last_block_app_hash.to_vec())
}

#[test]
fn a_chain_begins_and_makes_blocks() {
    let application = Application::start();
    let mut info = application.connect();
    assert_eq!(last(&mut info), (0, Vec::new()));
    let (mut consensus, genesis_hash) = application.begun();
    assert_eq!(genesis_hash.len(), 32);

    let mut mempool = application.connect();
    let raw = transfer(0, 0);
    let checked = expect_answer!(mempool.call(common::check_tx(&raw, false)), CheckTx);
    assert_eq!(checked.code, 0, "{}", checked.log);

    // CometBFT offers nothing; the pool has it.
    let empty = application.block(1, Vec::new());
    let proposal = expect_answer!(consensus.call(empty.prepare()), PrepareProposal);
    assert_eq!(proposal.txs, std::slice::from_ref(&raw));
    let block = application.block(1, vec![raw.clone()]);
    let verdict = expect_answer!(consensus.call(block.process()), ProcessProposal);
    assert_eq!(verdict.status, 1);
    let finalized = expect_answer!(consensus.call(block.finalize()), FinalizeBlock);
    assert_eq!(finalized.tx_results.len(), 1);
    assert_eq!(finalized.tx_results[0].code, 0);
    assert_eq!(finalized.tx_results[0].gas_used, 21_000);
    assert!(finalized.tx_results[0].data.is_empty());
    assert_eq!(
        last(&mut info),
        (0, Vec::new()),
        "nothing is kept before Commit"
    );
    expect_answer!(consensus.call(common::commit()), Commit);
    assert_eq!(last(&mut info), (1, finalized.app_hash.to_vec()));

    // It has been included: CometBFT is to forget it.
    let rechecked = expect_answer!(mempool.call(common::check_tx(&raw, true)), CheckTx);
    assert_ne!(rechecked.code, 0);
    application.healthy();
}

#[test]
fn garbage_in_a_decided_block_gets_one_result_each() {
    let application = Application::start();
    let (mut consensus, _) = application.begun();
    let garbage: Vec<Vec<u8>> = (0..1_000_u32)
        .map(|index| index.to_be_bytes().repeat(1 + index as usize % 50))
        .collect();
    let block = application.block(1, garbage);
    let verdict = expect_answer!(consensus.call(block.process()), ProcessProposal);
    assert_eq!(verdict.status, 2, "REJECT, never UNKNOWN");
    let finalized = expect_answer!(consensus.call(block.finalize()), FinalizeBlock);
    assert_eq!(finalized.tx_results.len(), 1_000);
    assert!(
        finalized
            .tx_results
            .iter()
            .all(|result| result.code != 0 && result.gas_used == 0)
    );
    expect_answer!(consensus.call(common::commit()), Commit);
    application.healthy();
}

#[test]
fn a_peer_that_closes_before_commit_costs_nothing() {
    let application = Application::start();
    let (mut consensus, _) = application.begun();
    let block = application.block(1, vec![transfer(0, 0)]);
    let first = expect_answer!(consensus.call(block.finalize()), FinalizeBlock);
    drop(consensus);

    // CometBFT restarts: a new handshake, and the block again.
    let mut consensus = application.connect();
    let mut info = application.connect();
    assert_eq!(last(&mut info), (0, Vec::new()));
    expect_answer!(
        consensus.call(common::init_chain(
            &application.genesis,
            &application.genesis_json
        )),
        InitChain
    );
    let again = expect_answer!(consensus.call(block.finalize()), FinalizeBlock);
    assert_eq!(again.app_hash, first.app_hash);
    expect_answer!(consensus.call(common::commit()), Commit);
    assert_eq!(last(&mut info), (1, first.app_hash.to_vec()));
    application.healthy();
}

#[test]
fn a_stranger_on_the_socket_does_not_disturb_consensus() {
    let application = Application::start();
    let (mut consensus, _) = application.begun();
    let block = application.block(1, Vec::new());
    expect_answer!(consensus.call(block.finalize()), FinalizeBlock);
    // Another connection comes, asks and goes, between FinalizeBlock and Commit.
    let mut other = application.connect();
    expect_answer!(other.call(common::info()), Info);
    drop(other);
    std::thread::sleep(Duration::from_millis(50));
    expect_answer!(consensus.call(common::commit()), Commit);
    application.healthy();
}

#[test]
fn gapped_transactions_wait_here_and_not_in_cometbft() {
    let application = Application::start();
    let _begun = application.begun();
    let mut mempool = application.connect();
    let gapped = expect_answer!(
        mempool.call(common::check_tx(&transfer(1, 1), false)),
        CheckTx
    );
    assert_eq!(gapped.code, 101, "NonceGap: {}", gapped.log);
    assert_eq!(application.chain.pool().size(), (0, 1));
    let filled = expect_answer!(
        mempool.call(common::check_tx(&transfer(1, 0), false)),
        CheckTx
    );
    assert_eq!(filled.code, 0);
    assert_eq!(application.chain.pool().size(), (2, 0));
    // Promoted: when it is handed over, CheckTx lets it in.
    let promoted = expect_answer!(
        mempool.call(common::check_tx(&transfer(1, 1), false)),
        CheckTx
    );
    assert_eq!(promoted.code, 0);
    application.healthy();
}

#[test]
fn queries_answer_or_say_why_not() {
    let application = Application::start();
    let mut info = application.connect();
    let early = expect_answer!(info.call(common::query("/head", b"")), Query);
    assert_eq!(early.code, 3);
    let (_consensus, genesis_hash) = application.begun();
    let head = expect_answer!(info.call(common::query("/head", b"")), Query);
    let value: serde_json::Value = serde_json::from_slice(&head.value).expect("JSON");
    assert_eq!(value["hash"], format!("0x{}", hex::encode(genesis_hash)));
    let account = dev_signer(0).address();
    let answer = expect_answer!(
        info.call(common::query("/account", account.as_slice())),
        Query
    );
    let value: serde_json::Value = serde_json::from_slice(&answer.value).expect("JSON");
    assert_eq!(value["balance"], "0x21e19e0c9bab2400000");
    for (path, data, code) in [
        ("/nothing", &b""[..], 1),
        ("/account", b"short", 2),
        ("/storage", &[0; 51], 2),
    ] {
        let answer = expect_answer!(info.call(common::query(path, data)), Query);
        assert_eq!(answer.code, code, "{path}: {}", answer.log);
        assert!(!answer.log.is_empty());
    }
    application.healthy();
}

#[test]
fn there_are_no_snapshots_and_it_says_so() {
    let application = Application::start();
    let mut snapshot = application.connect();
    let list = expect_answer!(snapshot.call(common::list_snapshots()), ListSnapshots);
    assert!(list.snapshots.is_empty());
    let offer = expect_answer!(snapshot.call(common::offer_snapshot()), OfferSnapshot);
    assert_eq!(offer.result, 3, "REJECT");
    let chunk = expect_answer!(
        snapshot.call(common::load_snapshot_chunk()),
        LoadSnapshotChunk
    );
    assert!(chunk.chunk.is_empty());
    let applied = expect_answer!(
        snapshot.call(common::apply_snapshot_chunk()),
        ApplySnapshotChunk
    );
    assert_eq!(applied.result, 2, "ABORT");
    application.healthy();
}

#[test]
fn refuses_a_genesis_that_is_not_ours() {
    let application = Application::start();
    let mut consensus = application.connect();
    let mut altered = application.genesis_json.clone();
    altered.push(b' ');
    consensus
        .send(common::init_chain(&application.genesis, &altered))
        .expect("a fresh connection");
    let fatal = application
        .runtime
        .block_on(async {
            tokio::time::timeout(Duration::from_secs(5), application.ending.wait()).await
        })
        .expect("the fault is recorded");
    assert_eq!(fatal.exit_code, 78, "{fatal}");
}

/// D28: answers under way never wait for a connection that is busy.
#[test]
fn five_thousand_checks_and_queries_do_not_hold_up_blocks() {
    let application = Application::start();
    let (mut consensus, _) = application.begun();
    let raw = transfer(2, 0);
    std::thread::scope(|scope| {
        let mempool = scope.spawn(|| {
            let mut reader = application.connect();
            for _ in 0..50 {
                // All at once, one flush at the end, as CometBFT's client does under load.
                for _ in 0..100 {
                    reader
                        .send(common::check_tx(&raw, false))
                        .expect("it listens");
                }
                reader
                    .send(common::Ask::Flush(Default::default()))
                    .expect("it listens");
                let mut answers = 0;
                loop {
                    match reader.receive().expect("it answers") {
                        Answer::CheckTx(_) => answers += 1,
                        Answer::Flush(_) => break,
                        other => panic!("{other:?}"),
                    }
                }
                assert_eq!(answers, 100);
            }
        });
        let queries = scope.spawn(|| {
            let mut info = application.connect();
            for _ in 0..1_000 {
                expect_answer!(info.call(common::query("/head", b"")), Query);
            }
        });
        for height in 1..=20 {
            let started = std::time::Instant::now();
            let proposal = expect_answer!(
                consensus.call(application.block(height, Vec::new()).prepare()),
                PrepareProposal
            );
            let transactions = proposal.txs.iter().map(|raw| raw.to_vec()).collect();
            let block = application.block(height, transactions);
            assert_eq!(
                expect_answer!(consensus.call(block.process()), ProcessProposal).status,
                1
            );
            expect_answer!(consensus.call(block.finalize()), FinalizeBlock);
            expect_answer!(consensus.call(common::commit()), Commit);
            assert!(
                started.elapsed() < Duration::from_secs(5),
                "block {height} stalled"
            );
        }
        mempool.join().expect("no panic");
        queries.join().expect("no panic");
    });
    application.healthy();
}
