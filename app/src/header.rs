//! The Ethereum header of a block. Its hash is CometBFT's app hash.
//!
//! Everything is known before CometBFT's own hash of the block, so one execution serves Prepare-, ProcessProposal and
//! FinalizeBlock; that hash enters last, as the extra data ([`crate::block::ExecutedBlock::seal`]).
//! Fields that a fork does not have yet are absent, as in Ethereum.

use crate::{block::BlockInput, evm::BlockEnvironment};
use alloy_consensus::{EMPTY_OMMER_ROOT_HASH, Header};
use alloy_eips::eip7685::EMPTY_REQUESTS_HASH;
use alloy_primitives::{Address, B64, B256, Bloom, Bytes, U256, keccak256};
use alloy_trie::EMPTY_ROOT_HASH;
use cloister_genesis::{BaseFeeParameters, Fork, Genesis, Parameters};

/// What the parent, the parameters and the decided block fix before any transaction runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preamble {
    /// Hash of the parent's header.
    pub parent_hash: B256,
    /// What instructions see of the block.
    pub environment: BlockEnvironment,
    /// CometBFT's hash of the parent block; zero for block 1.
    pub parent_beacon_block_root: B256,
}

/// What execution adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// Root of the account trie after the block.
    pub state: B256,
    /// Root of the transactions in the Ethereum block.
    pub transactions: B256,
    /// Root of their receipts.
    pub receipts: B256,
    /// All their logs.
    pub logs_bloom: Bloom,
    /// Gas they used together.
    pub gas_used: u64,
}

/// Derives the fixed part of a header. `beneficiary` is the payout address the registry held at the parent.
pub fn preamble(
    parameters: &Parameters,
    parent: &Header,
    input: &BlockInput,
    beneficiary: Address,
) -> Preamble {
    let parent_hash = parent.hash_slow();
    let environment = BlockEnvironment {
        number: input.height,
        timestamp: (input.time_ms / 1000).max(parent.timestamp),
        beneficiary,
        gas_limit: parameters.gas_limit,
        base_fee_wei: next_base_fee(&parameters.base_fee, parent),
        prev_randao: keccak256([parent_hash.as_slice(), input.proposer.as_slice()].concat()),
    };
    Preamble {
        parent_hash,
        environment,
        parent_beacon_block_root: consensus_hash(parent),
    }
}

/// The header without its extra data.
pub fn build(fork: Fork, preamble: &Preamble, roots: &Roots) -> Header {
    let environment = &preamble.environment;
    let cancun = !matches!(fork, Fork::Shanghai);
    let prague = matches!(fork, Fork::Prague | Fork::Osaka);
    Header {
        parent_hash: preamble.parent_hash,
        ommers_hash: EMPTY_OMMER_ROOT_HASH,
        beneficiary: environment.beneficiary,
        state_root: roots.state,
        transactions_root: roots.transactions,
        receipts_root: roots.receipts,
        logs_bloom: roots.logs_bloom,
        difficulty: U256::ZERO,
        number: environment.number,
        gas_limit: environment.gas_limit,
        gas_used: roots.gas_used,
        timestamp: environment.timestamp,
        extra_data: Bytes::new(),
        mix_hash: environment.prev_randao,
        nonce: B64::ZERO,
        base_fee_per_gas: Some(environment.base_fee_wei),
        withdrawals_root: Some(EMPTY_ROOT_HASH),
        blob_gas_used: cancun.then_some(0),
        excess_blob_gas: cancun.then_some(0),
        parent_beacon_block_root: cancun.then_some(preamble.parent_beacon_block_root),
        requests_hash: prague.then_some(EMPTY_REQUESTS_HASH),
        block_access_list_hash: None,
        slot_number: None,
    }
}

/// The header of block 0.
pub fn genesis(genesis: &Genesis, state_root: B256) -> Header {
    let parameters = &genesis.parameters;
    let preamble = Preamble {
        parent_hash: B256::ZERO,
        environment: BlockEnvironment {
            number: 0,
            timestamp: genesis.timestamp,
            beneficiary: Address::ZERO,
            gas_limit: parameters.gas_limit,
            base_fee_wei: parameters.base_fee.initial_wei,
            prev_randao: B256::ZERO,
        },
        parent_beacon_block_root: B256::ZERO,
    };
    let roots = Roots {
        state: state_root,
        transactions: EMPTY_ROOT_HASH,
        receipts: EMPTY_ROOT_HASH,
        logs_bloom: Bloom::ZERO,
        gas_used: 0,
    };
    build(parameters.fork, &preamble, &roots)
}

/// Base fee of the block after `parent`, in wei (EIP-1559 with our elasticity, floor and denominator).
pub fn next_base_fee(parameters: &BaseFeeParameters, parent: &Header) -> u64 {
    if parent.number == 0 {
        return parameters.initial_wei.max(parameters.floor_wei);
    }
    let current = u128::from(parent.base_fee_per_gas.unwrap_or(parameters.floor_wei));
    let gas_used = u128::from(parent.gas_used);
    let target = u128::from(parent.gas_limit / parameters.elasticity.max(1)).max(1);
    let denominator = u128::from(parameters.change_denominator.max(1));
    let step = |gas_delta: u128| current.saturating_mul(gas_delta) / target / denominator;
    let next = match gas_used.cmp(&target) {
        std::cmp::Ordering::Equal => current,
        std::cmp::Ordering::Greater => {
            current.saturating_add(step(gas_used.saturating_sub(target)).max(1))
        }
        std::cmp::Ordering::Less => current.saturating_sub(step(target.saturating_sub(gas_used))),
    };
    u64::try_from(next)
        .unwrap_or(u64::MAX)
        .max(parameters.floor_wei)
}

/// CometBFT's hash of the block that this header belongs to; zero for block 0, which has none.
pub fn consensus_hash(header: &Header) -> B256 {
    B256::try_from(header.extra_data.as_ref()).unwrap_or(B256::ZERO)
}

#[cfg(test)]
mod tests;
