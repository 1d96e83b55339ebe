//! The embedded engine: consensus of one validator in this process, for `cloister dev`.
//!
//! It makes the calls CometBFT makes, in CometBFT's order, on the same [`ChainHandle`]: Info, InitChain if the chain
//! is at 0, then for each height PrepareProposal, ProcessProposal, FinalizeBlock, Commit. The block is on disk before
//! FinalizeBlock, so a restart decides the same block again. It signs nothing: there is nobody to convince.

pub mod accounts;
mod block;
mod journal;

use self::{block::EngineBlock, journal::Journal};
use crate::chain::{Chain, ChainHandle, Fatal};
use alloy_primitives::{B256, Bytes};
use cloister_app::block::{BlockInput, ConsensusAddress, Vote};
use std::{
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    sync::broadcast::{self, error::RecvError},
    time::MissedTickBehavior,
};
use tokio_util::sync::CancellationToken;

/// What CometBFT takes of a block for its header, last commit and framing with one validator.
const BLOCK_OVERHEAD_BYTES: u64 = 1_024;

/// How the engine runs.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Where the block under way is kept.
    pub folder: PathBuf,
    /// From one block to the next; zero seals a block as soon as there is a transaction.
    pub block_time: Duration,
}

/// See the module.
#[derive(Debug)]
pub struct Engine {
    chain: Chain,
    handle: ChainHandle,
    journal: Journal,
    block_time: Duration,
    proposer: ConsensusAddress,
    power: u64,
    /// The last committed block.
    height: u64,
    app_hash: B256,
    time_ms: u64,
}

impl Engine {
    /// Brings the chain to where it was: genesis if it has none, and the block that was under way.
    pub async fn start(
        chain: Chain,
        handle: ChainHandle,
        config: EngineConfig,
    ) -> Result<Self, Fatal> {
        let validator = chain.genesis().validators.first().ok_or_else(|| Fatal {
            exit_code: 78,
            report: "the genesis names no validator".to_owned(),
        })?;
        let mut engine = Self {
            proposer: cloister_genesis::consensus_address(&validator.public_key).0,
            power: validator.power,
            journal: Journal::open(&config.folder)?,
            block_time: config.block_time,
            height: 0,
            app_hash: B256::ZERO,
            time_ms: 0,
            chain,
            handle,
        };
        engine.handshake().await?;
        Ok(engine)
    }

    async fn handshake(&mut self) -> Result<(), Fatal> {
        (self.height, self.app_hash) = self.handle.info().await?;
        if self.height == 0 {
            let genesis = self.chain.genesis();
            let app_state = format!(
                r#"{{"genesis_sha256":"{}","evm_chain_id":{}}}"#,
                hex::encode(self.chain.genesis_sha256()),
                genesis.parameters.chain_id
            );
            let network = genesis.network.clone();
            let answer = self
                .handle
                .init_chain(network, Bytes::from(app_state.into_bytes()), 1)
                .await?;
            self.app_hash = answer.app_hash;
        }
        // The header has whole seconds; the journal has the milliseconds of the block it holds.
        if let Some(head) = self.chain.store().head() {
            self.time_ms = head.header.timestamp.saturating_mul(1_000);
        }
        match self.journal.load()? {
            Some(block) if block.height == self.height => {
                self.time_ms = self.time_ms.max(block.time_ms);
            }
            Some(block)
                if block.height == self.height + 1 && block.parent_hash == self.app_hash =>
            {
                tracing::info!(
                    height = block.height,
                    "deciding the interrupted block again"
                );
                self.decide(&block).await?;
            }
            Some(block) => tracing::warn!(
                journal = block.height,
                store = self.height,
                "the store does not follow the engine's last block; going on from the store"
            ),
            None => {}
        }
        Ok(())
    }

    /// Makes blocks until told to stop.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), Fatal> {
        if self.block_time.is_zero() {
            return self.run_on_demand(stop).await;
        }
        let mut pace = tokio::time::interval(self.block_time);
        // A slow block delays the next, it does not make two follow at once.
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                _ = pace.tick() => {}
            }
            self.make_block().await?;
        }
    }

    async fn run_on_demand(&mut self, stop: CancellationToken) -> Result<(), Fatal> {
        let mut arrivals = self.chain.pool().subscribe_pending();
        loop {
            // First what is there already: JSON-RPC may have served before we listened. An arrival may be in a block already;
            // and one that cannot be included must not make blocks for ever.
            while self.has_candidates() && self.make_block().await? > 0 {
                if stop.is_cancelled() {
                    return Ok(());
                }
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                () = arrived(&mut arrivals) => {}
            }
        }
    }

    fn has_candidates(&self) -> bool {
        self.chain.store().head().is_some_and(|head| {
            let base_fee_wei = self.chain.app().next_base_fee(&head.header);
            self.chain.pool().best_iter(base_fee_wei).next().is_some()
        })
    }

    /// One height. Returns how many transactions the block has.
    async fn make_block(&mut self) -> Result<usize, Fatal> {
        let mut block = EngineBlock {
            height: self.height + 1,
            // The clock may step back; block time never does.
            time_ms: now_ms().max(self.time_ms),
            parent_hash: self.app_hash,
            proposer: self.proposer,
            transactions: Vec::new(),
            signers: self.signers(),
        };
        let max_block_bytes = self.chain.app().parameters().max_block_bytes;
        block.transactions = self
            .handle
            .prepare_proposal(
                block.input(),
                max_block_bytes.saturating_sub(BLOCK_OVERHEAD_BYTES),
            )
            .await?;
        if !self
            .handle
            .process_proposal(block.input(), block.hash())
            .await?
        {
            return Err(Fatal {
                exit_code: 70,
                report: format!(
                    "block {} of our own PrepareProposal was rejected",
                    block.height
                ),
            });
        }
        self.journal.save(&block)?;
        self.decide(&block).await?;
        Ok(block.transactions.len())
    }

    /// The first block has no last commit.
    fn signers(&self) -> Vec<block::Signer> {
        if self.height == 0 {
            return Vec::new();
        }
        vec![block::Signer {
            validator: self.proposer,
            power: self.power,
        }]
    }

    async fn decide(&mut self, block: &EngineBlock) -> Result<(), Fatal> {
        let answer = self
            .handle
            .finalize_block(block.input(), block.hash())
            .await?;
        self.handle.commit().await?;
        self.height = block.height;
        self.app_hash = answer.app_hash;
        self.time_ms = block.time_ms;
        Ok(())
    }
}

impl EngineBlock {
    fn input(&self) -> BlockInput {
        BlockInput {
            height: self.height,
            time_ms: self.time_ms,
            proposer: self.proposer,
            transactions: self.transactions.clone(),
            misbehaviour: Vec::new(),
            last_commit: self
                .signers
                .iter()
                .map(|signer| Vote {
                    validator: signer.validator,
                    power: signer.power,
                    signed: true,
                })
                .collect(),
        }
    }
}

/// Waits for a transaction to become executable; one missed for lag is as good.
async fn arrived<T: Clone>(arrivals: &mut broadcast::Receiver<T>) {
    match arrivals.recv().await {
        Ok(_) | Err(RecvError::Lagged(_)) => {}
        Err(RecvError::Closed) => std::future::pending().await,
    }
}

fn now_ms() -> u64 {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
