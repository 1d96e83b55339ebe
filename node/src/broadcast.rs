//! Hands the pool's executable transactions to the local CometBFT, which carries them to the peers.
//!
//! A task of its own, never part of Commit (CometBFT holds its mempool's lock then). What CometBFT already holds, because it came
//! from there or was handed over before, is not handed over again. Nothing is handed over while there is no peer: our
//! own proposals are made from the pool. After a restart of CometBFT, a first peer, or a burst that outran this task, the
//! pool's whole content is handed over again.

use crate::{
    chain::Chain,
    comet::{
        home::RPC_BATCH_MAX,
        rpc::{CometRpc, Handover},
    },
    pool::Placement,
    rpc::ConsensusStatus,
};
use alloy_primitives::B256;
use cloister_app::transaction::Transaction;
use parking_lot::Mutex;
use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::sync::{broadcast::error::RecvError, watch};

/// Bytes of transactions in one request: a third of what CometBFT's RPC accepts, base64 and framing included.
const BATCH_BYTES_MAX: usize = crate::comet::home::RPC_BODY_BYTES_MAX / 3;
/// Time in which announcements gather to one request.
const GATHER: Duration = Duration::from_millis(5);
/// First and longest wait while CometBFT does not answer.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Hashes of the transactions that CometBFT's mempool holds, as CheckTx knows. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Carried(Arc<Mutex<HashSet<B256>>>);

impl Carried {
    /// CheckTx has let it in.
    pub fn insert(&self, hash: B256) {
        self.0.lock().insert(hash);
    }

    /// CheckTx has refused it, so it leaves.
    pub fn remove(&self, hash: &B256) {
        self.0.lock().remove(hash);
    }

    fn contains(&self, hash: &B256) -> bool {
        self.0.lock().contains(hash)
    }

    /// Forgets those the pool no longer holds: they leave CometBFT with the block or at the recheck.
    fn prune(&self, chain: &Chain) {
        self.0
            .lock()
            .retain(|hash| chain.pool().placement(hash).is_some());
    }

    fn clear(&self) {
        self.0.lock().clear();
    }
}

/// The task.
#[derive(Debug)]
pub struct Broadcaster {
    chain: Chain,
    rpc: CometRpc,
    carried: Carried,
    starts: watch::Receiver<u64>,
    status: watch::Receiver<ConsensusStatus>,
    queue: VecDeque<Arc<Transaction>>,
}

/// What became of an attempt.
enum Progress {
    /// The queue is empty.
    Done,
    /// More can go at once.
    More,
    /// CometBFT's mempool is full until the next block.
    Full,
    /// CometBFT does not answer.
    Unreachable,
}

impl Broadcaster {
    /// `starts` counts CometBFT's starts, `status` knows its peers.
    pub const fn new(
        chain: Chain,
        rpc: CometRpc,
        carried: Carried,
        starts: watch::Receiver<u64>,
        status: watch::Receiver<ConsensusStatus>,
    ) -> Self {
        Self {
            chain,
            rpc,
            carried,
            starts,
            status,
            queue: VecDeque::new(),
        }
    }

    /// Runs for ever; stopped by dropping the future.
    pub async fn run(mut self) {
        let mut arrivals = self.chain.pool().subscribe_pending();
        let mut blocks = self.chain.subscribe_blocks();
        let mut has_peers = self.has_peers();
        let mut back_off = BACK_OFF.0;
        self.rescan();
        loop {
            // Pending for ever when there is nothing to hand over.
            let wait = match self.hand_over(has_peers).await {
                Progress::Done => {
                    back_off = BACK_OFF.0;
                    None
                }
                Progress::More => continue,
                Progress::Full => None,
                Progress::Unreachable => {
                    let wait = back_off;
                    back_off = (back_off * 2).min(BACK_OFF.1);
                    Some(wait)
                }
            };
            let retry = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                arrival = arrivals.recv() => {
                    match arrival {
                        Ok(transaction) => self.queue.push_back(transaction),
                        Err(RecvError::Lagged(_)) => self.rescan(),
                        Err(RecvError::Closed) => return,
                    }
                    tokio::time::sleep(GATHER).await;
                    while let Ok(transaction) = arrivals.try_recv() {
                        self.queue.push_back(transaction);
                    }
                }
                block = blocks.recv() => {
                    if matches!(block, Err(RecvError::Closed)) {
                        return;
                    }
                    self.carried.prune(&self.chain);
                }
                Ok(()) = self.starts.changed() => {
                    self.carried.clear();
                    self.rescan();
                }
                Ok(()) = self.status.changed() => {
                    let had_peers = std::mem::replace(&mut has_peers, self.has_peers());
                    if has_peers && !had_peers {
                        self.rescan();
                    }
                }
                () = retry => {}
            }
        }
    }

    fn has_peers(&mut self) -> bool {
        self.status.borrow_and_update().peers > 0
    }

    /// Everything executable, whatever the base fee: CometBFT may carry what waits for it to fall.
    fn rescan(&mut self) {
        self.queue = self.chain.pool().best(0).into();
    }

    async fn hand_over(&mut self, has_peers: bool) -> Progress {
        if !has_peers {
            self.queue.clear();
            return Progress::Done;
        }
        let batch = self.next_batch();
        if batch.is_empty() {
            return Progress::Done;
        }
        let raw: Vec<&[u8]> = batch
            .iter()
            .map(|transaction| &transaction.raw()[..])
            .collect();
        let handovers = match self.rpc.broadcast(&raw).await {
            Ok(handovers) => handovers,
            Err(error) => {
                tracing::debug!("transactions wait for CometBFT: {error}");
                self.put_back(batch);
                return Progress::Unreachable;
            }
        };
        let mut refused = Vec::new();
        for (transaction, handover) in batch.into_iter().zip(handovers) {
            match handover {
                Handover::Taken | Handover::Known => {}
                Handover::Full => refused.push(transaction),
                Handover::Refused(reason) => {
                    tracing::warn!(hash = %transaction.hash(), "CometBFT refused a transaction: {reason}");
                }
            }
        }
        if refused.is_empty() {
            return Progress::More;
        }
        self.put_back(refused);
        Progress::Full
    }

    /// As many as one request may hold; those that left the pool, or that CometBFT holds, are skipped.
    fn next_batch(&mut self) -> Vec<Arc<Transaction>> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while let Some(transaction) = self.queue.front() {
            let size = transaction.raw().len();
            if batch.len() == RPC_BATCH_MAX || (bytes + size > BATCH_BYTES_MAX && !batch.is_empty())
            {
                break;
            }
            let hash = transaction.hash();
            let wanted = self.chain.pool().placement(&hash) == Some(Placement::Pending)
                && !self.carried.contains(&hash);
            let transaction = self.queue.pop_front().expect("the loop looks at the front");
            if wanted {
                bytes += size;
                batch.push(transaction);
            }
        }
        batch
    }

    fn put_back(&mut self, batch: Vec<Arc<Transaction>>) {
        for transaction in batch.into_iter().rev() {
            self.queue.push_front(transaction);
        }
    }
}
