//! What a block has changed so far, on top of the parent state.
//!
//! Every account and slot is read from the store once, its hashed key is computed once, and the value that the parent
//! block left is kept beside the present one, so that at the end only real changes are written.
//! Maps here are looked up, never iterated into a result: [`Overlay::into_post_state`] orders by hashed key.

use crate::{
    state::{Account, HashedAddress, HashedSlot, StateError, StateRead},
    trie::{AccountRecord, AccountUpdate, PostState},
};
use alloy_primitives::{
    Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256,
    map::{AddressMap, B256Map, HashMap},
};
use alloy_trie::EMPTY_ROOT_HASH;
use rayon::prelude::*;
use std::collections::BTreeMap;

impl Default for AccountRecord {
    fn default() -> Self {
        Self {
            nonce: 0,
            balance: U256::ZERO,
            code_hash: KECCAK256_EMPTY,
        }
    }
}

impl AccountRecord {
    /// Empty by EIP-161: such an account leaves the trie when it is touched.
    pub fn is_empty(&self) -> bool {
        self.nonce == 0 && self.balance.is_zero() && self.code_hash == KECCAK256_EMPTY
    }
}

impl From<Account> for AccountRecord {
    fn from(account: Account) -> Self {
        Self {
            nonce: account.nonce,
            balance: account.balance,
            code_hash: account.code_hash,
        }
    }
}

/// What one transaction did to an account it touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// The account goes on, with this record.
    Keep(AccountRecord),
    /// The account was created in this transaction: nothing of earlier storage remains.
    Create(AccountRecord),
    /// The account destroyed itself.
    Destroy,
}

/// The parent state with the changes of the block so far.
#[derive(Clone)]
pub struct Overlay<'a> {
    state: &'a dyn StateRead,
    accounts: AddressMap<Entry>,
    new_code: B256Map<Bytes>,
}

#[derive(Debug, Clone)]
struct Entry {
    key: HashedAddress,
    before: Option<Account>,
    now: Option<AccountRecord>,
    /// The slots that the parent state holds no longer count.
    wiped: bool,
    slots: HashMap<U256, Slot>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    before: U256,
    now: U256,
}

impl std::fmt::Debug for Overlay<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Overlay")
            .field("accounts", &self.accounts.len())
            .field("new_code", &self.new_code.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Overlay<'a> {
    /// Nothing changed yet.
    pub fn new(state: &'a dyn StateRead) -> Self {
        Self {
            state,
            accounts: AddressMap::default(),
            new_code: B256Map::default(),
        }
    }

    /// Reads accounts ahead, in parallel. Only a matter of speed.
    pub fn preload(&mut self, addresses: &[Address]) -> Result<(), StateError> {
        let state = self.state;
        let loaded: Vec<(Address, Entry)> = addresses
            .par_iter()
            .with_min_len(32)
            .map(|address| Ok((*address, load(state, *address)?)))
            .collect::<Result<_, StateError>>()?;
        self.accounts.reserve(loaded.len());
        for (address, entry) in loaded {
            self.accounts.entry(address).or_insert(entry);
        }
        Ok(())
    }

    /// The account as the block has it now.
    pub fn account(&mut self, address: Address) -> Result<Option<AccountRecord>, StateError> {
        Ok(self.entry(address)?.now)
    }

    /// The slot as the block has it now.
    pub fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        let state = self.state;
        let entry = self.entry(address)?;
        if let Some(slot) = entry.slots.get(&slot) {
            return Ok(slot.now);
        }
        if entry.wiped || !has_storage(entry.before.as_ref()) {
            entry.slots.insert(
                slot,
                Slot {
                    before: U256::ZERO,
                    now: U256::ZERO,
                },
            );
            return Ok(U256::ZERO);
        }
        let value = state.storage(entry.key, HashedSlot::from(slot))?;
        entry.slots.insert(
            slot,
            Slot {
                before: value,
                now: value,
            },
        );
        Ok(value)
    }

    /// Code by its hash.
    pub fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        match self.new_code.get(&code_hash) {
            Some(code) => Ok(code.clone()),
            None => self.state.code(code_hash),
        }
    }

    /// Hash of an earlier block, `None` if the store does not hold it.
    pub fn block_hash(&self, height: u64) -> Result<Option<B256>, StateError> {
        self.state.block_hash(height)
    }

    /// Applies what a transaction did to one account; `slots` holds those it changed.
    pub fn apply(
        &mut self,
        address: Address,
        touch: Touch,
        slots: impl Iterator<Item = (U256, U256)>,
    ) -> Result<(), StateError> {
        let entry = self.entry(address)?;
        match touch {
            Touch::Destroy => entry.wipe(None),
            Touch::Keep(record) if record.is_empty() => entry.wipe(None),
            Touch::Create(record) => entry.wipe(Some(record)),
            Touch::Keep(record) => entry.now = Some(record),
        }
        if entry.now.is_some() {
            entry.write_slots(slots);
        }
        Ok(())
    }

    /// Adds coins from nowhere: the block reward.
    pub fn credit(&mut self, address: Address, amount_wei: U256) -> Result<(), StateError> {
        if amount_wei.is_zero() {
            return Ok(());
        }
        let entry = self.entry(address)?;
        let mut record = entry.now.unwrap_or_default();
        record.balance = record.balance.saturating_add(amount_wei);
        entry.now = Some(record);
        Ok(())
    }

    /// Keeps code that the block deployed.
    pub fn add_code(&mut self, code_hash: B256, code: Bytes) {
        self.new_code.insert(code_hash, code);
    }

    /// Replaces nonce, balance or code of an account: the state overrides of a simulation.
    pub fn set_account(
        &mut self,
        address: Address,
        record: AccountRecord,
    ) -> Result<(), StateError> {
        self.entry(address)?.now = Some(record);
        Ok(())
    }

    /// Sets code of an account: a state override of a simulation.
    pub fn set_code(&mut self, address: Address, code: Bytes) -> Result<(), StateError> {
        let code_hash = keccak256(&code);
        let entry = self.entry(address)?;
        let mut record = entry.now.unwrap_or_default();
        record.code_hash = code_hash;
        entry.now = Some(record);
        self.add_code(code_hash, code);
        Ok(())
    }

    /// Sets slots of an account: native writes, and the `stateDiff` overrides of a simulation.
    pub fn set_storage(
        &mut self,
        address: Address,
        slots: impl Iterator<Item = (U256, U256)>,
    ) -> Result<(), StateError> {
        for (slot, value) in slots {
            self.storage(address, slot)?;
            self.entry(address)?
                .write_slots([(slot, value)].into_iter());
        }
        Ok(())
    }

    /// Drops all slots of an account: with [`Self::set_storage`] the `state` override of a simulation.
    pub fn wipe_storage(&mut self, address: Address) -> Result<(), StateError> {
        let entry = self.entry(address)?;
        entry.wiped = true;
        entry.slots.clear();
        Ok(())
    }

    /// Everything that differs from the parent state, by hashed key.
    pub fn into_post_state(self) -> PostState {
        // Hashing the slots is the work here; the map's order does not matter, the keys order the result.
        let entries: Vec<Entry> = self.accounts.into_values().collect();
        let accounts: BTreeMap<_, _> = entries
            .into_par_iter()
            .with_min_len(64)
            .filter_map(Entry::into_update)
            .collect();
        let mut code = BTreeMap::new();
        let mut new_code = self.new_code;
        for update in accounts.values() {
            if let Some(record) = update.account
                && let Some(bytes) = new_code.remove(&record.code_hash)
            {
                code.insert(record.code_hash, bytes);
            }
        }
        PostState { accounts, code }
    }

    fn entry(&mut self, address: Address) -> Result<&mut Entry, StateError> {
        use alloy_primitives::map::Entry as MapEntry;
        match self.accounts.entry(address) {
            MapEntry::Occupied(entry) => Ok(entry.into_mut()),
            MapEntry::Vacant(entry) => Ok(entry.insert(load(self.state, address)?)),
        }
    }
}

impl Entry {
    fn wipe(&mut self, now: Option<AccountRecord>) {
        self.now = now;
        self.wiped = true;
        self.slots.clear();
    }

    fn write_slots(&mut self, slots: impl Iterator<Item = (U256, U256)>) {
        for (slot, value) in slots {
            // The EVM reads a slot before it writes it, so `before` is known but for accounts made in this block.
            self.slots
                .entry(slot)
                .or_insert(Slot {
                    before: U256::ZERO,
                    now: U256::ZERO,
                })
                .now = value;
        }
    }

    /// `None` if the block left the account as it was.
    fn into_update(self) -> Option<(HashedAddress, AccountUpdate)> {
        let had_storage = has_storage(self.before.as_ref());
        let wipe_storage = self.wiped && had_storage;
        let storage: BTreeMap<_, _> = self
            .slots
            .into_iter()
            .filter(|(_, slot)| {
                if self.wiped {
                    !slot.now.is_zero()
                } else {
                    slot.now != slot.before
                }
            })
            .map(|(slot, value)| (HashedSlot::from(slot), value.now))
            .collect();
        let unchanged = self.now == self.before.map(AccountRecord::from);
        if unchanged && !wipe_storage && storage.is_empty() {
            return None;
        }
        let update = AccountUpdate {
            account: self.now,
            wipe_storage,
            storage,
        };
        Some((self.key, update))
    }
}

fn load(state: &dyn StateRead, address: Address) -> Result<Entry, StateError> {
    let key = HashedAddress::from(address);
    let before = state.account(key)?;
    Ok(Entry {
        key,
        before,
        now: before.map(AccountRecord::from),
        wiped: false,
        slots: HashMap::default(),
    })
}

fn has_storage(account: Option<&Account>) -> bool {
    account.is_some_and(|account| account.storage_root != EMPTY_ROOT_HASH)
}
