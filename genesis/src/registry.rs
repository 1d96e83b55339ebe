//! Storage layout of `ValidatorRegistry`, shared by genesis (which writes it) and the native side (which reads it).
//!
//! Slots of `contracts/ValidatorRegistry.sol`, low bytes first within a slot, as Solidity packs:
//!
//! | slot | what |
//! |---|---|
//! | 0 | `validators`: length; entry i at keccak(0) + 3i: public key; member (20 bytes), power (8), status (1); payout (20), jailed until (8) |
//! | 1 | `indexPlusOne[member]` |
//! | 2 | `keys[consensus address]`: payout (20), state (1) |
//! | 3 | `nonces[member]` |
//! | 4 | `pending`: 1 while the set given to CometBFT differs from the one wanted |
//! | 5 | `active`: length; entry i at keccak(5) + 2i: public key; consensus address (20), power (8), missed (4) |
//! | 6 | `missedBlocks[consensus address][word]`: ring of bits, bit `height mod window` |
//! | 7 | `proposalCount` |
//! | 8 | `proposals[id]` |
//! | 9 | `voted[id][member]` |
//!
//! `active` (sorted by public key, no gaps) and `missedBlocks` are written by the native side alone.

use crate::{GenesisValidator, consensus_address};
use alloy_primitives::{Address, B256, U256, keccak256};
use std::collections::BTreeMap;

/// Slot of `validators`.
pub const SLOT_VALIDATORS: u64 = 0;
/// Slot of `indexPlusOne`.
pub const SLOT_INDEX_PLUS_ONE: u64 = 1;
/// Slot of `keys`.
pub const SLOT_KEYS: u64 = 2;
/// Slot of `nonces`.
pub const SLOT_NONCES: u64 = 3;
/// Slot of `pending`.
pub const SLOT_PENDING: u64 = 4;
/// Slot of `active`.
pub const SLOT_ACTIVE: u64 = 5;
/// Slot of `missedBlocks`.
pub const SLOT_MISSED_BLOCKS: u64 = 6;

const VALIDATOR_SLOTS: u64 = 3;
const ACTIVE_SLOTS: u64 = 2;

/// Where a validator stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Wanted in the set.
    Active,
    /// Out for downtime until it unjails itself.
    Jailed,
    /// Out for double signing until the quorum gives it another key.
    Barred,
}

/// One of `validators`: what the members want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validator {
    /// ed25519 public key.
    pub public_key: [u8; 32],
    /// Account that votes.
    pub member: Address,
    /// Power it should have.
    pub power: u64,
    /// Whether it should be in the set.
    pub status: Status,
    /// Where fees of its blocks go.
    pub payout: Address,
    /// Height from which it may unjail itself; 0 if it never was jailed.
    pub jailed_until: u64,
}

/// One of `active`: what CometBFT has been given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveValidator {
    /// ed25519 public key.
    pub public_key: [u8; 32],
    /// Its address in CometBFT.
    pub consensus_address: Address,
    /// Power given.
    pub power: u64,
    /// Set bits in its `missedBlocks`.
    pub missed: u32,
}

/// State of a consensus key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// Never seen.
    Unknown,
    /// Key of a validator.
    Held,
    /// Was the key of a validator; may be used again.
    Released,
    /// Signed twice: never again.
    Barred,
}

impl Validator {
    /// The three words of an entry.
    pub fn encode(&self) -> [U256; 3] {
        let status: u64 = match self.status {
            Status::Active => 0,
            Status::Jailed => 1,
            Status::Barred => 2,
        };
        [
            U256::from_be_bytes(self.public_key),
            word(self.member) | (U256::from(self.power) << 160) | (U256::from(status) << 224),
            word(self.payout) | (U256::from(self.jailed_until) << 160),
        ]
    }

    /// Reads an entry. An unknown status counts as barred: such an entry can do no harm.
    pub fn decode(words: [U256; 3]) -> Self {
        Self {
            public_key: words[0].to_be_bytes(),
            member: address(words[1]),
            power: bits_64(words[1]),
            status: match (words[1] >> 224_usize).byte(0) {
                0 => Status::Active,
                1 => Status::Jailed,
                _ => Status::Barred,
            },
            payout: address(words[2]),
            jailed_until: bits_64(words[2]),
        }
    }
}

impl ActiveValidator {
    /// The two words of an entry.
    pub fn encode(&self) -> [U256; 2] {
        [U256::from_be_bytes(self.public_key), self.encode_second()]
    }

    /// The second word, the only one that changes while the validator stays.
    pub fn encode_second(&self) -> U256 {
        word(self.consensus_address)
            | (U256::from(self.power) << 160)
            | (U256::from(self.missed) << 224)
    }

    /// Reads an entry.
    pub fn decode(words: [U256; 2]) -> Self {
        Self {
            public_key: words[0].to_be_bytes(),
            consensus_address: address(words[1]),
            power: bits_64(words[1]),
            missed: u32::try_from(words[1] >> 224_usize).expect("32 bits are left of 256"),
        }
    }
}

impl KeyState {
    /// Byte in the `keys` mapping.
    pub const fn code(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Held => 1,
            Self::Released => 2,
            Self::Barred => 3,
        }
    }
}

/// Slot of word `word` (0..3) of `validators[index]`.
pub fn validator_slot(index: u64, word: u64) -> U256 {
    array_slot(SLOT_VALIDATORS, index, VALIDATOR_SLOTS, word)
}

/// Slot of word `word` (0..2) of `active[index]`.
pub fn active_slot(index: u64, word: u64) -> U256 {
    array_slot(SLOT_ACTIVE, index, ACTIVE_SLOTS, word)
}

/// Slot of `keys[consensus_address]`.
pub fn key_slot(consensus_address: Address) -> U256 {
    mapping_slot(word(consensus_address), U256::from(SLOT_KEYS))
}

/// Slot of `indexPlusOne[member]`.
pub fn index_slot(member: Address) -> U256 {
    mapping_slot(word(member), U256::from(SLOT_INDEX_PLUS_ONE))
}

/// Slot of `missedBlocks[consensus_address][word_index]`.
pub fn missed_blocks_slot(consensus_address: Address, word_index: u64) -> U256 {
    let ring = mapping_slot(word(consensus_address), U256::from(SLOT_MISSED_BLOCKS));
    mapping_slot(U256::from(word_index), ring)
}

/// Value of a `keys` entry.
pub fn encode_key(payout: Address, state: KeyState) -> U256 {
    word(payout) | (U256::from(state.code()) << 160)
}

/// Payout address of a `keys` entry.
pub fn key_payout(entry: U256) -> Address {
    address(entry)
}

/// State of a `keys` entry.
pub fn key_state(entry: U256) -> KeyState {
    match (entry >> 160_usize).byte(0) {
        0 => KeyState::Unknown,
        1 => KeyState::Held,
        2 => KeyState::Released,
        _ => KeyState::Barred,
    }
}

/// Storage of the registry in block 0: all validators wanted and given.
pub(crate) fn initial_storage(validators: &[GenesisValidator]) -> BTreeMap<B256, B256> {
    let mut storage = BTreeMap::new();
    let mut put = |slot: U256, value: U256| {
        if !value.is_zero() {
            storage.insert(slot.into(), value.into());
        }
    };
    let count = U256::from(validators.len());
    put(U256::from(SLOT_VALIDATORS), count);
    put(U256::from(SLOT_ACTIVE), count);
    for (index, validator) in (0_u64..).zip(validators) {
        let entry = Validator {
            public_key: validator.public_key,
            member: validator.member,
            power: validator.power,
            status: Status::Active,
            payout: validator.payout,
            jailed_until: 0,
        };
        for (word_index, value) in (0_u64..).zip(entry.encode()) {
            put(validator_slot(index, word_index), value);
        }
        put(
            index_slot(validator.member),
            U256::from(index.saturating_add(1)),
        );
        let consensus_address = consensus_address(&validator.public_key);
        put(
            key_slot(consensus_address),
            encode_key(validator.payout, KeyState::Held),
        );
    }
    let mut active: Vec<ActiveValidator> = validators
        .iter()
        .map(|validator| ActiveValidator {
            public_key: validator.public_key,
            consensus_address: consensus_address(&validator.public_key),
            power: validator.power,
            missed: 0,
        })
        .collect();
    active.sort_unstable_by_key(|validator| validator.public_key);
    for (index, entry) in (0_u64..).zip(active) {
        for (word_index, value) in (0_u64..).zip(entry.encode()) {
            put(active_slot(index, word_index), value);
        }
    }
    storage
}

fn array_slot(slot: u64, index: u64, entry_slots: u64, word: u64) -> U256 {
    let base = U256::from_be_bytes(keccak256(U256::from(slot).to_be_bytes::<32>()).0);
    let offset = U256::from(index)
        .wrapping_mul(U256::from(entry_slots))
        .wrapping_add(U256::from(word));
    base.wrapping_add(offset)
}

fn mapping_slot(key: U256, slot: U256) -> U256 {
    let mut bytes = [0; 64];
    bytes[..32].copy_from_slice(&key.to_be_bytes::<32>());
    bytes[32..].copy_from_slice(&slot.to_be_bytes::<32>());
    U256::from_be_bytes(keccak256(bytes).0)
}

fn word(address: Address) -> U256 {
    U256::from_be_bytes(address.into_word().0)
}

fn address(word: U256) -> Address {
    Address::from_word(word.into())
}

/// The 8 bytes above an address.
fn bits_64(word: U256) -> u64 {
    ((word >> 160_usize) & U256::from(u64::MAX)).to::<u64>()
}
