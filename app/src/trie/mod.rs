//! The state root: Ethereum's secure Merkle-Patricia trie, updated along the touched paths only.
//!
//! [`commit`] takes what a block leaves behind and gives the new root with every write as a value. [`prove`] gives EIP-1186
//! proofs over the stored trie, or over an older one seen through the reverse changes since ([`Overlay`]). How the trie is
//! stored and walked: `sparse`. Bytes of a node: `node`.

mod node;
mod sparse;
#[cfg(test)]
mod tests;

pub use node::NodeDecodeError;

use crate::state::{Account, Change, ChangeSet, HashedAddress, HashedSlot, StateError, TrieRead};
use alloy_primitives::{B256, Bytes, U256};
use alloy_rlp::Decodable;
use alloy_trie::{EMPTY_ROOT_HASH, Nibbles, TrieAccount};
use rayon::prelude::*;
use sparse::Update;
use std::{collections::BTreeMap, sync::Arc};

/// Accounts worked on at a time: bounds what a genesis of a million accounts holds beside its change set.
const ACCOUNTS_PER_ROUND: usize = 16_384;
/// Accounts one thread takes at a time: most are a plain balance, a few microseconds of work.
const ACCOUNTS_PER_TASK_MIN: usize = 16;

/// An account as execution leaves it; its storage root is computed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountRecord {
    /// Transactions sent, or contracts created.
    pub nonce: u64,
    /// Balance in wei.
    pub balance: U256,
    /// keccak256 of the code.
    pub code_hash: B256,
}

/// What a block leaves of one touched account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountUpdate {
    /// The record; `None` removes the account and its storage.
    pub account: Option<AccountRecord>,
    /// All storage the parent block left is gone (the account was destroyed, perhaps re-created); `storage` is what it has now.
    pub wipe_storage: bool,
    /// Slots written, with their values after the block; zero removes. Unchanged values are allowed.
    pub storage: BTreeMap<HashedSlot, U256>,
}

/// Everything a block leaves behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PostState {
    /// Touched accounts.
    pub accounts: BTreeMap<HashedAddress, AccountUpdate>,
    /// New code by hash.
    pub code: BTreeMap<B256, Bytes>,
}

/// The stored trie contradicts itself: disk corruption or a bug, fatal either way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrieFault {
    /// A parent names a node that is not stored.
    #[error("trie node {path:?} is missing")]
    MissingNode {
        /// Nibbles from the root of its trie.
        path: Nibbles,
    },
    /// The stored node is not the one its parent names.
    #[error("trie node {path:?} has hash {got}, its parent names {expected}")]
    NodeHash {
        /// Nibbles from the root of its trie.
        path: Nibbles,
        /// By the parent, or by the account for a storage root.
        expected: B256,
        /// keccak256 of what is stored.
        got: B256,
    },
    /// The stored bytes are not a node.
    #[error("trie node {path:?} is undecodable: {reason}")]
    UndecodableNode {
        /// Nibbles from the root of its trie.
        path: Nibbles,
        /// What is wrong with them.
        reason: NodeDecodeError,
    },
    /// A leaf does not hold what its trie holds.
    #[error("leaf {key} is undecodable: {reason}")]
    UndecodableLeaf {
        /// Hashed address or slot.
        key: B256,
        /// What is wrong with it.
        reason: alloy_rlp::Error,
    },
}

impl From<TrieFault> for StateError {
    fn from(fault: TrieFault) -> Self {
        Self(Arc::new(fault))
    }
}

/// State root after `post` on top of `state`, and all writes that lead there.
///
/// The same for any number of threads. Records and slots equal to the parent's are left out of the change set.
pub fn commit(state: &dyn TrieRead, post: PostState) -> Result<(B256, ChangeSet), StateError> {
    let mut changes = ChangeSet {
        code: post.code,
        ..ChangeSet::default()
    };
    let mut leaves: Vec<Update> = Vec::new();
    let mut touched = post.accounts.into_iter();
    loop {
        let round: Vec<_> = touched.by_ref().take(ACCOUNTS_PER_ROUND).collect();
        if round.is_empty() {
            break;
        }
        let outcomes: Vec<AccountOutcome> = round
            .into_par_iter()
            .with_min_len(ACCOUNTS_PER_TASK_MIN)
            .map(|(address, update)| commit_account(state, address, update))
            .collect::<Result<_, _>>()?;
        for outcome in outcomes {
            let address = outcome.address;
            if outcome.change.before != outcome.change.after {
                let leaf = outcome.change.after.as_ref().map(account_rlp);
                leaves.push((Nibbles::unpack(address.0), leaf));
                changes.accounts.insert(address, outcome.change);
            }
            for (slot, change) in outcome.storage {
                changes.storage.insert((address, slot), change);
            }
            for (path, rlp) in outcome.nodes {
                changes.storage_nodes.insert((address, path), rlp);
            }
        }
    }
    let updated = sparse::update(&|path| state.account_node(path), None, &leaves)?;
    changes.account_nodes = updated.nodes;
    Ok((updated.root, changes))
}

struct AccountOutcome {
    address: HashedAddress,
    change: Change<Option<Account>>,
    storage: Vec<(HashedSlot, Change<U256>)>,
    nodes: BTreeMap<Nibbles, Option<Bytes>>,
}

fn commit_account(
    state: &dyn TrieRead,
    address: HashedAddress,
    update: AccountUpdate,
) -> Result<AccountOutcome, StateError> {
    let before = state.account(address)?;
    let root_before = before.map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
    assert!(
        update.account.is_some() || update.storage.values().all(U256::is_zero),
        "execution writes no slot of an account it removes"
    );
    let wiped = update.wipe_storage || update.account.is_none();
    let (root, storage, nodes) = if wiped && root_before != EMPTY_ROOT_HASH {
        replace_storage(state, address, update.storage)?
    } else {
        change_storage(state, address, root_before, update.storage)?
    };
    let after = update.account.map(|record| Account {
        nonce: record.nonce,
        balance: record.balance,
        code_hash: record.code_hash,
        storage_root: root,
    });
    Ok(AccountOutcome {
        address,
        change: Change { before, after },
        storage,
        nodes,
    })
}

type StorageOutcome = (
    B256,
    Vec<(HashedSlot, Change<U256>)>,
    BTreeMap<Nibbles, Option<Bytes>>,
);

/// Slots written on top of the storage that is there.
fn change_storage(
    state: &dyn TrieRead,
    address: HashedAddress,
    root: B256,
    slots: BTreeMap<HashedSlot, U256>,
) -> Result<StorageOutcome, StateError> {
    let mut storage = Vec::with_capacity(slots.len());
    let mut leaves = Vec::with_capacity(slots.len());
    for (slot, after) in slots {
        let before = if root == EMPTY_ROOT_HASH {
            U256::ZERO
        } else {
            state.storage(address, slot)?
        };
        if before != after {
            storage.push((slot, Change { before, after }));
            leaves.push((Nibbles::unpack(slot.0), slot_rlp(after)));
        }
    }
    if leaves.is_empty() {
        return Ok((root, storage, BTreeMap::new()));
    }
    let updated = sparse::update(
        &|path| state.storage_node(address, path),
        Some(root),
        &leaves,
    )?;
    Ok((updated.root, storage, updated.nodes))
}

/// All old slots gone, `slots` in their place: the trie is built anew and the old nodes are deleted.
fn replace_storage(
    state: &dyn TrieRead,
    address: HashedAddress,
    slots: BTreeMap<HashedSlot, U256>,
) -> Result<StorageOutcome, StateError> {
    let leaves: Vec<Update> = slots
        .iter()
        .filter(|(_, value)| !value.is_zero())
        .map(|(slot, value)| (Nibbles::unpack(slot.0), slot_rlp(*value)))
        .collect();
    let mut changes: BTreeMap<HashedSlot, Change<U256>> = slots
        .into_iter()
        .map(|(slot, after)| {
            let before = U256::ZERO;
            (slot, Change { before, after })
        })
        .collect();
    for (slot, before) in state.storage_slots(address)? {
        let after = U256::ZERO;
        changes
            .entry(slot)
            .and_modify(|change| change.before = before)
            .or_insert(Change { before, after });
    }
    changes.retain(|_, change| change.before != change.after);
    let updated = sparse::update(&|_| Ok(None), Some(EMPTY_ROOT_HASH), &leaves)?;
    let mut nodes = updated.nodes;
    for path in state.storage_node_paths(address)? {
        nodes.entry(path).or_insert(None);
    }
    Ok((updated.root, changes.into_iter().collect(), nodes))
}

/// An older state laid over the stored one: values as they were, for everything changed since.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    /// Records of all accounts changed since.
    pub accounts: BTreeMap<HashedAddress, Option<Account>>,
    /// Slots, changed since, of the account to be proved.
    pub storage: BTreeMap<HashedSlot, U256>,
}

/// What an EIP-1186 proof shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// Root the account's proof starts from. The caller compares it with the header's.
    pub state_root: B256,
    /// The account, or `None` if the proof shows its absence.
    pub account: Option<Account>,
    /// RLP of the hashed nodes from the root down. Empty for an empty trie.
    pub account_proof: Vec<Bytes>,
    /// One for each slot asked, in that order.
    pub storage: Vec<SlotProof>,
}

/// Value of a slot with its proof against the account's storage root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotProof {
    /// The slot's key.
    pub slot: HashedSlot,
    /// Its value; zero if the proof shows its absence.
    pub value: U256,
    /// RLP of the hashed nodes from the storage root down.
    pub proof: Vec<Bytes>,
}

/// Proves an account and some of its slots in the state that `overlay` makes of the stored one.
pub fn prove(
    state: &dyn TrieRead,
    overlay: &Overlay,
    address: HashedAddress,
    slots: &[HashedSlot],
) -> Result<Proof, StateError> {
    let leaves: Vec<Update> = overlay
        .accounts
        .iter()
        .map(|(address, account)| {
            (
                Nibbles::unpack(address.0),
                account.as_ref().map(account_rlp),
            )
        })
        .collect();
    let stored = |path: &Nibbles| state.account_node(path);
    let older = sparse::update(&stored, None, &leaves)?;
    let (account_proof, leaf) = sparse::walk(
        &over(&older.nodes, &stored),
        Some(older.root),
        &Nibbles::unpack(address.0),
    )?;
    let account = leaf
        .map(|leaf| account_from_rlp(address, &leaf))
        .transpose()?;

    let leaves: Vec<Update> = overlay
        .storage
        .iter()
        .map(|(slot, value)| (Nibbles::unpack(slot.0), slot_rlp(*value)))
        .collect();
    let current_root = state
        .account(address)?
        .map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
    let stored = |path: &Nibbles| state.storage_node(address, path);
    let older_storage = sparse::update(&stored, Some(current_root), &leaves)?;
    let expected = account.map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
    if older_storage.root != expected {
        return Err(TrieFault::NodeHash {
            path: Nibbles::new(),
            expected,
            got: older_storage.root,
        }
        .into());
    }
    let load = over(&older_storage.nodes, &stored);
    let storage = slots
        .iter()
        .map(|&slot| {
            let (proof, leaf) = sparse::walk(&load, Some(expected), &Nibbles::unpack(slot.0))?;
            let value = match leaf {
                None => U256::ZERO,
                Some(leaf) => decode_leaf(slot.0, &leaf)?,
            };
            Ok(SlotProof { slot, value, proof })
        })
        .collect::<Result<_, StateError>>()?;
    Ok(Proof {
        state_root: older.root,
        account,
        account_proof,
        storage,
    })
}

/// Reads nodes from `nodes` first, then from what is stored.
fn over<'a>(
    nodes: &'a BTreeMap<Nibbles, Option<Bytes>>,
    stored: &'a sparse::Load<'a>,
) -> impl Fn(&Nibbles) -> Result<Option<Bytes>, StateError> + Sync + 'a {
    move |path| match nodes.get(path) {
        Some(node) => Ok(node.clone()),
        None => stored(path),
    }
}

fn account_rlp(account: &Account) -> Bytes {
    let leaf = TrieAccount::new(
        account.nonce,
        account.balance,
        account.storage_root,
        account.code_hash,
    );
    alloy_rlp::encode(leaf).into()
}

fn account_from_rlp(address: HashedAddress, leaf: &[u8]) -> Result<Account, TrieFault> {
    let leaf: TrieAccount = decode_leaf(address.0, leaf)?;
    Ok(Account {
        nonce: leaf.nonce,
        balance: leaf.balance,
        code_hash: leaf.code_hash,
        storage_root: leaf.storage_root,
    })
}

fn slot_rlp(value: U256) -> Option<Bytes> {
    (!value.is_zero()).then(|| alloy_rlp::encode(value).into())
}

fn decode_leaf<T: Decodable>(key: B256, leaf: &[u8]) -> Result<T, TrieFault> {
    alloy_rlp::decode_exact(leaf).map_err(|reason| TrieFault::UndecodableLeaf { key, reason })
}

/// State root of the stored account trie. Reads one node.
pub fn stored_state_root(state: &dyn TrieRead) -> Result<B256, StateError> {
    let root = state.account_node(&Nibbles::new())?;
    Ok(root.map_or(EMPTY_ROOT_HASH, alloy_primitives::keccak256))
}
