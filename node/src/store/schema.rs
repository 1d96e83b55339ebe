//! What is on disk: column families, keys and values.
//!
//! Integers are big-endian, so that heights sort. A path of a trie node is one byte for each nibble: stored nodes lie six or
//! seven nibbles deep, and a parent sorts before its children.
//!
//! | family | key | value |
//! |---|---|---|
//! | meta | `format`, `head`, `oldest_state`, `unfinished_genesis` | u32; height u64, hash; height u64; empty |
//! | accounts | hashed address | RLP account, as the leaf of the trie |
//! | storage | hashed address, hashed slot | value without leading zeros, never empty |
//! | code | code hash | code |
//! | account_nodes | path | RLP of the node |
//! | storage_nodes | hashed address, path | RLP of the node |
//! | headers | height | hash, RLP header |
//! | bodies | height | RLP list of strings: sender, EIP-2718 transaction |
//! | receipts | height | RLP list of `[type, status, cumulative gas, logs]`: the bloom is recomputed |
//! | results | height | RLP list of `[code, gas wanted, gas used, placed, index, reason]` |
//! | height_by_hash | block hash | height |
//! | tx_index | transaction hash | height, index u32 |
//! | account_history | hashed address, height | the account before that block, as in `accounts`; empty if absent |
//! | storage_history | hashed address, hashed slot, height | the value before that block; empty if zero |
//! | changes_by_height | height | RLP list of `[hashed address, hashed slots in a row]` touched by the block |
//!
//! A change here raises [`FORMAT_VERSION`] and regenerates `tests/golden.txt`.

use super::{StoreError, StoredResult};
use alloy_consensus::{Eip658Value, Header, Receipt, ReceiptEnvelope, TxType};
use alloy_primitives::{Address, B256, Bytes, Log, U256};
use alloy_rlp::{Decodable, Encodable, RlpDecodable, RlpEncodable};
use alloy_trie::{Nibbles, TrieAccount};
use cloister_app::{
    state::{Account, HashedAddress, HashedSlot},
    transaction::Transaction,
};
use std::sync::Arc;

/// Raised with every change of what is written.
pub(super) const FORMAT_VERSION: u32 = 1;

pub(super) const META_FORMAT: &[u8] = b"format";
pub(super) const META_HEAD: &[u8] = b"head";
/// Oldest height whose state can be read.
pub(super) const META_OLDEST_STATE: &[u8] = b"oldest_state";
/// Present while block 0 is being written in several batches.
pub(super) const META_UNFINISHED_GENESIS: &[u8] = b"unfinished_genesis";

/// A column family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Meta,
    Accounts,
    Storage,
    Code,
    AccountNodes,
    StorageNodes,
    Headers,
    Bodies,
    Receipts,
    Results,
    HeightByHash,
    TxIndex,
    AccountHistory,
    StorageHistory,
    ChangesByHeight,
}

impl Family {
    pub(super) const ALL: [Self; 15] = [
        Self::Meta,
        Self::Accounts,
        Self::Storage,
        Self::Code,
        Self::AccountNodes,
        Self::StorageNodes,
        Self::Headers,
        Self::Bodies,
        Self::Receipts,
        Self::Results,
        Self::HeightByHash,
        Self::TxIndex,
        Self::AccountHistory,
        Self::StorageHistory,
        Self::ChangesByHeight,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Accounts => "accounts",
            Self::Storage => "storage",
            Self::Code => "code",
            Self::AccountNodes => "account_nodes",
            Self::StorageNodes => "storage_nodes",
            Self::Headers => "headers",
            Self::Bodies => "bodies",
            Self::Receipts => "receipts",
            Self::Results => "results",
            Self::HeightByHash => "height_by_hash",
            Self::TxIndex => "tx_index",
            Self::AccountHistory => "account_history",
            Self::StorageHistory => "storage_history",
            Self::ChangesByHeight => "changes_by_height",
        }
    }

    /// Length in bytes of the key before the height, in the families that hold one record for each key and height.
    pub(super) const fn history_prefix_bytes(self) -> Option<usize> {
        match self {
            Self::AccountHistory => Some(32),
            Self::StorageHistory => Some(64),
            Self::Meta
            | Self::Accounts
            | Self::Storage
            | Self::Code
            | Self::AccountNodes
            | Self::StorageNodes
            | Self::Headers
            | Self::Bodies
            | Self::Receipts
            | Self::Results
            | Self::HeightByHash
            | Self::TxIndex
            | Self::ChangesByHeight => None,
        }
    }

    /// Whether keys are hashes, read one by one in no order.
    pub(super) const fn is_read_at_random(self) -> bool {
        match self {
            Self::Accounts
            | Self::Storage
            | Self::Code
            | Self::AccountNodes
            | Self::StorageNodes
            | Self::HeightByHash
            | Self::TxIndex => true,
            Self::Meta
            | Self::Headers
            | Self::Bodies
            | Self::Receipts
            | Self::Results
            | Self::AccountHistory
            | Self::StorageHistory
            | Self::ChangesByHeight => false,
        }
    }

    pub(super) fn corrupt(self, key: &[u8], reason: impl ToString) -> StoreError {
        StoreError::Corrupt {
            family: self.name(),
            key: hex::encode(key),
            reason: reason.to_string(),
        }
    }
}

pub(super) fn slot_key(address: HashedAddress, slot: HashedSlot) -> [u8; 64] {
    let mut key = [0; 64];
    key[..32].copy_from_slice(address.0.as_slice());
    key[32..].copy_from_slice(slot.0.as_slice());
    key
}

pub(super) fn account_node_key(path: &Nibbles) -> Vec<u8> {
    path.to_vec()
}

pub(super) fn storage_node_key(address: HashedAddress, path: &Nibbles) -> Vec<u8> {
    let mut key = Vec::with_capacity(path.len().saturating_add(32));
    key.extend_from_slice(address.0.as_slice());
    key.extend(path.iter());
    key
}

/// The path in a key of `storage_nodes`.
pub(super) fn storage_node_path(key: &[u8]) -> Result<Nibbles, StoreError> {
    let path = key.get(32..).unwrap_or_default();
    if path.len() > 64 || path.iter().any(|nibble| *nibble > 0x0f) {
        return Err(Family::StorageNodes.corrupt(key, "key is not an address with a path"));
    }
    Ok(Nibbles::from_nibbles(path))
}

pub(super) fn history_key(prefix: &[u8], height: u64) -> Vec<u8> {
    [prefix, &height.to_be_bytes()].concat()
}

pub(super) fn encode_head(height: u64, hash: B256) -> [u8; 40] {
    let mut value = [0; 40];
    value[..8].copy_from_slice(&height.to_be_bytes());
    value[8..].copy_from_slice(hash.as_slice());
    value
}

pub(super) fn decode_head(value: &[u8]) -> Result<(u64, B256), StoreError> {
    match value.split_at_checked(8) {
        Some((height, hash)) if hash.len() == 32 => Ok((
            decode_height(Family::Meta, META_HEAD, height)?,
            B256::from_slice(hash),
        )),
        _ => Err(Family::Meta.corrupt(META_HEAD, "length is not 40")),
    }
}

pub(super) fn decode_height(family: Family, key: &[u8], value: &[u8]) -> Result<u64, StoreError> {
    let bytes = value.try_into();
    let bytes = bytes.map_err(|_| family.corrupt(key, "height is not 8 bytes"))?;
    Ok(u64::from_be_bytes(bytes))
}

pub(super) fn encode_location(height: u64, index: u32) -> [u8; 12] {
    let mut value = [0; 12];
    value[..8].copy_from_slice(&height.to_be_bytes());
    value[8..].copy_from_slice(&index.to_be_bytes());
    value
}

pub(super) fn decode_location(key: &[u8], value: &[u8]) -> Result<(u64, u32), StoreError> {
    let corrupt = || Family::TxIndex.corrupt(key, "length is not 12");
    let (height, index) = value.split_at_checked(8).ok_or_else(corrupt)?;
    let index: [u8; 4] = index.try_into().map_err(|_| corrupt())?;
    Ok((
        decode_height(Family::TxIndex, key, height)?,
        u32::from_be_bytes(index),
    ))
}

pub(super) fn encode_account(account: &Account) -> Vec<u8> {
    alloy_rlp::encode(TrieAccount::new(
        account.nonce,
        account.balance,
        account.storage_root,
        account.code_hash,
    ))
}

pub(super) fn decode_account(
    family: Family,
    key: &[u8],
    value: &[u8],
) -> Result<Account, StoreError> {
    let leaf: TrieAccount = decode_exact(family, key, value)?;
    Ok(Account {
        nonce: leaf.nonce,
        balance: leaf.balance,
        code_hash: leaf.code_hash,
        storage_root: leaf.storage_root,
    })
}

/// Empty for zero.
pub(super) fn encode_slot(value: U256) -> Vec<u8> {
    value.to_be_bytes_trimmed_vec()
}

pub(super) fn decode_slot(family: Family, key: &[u8], value: &[u8]) -> Result<U256, StoreError> {
    if value.len() > 32 || value.first() == Some(&0) {
        return Err(family.corrupt(key, "not a number without leading zeros"));
    }
    Ok(U256::from_be_slice(value))
}

pub(super) fn encode_header(hash: B256, header: &Header) -> Vec<u8> {
    let mut value = hash.to_vec();
    header.encode(&mut value);
    value
}

/// The header at `height` with its hash, both checked against each other.
pub(super) fn decode_header(height: u64, value: &[u8]) -> Result<(Header, B256), StoreError> {
    let key = height.to_be_bytes();
    let corrupt = |reason: &str| Family::Headers.corrupt(&key, reason);
    let (hash, rlp) = value
        .split_at_checked(32)
        .ok_or_else(|| corrupt("shorter than a hash"))?;
    let header: Header = decode_exact(Family::Headers, &key, rlp)?;
    let hash = B256::from_slice(hash);
    if alloy_primitives::keccak256(rlp) != hash {
        return Err(corrupt("header does not have the stored hash"));
    }
    if header.number != height {
        return Err(corrupt("header has another height"));
    }
    Ok((header, hash))
}

#[derive(RlpEncodable, RlpDecodable)]
struct BodyEntry {
    sender: Address,
    raw: Bytes,
}

pub(super) fn encode_body<'a>(transactions: impl Iterator<Item = &'a Arc<Transaction>>) -> Vec<u8> {
    let entries: Vec<_> = transactions
        .map(|transaction| BodyEntry {
            sender: transaction.sender(),
            raw: transaction.raw().clone(),
        })
        .collect();
    alloy_rlp::encode(entries)
}

pub(super) fn decode_body(height: u64, value: &[u8]) -> Result<Vec<Arc<Transaction>>, StoreError> {
    let key = height.to_be_bytes();
    let entries: Vec<BodyEntry> = decode_exact(Family::Bodies, &key, value)?;
    entries
        .into_iter()
        .map(|entry| Transaction::from_stored(entry.raw, entry.sender).map(Arc::new))
        .collect::<Result<_, _>>()
        .map_err(|rejection| Family::Bodies.corrupt(&key, rejection))
}

#[derive(RlpEncodable, RlpDecodable)]
struct ReceiptEntry {
    transaction_type: u8,
    success: bool,
    cumulative_gas_used: u64,
    logs: Vec<Log>,
}

pub(super) fn encode_receipts<'a>(receipts: impl Iterator<Item = &'a ReceiptEnvelope>) -> Vec<u8> {
    let entries: Vec<_> = receipts
        .map(|receipt| ReceiptEntry {
            transaction_type: receipt.tx_type().into(),
            success: receipt.status(),
            cumulative_gas_used: receipt.cumulative_gas_used(),
            logs: receipt.logs().to_vec(),
        })
        .collect();
    alloy_rlp::encode(entries)
}

pub(super) fn decode_receipts(
    height: u64,
    value: &[u8],
) -> Result<Vec<ReceiptEnvelope>, StoreError> {
    let key = height.to_be_bytes();
    let entries: Vec<ReceiptEntry> = decode_exact(Family::Receipts, &key, value)?;
    entries
        .into_iter()
        .map(|entry| {
            let transaction_type = TxType::try_from(entry.transaction_type)?;
            let receipt = Receipt {
                status: Eip658Value::Eip658(entry.success),
                cumulative_gas_used: entry.cumulative_gas_used,
                logs: entry.logs,
            };
            Ok(ReceiptEnvelope::from_typed(transaction_type, receipt))
        })
        .collect::<Result<_, _>>()
        .map_err(|error: alloy_eips::eip2718::Eip2718Error| Family::Receipts.corrupt(&key, error))
}

#[derive(RlpEncodable, RlpDecodable)]
struct ResultEntry {
    code: u32,
    gas_wanted: u64,
    gas_used: u64,
    placed: bool,
    index: u32,
    reason: String,
}

pub(super) fn encode_results(results: impl Iterator<Item = StoredResult>) -> Vec<u8> {
    let entries: Vec<_> = results
        .map(|result| {
            let (placed, index, reason) = match result.placement {
                Ok(index) => (true, index, String::new()),
                Err(reason) => (false, 0, reason),
            };
            ResultEntry {
                code: result.code,
                gas_wanted: result.gas_wanted,
                gas_used: result.gas_used,
                placed,
                index,
                reason,
            }
        })
        .collect();
    alloy_rlp::encode(entries)
}

pub(super) fn decode_results(height: u64, value: &[u8]) -> Result<Vec<StoredResult>, StoreError> {
    let entries: Vec<ResultEntry> = decode_exact(Family::Results, &height.to_be_bytes(), value)?;
    let results = entries.into_iter().map(|entry| StoredResult {
        code: entry.code,
        gas_wanted: entry.gas_wanted,
        gas_used: entry.gas_used,
        placement: if entry.placed {
            Ok(entry.index)
        } else {
            Err(entry.reason)
        },
    });
    Ok(results.collect())
}

/// An account a block touched, with the slots it changed. A changed slot changes the storage root, so the account is
/// always among the changed ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Touched {
    pub(super) address: HashedAddress,
    pub(super) slots: Vec<HashedSlot>,
}

#[derive(RlpEncodable, RlpDecodable)]
struct TouchedEntry {
    address: B256,
    slots: Bytes,
}

pub(super) fn encode_touched(touched: Vec<Touched>) -> Vec<u8> {
    let entries: Vec<_> = touched
        .into_iter()
        .map(|touched| TouchedEntry {
            address: touched.address.0,
            slots: touched.slots.iter().flat_map(|slot| slot.0).collect(),
        })
        .collect();
    alloy_rlp::encode(entries)
}

pub(super) fn decode_touched(height: u64, value: &[u8]) -> Result<Vec<Touched>, StoreError> {
    let key = height.to_be_bytes();
    let entries: Vec<TouchedEntry> = decode_exact(Family::ChangesByHeight, &key, value)?;
    entries
        .into_iter()
        .map(|entry| {
            let (slots, rest) = entry.slots.as_chunks::<32>();
            if !rest.is_empty() {
                return Err(Family::ChangesByHeight.corrupt(&key, "slots are not 32 bytes each"));
            }
            Ok(Touched {
                address: HashedAddress(entry.address),
                slots: slots
                    .iter()
                    .map(|slot| HashedSlot(B256::from(*slot)))
                    .collect(),
            })
        })
        .collect()
}

fn decode_exact<T: Decodable>(family: Family, key: &[u8], value: &[u8]) -> Result<T, StoreError> {
    alloy_rlp::decode_exact(value).map_err(|error| family.corrupt(key, error))
}
