//! One pooled transaction with the figures the pool sorts and sums by, computed once and outside its lock.

use alloy_consensus::{Transaction as _, TxEnvelope};
use alloy_primitives::{Address, B256, U256};
use cloister_app::{state::Account, transaction::Transaction};
use std::sync::Arc;

/// Memory of a pooled transaction beyond twice its bytes (raw and decoded): keys, index entries, allocations.
const ENTRY_OVERHEAD_BYTES: usize = 1024;

/// What the pool needs to know of a sender's account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SenderAccount {
    pub(crate) nonce: u64,
    pub(crate) balance: U256,
    /// A delegation (EIP-7702): code of its own may move the nonce or the balance at any time.
    pub(crate) has_code: bool,
}

impl From<Option<Account>> for SenderAccount {
    fn from(account: Option<Account>) -> Self {
        let account = account.unwrap_or_default();
        Self {
            nonce: account.nonce,
            balance: account.balance,
            has_code: account.code_hash != alloy_primitives::KECCAK256_EMPTY,
        }
    }
}

/// A transaction and what admission computed of it.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) transaction: Arc<Transaction>,
    pub(crate) hash: B256,
    pub(crate) nonce: u64,
    pub(crate) fee_cap_wei: u128,
    pub(crate) tip_cap_wei: u128,
    /// Value plus gas limit at the fee cap.
    pub(crate) cost_wei: U256,
    /// Estimated memory.
    pub(crate) size_bytes: usize,
    /// Accounts whose EIP-7702 authorisation it carries, each once.
    pub(crate) authorities: Vec<Address>,
    /// Order of arrival, set on insertion.
    pub(crate) arrival: u64,
    /// Executable: no earlier nonce is missing and it is inside the sender's window.
    pub(crate) pending: bool,
}

impl Entry {
    /// Computes the figures; call it outside the pool's lock.
    pub(crate) fn new(transaction: Arc<Transaction>) -> Self {
        let envelope: &TxEnvelope = transaction.envelope();
        let fee_cap_wei = envelope.max_fee_per_gas();
        let mut authorities: Vec<Address> = transaction
            .authorities()
            .iter()
            .flatten()
            .copied()
            .collect();
        authorities.sort_unstable();
        authorities.dedup();
        Self {
            hash: transaction.hash(),
            nonce: envelope.nonce(),
            fee_cap_wei,
            tip_cap_wei: envelope.max_priority_fee_per_gas().unwrap_or(fee_cap_wei),
            cost_wei: U256::from(envelope.gas_limit())
                .saturating_mul(U256::from(fee_cap_wei))
                .saturating_add(envelope.value()),
            size_bytes: ENTRY_OVERHEAD_BYTES + 2 * transaction.raw().len(),
            authorities,
            arrival: 0,
            pending: false,
            transaction,
        }
    }

    /// What the proposer earns per gas at this base fee; `None` while the base fee outruns it.
    pub(crate) fn effective_tip_wei(&self, base_fee_wei: u64) -> Option<u128> {
        let above_base_fee_wei = self.fee_cap_wei.checked_sub(u128::from(base_fee_wei))?;
        Some(above_base_fee_wei.min(self.tip_cap_wei))
    }

    /// Whether its fees exceed `old`'s by at least a tenth, both of them: geth's rule for a replacement.
    pub(crate) fn outbids(&self, old: &Self) -> bool {
        let a_tenth_above = |new: u128, old: u128| {
            // The threshold is rounded down, as geth does; "greater" keeps equal small fees out.
            new > old && U256::from(new) >= U256::from(old) * U256::from(110) / U256::from(100)
        };
        a_tenth_above(self.fee_cap_wei, old.fee_cap_wei)
            && a_tenth_above(self.tip_cap_wei, old.tip_cap_wei)
    }
}
