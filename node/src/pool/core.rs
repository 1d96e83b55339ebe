//! The pool's rules, without clock, lock or store: state of senders comes in, decisions come out.
//!
//! A sender's transactions are kept by nonce. Those from the account's nonce on without a gap, at most
//! [`Limits::pending_per_sender`], are *pending* (executable); the others are *queued*. Every change of a sender ends
//! in [`Core::settle`], which recomputes what follows from its transactions; so no count can drift.

use super::{
    best::{Best, Candidate},
    entry::{Entry, SenderAccount},
};
use alloy_primitives::{Address, B256, U256};
use cloister_app::{
    rejection::Rejection,
    state::{Account, Change, HashedAddress},
    transaction::Transaction,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// Caps of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Executable transactions of one sender; the ones that follow wait in its queue.
    pub pending_per_sender: usize,
    /// Waiting transactions of one sender.
    pub queued_per_sender: usize,
    /// Waiting transactions of all senders.
    pub queued_count_max: usize,
    /// All transactions.
    pub transaction_count_max: usize,
    /// Estimated memory of all transactions.
    pub size_bytes_max: usize,
    /// Blocks after which a transaction that was not included is dropped.
    pub lifetime_blocks: u64,
    /// Smallest base fee of the network: what pays less can never be included.
    pub base_fee_floor_wei: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pending_per_sender: 64,
            queued_per_sender: 64,
            queued_count_max: 2_048,
            transaction_count_max: 10_000,
            size_bytes_max: 128 * 1024 * 1024,
            // Three hours of blocks of one second.
            lifetime_blocks: 10_800,
            base_fee_floor_wei: 0,
        }
    }
}

/// What an admission did.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) pending: bool,
    /// Transactions that became executable, nonces of a sender in order.
    pub(crate) executable: Vec<Arc<Transaction>>,
}

/// Who is evicted first: waiting before executable, lower tip first, later arrival first. A sender's last transaction
/// goes first, because the ones after a hole could not run; it counts with the lowest tip it stands behind.
type EvictionKey = (bool, u128, Reverse<u64>, Address);

#[derive(Debug)]
struct Sender {
    hashed: HashedAddress,
    account: SenderAccount,
    entries: BTreeMap<u64, Entry>,
    /// First nonce that is missing, from the account's on.
    next_nonce: u64,
    pending_count: usize,
    /// Sum of the costs of all its transactions.
    cost_wei: U256,
    eviction_key: Option<EvictionKey>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Core {
    limits: Limits,
    /// Block whose state the senders' accounts are of.
    height: u64,
    senders: HashMap<Address, Sender>,
    /// Touched accounts come by hashed address.
    addresses: HashMap<HashedAddress, Address>,
    index: HashMap<B256, (Address, u64)>,
    /// How many pooled transactions carry an authorisation of this account.
    authorities: HashMap<Address, usize>,
    /// Height of admission and hash by arrival: the oldest first.
    ages: BTreeMap<u64, (u64, B256)>,
    evictions: BTreeSet<EvictionKey>,
    pending_count: usize,
    size_bytes: usize,
    next_arrival: u64,
}

impl Core {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            height: 0,
            senders: HashMap::new(),
            addresses: HashMap::new(),
            index: HashMap::new(),
            authorities: HashMap::new(),
            ages: BTreeMap::new(),
            evictions: BTreeSet::new(),
            pending_count: 0,
            size_bytes: 0,
            next_arrival: 0,
        }
    }

    /// Block whose state the pool has caught up with.
    pub(crate) const fn height(&self) -> u64 {
        self.height
    }

    /// Counts (pending, queued).
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.pending_count, self.queued_count())
    }

    fn queued_count(&self) -> usize {
        self.index.len() - self.pending_count
    }

    fn entry(&self, hash: &B256) -> Option<(&Sender, &Entry)> {
        let (address, nonce) = self.index.get(hash)?;
        let sender = self
            .senders
            .get(address)
            .expect("an indexed hash has a sender");
        let entry = sender
            .entries
            .get(nonce)
            .expect("an indexed hash has an entry");
        Some((sender, entry))
    }

    pub(crate) fn get(&self, hash: &B256) -> Option<&Arc<Transaction>> {
        self.entry(hash).map(|(_, entry)| &entry.transaction)
    }

    /// Whether it is executable; `None` if it is not in the pool.
    pub(crate) fn is_pending(&self, hash: &B256) -> Option<bool> {
        self.entry(hash).map(|(_, entry)| entry.pending)
    }

    /// Verdict on a transaction CometBFT already holds.
    pub(crate) fn recheck(&self, hash: &B256) -> Result<(), Rejection> {
        match self.entry(hash) {
            None => Err(Rejection::NoLongerInPool),
            Some((_, entry)) if entry.pending => Ok(()),
            Some((sender, entry)) => Err(Rejection::NonceGap {
                expected: sender.next_nonce,
                got: entry.nonce,
            }),
        }
    }

    pub(crate) fn pending_nonce(&self, address: Address) -> Option<u64> {
        self.senders.get(&address).map(|sender| sender.next_nonce)
    }

    /// Admits a transaction that passed the checks of state. `account` is its sender's as of the last commit.
    pub(crate) fn add(
        &mut self,
        mut entry: Entry,
        account: SenderAccount,
    ) -> Result<Admission, Rejection> {
        let address = entry.transaction.sender();
        self.check_admission(address, &entry, account)?;

        let (hash, nonce) = (entry.hash, entry.nonce);
        entry.arrival = self.next_arrival;
        self.next_arrival += 1;
        let sender = self.senders.entry(address).or_insert_with(|| Sender {
            hashed: HashedAddress::from(address),
            account,
            entries: BTreeMap::new(),
            next_nonce: account.nonce,
            pending_count: 0,
            cost_wei: U256::ZERO,
            eviction_key: None,
        });
        self.addresses.insert(sender.hashed, address);
        self.size_bytes += entry.size_bytes;
        self.index.insert(hash, (address, nonce));
        self.ages.insert(entry.arrival, (self.height, hash));
        for authority in &entry.authorities {
            *self.authorities.entry(*authority).or_default() += 1;
        }
        if let Some(replaced) = sender.entries.insert(nonce, entry) {
            self.forget(&replaced);
        }

        let executable = self.settle(address);
        self.trim_sender(address);
        self.trim();
        // The trims may have taken what was just put in, or what it made executable.
        let pending = self.is_pending(&hash).ok_or(Rejection::PoolFull)?;
        Ok(Admission {
            pending,
            executable: self.still_pending(executable),
        })
    }

    /// All rules of admission; changes nothing.
    fn check_admission(
        &self,
        address: Address,
        entry: &Entry,
        account: SenderAccount,
    ) -> Result<(), Rejection> {
        if self.index.contains_key(&entry.hash) {
            return Err(Rejection::AlreadyKnown);
        }
        if entry.fee_cap_wei < u128::from(self.limits.base_fee_floor_wei) {
            return Err(Rejection::FeeCapBelowBaseFee {
                fee_cap_wei: entry.fee_cap_wei,
                base_fee_wei: self.limits.base_fee_floor_wei,
            });
        }
        let sender = self.senders.get(&address);
        let account = sender.map_or(account, |sender| sender.account);
        if entry.nonce < account.nonce {
            return Err(Rejection::NonceTooLow {
                expected: account.nonce,
                got: entry.nonce,
            });
        }
        let replaced = sender.and_then(|sender| sender.entries.get(&entry.nonce));
        if let Some(old) = replaced
            && !entry.outbids(old)
        {
            return Err(Rejection::ReplacementUnderpriced);
        }
        if replaced.is_none() {
            self.check_delegation(address, sender, entry, account)?;
        }
        self.check_authorities(entry)?;

        // The sender must be able to pay for all it has pooled, or one balance would fill the pool many times over.
        let replaced_cost_wei = replaced.map_or(U256::ZERO, |old| old.cost_wei);
        let cost_wei = sender
            .map_or(U256::ZERO, |sender| sender.cost_wei)
            .saturating_sub(replaced_cost_wei)
            .saturating_add(entry.cost_wei);
        if cost_wei > account.balance {
            return Err(Rejection::InsufficientFunds {
                balance: account.balance,
                cost: cost_wei,
            });
        }
        if replaced.is_none() {
            self.check_room(address, sender, entry, account)?;
        }
        Ok(())
    }

    /// Accounts with code or a pooled authorisation hold at most one: their nonce and balance move under us.
    fn check_delegation(
        &self,
        address: Address,
        sender: Option<&Sender>,
        entry: &Entry,
        account: SenderAccount,
    ) -> Result<(), Rejection> {
        if !account.has_code && !self.authorities.contains_key(&address) {
            return Ok(());
        }
        if sender.is_some_and(|sender| !sender.entries.is_empty()) {
            return Err(Rejection::DelegatedAccountLimit);
        }
        if entry.nonce != account.nonce {
            return Err(Rejection::DelegatedAccountGap);
        }
        Ok(())
    }

    /// The same from the other side: whoever is to be delegated may have at most one in the pool.
    fn check_authorities(&self, entry: &Entry) -> Result<(), Rejection> {
        let reserved = entry.authorities.iter().any(|authority| {
            self.senders
                .get(authority)
                .is_some_and(|sender| sender.entries.len() > 1)
        });
        if reserved {
            return Err(Rejection::AuthorityReserved);
        }
        Ok(())
    }

    /// Caps, for a nonce that is new.
    fn check_room(
        &self,
        address: Address,
        sender: Option<&Sender>,
        entry: &Entry,
        account: SenderAccount,
    ) -> Result<(), Rejection> {
        let pending_per_sender = self.limits.pending_per_sender;
        let next_nonce = sender.map_or(account.nonce, |sender| sender.next_nonce);
        let pending_count = sender.map_or(0, |sender| sender.pending_count);
        let will_wait = entry.nonce > next_nonce || pending_count >= pending_per_sender;
        if let Some(sender) = sender
            && will_wait
            && sender.entries.len() - pending_count >= self.limits.queued_per_sender
            && sender.entries.keys().next_back() < Some(&entry.nonce)
        {
            return Err(Rejection::SenderLimit {
                limit: pending_per_sender + self.limits.queued_per_sender,
            });
        }
        let queue_full = will_wait && self.queued_count() >= self.limits.queued_count_max;
        let full = self.index.len() >= self.limits.transaction_count_max
            || self.size_bytes + entry.size_bytes > self.limits.size_bytes_max;
        if queue_full || full {
            let tip_wei = sender
                .and_then(|sender| sender.eviction_key)
                .map_or(u128::MAX, |(_, tip_wei, _, _)| tip_wei)
                .min(self.floor_tip_wei(entry));
            let key = (!will_wait, tip_wei, Reverse(self.next_arrival), address);
            if self.evictions.first().is_none_or(|worst| key < *worst) {
                return Err(Rejection::PoolFull);
            }
        }
        Ok(())
    }

    fn floor_tip_wei(&self, entry: &Entry) -> u128 {
        entry
            .effective_tip_wei(self.limits.base_fee_floor_wei)
            .unwrap_or(0)
    }

    /// Takes in a committed block: new accounts of the senders it touched, and age.
    /// Returns what became executable.
    pub(crate) fn apply_block(
        &mut self,
        height: u64,
        accounts: &BTreeMap<HashedAddress, Change<Option<Account>>>,
    ) -> Vec<Arc<Transaction>> {
        self.height = height;
        let touched: Vec<(Address, SenderAccount)> = accounts
            .iter()
            .filter_map(|(hashed, change)| {
                let address = self.addresses.get(hashed)?;
                Some((*address, SenderAccount::from(change.after)))
            })
            .collect();
        let mut executable = Vec::new();
        for (address, account) in touched {
            executable.extend(self.revalidate(address, account));
        }
        executable.extend(self.expire());
        self.trim();
        self.still_pending(executable)
    }

    /// Drops what the sender's new account makes invalid: included or stale nonces, costs above the balance, and all
    /// but the next one of an account that now has code.
    fn revalidate(&mut self, address: Address, account: SenderAccount) -> Vec<Arc<Transaction>> {
        let Some(sender) = self.senders.get_mut(&address) else {
            return Vec::new();
        };
        sender.account = account;
        let dropped: Vec<B256> = sender
            .entries
            .values()
            .filter(|entry| {
                entry.nonce < account.nonce
                    || entry.cost_wei > account.balance
                    || (account.has_code && entry.nonce != account.nonce)
            })
            .map(|entry| entry.hash)
            .collect();
        for hash in dropped {
            self.remove_unsettled(&hash);
        }
        self.settle_after_loss(address)
    }

    fn expire(&mut self) -> Vec<Arc<Transaction>> {
        let mut senders = BTreeSet::new();
        while let Some((_, (admitted, hash))) = self.ages.first_key_value()
            && admitted.saturating_add(self.limits.lifetime_blocks) <= self.height
        {
            let hash = *hash;
            senders.extend(self.remove_unsettled(&hash));
        }
        senders
            .into_iter()
            .flat_map(|sender| self.settle_after_loss(sender))
            .collect()
    }

    /// A hole sends what follows it to the queue, which may overflow.
    fn settle_after_loss(&mut self, address: Address) -> Vec<Arc<Transaction>> {
        let executable = self.settle(address);
        self.trim_sender(address);
        executable
    }

    /// Keeps a sender within its cap: the highest nonces go.
    fn trim_sender(&mut self, address: Address) {
        while let Some(sender) = self.senders.get(&address)
            && sender.entries.len() - sender.pending_count > self.limits.queued_per_sender
        {
            self.evict_last(address);
        }
    }

    /// Keeps the pool within its caps, the worst first.
    fn trim(&mut self) {
        loop {
            let full = self.index.len() > self.limits.transaction_count_max
                || self.size_bytes > self.limits.size_bytes_max;
            // Queued ones sort first, so the worst of all is also the worst of the queue.
            let queue_full = self.queued_count() > self.limits.queued_count_max;
            match self.evictions.first() {
                Some((_, _, _, address)) if full || queue_full => self.evict_last(*address),
                _ => return,
            }
        }
    }

    fn evict_last(&mut self, address: Address) {
        let last = self
            .senders
            .get(&address)
            .and_then(|sender| sender.entries.last_key_value())
            .map(|(_, entry)| entry.hash);
        if let Some(hash) = last {
            self.remove_unsettled(&hash);
            self.settle(address);
        }
    }

    /// Takes a transaction out of its sender; the caller settles the sender.
    fn remove_unsettled(&mut self, hash: &B256) -> Option<Address> {
        let (address, nonce) = *self.index.get(hash)?;
        let sender = self
            .senders
            .get_mut(&address)
            .expect("an indexed hash has a sender");
        let entry = sender
            .entries
            .remove(&nonce)
            .expect("an indexed hash has an entry");
        self.forget(&entry);
        Some(address)
    }

    /// Takes a removed entry out of all indices, so that its hash can come again.
    fn forget(&mut self, entry: &Entry) {
        self.index.remove(&entry.hash);
        self.ages.remove(&entry.arrival);
        self.size_bytes -= entry.size_bytes;
        if entry.pending {
            self.pending_count -= 1;
            let sender = self.senders.get_mut(&entry.transaction.sender());
            sender.expect("a pending entry has a sender").pending_count -= 1;
        }
        for authority in &entry.authorities {
            if let Some(count) = self.authorities.get_mut(authority) {
                *count -= 1;
                if *count == 0 {
                    self.authorities.remove(authority);
                }
            }
        }
    }

    /// Recomputes what follows from a sender's transactions. Returns those that became executable, in nonce order.
    fn settle(&mut self, address: Address) -> Vec<Arc<Transaction>> {
        let Some(sender) = self.senders.get_mut(&address) else {
            return Vec::new();
        };
        if let Some(key) = sender.eviction_key.take() {
            self.evictions.remove(&key);
        }
        let mut executable = Vec::new();
        let mut pending_count = 0;
        let mut lowest_tip_wei = u128::MAX;
        sender.next_nonce = sender.account.nonce;
        sender.cost_wei = U256::ZERO;
        for (nonce, entry) in &mut sender.entries {
            let was_pending = entry.pending;
            let contiguous = *nonce == sender.next_nonce;
            if contiguous {
                sender.next_nonce += 1;
            }
            entry.pending = contiguous && pending_count < self.limits.pending_per_sender;
            pending_count += usize::from(entry.pending);
            if entry.pending && !was_pending {
                executable.push(Arc::clone(&entry.transaction));
            }
            sender.cost_wei = sender.cost_wei.saturating_add(entry.cost_wei);
            lowest_tip_wei = lowest_tip_wei.min(
                entry
                    .effective_tip_wei(self.limits.base_fee_floor_wei)
                    .unwrap_or(0),
            );
        }
        self.pending_count = self.pending_count - sender.pending_count + pending_count;
        sender.pending_count = pending_count;
        if let Some((_, last)) = sender.entries.last_key_value() {
            let key = (last.pending, lowest_tip_wei, Reverse(last.arrival), address);
            sender.eviction_key = Some(key);
            self.evictions.insert(key);
        } else {
            self.addresses.remove(&sender.hashed);
            self.senders.remove(&address);
        }
        executable
    }

    fn still_pending(&self, mut executable: Vec<Arc<Transaction>>) -> Vec<Arc<Transaction>> {
        executable.retain(|transaction| self.is_pending(&transaction.hash()) == Some(true));
        executable
    }

    /// Executable transactions at this base fee, to be taken best first.
    pub(crate) fn best(&self, base_fee_wei: u64) -> Best {
        Best::new(self.senders.values().map(|sender| {
            sender
                .entries
                .values()
                .take(sender.pending_count)
                .map_while(|entry| {
                    Some(Candidate {
                        // The later ones of a sender cannot run before one that the base fee outruns.
                        tip_wei: entry.effective_tip_wei(base_fee_wei)?,
                        arrival: entry.arrival,
                        transaction: Arc::clone(&entry.transaction),
                    })
                })
                .collect()
        }))
    }

    /// All transactions of one sender in nonce order, each with whether it is executable.
    pub(crate) fn of_sender(&self, address: Address) -> Vec<(Arc<Transaction>, bool)> {
        self.senders.get(&address).map_or_else(Vec::new, |sender| {
            sender
                .entries
                .values()
                .map(|entry| (Arc::clone(&entry.transaction), entry.pending))
                .collect()
        })
    }

    /// All senders, in order.
    pub(crate) fn sender_addresses(&self) -> Vec<Address> {
        let mut addresses: Vec<Address> = self.senders.keys().copied().collect();
        addresses.sort_unstable();
        addresses
    }
}

#[cfg(test)]
mod tests;
