//! Transactions in the background: transfers and contract calls from several accounts, as long as the value lives.

use crate::{
    contracts::Counter,
    rpc::Rpc,
    wallet::{Action, Type, Wallet},
};
use alloy_primitives::{Address, B256, U256};
use alloy_sol_types::SolCall;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinHandle;

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    refused: AtomicU64,
    accepted: Mutex<Vec<B256>>,
}

/// Running load. Dropping it stops it.
#[derive(Debug)]
pub struct Load {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

impl Load {
    /// One task for each wallet, each sending about `per_second` transactions, every other a call of the counter. Nodes are
    /// used in turn; one that does not answer is passed over.
    pub fn start(nodes: Vec<Rpc>, wallets: Vec<Wallet>, counter: Address, per_second: u64) -> Self {
        let shared = Arc::new(Shared::default());
        let tasks = wallets
            .into_iter()
            .enumerate()
            .map(|(index, wallet)| {
                tokio::spawn(send_for_ever(
                    nodes.clone(),
                    wallet,
                    counter,
                    per_second,
                    index,
                    Arc::clone(&shared),
                ))
            })
            .collect();
        Self { shared, tasks }
    }

    /// Transactions that a node accepted so far.
    pub fn accepted_count(&self) -> usize {
        self.shared
            .accepted
            .lock()
            .expect("no task panics while it holds the lock")
            .len()
    }

    /// Ends it: hashes accepted and the count of refusals (a node that was down included).
    pub async fn stop(mut self) -> (Vec<B256>, u64) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for task in self.tasks.drain(..) {
            let _ = task.await;
        }
        let accepted =
            std::mem::take(&mut *self.shared.accepted.lock().expect("all tasks have ended"));
        (accepted, self.shared.refused.load(Ordering::Relaxed))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn send_for_ever(
    nodes: Vec<Rpc>,
    wallet: Wallet,
    counter: Address,
    per_second: u64,
    offset: usize,
    shared: Arc<Shared>,
) {
    let pause = Duration::from_micros(1_000_000 / per_second.max(1));
    let mut nonce = None;
    for round in offset.. {
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let node = &nodes[round % nodes.len()];
        if nonce.is_none() {
            // After a refusal the node knows better than we do.
            nonce = node.pending_nonce(wallet.address()).await.ok();
        }
        if let Some(next) = nonce {
            let action = if round % 2 == 0 {
                Action::transfer(recipient(round), 1)
            } else {
                Action::call(
                    counter,
                    Counter::incrementCall {
                        amount: U256::from(1),
                    }
                    .abi_encode(),
                )
                .with_gas(150_000)
            };
            let kind = if round % 3 == 0 {
                Type::Legacy
            } else {
                Type::DynamicFee
            };
            match node.send_raw(wallet.sign(&kind, &action, next)).await {
                Ok(hash) => {
                    shared
                        .accepted
                        .lock()
                        .expect("no task panics while it holds the lock")
                        .push(hash);
                    nonce = Some(next + 1);
                }
                Err(_) => {
                    shared.refused.fetch_add(1, Ordering::Relaxed);
                    nonce = None;
                }
            }
        }
        tokio::time::sleep(pause).await;
    }
}

/// One of 64 accounts that nobody owns.
fn recipient(round: usize) -> Address {
    let mut bytes = [0xbe; 20];
    bytes[19] = u8::try_from(round % 64).expect("below 64");
    Address::from(bytes)
}
