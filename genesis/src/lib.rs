//! Network definitions: the parameters of consensus, the allocation, the verifying keys and the system contracts.
//!
//! A network is one `genesis.json` (ours: parameters, alloc, keys, validators) and one CometBFT genesis whose
//! `app_state` names ours by SHA-256, so that a large allocation never travels through an ABCI frame.

use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, U256};
use std::collections::BTreeMap;

/// Rules of Ethereum in force from block 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fork {
    /// April 2023.
    Shanghai,
    /// March 2024.
    Cancun,
    /// May 2025.
    Prague,
    /// December 2025.
    #[default]
    Osaka,
}

/// EIP-1559 parameters. Elasticity 1: the target is the limit and the fee stays at its floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BaseFeeParameters {
    /// Gas limit / gas target, at least 1. Ethereum: 2.
    pub elasticity: u64,
    /// Smallest base fee in wei; 0 allowed.
    pub floor_wei: u64,
    /// Base fee of block 1 in wei, at least the floor.
    pub initial_wei: u64,
    /// Largest change per block is 1 / this. Ethereum: 8.
    pub change_denominator: u64,
}

/// Consensus parameters fixed by genesis: one table.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Parameters {
    /// EVM chain id (EIP-155), its own field: never derived from CometBFT's chain-id string.
    pub chain_id: u64,
    /// EVM rules.
    pub fork: Fork,
    /// Gas limit of every block.
    pub gas_limit: u64,
    /// Base fee.
    pub base_fee: BaseFeeParameters,
    /// New coins for the payout address of each block's proposer, in wei.
    pub block_reward_wei: U256,
    /// CometBFT's `block.max_bytes`, at most 10 MiB.
    pub max_block_bytes: u64,
    /// Blocks between snapshots.
    pub snapshot_interval_blocks: u64,
    /// Snapshot format.
    pub snapshot_format: u32,
    /// Length of an epoch of the private ledger, in blocks.
    pub epoch_length_blocks: u64,
    /// Leading zero bits asked of a stamp on messages.
    pub stamp_difficulty_bits: u8,
    /// Window over which a validator's signatures are counted.
    pub downtime_window_blocks: u64,
    /// How long a validator missing from more than half of the window stays out.
    pub jail_blocks: u64,
}

/// A validator of block 1.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GenesisValidator {
    /// Account that votes in the registry.
    pub member: Address,
    /// ed25519 public key.
    #[serde(with = "hex::serde")]
    pub public_key: [u8; 32],
    /// Voting power, at least 1.
    pub power: u64,
    /// Where fees of its blocks go.
    pub payout: Address,
    /// Shown to people.
    pub name: String,
}

/// A verifying key registered from block 0.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GenesisVerifyingKey {
    /// Name shown to people, e.g. `transfer_k2`.
    pub name: String,
    /// Key bytes in the encoding of `cloister_groth16`.
    pub key: alloy_primitives::Bytes,
}

/// A whole network definition, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Genesis {
    /// The one table.
    pub parameters: Parameters,
    /// Seconds since the epoch of block 0.
    pub timestamp: u64,
    /// Accounts of block 0, system contracts included.
    pub alloc: BTreeMap<Address, GenesisAccount>,
    /// Validators of block 1.
    pub validators: Vec<GenesisValidator>,
    /// Registered verifying keys, in order: index = id.
    pub verifying_keys: Vec<GenesisVerifyingKey>,
}
