//! Execution of a block, transaction by transaction: the same for a proposal and a decided block.
//!
//! Fees: the base fee is burnt, tips go to the proposer's payout address, and a block reward (if genesis names one) is
//! added last. Calls of the protocol come first: EIP-4788 writes CometBFT's hash of the parent, EIP-2935 the parent's
//! Ethereum hash.

pub mod overlay;

use crate::{
    block::{BlockInput, ExecutedBlock, ExecutedTransaction, TransactionResult},
    evm::{self, Evm, EvmError, GasOffer, Network, Switches},
    header::{self, Preamble, Roots},
    precompiles, registry,
    rejection::Rejection,
    state::{StateError, TrieRead},
    transaction::Transaction,
    trie,
};
use alloy_consensus::{Eip658Value, Header, Receipt, ReceiptEnvelope, Transaction as _};
use alloy_eips::{
    eip2718::Encodable2718, eip2935::HISTORY_STORAGE_ADDRESS, eip4788::BEACON_ROOTS_ADDRESS,
};
use alloy_primitives::{Address, B256, Bloom, Bytes};
use alloy_trie::root::ordered_trie_root_with_encoder;
use cloister_genesis::{Fork, Parameters};
use overlay::Overlay;
use std::{collections::BTreeSet, sync::Arc};

/// Why a block cannot be executed. None of it is a transaction's doing.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionFault {
    /// A call of the protocol did not succeed.
    #[error("system call of block {height} failed: {reason}")]
    SystemCall {
        /// Height of the block.
        height: u64,
        /// The contract, and what the EVM said.
        reason: String,
    },
    /// The EVM gave up on a transaction without a verdict.
    #[error("block {height}: {reason}")]
    Evm {
        /// Height of the block.
        height: u64,
        /// The transaction, and what the EVM said.
        reason: String,
    },
    /// The store failed.
    #[error(transparent)]
    State(#[from] StateError),
}

/// A block being executed.
pub struct BlockExecution<'a> {
    parameters: &'a Parameters,
    state: &'a dyn TrieRead,
    input: &'a BlockInput,
    preamble: Preamble,
    evm: Evm<'a>,
    transactions: Vec<ExecutedTransaction>,
    results: Vec<TransactionResult>,
    gas_used: u64,
    logs_bloom: Bloom,
}

impl std::fmt::Debug for BlockExecution<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockExecution")
            .field("preamble", &self.preamble)
            .field("gas_used", &self.gas_used)
            .finish_non_exhaustive()
    }
}

impl<'a> BlockExecution<'a> {
    /// Opens the block: environment, and the calls of the protocol.
    pub fn begin(
        parameters: &'a Parameters,
        precompiles: &'a precompiles::Context,
        state: &'a dyn TrieRead,
        parent: &Header,
        input: &'a BlockInput,
    ) -> Result<Self, ExecutionFault> {
        let beneficiary = registry::payout_address(state, input.proposer)?;
        let preamble = header::preamble(parameters, parent, input, beneficiary);
        let network = Network {
            chain_id: parameters.chain_id,
            fork: parameters.fork,
            precompiles,
        };
        let evm = Evm::new(
            network,
            &preamble.environment,
            &Switches::BLOCK,
            Overlay::new(state),
        );
        let mut block = Self {
            parameters,
            state,
            input,
            preamble,
            evm,
            transactions: Vec::new(),
            results: Vec::new(),
            gas_used: 0,
            logs_bloom: Bloom::ZERO,
        };
        block.call_system_contracts()?;
        Ok(block)
    }

    /// Reads senders and receivers ahead, in parallel.
    pub fn preload<'t>(
        &mut self,
        transactions: impl Iterator<Item = &'t Transaction>,
    ) -> Result<(), StateError> {
        let addresses: BTreeSet<Address> = transactions
            .flat_map(|transaction| [Some(transaction.sender()), transaction.envelope().to()])
            .flatten()
            .collect();
        let addresses: Vec<Address> = addresses.into_iter().collect();
        self.evm.overlay().preload(&addresses)
    }

    /// Gas that is left for transactions.
    pub const fn gas_left(&self) -> u64 {
        self.parameters.gas_limit.saturating_sub(self.gas_used)
    }

    /// Runs a transaction. One that breaks a rule changes nothing and is not recorded.
    pub fn execute(
        &mut self,
        transaction: &Arc<Transaction>,
    ) -> Result<Result<(), Rejection>, ExecutionFault> {
        let gas_limit = transaction.envelope().gas_limit();
        if let Err(rejection) = self.check_before_run(transaction, gas_limit) {
            return Ok(Err(rejection));
        }
        let environment = evm::transaction_environment(transaction);
        let offer = GasOffer::from(&environment);
        let executed = match self.evm.run(environment) {
            Ok(executed) => executed,
            Err(EvmError::Invalid(invalid)) => {
                return Ok(Err(evm::rejection(
                    invalid,
                    offer,
                    &self.preamble.environment,
                )));
            }
            Err(EvmError::State(error)) => return Err(error.into()),
            Err(EvmError::Fault(reason)) => {
                return Err(ExecutionFault::Evm {
                    height: self.input.height,
                    reason: format!("transaction {}: {reason}", transaction.hash()),
                });
            }
        };
        self.evm.commit(executed.writes)?;
        let (success, gas_used, logs) = evm::receipt_parts(executed.result);
        self.record(transaction, success, gas_used, logs);
        Ok(Ok(()))
    }

    /// Records that the transaction at this place of the input is not in the Ethereum block.
    pub fn reject(&mut self, rejection: Rejection) {
        self.results.push(TransactionResult {
            code: rejection.code(),
            gas_wanted: 0,
            gas_used: 0,
            placement: Err(rejection),
        });
    }

    /// Closes the block: reward, validators, roots, header.
    pub fn finish(mut self) -> Result<ExecutedBlock, ExecutionFault> {
        let beneficiary = self.preamble.environment.beneficiary;
        self.evm
            .overlay()
            .credit(beneficiary, self.parameters.block_reward_wei)?;
        let validator_updates =
            registry::end_block(self.evm.overlay(), self.parameters, self.input)?;
        let post = self.evm.into_overlay().into_post_state();
        let transactions = self.transactions;
        let (state, (transactions_root, receipts_root)) = rayon::join(
            || trie::commit(self.state, post),
            || block_roots(&transactions),
        );
        let (state_root, changes) = state?;
        let roots = Roots {
            state: state_root,
            transactions: transactions_root,
            receipts: receipts_root,
            logs_bloom: self.logs_bloom,
            gas_used: self.gas_used,
        };
        Ok(ExecutedBlock {
            header: header::build(self.parameters.fork, &self.preamble, &roots),
            transactions,
            results: self.results,
            validator_updates,
            changes,
        })
    }

    fn call_system_contracts(&mut self) -> Result<(), ExecutionFault> {
        let beacon_root = Bytes::from(self.preamble.parent_beacon_block_root);
        let parent_hash = Bytes::from(self.preamble.parent_hash);
        match self.parameters.fork {
            Fork::Shanghai => Ok(()),
            Fork::Cancun => self.system_call(BEACON_ROOTS_ADDRESS, beacon_root),
            Fork::Prague | Fork::Osaka => {
                self.system_call(BEACON_ROOTS_ADDRESS, beacon_root)?;
                self.system_call(HISTORY_STORAGE_ADDRESS, parent_hash)
            }
        }
    }

    fn system_call(&mut self, contract: Address, input: Bytes) -> Result<(), ExecutionFault> {
        let fault = |reason: String| ExecutionFault::SystemCall {
            height: self.input.height,
            reason: format!("{contract}: {reason}"),
        };
        let executed = match self.evm.system_call(contract, input) {
            Ok(executed) => executed,
            Err(EvmError::State(error)) => return Err(error.into()),
            Err(other) => return Err(fault(other.to_string())),
        };
        if !executed.result.is_success() {
            return Err(fault(executed.result.to_string()));
        }
        Ok(self.evm.commit(executed.writes)?)
    }

    fn check_before_run(&self, transaction: &Transaction, gas_limit: u64) -> Result<(), Rejection> {
        if gas_limit > self.parameters.gas_limit {
            return Err(Rejection::GasLimitAboveBlock {
                block: self.parameters.gas_limit,
                gas_limit,
            });
        }
        let left = self.gas_left();
        if gas_limit > left {
            return Err(Rejection::BlockGasExhausted { left, gas_limit });
        }
        transaction.check_fork(self.parameters.fork)
    }

    fn record(
        &mut self,
        transaction: &Arc<Transaction>,
        success: bool,
        gas_used: u64,
        logs: Vec<alloy_primitives::Log>,
    ) {
        self.gas_used = self.gas_used.saturating_add(gas_used);
        let receipt = Receipt {
            status: Eip658Value::Eip658(success),
            cumulative_gas_used: self.gas_used,
            logs,
        };
        let receipt = ReceiptEnvelope::from_typed(transaction.envelope().tx_type(), receipt);
        self.logs_bloom |= *receipt.logs_bloom();
        let index = u32::try_from(self.transactions.len()).expect("a block is at most 10 MiB");
        self.results.push(TransactionResult {
            code: 0,
            gas_wanted: transaction.envelope().gas_limit(),
            gas_used,
            placement: Ok(index),
        });
        self.transactions.push(ExecutedTransaction {
            transaction: Arc::clone(transaction),
            receipt,
            gas_used,
        });
    }
}

/// Transactions root and receipts root.
fn block_roots(transactions: &[ExecutedTransaction]) -> (B256, B256) {
    rayon::join(
        || {
            ordered_trie_root_with_encoder(transactions, |executed, out| {
                out.extend_from_slice(executed.transaction.raw());
            })
        },
        || {
            ordered_trie_root_with_encoder(transactions, |executed, out| {
                executed.receipt.encode_2718(out);
            })
        },
    )
}

#[cfg(test)]
mod tests;
