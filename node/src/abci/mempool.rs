//! The mempool connection: CheckTx, new and recheck.
//!
//! One thread takes what has come in as a batch: signatures are recovered in parallel, then the pool takes the
//! transactions in the order of arrival, so that a sender's nonces n, n+1 never meet it the other way round. A recheck, and
//! a new transaction that the pool knows (one of ours coming back), are answered from its index by hash.

use super::{convert, service::Handler};
use crate::{
    broadcast::Carried,
    chain::{Chain, Fatal},
    ending::{EXIT_CONSENSUS, Ending},
    pool::{Origin, Placement},
};
use alloy_primitives::{B256, Bytes, keccak256};
use cloister_app::{rejection::Rejection, transaction::Transaction};
use rayon::prelude::*;
use std::sync::{Arc, mpsc};
use tendermint::v0_38::abci::{MempoolRequest, MempoolResponse, request, response};
use tokio::sync::oneshot;

/// Transactions whose signatures are recovered together.
const BATCH_MAX: usize = 128;

type Call = (request::CheckTx, oneshot::Sender<response::CheckTx>);

/// The door of the thread.
#[derive(Debug)]
pub struct Mempool {
    calls: mpsc::Sender<Call>,
}

impl Mempool {
    /// Starts the thread. It ends when this value is dropped.
    pub fn start(chain: Chain, carried: Carried, ending: Ending) -> Self {
        let (calls, queue) = mpsc::channel();
        let started = std::thread::Builder::new()
            .name("mempool".to_owned())
            .spawn(move || run(&chain, &carried, &queue));
        if let Err(error) = started {
            ending.record(Fatal {
                exit_code: EXIT_CONSENSUS,
                report: format!("no thread for the mempool connection: {error}"),
            });
        }
        Self { calls }
    }
}

impl Handler for Mempool {
    type Request = MempoolRequest;
    type Response = MempoolResponse;

    fn name(request: &MempoolRequest) -> &'static str {
        match request {
            MempoolRequest::CheckTx(_) => "check_tx",
        }
    }

    async fn answer(&self, request: MempoolRequest) -> Result<MempoolResponse, Fatal> {
        let MempoolRequest::CheckTx(request) = request;
        let stopped = || Fatal {
            exit_code: EXIT_CONSENSUS,
            report: "the thread of the mempool connection has stopped".to_owned(),
        };
        let (answer, receiver) = oneshot::channel();
        self.calls.send((request, answer)).map_err(|_| stopped())?;
        let response = receiver.await.map_err(|_| stopped())?;
        Ok(MempoolResponse::CheckTx(response))
    }
}

fn run(chain: &Chain, carried: &Carried, queue: &mpsc::Receiver<Call>) {
    while let Ok(first) = queue.recv() {
        let batch = std::iter::once(first)
            .chain(queue.try_iter())
            .take(BATCH_MAX);
        check_batch(chain, carried, batch.collect());
    }
}

/// What is known of a transaction before the pool is asked.
#[expect(clippy::large_enum_variant, reason = "one batch of them, moved once")]
enum Checked {
    /// Answered by hash.
    ByHash(Result<(), Rejection>),
    /// To be offered to the pool.
    Parsed(Result<Transaction, Rejection>),
}

fn check_batch(chain: &Chain, carried: &Carried, batch: Vec<Call>) {
    let chain_id = chain.app().parameters().chain_id;
    let pool = chain.pool();
    let checked: Vec<(B256, Checked)> = batch
        .par_iter()
        .map(|(request, _)| {
            let hash = keccak256(&request.tx);
            let checked = if request.kind == request::CheckTxKind::Recheck
                || pool.placement(&hash).is_some()
            {
                Checked::ByHash(pool.recheck(&hash))
            } else {
                Checked::Parsed(Transaction::decode(Bytes(request.tx.clone()), chain_id))
            };
            (hash, checked)
        })
        .collect();
    for ((_, answer), (hash, checked)) in batch.into_iter().zip(checked) {
        let verdict = match checked {
            Checked::ByHash(verdict) => verdict,
            Checked::Parsed(Err(rejection)) => Err(rejection),
            Checked::Parsed(Ok(transaction)) => {
                match pool.add(Arc::new(transaction), Origin::Peer) {
                    Ok(Placement::Pending) => Ok(()),
                    // Kept here until its nonce comes up; CometBFT is not to carry it.
                    Ok(Placement::Queued) => pool.recheck(&hash),
                    Err(rejection) => Err(rejection),
                }
            }
        };
        // CometBFT keeps what it is told to be sound, and nothing else.
        match &verdict {
            Ok(()) => carried.insert(hash),
            Err(_) => carried.remove(&hash),
        }
        // The asker may be gone: its connection closed.
        let _ = answer.send(convert::check_tx_response(verdict));
    }
}
