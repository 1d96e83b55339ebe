//! A CometBFT stand-in for tests: speaks the socket protocol of v0.38 (varint length, protobuf) on four connections.

#![allow(dead_code, reason = "each test program uses its part")]

use alloy_primitives::{Address, B256};
use cloister_genesis::{Genesis, consensus_address};
use prost::Message;
use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::{Duration, Instant},
};
pub(crate) use tendermint_proto::v0_38::abci::{request::Value as Ask, response::Value as Answer};
use tendermint_proto::{
    google::protobuf::Timestamp,
    v0_38::{
        abci::{
            CommitInfo, ExtendedCommitInfo, Request, RequestApplySnapshotChunk, RequestCheckTx,
            RequestCommit, RequestExtendVote, RequestFinalizeBlock, RequestFlush, RequestInfo,
            RequestInitChain, RequestListSnapshots, RequestLoadSnapshotChunk, RequestOfferSnapshot,
            RequestPrepareProposal, RequestProcessProposal, RequestQuery,
            RequestVerifyVoteExtension, Response, Snapshot,
        },
        types::{
            AbciParams, BlockParams, ConsensusParams, EvidenceParams, ValidatorParams,
            VersionParams,
        },
    },
};

/// One connection.
pub(crate) struct Connection {
    stream: UnixStream,
}

impl Connection {
    /// Connects, waiting for the socket for a while.
    pub(crate) fn open(path: &Path) -> Self {
        let start = Instant::now();
        loop {
            match UnixStream::connect(path) {
                Ok(stream) => {
                    stream
                        .set_read_timeout(Some(Duration::from_secs(30)))
                        .expect("a time above zero");
                    return Self { stream };
                }
                Err(error) => assert!(
                    start.elapsed() < Duration::from_secs(10),
                    "no application at {}: {error}",
                    path.display()
                ),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends without waiting.
    pub(crate) fn send(&mut self, ask: Ask) -> io::Result<()> {
        let request = Request { value: Some(ask) };
        self.stream
            .write_all(&request.encode_length_delimited_to_vec())
    }

    /// Reads one answer.
    pub(crate) fn receive(&mut self) -> io::Result<Answer> {
        let mut length = 0_usize;
        for shift in (0..).step_by(7) {
            let mut byte = [0];
            self.stream.read_exact(&mut byte)?;
            length |= usize::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        let response = Response::decode(&body[..]).map_err(io::Error::other)?;
        response
            .value
            .ok_or_else(|| io::Error::other("an empty response"))
    }

    /// Asks, flushes as CometBFT does, and reads the answer.
    pub(crate) fn try_call(&mut self, ask: Ask) -> io::Result<Answer> {
        self.send(ask)?;
        self.send(Ask::Flush(RequestFlush {}))?;
        let answer = self.receive()?;
        match self.receive()? {
            Answer::Flush(_) => Ok(answer),
            other => Err(io::Error::other(format!("expected Flush, got {other:?}"))),
        }
    }

    /// The same, where the answer must come.
    pub(crate) fn call(&mut self, ask: Ask) -> Answer {
        self.try_call(ask).expect("the application answers")
    }
}

/// Takes the answer of the kind expected.
#[macro_export]
macro_rules! expect_answer {
    ($answer:expr, $kind:ident) => {
        match $answer {
            $crate::common::Answer::$kind(answer) => answer,
            other => panic!("expected {}, got {other:?}", stringify!($kind)),
        }
    };
}

/// A block as the stand-in proposes and decides it.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub height: i64,
    pub transactions: Vec<Vec<u8>>,
    pub proposer: Address,
}

impl Block {
    pub(crate) fn new(genesis: &Genesis, height: i64, transactions: Vec<Vec<u8>>) -> Self {
        Self {
            height,
            transactions,
            proposer: consensus_address(&genesis.validators[0].public_key),
        }
    }

    fn hash(&self) -> B256 {
        let mut bytes = self.height.to_be_bytes().to_vec();
        for raw in &self.transactions {
            bytes.extend_from_slice(raw);
        }
        alloy_primitives::keccak256(bytes)
    }

    const fn time(&self) -> Option<Timestamp> {
        Some(Timestamp {
            seconds: 1_900_000_000 + self.height,
            nanos: 500_000_001,
        })
    }

    fn txs(&self) -> Vec<bytes::Bytes> {
        self.transactions.iter().cloned().map(Into::into).collect()
    }

    pub(crate) fn prepare(&self) -> Ask {
        Ask::PrepareProposal(RequestPrepareProposal {
            max_tx_bytes: 1_000_000,
            txs: self.txs(),
            local_last_commit: Some(ExtendedCommitInfo::default()),
            misbehavior: Vec::new(),
            height: self.height,
            time: self.time(),
            next_validators_hash: vec![1; 32].into(),
            proposer_address: self.proposer.to_vec().into(),
        })
    }

    pub(crate) fn process(&self) -> Ask {
        Ask::ProcessProposal(RequestProcessProposal {
            txs: self.txs(),
            proposed_last_commit: Some(CommitInfo::default()),
            misbehavior: Vec::new(),
            hash: self.hash().to_vec().into(),
            height: self.height,
            time: self.time(),
            next_validators_hash: vec![1; 32].into(),
            proposer_address: self.proposer.to_vec().into(),
        })
    }

    pub(crate) fn finalize(&self) -> Ask {
        Ask::FinalizeBlock(RequestFinalizeBlock {
            txs: self.txs(),
            decided_last_commit: Some(CommitInfo::default()),
            misbehavior: Vec::new(),
            hash: self.hash().to_vec().into(),
            height: self.height,
            time: self.time(),
            next_validators_hash: vec![1; 32].into(),
            proposer_address: self.proposer.to_vec().into(),
        })
    }
}

pub(crate) fn info() -> Ask {
    Ask::Info(RequestInfo {
        version: "0.38.26".to_owned(),
        block_version: 11,
        p2p_version: 8,
        abci_version: "2.0.0".to_owned(),
    })
}

/// InitChain as CometBFT makes it from its genesis file.
pub(crate) fn init_chain(genesis: &Genesis, genesis_json: &[u8]) -> Ask {
    let comet: serde_json::Value =
        serde_json::from_slice(&genesis.to_cometbft_json(genesis_json)).expect("our own JSON");
    Ask::InitChain(RequestInitChain {
        time: Some(Timestamp {
            seconds: 1_900_000_000,
            nanos: 0,
        }),
        chain_id: genesis.network.clone(),
        consensus_params: Some(ConsensusParams {
            block: Some(BlockParams {
                max_bytes: i64::try_from(genesis.parameters.max_block_bytes)
                    .expect("10 MiB at most"),
                max_gas: -1,
            }),
            evidence: Some(EvidenceParams {
                max_age_num_blocks: 100_000,
                max_age_duration: Some(tendermint_proto::google::protobuf::Duration {
                    seconds: 172_800,
                    nanos: 0,
                }),
                max_bytes: 1_048_576,
            }),
            validator: Some(ValidatorParams {
                pub_key_types: vec!["ed25519".to_owned()],
            }),
            version: Some(VersionParams {
                app: cloister_genesis::APP_VERSION,
            }),
            abci: Some(AbciParams::default()),
        }),
        validators: Vec::new(),
        app_state_bytes: comet["app_state"].to_string().into(),
        initial_height: 1,
    })
}

pub(crate) fn check_tx(raw: &[u8], recheck: bool) -> Ask {
    Ask::CheckTx(RequestCheckTx {
        tx: raw.to_vec().into(),
        r#type: i32::from(recheck),
    })
}

pub(crate) fn query(path: &str, data: &[u8]) -> Ask {
    Ask::Query(RequestQuery {
        data: data.to_vec().into(),
        path: path.to_owned(),
        height: 0,
        prove: false,
    })
}

pub(crate) const fn commit() -> Ask {
    Ask::Commit(RequestCommit {})
}

pub(crate) const fn list_snapshots() -> Ask {
    Ask::ListSnapshots(RequestListSnapshots {})
}

pub(crate) fn offer_snapshot() -> Ask {
    Ask::OfferSnapshot(RequestOfferSnapshot {
        snapshot: Some(Snapshot {
            height: 10,
            format: 1,
            chunks: 1,
            hash: vec![2; 32].into(),
            metadata: bytes::Bytes::new(),
        }),
        app_hash: vec![3; 32].into(),
    })
}

pub(crate) const fn load_snapshot_chunk() -> Ask {
    Ask::LoadSnapshotChunk(RequestLoadSnapshotChunk {
        height: 10,
        format: 1,
        chunk: 0,
    })
}

pub(crate) fn apply_snapshot_chunk() -> Ask {
    Ask::ApplySnapshotChunk(RequestApplySnapshotChunk {
        index: 0,
        chunk: vec![4; 100].into(),
        sender: "peer".to_owned(),
    })
}

pub(crate) fn extend_vote() -> Ask {
    Ask::ExtendVote(RequestExtendVote {
        hash: vec![5; 32].into(),
        height: 1,
        time: Some(Timestamp::default()),
        txs: Vec::new(),
        proposed_last_commit: Some(CommitInfo::default()),
        misbehavior: Vec::new(),
        next_validators_hash: vec![1; 32].into(),
        proposer_address: vec![6; 20].into(),
    })
}

pub(crate) fn verify_vote_extension() -> Ask {
    Ask::VerifyVoteExtension(RequestVerifyVoteExtension {
        hash: vec![5; 32].into(),
        validator_address: vec![6; 20].into(),
        height: 1,
        vote_extension: bytes::Bytes::new(),
    })
}
