//! Network definitions: the parameters of consensus, the allocation, the verifying keys and the system contracts.
//!
//! A network is one `genesis.json` (ours: parameters, validators, keys, alloc) and one CometBFT genesis whose
//! `app_state` names ours by SHA-256, so that a large allocation never travels through an ABCI frame.
//!
//! [`GenesisBuilder`] makes a [`Genesis`], [`Genesis::to_json`] writes it, [`Genesis::parse`] reads it back and checks
//! everything at once, [`Genesis::to_cometbft_json`] writes the other file.

pub mod abi;
mod builder;
mod cometbft;
pub mod contracts;
mod development;
mod error;
mod json;
mod keys;
mod parse;
pub mod registry;
mod validate;
mod write;

#[cfg(test)]
mod tests;

pub use builder::GenesisBuilder;
pub use cometbft::{APP_VERSION, AppState, consensus_address, is_canonical_public_key};
pub use development::{
    DEV_ACCOUNTS, DEV_BALANCE_WEI, DEV_CHAIN_ID, DEV_PAYOUT, DEV_TIMESTAMP, DEV_VALIDATOR_SEED,
    dev_genesis,
};
pub use error::{Fault, GenesisError, Rule};
pub use keys::{DevelopmentProof, development_keys, development_proofs};

use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, U256};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Largest EVM chain id: wallets compute `2 * id + 36` in JavaScript's 53-bit integers.
pub const CHAIN_ID_MAX: u64 = 4_503_599_627_370_476;
/// Smallest gas limit of a block: EIP-7825's cap of one transaction, 2^24.
pub const GAS_LIMIT_MIN: u64 = 1 << 24;
/// Largest gas limit of a block, as Ethereum bounds it.
pub const GAS_LIMIT_MAX: u64 = i64::MAX as u64;
/// Smallest `max_block_bytes`: one transaction of the largest size (128 KiB) with room for header and evidence.
pub const MAX_BLOCK_BYTES_MIN: u64 = 256 * 1024;
/// Largest `max_block_bytes`: 10 MiB.
pub const MAX_BLOCK_BYTES_MAX: u64 = 10 * 1024 * 1024;
/// Largest sum of voting powers that CometBFT accepts.
pub const TOTAL_POWER_MAX: u64 = i64::MAX as u64 / 8;
/// Smallest power of a validator. With four or more in the set there is always a step below one third.
pub const VALIDATOR_POWER_MIN: u64 = 4;
/// Power to give equal validators when nothing else is asked.
pub const VALIDATOR_POWER_DEFAULT: u64 = 100;
/// Most validators: bounds the loops of the registry.
pub const VALIDATORS_MAX: usize = 128;
/// Largest `downtime_window_blocks`: 256 words of a bitmap per validator.
pub const DOWNTIME_WINDOW_BLOCKS_MAX: u64 = 65_536;
/// The one snapshot format there is.
pub const SNAPSHOT_FORMAT: u32 = 1;
/// Longest name of a network, as CometBFT bounds its chain id.
pub const NETWORK_NAME_BYTES_MAX: usize = 50;

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

impl Fork {
    /// All forks with their names in `genesis.json`.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("shanghai", Self::Shanghai),
        ("cancun", Self::Cancun),
        ("prague", Self::Prague),
        ("osaka", Self::Osaka),
    ];

    /// Name in `genesis.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shanghai => "shanghai",
            Self::Cancun => "cancun",
            Self::Prague => "prague",
            Self::Osaka => "osaka",
        }
    }
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

impl Parameters {
    /// The defaults of a consortium's network, all but the chain id.
    pub const fn new(chain_id: u64) -> Self {
        Self {
            chain_id,
            fork: Fork::Osaka,
            gas_limit: 100_000_000,
            base_fee: BaseFeeParameters {
                elasticity: 1,
                floor_wei: 1_000_000_000,
                initial_wei: 1_000_000_000,
                change_denominator: 8,
            },
            block_reward_wei: U256::ZERO,
            max_block_bytes: 4 * 1024 * 1024,
            snapshot_interval_blocks: 1_000,
            snapshot_format: SNAPSHOT_FORMAT,
            epoch_length_blocks: 100,
            stamp_difficulty_bits: 16,
            downtime_window_blocks: 1_000,
            jail_blocks: 600,
        }
    }
}

/// A validator of block 1.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GenesisValidator {
    /// Account that votes in the registry.
    pub member: Address,
    /// ed25519 public key.
    #[serde(with = "hex::serde")]
    pub public_key: [u8; 32],
    /// Voting power, at least [`VALIDATOR_POWER_MIN`].
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
    /// Made without a ceremony: whoever made it can forge proofs. Refused outside a development network.
    pub development: bool,
}

/// A whole network definition. [`Genesis::parse`] and [`GenesisBuilder::build`] give checked ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Genesis {
    /// CometBFT's chain-id string, 1 to 50 printable ASCII characters.
    pub network: String,
    /// Whether keys made without a ceremony are allowed.
    pub development: bool,
    /// Seconds since the epoch of block 0.
    pub timestamp: u64,
    /// The one table.
    pub parameters: Parameters,
    /// Validators of block 1.
    pub validators: Vec<GenesisValidator>,
    /// Registered verifying keys, in order: index = id.
    pub verifying_keys: Vec<GenesisVerifyingKey>,
    /// Accounts of block 0, system contracts included.
    pub alloc: BTreeMap<Address, GenesisAccount>,
}

/// SHA-256 of the bytes of a `genesis.json`: what the CometBFT genesis names.
pub fn file_hash(genesis_json: &[u8]) -> [u8; 32] {
    Sha256::digest(genesis_json).into()
}
