//! Methods about the node itself.

use super::{
    arguments::Arguments,
    context::{ConsensusStatus, Context},
    methods::{Answer, METHODS, answer},
};
use alloy_primitives::{B256, Bytes, U64, keccak256};
use serde::Serialize;
use std::collections::BTreeMap;

/// As `web3_clientVersion` names this program.
pub(crate) fn version_text() -> String {
    format!(
        "cloister/v{}/{}-{}/rust",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}

pub(super) fn chain_id(context: &Context, _: &Arguments) -> Answer {
    answer(&U64::from(context.chain_id()))
}

pub(super) fn network_version(context: &Context, _: &Arguments) -> Answer {
    answer(&context.chain_id().to_string())
}

pub(super) fn listening(_: &Context, _: &Arguments) -> Answer {
    answer(&true)
}

pub(super) fn peer_count(context: &Context, _: &Arguments) -> Answer {
    answer(&U64::from(context.consensus.borrow().peers))
}

pub(super) fn client_version(_: &Context, _: &Arguments) -> Answer {
    answer(&version_text())
}

pub(super) fn sha3(_: &Context, arguments: &Arguments) -> Answer {
    answer(&keccak256(arguments.required::<Bytes>(0)?))
}

/// What `eth_syncing` and the `syncing` subscription show: false, or how far the node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Syncing {
    Done(False),
    #[serde(rename_all = "camelCase")]
    Behind {
        starting_block: U64,
        current_block: U64,
        highest_block: U64,
    },
}

/// `false` in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct False;

impl Serialize for False {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(false)
    }
}

impl Syncing {
    pub(crate) fn now(status: ConsensusStatus, head: u64) -> Self {
        if !status.catching_up {
            return Self::Done(False);
        }
        Self::Behind {
            starting_block: U64::ZERO,
            current_block: U64::from(head),
            highest_block: U64::from(status.highest_height.max(head)),
        }
    }
}

pub(super) fn syncing(context: &Context, _: &Arguments) -> Answer {
    let status = *context.consensus.borrow();
    answer(&Syncing::now(status, context.head()?.height))
}

/// For `cloister status`. Heights are plain numbers.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeStatus {
    version: &'static str,
    chain_id: u64,
    height: u64,
    app_hash: B256,
    block_time_seconds: u64,
    durable_height: u64,
    pool_pending: usize,
    pool_queued: usize,
    peers: u32,
    catching_up: bool,
    highest_height: u64,
}

pub(super) fn cloister_status(context: &Context, _: &Arguments) -> Answer {
    let head = context.head()?;
    let (pool_pending, pool_queued) = context.chain.pool().size();
    let consensus = *context.consensus.borrow();
    answer(&NodeStatus {
        version: env!("CARGO_PKG_VERSION"),
        chain_id: context.chain_id(),
        height: head.height,
        app_hash: head.hash,
        block_time_seconds: head.header.timestamp,
        durable_height: context.store().durable_height(),
        pool_pending,
        pool_queued,
        peers: consensus.peers,
        catching_up: consensus.catching_up,
        highest_height: consensus.highest_height.max(head.height),
    })
}

/// The namespaces served, each at version 1.0.
pub(super) fn modules(_: &Context, _: &Arguments) -> Answer {
    let namespaces = METHODS
        .iter()
        .filter_map(|method| method.name.split_once('_'));
    answer(
        &namespaces
            .map(|(namespace, _)| (namespace, "1.0"))
            .collect::<BTreeMap<_, _>>(),
    )
}
