//! What the block thread does for each consensus call: synchronous, one call at a time.

use super::{
    Chain, CommittedBlock,
    executed::ExecutedBlocks,
    handle::{EXIT_CONSENSUS, EXIT_STORE, Fatal, FinalizeAnswer, InitChainAnswer},
};
use crate::store::{Head, StoreError};
use alloy_primitives::{B256, Bytes};
use cloister_app::{
    app::{ConsensusFault, ProposalFault},
    block::{BlockInput, BlockOutcome, ExecutedBlock, ValidatorUpdate},
    state::ChangeSet,
    transaction::Transaction,
};
use cloister_genesis::AppState;
use std::sync::Arc;
use tokio::sync::watch;

/// See the module.
#[derive(Debug)]
pub(super) struct BlockThread {
    chain: Chain,
    /// Between FinalizeBlock and Commit.
    pending: Option<BlockOutcome>,
    executed: ExecutedBlocks,
    fault: watch::Sender<Option<Fatal>>,
}

impl BlockThread {
    pub(super) fn new(chain: Chain, fault: watch::Sender<Option<Fatal>>) -> Self {
        let executed = ExecutedBlocks::new(chain.inner.options.executed);
        Self {
            chain,
            pending: None,
            executed,
            fault,
        }
    }

    pub(super) fn fault(&self) -> Option<Fatal> {
        self.fault.borrow().clone()
    }

    pub(super) fn fail(&self, fault: &Fatal) {
        tracing::error!(exit_code = fault.exit_code, "{}", fault.report);
        self.fault.send_replace(Some(fault.clone()));
    }

    pub(super) fn info(&self) -> (u64, B256) {
        self.chain
            .store()
            .head()
            .map_or((0, B256::ZERO), |head| (head.height, head.hash))
    }

    pub(super) fn init_chain(
        &mut self,
        cometbft_chain_id: &str,
        app_state: &Bytes,
        initial_height: u64,
    ) -> Result<InitChainAnswer, Fatal> {
        if initial_height != 1 {
            return Err(configuration(format!(
                "CometBFT's genesis has initial_height {initial_height}, this chain starts at 1"
            )));
        }
        self.check_app_state(app_state)?;
        let chain = &self.chain;
        let genesis = chain.app().init_chain(chain.genesis());
        match chain.store().head() {
            None => {
                chain.store().init(&genesis)?;
                tracing::info!(cometbft_chain_id, hash = %genesis.hash, "chain initialised");
            }
            // CometBFT asks again after a crash before block 1.
            Some(head) if head.height == 0 && head.hash == genesis.hash => {}
            Some(head) if head.height == 0 => {
                return Err(configuration(format!(
                    "the store holds block 0 with hash {}, the genesis makes {}: this home belongs to another network",
                    head.hash, genesis.hash
                )));
            }
            Some(head) => {
                return Err(configuration(format!(
                    "CometBFT starts at block 1 but the store holds block {}: CometBFT's data was lost; restore it, or \
                     move our data folder away to start from genesis",
                    head.height
                )));
            }
        }
        let validators = chain
            .genesis()
            .validators
            .iter()
            .map(|validator| ValidatorUpdate {
                public_key: validator.public_key,
                power: validator.power,
            })
            .collect();
        Ok(InitChainAnswer {
            app_hash: genesis.hash,
            validators,
        })
    }

    /// CometBFT's genesis names ours by hash, so that a large allocation never travels through an ABCI frame.
    fn check_app_state(&self, app_state: &Bytes) -> Result<(), Fatal> {
        let named = AppState::parse(app_state)
            .map_err(|error| configuration(format!("app_state of CometBFT's genesis: {error}")))?;
        let chain = &self.chain;
        let expected = chain.genesis_sha256();
        if named.genesis_sha256 != expected.0 {
            return Err(configuration(format!(
                "CometBFT's genesis names a genesis.json with SHA-256 {}, ours has {}: fetch both files from one source",
                hex::encode(named.genesis_sha256),
                hex::encode(expected)
            )));
        }
        let chain_id = chain.app().parameters().chain_id;
        if named.evm_chain_id != chain_id {
            return Err(configuration(format!(
                "CometBFT's genesis names EVM chain id {}, genesis.json has {chain_id}",
                named.evm_chain_id
            )));
        }
        Ok(())
    }

    pub(super) fn prepare_proposal(
        &mut self,
        mut input: BlockInput,
        max_bytes: u64,
    ) -> Result<Vec<Bytes>, Fatal> {
        let head = self.head()?;
        let app = self.chain.app();
        let state = self.chain.store().current();
        let base_fee_wei = app.next_base_fee(&head.header);
        let prepare = |candidates: &mut dyn Iterator<Item = Arc<Transaction>>| {
            app.prepare_proposal(&state, &head.header, &input, candidates, max_bytes)
        };
        let proposal = match prepare(&mut self.chain.pool().best_iter(base_fee_wei)) {
            // A transaction that the EVM gives up on must not stop every proposer in turn.
            Err(fault @ ProposalFault::Execution { .. }) => {
                tracing::error!(%fault, "proposing an empty block");
                prepare(&mut std::iter::empty())
            }
            result => result,
        };
        let proposal = proposal.map_err(|fault| match fault {
            ProposalFault::State(error) => store(error),
            ProposalFault::InvalidTransaction { .. }
            | ProposalFault::TooLarge { .. }
            | ProposalFault::WrongHeight { .. }
            | ProposalFault::Execution { .. } => {
                consensus(format!("cannot propose block {}: {fault}", input.height))
            }
        })?;
        input.transactions.clone_from(&proposal.transactions);
        self.executed.insert(head.hash, input, proposal.executed);
        Ok(proposal.transactions)
    }

    pub(super) fn process_proposal(
        &mut self,
        input: BlockInput,
        consensus_hash: B256,
    ) -> Result<bool, Fatal> {
        let head = self.head()?;
        if self.executed.contains(head.hash, &input) {
            return Ok(true);
        }
        let chain = &self.chain;
        let pool = chain.pool();
        let known = |hash: &B256| -> Option<Arc<Transaction>> { pool.get(hash) };
        let height = input.height;
        match chain
            .app()
            .process_proposal(&chain.store().current(), &head.header, &input, &known)
        {
            Ok(block) => {
                self.executed.insert(head.hash, input, block);
                Ok(true)
            }
            Err(ProposalFault::State(error)) => Err(store(error)),
            Err(
                fault @ (ProposalFault::InvalidTransaction { .. }
                | ProposalFault::TooLarge { .. }
                | ProposalFault::WrongHeight { .. }
                | ProposalFault::Execution { .. }),
            ) => {
                tracing::warn!(
                    height, proposer = %input.proposer, %consensus_hash, %fault,
                    "proposal rejected"
                );
                Ok(false)
            }
        }
    }

    pub(super) fn finalize_block(
        &mut self,
        input: &BlockInput,
        consensus_hash: B256,
    ) -> Result<FinalizeAnswer, Fatal> {
        let head = self.head()?;
        if input.height != head.height + 1 {
            return Err(consensus(format!(
                "FinalizeBlock of height {} but the store holds {}",
                input.height, head.height
            )));
        }
        let block = match self.executed.take(head.hash, input) {
            Some(block) => block,
            None => self.execute(&head, input)?,
        };
        if block.header.parent_hash != head.hash {
            return Err(consensus(format!(
                "block {} was executed on parent {}, the store holds {}",
                input.height, block.header.parent_hash, head.hash
            )));
        }
        let outcome = block.seal(consensus_hash);
        let answer = FinalizeAnswer {
            app_hash: outcome.hash,
            results: outcome.block.results.clone(),
            validator_updates: outcome.block.validator_updates.clone(),
        };
        self.pending = Some(outcome);
        Ok(answer)
    }

    fn execute(&self, head: &Head, input: &BlockInput) -> Result<ExecutedBlock, Fatal> {
        let chain = &self.chain;
        let pool = chain.pool();
        let known = |hash: &B256| -> Option<Arc<Transaction>> { pool.get(hash) };
        chain
            .app()
            .execute_block(&chain.store().current(), &head.header, input, &known)
            .map_err(|fault| match fault {
                ConsensusFault::State(error) => store(error),
                ConsensusFault::WrongHeight { .. }
                | ConsensusFault::SystemCall { .. }
                | ConsensusFault::Execution { .. } => consensus(format!(
                    "decided block {} cannot be executed on {} (hash {}): {fault}",
                    input.height, head.height, head.hash
                )),
            })
    }

    pub(super) fn commit(&mut self) -> Result<u64, Fatal> {
        let mut outcome = self
            .pending
            .take()
            .ok_or_else(|| consensus("Commit without FinalizeBlock".to_owned()))?;
        let chain = &self.chain;
        chain.store().commit(&outcome)?;
        // What was executed on the old head can no longer be decided.
        self.executed.clear();
        chain.pool().apply_block(&outcome);

        let header = &outcome.block.header;
        let (pending, queued) = chain.pool().size();
        tracing::info!(
            height = header.number,
            hash = %outcome.hash,
            transactions = outcome.block.transactions.len(),
            gas_used = header.gas_used,
            pending,
            queued,
            "block committed"
        );
        let height = header.number;
        outcome.block.changes = ChangeSet::default();
        // An error only says that nobody listens.
        let _ = chain.inner.blocks.send(CommittedBlock {
            outcome: Arc::new(outcome),
        });
        Ok(self.retain_height(height))
    }

    /// CometBFT may drop blocks below this height. Never above the durable height: it replays to us what a power cut
    /// took from our log.
    fn retain_height(&self, height: u64) -> u64 {
        let retain_blocks = self.chain.inner.options.retain_blocks;
        if retain_blocks == 0 {
            return 0;
        }
        let wanted = height.saturating_sub(retain_blocks);
        let store = self.chain.store();
        let durable = store.durable_height();
        // Ask for the sync half a window ahead, so that it is done by the time the height is to rise.
        if durable < wanted.saturating_add(retain_blocks / 2) {
            store.request_sync();
        }
        wanted.min(durable)
    }

    pub(super) fn disconnect(&mut self) {
        self.pending = None;
    }

    fn head(&self) -> Result<Arc<Head>, Fatal> {
        self.chain
            .store()
            .head()
            .ok_or_else(|| consensus("a block was called for before InitChain".to_owned()))
    }
}

const fn consensus(report: String) -> Fatal {
    Fatal {
        exit_code: EXIT_CONSENSUS,
        report,
    }
}

/// What the operator must mend: `EX_CONFIG` of sysexits.h.
const fn configuration(report: String) -> Fatal {
    Fatal {
        exit_code: 78,
        report,
    }
}

fn store(error: impl std::fmt::Display) -> Fatal {
    Fatal {
        exit_code: EXIT_STORE,
        report: error.to_string(),
    }
}

impl From<StoreError> for Fatal {
    fn from(error: StoreError) -> Self {
        store(error)
    }
}
