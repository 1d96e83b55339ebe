//! The application: one method per call of consensus. Holds only what genesis fixes; state is an argument.

use crate::{
    block::{BlockInput, ExecutedBlock},
    empty_state::EmptyState,
    execution::{BlockExecution, ExecutionFault},
    header, precompiles,
    rejection::Rejection,
    state::{ChangeSet, HashedAddress, HashedSlot, StateError, StateRead, TrieRead},
    transaction::{self, Transaction},
    trie::{self, AccountRecord, AccountUpdate, PostState},
};
use alloy_consensus::{Header, Transaction as _, constants::KECCAK_EMPTY};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use cloister_genesis::{Genesis, Parameters};
use rayon::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The rules of one network.
#[derive(Debug)]
pub struct App {
    parameters: Parameters,
    precompiles: precompiles::Context,
}

/// State and header of block 0.
#[derive(Debug)]
pub struct GenesisOutcome {
    /// Ethereum header of block 0.
    pub header: Header,
    /// Its hash: the app hash that InitChain answers.
    pub hash: B256,
    /// All accounts, slots, code and trie nodes.
    pub changes: ChangeSet,
}

/// Why a proposal is refused.
#[derive(Debug, thiserror::Error)]
pub enum ProposalFault {
    #[error("transaction {index}: {rejection}")]
    InvalidTransaction { index: usize, rejection: Rejection },
    #[error("transactions take {size_bytes} bytes, limit {max_bytes}")]
    TooLarge { size_bytes: u64, max_bytes: u64 },
    #[error("block height {got} does not follow {parent}")]
    WrongHeight { parent: u64, got: u64 },
    #[error("block {height}: {reason}")]
    Execution { height: u64, reason: String },
    #[error(transparent)]
    State(#[from] StateError),
}

/// A decided block that cannot be executed: the node must stop.
#[derive(Debug, thiserror::Error)]
pub enum ConsensusFault {
    #[error("decided block has height {got}, the last committed is {parent}")]
    WrongHeight { parent: u64, got: u64 },
    #[error("system call of block {height} failed: {reason}")]
    SystemCall { height: u64, reason: String },
    #[error("block {height}: {reason}")]
    Execution { height: u64, reason: String },
    #[error(transparent)]
    State(#[from] StateError),
}

/// What a proposer chose.
#[derive(Debug)]
pub struct Proposal {
    /// The transactions to propose, in order.
    pub transactions: Vec<Bytes>,
    /// The block they make, kept to be reused.
    pub executed: ExecutedBlock,
}

/// Looks up a transaction by hash that was parsed before (in the pool).
pub type Known<'a> = dyn Fn(&B256) -> Option<Arc<Transaction>> + Sync + 'a;

/// Gas below which no transaction fits.
const TRANSACTION_GAS_MIN: u64 = 21_000;

impl App {
    /// Takes a checked genesis: parameters and prepared verifying keys.
    pub fn new(genesis: &Genesis) -> Self {
        Self {
            parameters: genesis.parameters.clone(),
            precompiles: precompiles::Context::new(&genesis.verifying_keys)
                .expect("reading a genesis checks each of its verifying keys"),
        }
    }

    /// The genesis parameters.
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// What the precompiles know: for simulations.
    pub const fn precompiles(&self) -> &precompiles::Context {
        &self.precompiles
    }

    /// Base fee per gas, in wei, of the block after `head`.
    pub fn next_base_fee(&self, head: &Header) -> u64 {
        header::next_base_fee(&self.parameters.base_fee, head)
    }

    /// Block 0: the allocated accounts and its header.
    pub fn init_chain(&self, genesis: &Genesis) -> GenesisOutcome {
        let (state_root, changes) = trie::commit(&EmptyState, allocation(genesis))
            .expect("the empty state answers every read");
        let header = header::genesis(genesis, state_root);
        GenesisOutcome {
            hash: header.hash_slow(),
            header,
            changes,
        }
    }

    /// Checks a parsed transaction against the state after `head`: what a pool needs to know before it keeps it.
    ///
    /// Not errors here, for they can pass with time, and the pool decides: a nonce gap, and a fee cap below the next
    /// base fee (but not below the floor, which no base fee ever undercuts). Order: fork, gas, nonce, fee, balance.
    pub fn check_transaction(
        &self,
        state: &dyn StateRead,
        head: &Header,
        transaction: &Transaction,
    ) -> Result<(), Rejection> {
        let _ = head;
        self.check_without_state(transaction)?;
        // Advice only, and the pool has no other verdict: a store that fails here fails loudly at the next block.
        let unavailable = |error: StateError| Rejection::Evm(error.to_string());
        let sender = state
            .account(HashedAddress::from(transaction.sender()))
            .map_err(unavailable)?
            .unwrap_or_default();
        let nonce = transaction.envelope().nonce();
        if nonce < sender.nonce {
            return Err(Rejection::NonceTooLow {
                expected: sender.nonce,
                got: nonce,
            });
        }
        if sender.code_hash != KECCAK_EMPTY {
            let code = state.code(sender.code_hash).map_err(unavailable)?;
            if !is_delegation(&code) {
                return Err(Rejection::SenderHasCode);
            }
        }
        check_funds(sender.balance, transaction)
    }

    fn check_without_state(&self, transaction: &Transaction) -> Result<(), Rejection> {
        transaction.check_fork(self.parameters.fork)?;
        let envelope = transaction.envelope();
        if envelope.gas_limit() > self.parameters.gas_limit {
            return Err(Rejection::GasLimitAboveBlock {
                block: self.parameters.gas_limit,
                gas_limit: envelope.gas_limit(),
            });
        }
        let base_fee_wei = self.parameters.base_fee.floor_wei;
        if envelope.max_fee_per_gas() < u128::from(base_fee_wei) {
            return Err(Rejection::FeeCapBelowBaseFee {
                fee_cap_wei: envelope.max_fee_per_gas(),
                base_fee_wei,
            });
        }
        Ok(())
    }

    /// Executes `candidates` in order on top of `parent`, leaving out those that fail a rule, until block gas or
    /// `max_bytes` (protobuf framing included) is full. `input.transactions` is ignored.
    pub fn prepare_proposal(
        &self,
        state: &dyn TrieRead,
        parent: &Header,
        input: &BlockInput,
        candidates: &mut dyn Iterator<Item = Arc<Transaction>>,
        max_bytes: u64,
    ) -> Result<Proposal, ProposalFault> {
        check_height(parent, input)?;
        let max_bytes = max_bytes.min(self.parameters.max_block_bytes);
        let mut block = self.begin(state, parent, input)?;
        let mut transactions = Vec::new();
        let mut size_bytes = 0u64;
        // Once one transaction of a sender is left out, its later ones have a gap.
        let mut left_out = BTreeSet::new();
        for candidate in candidates {
            if block.gas_left() < TRANSACTION_GAS_MIN {
                break;
            }
            if left_out.contains(&candidate.sender()) {
                continue;
            }
            let with_candidate = size_bytes.saturating_add(framed_size(candidate.raw()));
            if with_candidate > max_bytes || block.execute(&candidate)?.is_err() {
                left_out.insert(candidate.sender());
                continue;
            }
            size_bytes = with_candidate;
            transactions.push(candidate.raw().clone());
        }
        let executed = block.finish()?;
        Ok(Proposal {
            transactions,
            executed,
        })
    }

    /// Executes a proposed block and refuses it if any transaction is invalid.
    /// `known` maps transaction hash to an already parsed transaction (from the pool), to spare recovery.
    pub fn process_proposal(
        &self,
        state: &dyn TrieRead,
        parent: &Header,
        input: &BlockInput,
        known: &Known<'_>,
    ) -> Result<ExecutedBlock, ProposalFault> {
        check_height(parent, input)?;
        let size_bytes = input.transactions.iter().map(framed_size).sum();
        let max_bytes = self.parameters.max_block_bytes;
        if size_bytes > max_bytes {
            return Err(ProposalFault::TooLarge {
                size_bytes,
                max_bytes,
            });
        }
        let parsed = transaction::decode_all(&input.transactions, self.parameters.chain_id, known)
            .into_iter()
            .enumerate()
            .map(|(index, parsed)| parsed.map_err(|rejection| (index, rejection)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|(index, rejection)| ProposalFault::InvalidTransaction { index, rejection })?;
        let mut block = self.begin(state, parent, input)?;
        block.preload(parsed.iter().map(AsRef::as_ref))?;
        for (index, transaction) in parsed.iter().enumerate() {
            if let Err(rejection) = block.execute(transaction)? {
                return Err(ProposalFault::InvalidTransaction { index, rejection });
            }
        }
        Ok(block.finish()?)
    }

    /// Executes a decided block. Invalid transactions get their rejection code and are left out of the Ethereum block.
    pub fn execute_block(
        &self,
        state: &dyn TrieRead,
        parent: &Header,
        input: &BlockInput,
        known: &Known<'_>,
    ) -> Result<ExecutedBlock, ConsensusFault> {
        check_height(parent, input)?;
        let parsed = transaction::decode_all(&input.transactions, self.parameters.chain_id, known);
        let mut block = self.begin(state, parent, input)?;
        block.preload(parsed.iter().flatten().map(AsRef::as_ref))?;
        for transaction in parsed {
            let outcome = match transaction {
                Ok(transaction) => block.execute(&transaction)?,
                Err(rejection) => Err(rejection),
            };
            if let Err(rejection) = outcome {
                block.reject(rejection);
            }
        }
        Ok(block.finish()?)
    }

    fn begin<'a>(
        &'a self,
        state: &'a dyn TrieRead,
        parent: &Header,
        input: &'a BlockInput,
    ) -> Result<BlockExecution<'a>, ExecutionFault> {
        BlockExecution::begin(&self.parameters, &self.precompiles, state, parent, input)
    }
}

/// What a transaction takes in CometBFT's list: its bytes, one byte of field tag, the length as a varint.
pub fn framed_size(raw: &Bytes) -> u64 {
    let length = raw.len() as u64;
    let significant_bits = u64::from(u64::BITS - (length | 1).leading_zeros());
    let varint_bytes = significant_bits.div_ceil(7);
    1 + varint_bytes + length
}

struct WrongHeight {
    parent: u64,
    got: u64,
}

impl From<WrongHeight> for ProposalFault {
    fn from(WrongHeight { parent, got }: WrongHeight) -> Self {
        Self::WrongHeight { parent, got }
    }
}

impl From<WrongHeight> for ConsensusFault {
    fn from(WrongHeight { parent, got }: WrongHeight) -> Self {
        Self::WrongHeight { parent, got }
    }
}

impl From<ExecutionFault> for ProposalFault {
    fn from(fault: ExecutionFault) -> Self {
        match fault {
            ExecutionFault::State(error) => Self::State(error),
            ExecutionFault::SystemCall { height, reason }
            | ExecutionFault::Evm { height, reason } => Self::Execution { height, reason },
        }
    }
}

impl From<ExecutionFault> for ConsensusFault {
    fn from(fault: ExecutionFault) -> Self {
        match fault {
            ExecutionFault::State(error) => Self::State(error),
            ExecutionFault::SystemCall { height, reason } => Self::SystemCall { height, reason },
            ExecutionFault::Evm { height, reason } => Self::Execution { height, reason },
        }
    }
}

fn check_height(parent: &Header, input: &BlockInput) -> Result<(), WrongHeight> {
    if parent.number.checked_add(1) == Some(input.height) {
        Ok(())
    } else {
        Err(WrongHeight {
            parent: parent.number,
            got: input.height,
        })
    }
}

/// EIP-7702: code that only names another account; its owner may still send transactions.
fn is_delegation(code: &[u8]) -> bool {
    code.len() == 23 && code.starts_with(&[0xef, 0x01, 0x00])
}

fn check_funds(balance: U256, transaction: &Transaction) -> Result<(), Rejection> {
    let envelope = transaction.envelope();
    // 2^24 gas times 2^128 wei fits; only adding the value can overflow, and then no balance covers it.
    let cost = U256::from(envelope.gas_limit())
        .saturating_mul(U256::from(envelope.max_fee_per_gas()))
        .saturating_add(envelope.value());
    if balance < cost {
        return Err(Rejection::InsufficientFunds { balance, cost });
    }
    Ok(())
}

/// The accounts of genesis as if a block had made them.
fn allocation(genesis: &Genesis) -> PostState {
    let alloc: Vec<(&Address, _)> = genesis.alloc.iter().collect();
    let hashed: Vec<_> = alloc
        .into_par_iter()
        .map(|(address, account)| {
            let code = account.code.clone().unwrap_or_default();
            let code_hash = if code.is_empty() {
                KECCAK_EMPTY
            } else {
                keccak256(&code)
            };
            let storage = account
                .storage
                .iter()
                .flatten()
                .map(|(slot, value)| (HashedSlot(keccak256(slot)), U256::from_be_bytes(value.0)))
                .filter(|(_, value)| !value.is_zero())
                .collect();
            let update = AccountUpdate {
                account: Some(AccountRecord {
                    nonce: account.nonce.unwrap_or(0),
                    balance: account.balance,
                    code_hash,
                }),
                wipe_storage: false,
                storage,
            };
            (HashedAddress::from(*address), update, code_hash, code)
        })
        .collect();
    let mut accounts = BTreeMap::new();
    let mut code_by_hash = BTreeMap::new();
    for (key, update, code_hash, code) in hashed {
        accounts.insert(key, update);
        if !code.is_empty() {
            code_by_hash.insert(code_hash, code);
        }
    }
    PostState {
        accounts,
        code: code_by_hash,
    }
}

#[cfg(test)]
mod tests;
