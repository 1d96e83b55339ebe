//! The chain on a real store: order of calls, faults, caches that change nothing, visibility.

mod faults;
mod pool;

use super::*;
use crate::{
    store::{Durability, StoreError},
    testing::{Draft, GENESIS_SHA256, GWEI, Wallet, open_chain, try_open_chain},
};
use alloy_primitives::{Address, Bytes, TxKind, U256, keccak256};
use cloister_app::{
    block::{BlockInput, ConsensusAddress, Vote},
    state::{HashedAddress, StateRead as _},
};
use cloister_genesis::DEV_CHAIN_ID;
use std::time::Duration;
use tempfile::TempDir;

/// Blocks of the tests begin in 2027, one second apart.
const FIRST_TIME_MS: u64 = 1_798_761_600_000;

/// A chain at block 0 and what consensus of one validator would call.
struct Rig {
    chain: Chain,
    handle: ChainHandle,
    folder: TempDir,
}

impl Rig {
    async fn new(options: ChainOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let chain = open_chain(folder.path(), options);
        let rig = Self {
            handle: ChainHandle::start(chain.clone()).unwrap(),
            chain,
            folder,
        };
        rig.init_chain().await.unwrap();
        rig
    }

    /// The process dies and starts again; nothing but the folder is left.
    async fn restart(self, options: ChainOptions) -> Self {
        let Self {
            chain,
            handle,
            folder,
        } = self;
        drop((chain, handle));
        // The block thread lets go of the store once it has seen that nobody can call it.
        let chain = loop {
            match try_open_chain(folder.path(), options, Durability::Os) {
                Ok(chain) => break chain,
                Err(StoreError::Locked { .. }) => {
                    tokio::time::sleep(Duration::from_millis(10)).await
                }
                Err(error) => panic!("{error}"),
            }
        };
        Self {
            handle: ChainHandle::start(chain.clone()).unwrap(),
            chain,
            folder,
        }
    }

    async fn init_chain(&self) -> Result<InitChainAnswer, Fatal> {
        self.handle
            .init_chain("cloister-test".to_owned(), app_state(GENESIS_SHA256), 1)
            .await
    }

    fn height(&self) -> u64 {
        self.chain.store().head().unwrap().height
    }

    fn input(&self, transactions: Vec<Bytes>) -> BlockInput {
        input(self.height() + 1, transactions)
    }

    /// FinalizeBlock and Commit.
    async fn decide(&self, input: BlockInput) -> FinalizeAnswer {
        let hash = consensus_hash(&input);
        let answer = self.handle.finalize_block(input, hash).await.unwrap();
        self.handle.commit().await.unwrap();
        answer
    }

    /// All four calls, with what the pool proposes.
    async fn make_block(&self) -> (BlockInput, FinalizeAnswer) {
        let mut input = self.input(Vec::new());
        input.transactions = self
            .handle
            .prepare_proposal(input.clone(), 1_000_000)
            .await
            .unwrap();
        let hash = consensus_hash(&input);
        assert!(
            self.handle
                .process_proposal(input.clone(), hash)
                .await
                .unwrap()
        );
        let answer = self.decide(input.clone()).await;
        (input, answer)
    }

    fn nonce(&self, address: Address) -> u64 {
        let state = self.chain.store().state_latest().unwrap();
        let account = state.account(HashedAddress::from(address)).unwrap();
        account.unwrap_or_default().nonce
    }
}

fn app_state(genesis_sha256: B256) -> Bytes {
    let hash = alloy_primitives::hex::encode(genesis_sha256);
    format!(r#"{{"genesis_sha256":"{hash}","evm_chain_id":{DEV_CHAIN_ID}}}"#)
        .into_bytes()
        .into()
}

fn input(height: u64, transactions: Vec<Bytes>) -> BlockInput {
    let proposer = ConsensusAddress::repeat_byte(0xab);
    let vote = Vote {
        validator: proposer,
        power: 100,
        signed: true,
    };
    BlockInput {
        height,
        time_ms: FIRST_TIME_MS + 1_000 * height,
        proposer,
        transactions,
        misbehaviour: Vec::new(),
        last_commit: if height > 1 { vec![vote] } else { Vec::new() },
    }
}

/// Stands for CometBFT's: something that depends on the whole block.
fn consensus_hash(input: &BlockInput) -> B256 {
    keccak256(format!("{input:?}"))
}

fn no_cache() -> ChainOptions {
    ChainOptions {
        executed: ExecutedLimits {
            count_max: 0,
            size_bytes_max: 0,
        },
        ..ChainOptions::default()
    }
}

/// Transfers of two senders and a contract that stores the block's number.
fn workload(height: u64) -> Vec<Bytes> {
    let [first, second] = [0, 1].map(Wallet::dev);
    let nonce = height - 1;
    let deploy = Draft {
        nonce,
        to: TxKind::Create,
        value: U256::ZERO,
        gas_limit: 200_000,
        // sstore(number, number)
        input: Bytes::from_static(&[0x43, 0x43, 0x55]),
        ..Draft::default()
    };
    let transfer = Draft {
        nonce,
        to: TxKind::Call(Address::with_last_byte(u8::try_from(100 + height).unwrap())),
        value: U256::from(height),
        ..Draft::default()
    };
    vec![first.raw(&deploy), second.raw(&transfer)]
}

/// D22: FinalizeBlock alone, without what the proposals left, decides the same.
#[tokio::test]
async fn caches_and_pool_do_not_change_what_is_decided() {
    let proposing = Rig::new(ChainOptions::default()).await;
    let replaying = Rig::new(no_cache()).await;
    for height in 1..=50 {
        for raw in workload(height) {
            let transaction = cloister_app::transaction::Transaction::decode(raw, DEV_CHAIN_ID);
            let origin = crate::pool::Origin::Local;
            proposing
                .chain
                .pool()
                .add(Arc::new(transaction.unwrap()), origin)
                .unwrap();
        }
        let (input, answer) = proposing.make_block().await;
        assert_eq!(input.transactions.len(), 2);
        assert!(
            answer
                .results
                .iter()
                .all(|result| result.code == 0 && result.gas_used > 0)
        );
        assert_eq!(replaying.decide(input).await, answer, "block {height}");
    }
    assert_eq!(
        proposing.handle.info().await.unwrap(),
        replaying.handle.info().await.unwrap()
    );
    assert_eq!(proposing.chain.pool().size(), (0, 0));
}

/// The app hash is the hash of the Ethereum header, which carries CometBFT's.
#[tokio::test]
async fn the_app_hash_is_the_ethereum_block_hash() {
    let rig = Rig::new(ChainOptions::default()).await;
    let (input, answer) = rig.make_block().await;
    let (header, hash) = rig.chain.store().header(1).unwrap().unwrap();
    assert_eq!(header.hash_slow(), answer.app_hash);
    assert_eq!(hash, answer.app_hash);
    assert_eq!(
        header.extra_data.as_ref(),
        consensus_hash(&input).as_slice()
    );
    assert_eq!(rig.handle.info().await.unwrap(), (1, answer.app_hash));
}

/// D21, D23: what was not committed is gone, and decided again it is the same.
#[tokio::test]
async fn a_crash_between_finalize_and_commit_changes_nothing() {
    let rig = Rig::new(ChainOptions::default()).await;
    rig.decide(rig.input(workload(1))).await;
    let held = rig.handle.info().await.unwrap();
    let input = rig.input(workload(2));
    let hash = consensus_hash(&input);
    let lost = rig
        .handle
        .finalize_block(input.clone(), hash)
        .await
        .unwrap();

    let rig = rig.restart(ChainOptions::default()).await;
    assert_eq!(rig.handle.info().await.unwrap(), held);
    assert_eq!(rig.handle.finalize_block(input, hash).await.unwrap(), lost);
    rig.handle.commit().await.unwrap();
    assert_eq!(rig.handle.info().await.unwrap(), (2, lost.app_hash));
}

/// CometBFT dies between FinalizeBlock and Commit, comes back and replays.
#[tokio::test]
async fn a_disconnect_drops_the_pending_outcome() {
    let rig = Rig::new(ChainOptions::default()).await;
    let input = rig.input(workload(1));
    let hash = consensus_hash(&input);
    let first = rig
        .handle
        .finalize_block(input.clone(), hash)
        .await
        .unwrap();
    rig.handle.disconnect().await;
    assert_eq!(rig.handle.info().await.unwrap().0, 0);
    assert_eq!(rig.handle.finalize_block(input, hash).await.unwrap(), first);
    rig.handle.commit().await.unwrap();
    assert_eq!(rig.handle.info().await.unwrap(), (1, first.app_hash));
}

/// D05: a transaction that is decided though invalid leaves the block readable.
#[tokio::test]
async fn a_decided_block_with_an_invalid_transaction_is_readable() {
    let rig = Rig::new(ChainOptions::default()).await;
    let [good, poor] = [Wallet::dev(0), Wallet::numbered(9)];
    let used_nonce = Draft {
        value: U256::from(2),
        ..Draft::default()
    };
    let transactions = vec![
        good.raw(&Draft::default()),
        good.raw(&used_nonce),
        poor.raw(&Draft::default()),
        Bytes::from_static(b"no transaction at all"),
        good.raw(&Draft {
            nonce: 1,
            ..Draft::default()
        }),
    ];
    let hash = consensus_hash(&rig.input(transactions.clone()));
    let refused = rig
        .handle
        .process_proposal(rig.input(transactions.clone()), hash)
        .await;
    assert_eq!(refused, Ok(false));

    let answer = rig.decide(rig.input(transactions)).await;
    let codes: Vec<u32> = answer.results.iter().map(|result| result.code).collect();
    assert_eq!(codes, [0, 100, 102, 3, 0]);
    assert!(
        answer.results[1..4]
            .iter()
            .all(|result| result.gas_used == 0)
    );
    let store = rig.chain.store();
    let block = store.block(1).unwrap().unwrap();
    assert_eq!(block.transactions.len(), 2);
    assert_eq!(store.receipts(1).unwrap().unwrap().len(), 2);
    let placements: Vec<Option<u32>> = store
        .results(1)
        .unwrap()
        .unwrap()
        .into_iter()
        .map(|result| result.placement.ok())
        .collect();
    assert_eq!(placements, [Some(0), None, None, None, Some(1)]);
    for (index, transaction) in (0u32..).zip(&block.transactions) {
        let location = store
            .transaction_location(transaction.hash())
            .unwrap()
            .unwrap();
        assert_eq!((location.height, location.index), (1, index));
    }
    assert_eq!(rig.nonce(good.address()), 2);
}

/// D06.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscribers_hear_of_a_block_only_when_it_can_be_read() {
    let rig = Rig::new(ChainOptions::default()).await;
    let mut blocks = rig.chain.subscribe_blocks();
    let store = rig.chain.store().clone();
    let reader = tokio::spawn(async move {
        for height in 1..=30 {
            let heard = blocks.recv().await.unwrap().outcome;
            assert_eq!(heard.block.header.number, height);
            assert!(store.head().unwrap().height >= height);
            let block = store.block(height).unwrap().unwrap();
            assert_eq!(block.hash, heard.hash);
            assert_eq!(block.transactions.len(), heard.block.transactions.len());
            assert_eq!(store.height_by_hash(heard.hash).unwrap(), Some(height));
            assert!(
                heard.block.changes.accounts.is_empty(),
                "writes are not held for subscribers"
            );
        }
    });
    for height in 1..=30 {
        rig.decide(rig.input(workload(height))).await;
    }
    reader.await.unwrap();
}

/// A6: proposals change no state and their number no memory.
#[tokio::test]
async fn a_thousand_proposals_at_one_height_leave_no_trace() {
    let rig = Rig::new(ChainOptions::default()).await;
    rig.decide(rig.input(workload(1))).await;
    let held = rig.handle.info().await.unwrap();
    let large = |nonce: u64| Draft {
        nonce,
        gas_limit: 1_300_000,
        input: Bytes::from(vec![0; 120_000]),
        ..Draft::default()
    };
    let transactions: Vec<Bytes> = (0..8)
        .map(|nonce| Wallet::dev(3).raw(&large(nonce)))
        .collect();
    let propose = async |index: u64| {
        // Another time makes another block.
        let mut proposal = rig.input(transactions.clone());
        proposal.time_ms += index;
        let hash = consensus_hash_of_time(proposal.time_ms);
        assert!(
            rig.handle
                .process_proposal(proposal.clone(), hash)
                .await
                .unwrap()
        );
        rig.handle
            .prepare_proposal(proposal, 1_000_000)
            .await
            .unwrap();
    };
    for index in 0..50 {
        propose(index).await;
    }
    let before_bytes = resident_bytes();
    for index in 50..550 {
        propose(index).await;
    }
    let grown_bytes = resident_bytes().saturating_sub(before_bytes);
    // Other tests run in this process; the cap of the kept blocks alone is 32 MiB.
    assert!(
        grown_bytes < 200 * 1024 * 1024,
        "grew by {grown_bytes} bytes"
    );
    assert_eq!(rig.handle.info().await.unwrap(), held);
    assert_eq!(rig.nonce(Wallet::dev(3).address()), 0);
    let answer = rig.decide(rig.input(transactions)).await;
    assert!(answer.results.iter().all(|result| result.code == 0));
}

fn consensus_hash_of_time(time_ms: u64) -> B256 {
    B256::from(U256::from(time_ms))
}

/// Resident memory of this process. 4 KiB pages: what the tests run on.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
