//! The async face of the block thread: consensus calls go in by a channel, in order, and are answered one by one.

use super::{Chain, block_thread::BlockThread};
use alloy_primitives::{B256, Bytes};
use cloister_app::block::{BlockInput, TransactionResult, ValidatorUpdate};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
};
use tokio::sync::{oneshot, watch};

/// A consensus fault or a fault of ours: `EX_SOFTWARE` of sysexits.h.
pub(super) const EXIT_CONSENSUS: u8 = 70;
/// The store failed: `EX_IOERR` of sysexits.h.
pub(super) const EXIT_STORE: u8 = 74;

/// A fault that must end the process. Carries the exit code (70 consensus or our bug, 74 store, 78 configuration).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{report}")]
pub struct Fatal {
    /// Exit code of the process.
    pub exit_code: u8,
    /// What happened, for the operator.
    pub report: String,
}

/// Answer to InitChain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitChainAnswer {
    /// Hash of block 0.
    pub app_hash: B256,
    /// The validators of block 1.
    pub validators: Vec<ValidatorUpdate>,
}

/// Answer to FinalizeBlock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinalizeAnswer {
    /// Ethereum hash of the block.
    pub app_hash: B256,
    /// One for each transaction of the decided block, in order.
    pub results: Vec<TransactionResult>,
    /// Effective at height + 2.
    pub validator_updates: Vec<ValidatorUpdate>,
}

type Call = Box<dyn FnOnce(&mut BlockThread) + Send>;

/// Consensus calls, run one at a time on the block thread. The methods are those of ABCI, with our types.
///
/// A [`Fatal`] is final: it is the answer to this and to every later call, and [`Self::failed`] tells the shell, which
/// ends the process. A panic on the thread is such a fault. The thread ends when the last handle is dropped.
#[derive(Debug, Clone)]
pub struct ChainHandle {
    calls: mpsc::Sender<Call>,
    fault: watch::Receiver<Option<Fatal>>,
}

impl ChainHandle {
    /// Starts the block thread of `chain`: once for each chain.
    pub fn start(chain: Chain) -> std::io::Result<Self> {
        let (calls, queue) = mpsc::channel::<Call>();
        let (fault_sender, fault) = watch::channel(None);
        std::thread::Builder::new()
            .name("blocks".to_owned())
            .spawn(move || {
                let mut thread = BlockThread::new(chain, fault_sender);
                while let Ok(call) = queue.recv() {
                    call(&mut thread);
                }
            })?;
        Ok(Self { calls, fault })
    }

    pub(super) async fn call<T: Send + 'static>(
        &self,
        method: impl FnOnce(&mut BlockThread) -> Result<T, Fatal> + Send + 'static,
    ) -> Result<T, Fatal> {
        let (answer, receiver) = oneshot::channel();
        let call: Call = Box::new(move |thread| {
            // The asker may be gone (its connection closed): the call has run all the same.
            let _ = answer.send(guarded(thread, method));
        });
        let stopped = || Fatal {
            exit_code: EXIT_CONSENSUS,
            report: "the block thread has stopped".to_owned(),
        };
        self.calls.send(call).map_err(|_| stopped())?;
        receiver.await.map_err(|_| stopped())?
    }

    /// Waits for the fault that ends the process; pending for ever on a healthy chain.
    pub async fn failed(&self) -> Fatal {
        let mut fault = self.fault.clone();
        if let Ok(fault) = fault.wait_for(Option::is_some).await
            && let Some(fault) = &*fault
        {
            return fault.clone();
        }
        std::future::pending().await
    }

    /// Height and app hash of what the store really holds; height 0 and a zero hash before InitChain.
    pub async fn info(&self) -> Result<(u64, B256), Fatal> {
        self.call(|thread| Ok(thread.info())).await
    }

    /// Writes block 0. Called again before block 1 (CometBFT restarted), it answers the same.
    pub async fn init_chain(
        &self,
        cometbft_chain_id: String,
        app_state: Bytes,
        initial_height: u64,
    ) -> Result<InitChainAnswer, Fatal> {
        self.call(move |thread| thread.init_chain(&cometbft_chain_id, &app_state, initial_height))
            .await
    }

    /// `input.transactions` is what CometBFT offers; the pool decides.
    pub async fn prepare_proposal(
        &self,
        input: BlockInput,
        max_bytes: u64,
    ) -> Result<Vec<Bytes>, Fatal> {
        self.call(move |thread| thread.prepare_proposal(input, max_bytes))
            .await
    }

    /// `Ok(false)` = REJECT. Keeps the executed block for FinalizeBlock.
    pub async fn process_proposal(
        &self,
        input: BlockInput,
        consensus_hash: B256,
    ) -> Result<bool, Fatal> {
        self.call(move |thread| thread.process_proposal(input, consensus_hash))
            .await
    }

    /// Executes the decided block, or takes it from what a proposal left. Writes nothing.
    pub async fn finalize_block(
        &self,
        input: BlockInput,
        consensus_hash: B256,
    ) -> Result<FinalizeAnswer, Fatal> {
        self.call(move |thread| thread.finalize_block(&input, consensus_hash))
            .await
    }

    /// Persists the pending outcome, updates the pool, tells subscribers. Returns the retain height; 0 keeps all.
    pub async fn commit(&self) -> Result<u64, Fatal> {
        self.call(BlockThread::commit).await
    }

    /// CometBFT's connection closed: drop the pending outcome, keep the last commit.
    pub async fn disconnect(&self) {
        // A thread that has stopped holds no outcome.
        let _ = self
            .call(|thread| {
                thread.disconnect();
                Ok(())
            })
            .await;
    }
}

fn guarded<T>(
    thread: &mut BlockThread,
    method: impl FnOnce(&mut BlockThread) -> Result<T, Fatal>,
) -> Result<T, Fatal> {
    if let Some(fault) = thread.fault() {
        return Err(fault);
    }
    // Nothing of the thread is used after a panic but the fault: every later call answers with it.
    let result = catch_unwind(AssertUnwindSafe(|| method(thread))).unwrap_or_else(|panic| {
        Err(Fatal {
            exit_code: EXIT_CONSENSUS,
            report: format!("panic on the block thread: {}", panic_text(&*panic)),
        })
    });
    if let Err(fault) = &result {
        thread.fail(fault);
    }
    result
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
