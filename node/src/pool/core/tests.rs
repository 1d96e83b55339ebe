//! One test for each rule of the pool, and a model.

mod model;

use super::*;
use crate::testing::{Draft, GWEI, Wallet};
use alloy_primitives::Bytes;

/// 10,000 coins.
const RICH: SenderAccount = SenderAccount {
    nonce: 0,
    balance: U256::from_limbs([0x19e0_c9ba_b240_0000, 0x21e, 0, 0]),
    has_code: false,
};

fn core(change: impl FnOnce(&mut Limits)) -> Core {
    let mut limits = Limits::default();
    change(&mut limits);
    Core::new(limits)
}

fn draft(nonce: u64) -> Draft {
    Draft {
        nonce,
        ..Draft::default()
    }
}

fn paying(nonce: u64, price_wei: u128) -> Draft {
    Draft {
        nonce,
        fee_cap_wei: price_wei,
        tip_wei: price_wei,
        ..Draft::default()
    }
}

fn add(core: &mut Core, wallet: &Wallet, draft: &Draft) -> Result<Admission, Rejection> {
    add_with(core, wallet, draft, RICH)
}

fn add_with(
    core: &mut Core,
    wallet: &Wallet,
    draft: &Draft,
    account: SenderAccount,
) -> Result<Admission, Rejection> {
    let result = core.add(Entry::new(wallet.sign(draft)), account);
    core.assert_consistent();
    result
}

fn hash(wallet: &Wallet, draft: &Draft) -> B256 {
    wallet.sign(draft).hash()
}

/// A block that leaves these senders with these accounts.
fn block(core: &mut Core, accounts: &[(Address, SenderAccount)]) -> Vec<Arc<Transaction>> {
    let changes = accounts
        .iter()
        .map(|(address, account)| {
            let code_hash = if account.has_code {
                B256::repeat_byte(0xc0)
            } else {
                alloy_primitives::KECCAK256_EMPTY
            };
            let after = Account {
                nonce: account.nonce,
                balance: account.balance,
                code_hash,
                ..Account::default()
            };
            let change = Change {
                before: None,
                after: Some(after),
            };
            (HashedAddress::from(*address), change)
        })
        .collect();
    let height = core.height() + 1;
    let executable = core.apply_block(height, &changes);
    core.assert_consistent();
    executable
}

fn nonces(transactions: &[Arc<Transaction>]) -> Vec<u64> {
    use alloy_consensus::Transaction as _;
    transactions
        .iter()
        .map(|transaction| transaction.envelope().nonce())
        .collect()
}

impl Core {
    /// Recomputes everything kept from the senders' transactions.
    fn assert_consistent(&self) {
        let mut count = 0;
        let mut pending_count = 0;
        let mut size_bytes = 0;
        let mut authorities: HashMap<Address, usize> = HashMap::new();
        for (address, sender) in &self.senders {
            assert!(!sender.entries.is_empty(), "a sender without transactions");
            assert_eq!(self.addresses.get(&sender.hashed), Some(address));
            let mut expected = sender.account.nonce;
            for (nonce, entry) in &sender.entries {
                assert!(*nonce >= sender.account.nonce, "stale nonce kept");
                assert_eq!(self.index.get(&entry.hash), Some(&(*address, *nonce)));
                assert_eq!(
                    self.ages.get(&entry.arrival).map(|(_, hash)| hash),
                    Some(&entry.hash)
                );
                let contiguous = *nonce == expected;
                expected += u64::from(contiguous);
                let position = usize::try_from(*nonce - sender.account.nonce).unwrap();
                assert_eq!(
                    entry.pending,
                    contiguous && position < self.limits.pending_per_sender
                );
                pending_count += usize::from(entry.pending);
                count += 1;
                size_bytes += entry.size_bytes;
                for authority in &entry.authorities {
                    *authorities.entry(*authority).or_default() += 1;
                }
            }
            assert_eq!(sender.next_nonce, expected);
            let queued = sender.entries.len() - sender.pending_count;
            assert!(queued <= self.limits.queued_per_sender);
            let key = sender.eviction_key.unwrap();
            assert!(self.evictions.contains(&key));
        }
        assert_eq!(self.index.len(), count);
        assert_eq!(self.ages.len(), count);
        assert_eq!(self.pending_count, pending_count);
        assert_eq!(self.size_bytes, size_bytes);
        assert_eq!(self.authorities, authorities);
        assert_eq!(self.addresses.len(), self.senders.len());
        assert_eq!(self.evictions.len(), self.senders.len());
        assert!(count <= self.limits.transaction_count_max);
        assert!(count - pending_count <= self.limits.queued_count_max);
        assert!(size_bytes <= self.limits.size_bytes_max);
    }
}

#[test]
fn refuses_a_known_transaction() {
    let (mut core, wallet) = (core(|_| {}), Wallet::numbered(1));
    assert!(add(&mut core, &wallet, &draft(0)).unwrap().pending);
    assert_eq!(
        add(&mut core, &wallet, &draft(0)).unwrap_err(),
        Rejection::AlreadyKnown
    );
}

#[test]
fn refuses_a_nonce_below_the_accounts() {
    let (mut core, wallet) = (core(|_| {}), Wallet::numbered(1));
    let account = SenderAccount { nonce: 3, ..RICH };
    assert_eq!(
        add_with(&mut core, &wallet, &draft(2), account).unwrap_err(),
        Rejection::NonceTooLow {
            expected: 3,
            got: 2
        }
    );
}

#[test]
fn refuses_a_fee_cap_below_the_floor() {
    let mut core = core(|limits| limits.base_fee_floor_wei = 10);
    let wallet = Wallet::numbered(1);
    assert_eq!(
        add(&mut core, &wallet, &paying(0, 9)).unwrap_err(),
        Rejection::FeeCapBelowBaseFee {
            fee_cap_wei: 9,
            base_fee_wei: 10
        }
    );
    assert!(add(&mut core, &wallet, &paying(0, 10)).is_ok());
}

#[test]
fn refuses_what_the_sender_cannot_pay_for_all_together() {
    let (mut core, wallet) = (core(|_| {}), Wallet::numbered(1));
    let cost = U256::from(21_000 * 10 * GWEI + 1);
    let account = SenderAccount {
        balance: cost * U256::from(2),
        ..RICH
    };
    assert!(add_with(&mut core, &wallet, &draft(0), account).is_ok());
    assert!(add_with(&mut core, &wallet, &draft(1), account).is_ok());
    assert_eq!(
        add_with(&mut core, &wallet, &draft(2), account).unwrap_err(),
        Rejection::InsufficientFunds {
            balance: account.balance,
            cost: cost * U256::from(3)
        }
    );
    // A replacement counts for the one it replaces.
    let dearer = Draft {
        value: U256::ZERO,
        fee_cap_wei: 11 * GWEI,
        tip_wei: 2 * GWEI,
        ..draft(1)
    };
    assert!(matches!(
        add_with(&mut core, &wallet, &dearer, account),
        Err(Rejection::InsufficientFunds { .. })
    ));
}

/// D16.
#[test]
fn replaces_only_for_a_tenth_more_on_both_fees() {
    let (mut core, wallet) = (core(|_| {}), Wallet::numbered(1));
    let offer = |fee_percent: u128, tip_percent: u128, value: u64| Draft {
        fee_cap_wei: 10 * GWEI * fee_percent / 100,
        tip_wei: GWEI * tip_percent / 100,
        value: U256::from(value),
        ..Draft::default()
    };
    assert!(add(&mut core, &wallet, &offer(100, 100, 1)).is_ok());
    for (fee_percent, tip_percent) in [(100, 100), (105, 105), (200, 105), (105, 200), (109, 110)] {
        assert_eq!(
            add(&mut core, &wallet, &offer(fee_percent, tip_percent, 2)).unwrap_err(),
            Rejection::ReplacementUnderpriced,
            "x{fee_percent}% fee cap, x{tip_percent}% tip"
        );
    }
    let admission = add(&mut core, &wallet, &offer(110, 110, 3)).unwrap();
    assert_eq!(admission.executable.len(), 1, "a replacement is announced");
    assert!(add(&mut core, &wallet, &offer(220, 220, 4)).is_ok());
    assert_eq!(core.size(), (1, 0));
    assert_eq!(
        core.recheck(&hash(&wallet, &offer(100, 100, 1))),
        Err(Rejection::NoLongerInPool)
    );
    assert_eq!(core.recheck(&hash(&wallet, &offer(220, 220, 4))), Ok(()));
}

/// Rounding must not let an equal offer through where a tenth is less than one wei.
#[test]
fn replacement_of_a_tiny_fee_must_be_higher() {
    let (mut core, wallet) = (core(|_| {}), Wallet::numbered(1));
    assert!(add(&mut core, &wallet, &paying(0, 1)).is_ok());
    let same = Draft {
        value: U256::from(2),
        ..paying(0, 1)
    };
    assert_eq!(
        add(&mut core, &wallet, &same).unwrap_err(),
        Rejection::ReplacementUnderpriced
    );
    assert!(add(&mut core, &wallet, &paying(0, 2)).is_ok());
}

/// D15: what a gap held back is announced when it closes, in order.
#[test]
fn promotes_what_waited_for_a_gap() {
    let (mut core, wallet) = (core(|_| {}), Wallet::numbered(1));
    for nonce in [2, 1] {
        let admission = add(&mut core, &wallet, &draft(nonce)).unwrap();
        assert!(!admission.pending && admission.executable.is_empty());
    }
    assert_eq!(
        core.recheck(&hash(&wallet, &draft(1))),
        Err(Rejection::NonceGap {
            expected: 0,
            got: 1
        })
    );
    let admission = add(&mut core, &wallet, &draft(0)).unwrap();
    assert_eq!(nonces(&admission.executable), [0, 1, 2]);
    assert_eq!(core.size(), (3, 0));
}

/// D20.
#[test]
fn pending_nonce_is_the_first_that_is_missing() {
    let (mut core, wallet) = (core(|_| {}), Wallet::numbered(1));
    let account = SenderAccount { nonce: 5, ..RICH };
    assert_eq!(core.pending_nonce(wallet.address()), None);
    for nonce in 5..9 {
        add_with(&mut core, &wallet, &draft(nonce), account).unwrap();
        assert_eq!(core.pending_nonce(wallet.address()), Some(nonce + 1));
    }
    add_with(&mut core, &wallet, &draft(11), account).unwrap();
    assert_eq!(
        core.pending_nonce(wallet.address()),
        Some(9),
        "not over a gap"
    );
}

/// X2, and the rest of the sender's cap.
#[test]
fn one_sender_has_64_executable_and_64_waiting() {
    let (mut core, wallet) = (core(|_| {}), Wallet::numbered(1));
    for nonce in 0..128 {
        assert!(add(&mut core, &wallet, &draft(nonce)).is_ok());
    }
    for nonce in 128..200 {
        assert_eq!(
            add(&mut core, &wallet, &draft(nonce)).unwrap_err(),
            Rejection::SenderLimit { limit: 128 }
        );
    }
    assert_eq!(core.size(), (64, 64));
    assert_eq!(core.pending_nonce(wallet.address()), Some(128));
    // Once a block took the first, as many move up.
    let account = SenderAccount { nonce: 64, ..RICH };
    let executable = block(&mut core, &[(wallet.address(), account)]);
    assert_eq!(nonces(&executable), (64..128).collect::<Vec<_>>());
    assert_eq!(core.size(), (64, 0));
}

/// D17.
#[test]
fn nonces_that_can_never_run_do_not_fill_the_pool() {
    let (mut core, flooder, other) = (core(|_| {}), Wallet::numbered(1), Wallet::numbered(2));
    for offset in 0..500 {
        let result = add(&mut core, &flooder, &draft(1_000_000 + offset));
        assert_eq!(result.is_ok(), offset < 64);
    }
    assert_eq!(core.size(), (0, 64));
    assert!(add(&mut core, &other, &draft(0)).unwrap().pending);
}

#[test]
fn a_nonce_that_comes_nearer_takes_the_place_of_the_farthest() {
    let mut core = core(|limits| limits.queued_per_sender = 2);
    let wallet = Wallet::numbered(1);
    for nonce in [10, 20] {
        add(&mut core, &wallet, &draft(nonce)).unwrap();
    }
    assert!(add(&mut core, &wallet, &draft(15)).is_ok());
    assert!(core.get(&hash(&wallet, &draft(20))).is_none());
    assert_eq!(core.size(), (0, 2));
}

#[test]
fn a_full_pool_evicts_the_lowest_tip_and_refuses_a_lower_one() {
    let mut core = core(|limits| limits.transaction_count_max = 3);
    for (number, tip) in [(1, 5), (2, 3), (3, 4)] {
        add(&mut core, &Wallet::numbered(number), &paying(0, tip)).unwrap();
    }
    for tip in [2, 3] {
        assert_eq!(
            add(&mut core, &Wallet::numbered(4), &paying(0, tip)).unwrap_err(),
            Rejection::PoolFull,
            "on a tie the later arrival loses"
        );
    }
    assert!(add(&mut core, &Wallet::numbered(4), &paying(0, 6)).is_ok());
    assert!(
        core.get(&hash(&Wallet::numbered(2), &paying(0, 3)))
            .is_none()
    );
    assert_eq!(core.size(), (3, 0));
}

#[test]
fn eviction_takes_a_senders_last_so_that_no_hole_appears() {
    let mut core = core(|limits| limits.transaction_count_max = 3);
    let poor = Wallet::numbered(1);
    for (nonce, tip) in [(0, 2), (1, 9), (2, 9)] {
        add(&mut core, &poor, &paying(nonce, tip)).unwrap();
    }
    assert!(add(&mut core, &Wallet::numbered(2), &paying(0, 3)).is_ok());
    assert_eq!(core.pending_nonce(poor.address()), Some(2));
    assert_eq!(core.size(), (3, 0));
}

#[test]
fn waiting_transactions_are_evicted_before_executable_ones() {
    let mut core = core(|limits| limits.transaction_count_max = 2);
    add(&mut core, &Wallet::numbered(1), &paying(7, 100)).unwrap();
    add(&mut core, &Wallet::numbered(2), &paying(0, 1)).unwrap();
    add(&mut core, &Wallet::numbered(3), &paying(0, 1)).unwrap();
    assert_eq!(core.size(), (2, 0));
}

#[test]
fn the_queue_of_all_senders_is_bounded() {
    let mut core = core(|limits| limits.queued_count_max = 3);
    for number in 1..=3 {
        add(&mut core, &Wallet::numbered(number), &paying(9, 5)).unwrap();
    }
    assert_eq!(
        add(&mut core, &Wallet::numbered(4), &paying(9, 5)).unwrap_err(),
        Rejection::PoolFull
    );
    assert!(add(&mut core, &Wallet::numbered(4), &paying(9, 6)).is_ok());
    assert!(
        add(&mut core, &Wallet::numbered(5), &paying(0, 1))
            .unwrap()
            .pending
    );
    assert_eq!(core.size(), (1, 3));
}

#[test]
fn bytes_are_bounded() {
    let large = |nonce: u64, price_wei: u128| Draft {
        input: Bytes::from(vec![0; 100_000]),
        gas_limit: 1_100_000,
        ..paying(nonce, price_wei)
    };
    let mut core = core(|limits| limits.size_bytes_max = 450_000);
    for number in 1..=2 {
        add(&mut core, &Wallet::numbered(number), &large(0, 5)).unwrap();
    }
    assert_eq!(
        add(&mut core, &Wallet::numbered(3), &large(0, 5)).unwrap_err(),
        Rejection::PoolFull
    );
    assert!(add(&mut core, &Wallet::numbered(3), &large(0, 6)).is_ok());
    assert_eq!(core.size(), (2, 0));
}

#[test]
fn drops_what_was_not_included_in_its_lifetime() {
    let mut core = core(|limits| limits.lifetime_blocks = 3);
    let (old, young) = (Wallet::numbered(1), Wallet::numbered(2));
    add(&mut core, &old, &draft(4)).unwrap();
    block(&mut core, &[]);
    add(&mut core, &young, &draft(4)).unwrap();
    block(&mut core, &[]);
    assert_eq!(core.size(), (0, 2));
    block(&mut core, &[]);
    assert_eq!(core.size(), (0, 1));
    assert_eq!(
        core.recheck(&hash(&old, &draft(4))),
        Err(Rejection::NoLongerInPool)
    );
    block(&mut core, &[]);
    assert_eq!(core.size(), (0, 0));
}

#[test]
fn a_delegated_account_has_one_in_flight() {
    let (mut core, wallet) = (core(|_| {}), Wallet::numbered(1));
    let delegated = SenderAccount {
        has_code: true,
        ..RICH
    };
    assert_eq!(
        add_with(&mut core, &wallet, &draft(1), delegated).unwrap_err(),
        Rejection::DelegatedAccountGap
    );
    add_with(&mut core, &wallet, &draft(0), delegated).unwrap();
    assert_eq!(
        add_with(&mut core, &wallet, &draft(1), delegated).unwrap_err(),
        Rejection::DelegatedAccountLimit
    );
    let replacement = paying(0, 20 * GWEI);
    assert!(add_with(&mut core, &wallet, &replacement, delegated).is_ok());
}

#[test]
fn an_account_with_a_pooled_authorization_has_one_in_flight() {
    let (mut core, sponsor, owner) = (core(|_| {}), Wallet::numbered(1), Wallet::numbered(2));
    let delegate = Draft {
        gas_limit: 100_000,
        authorizations: vec![owner.authorize(Address::repeat_byte(0xde), 0)],
        ..Draft::default()
    };
    add(&mut core, &sponsor, &delegate).unwrap();
    assert_eq!(
        add(&mut core, &owner, &draft(1)).unwrap_err(),
        Rejection::DelegatedAccountGap
    );
    add(&mut core, &owner, &draft(0)).unwrap();
    assert_eq!(
        add(&mut core, &owner, &draft(1)).unwrap_err(),
        Rejection::DelegatedAccountLimit
    );
    // Included, the authorization no longer holds the owner back; its code does.
    block(
        &mut core,
        &[(sponsor.address(), SenderAccount { nonce: 1, ..RICH })],
    );
    assert!(add(&mut core, &owner, &draft(1)).is_ok());
}

#[test]
fn refuses_an_authorization_of_an_account_with_several_in_flight() {
    let (mut core, sponsor, owner) = (core(|_| {}), Wallet::numbered(1), Wallet::numbered(2));
    for nonce in 0..2 {
        add(&mut core, &owner, &draft(nonce)).unwrap();
    }
    let delegate = Draft {
        gas_limit: 100_000,
        authorizations: vec![owner.authorize(Address::repeat_byte(0xde), 0)],
        ..Draft::default()
    };
    assert_eq!(
        add(&mut core, &sponsor, &delegate).unwrap_err(),
        Rejection::AuthorityReserved
    );
}

#[test]
fn an_account_that_gets_code_keeps_only_its_next() {
    let (mut core, wallet) = (core(|_| {}), Wallet::numbered(1));
    for nonce in 0..4 {
        add(&mut core, &wallet, &draft(nonce)).unwrap();
    }
    let delegated = SenderAccount {
        nonce: 1,
        has_code: true,
        ..RICH
    };
    block(&mut core, &[(wallet.address(), delegated)]);
    assert_eq!(core.size(), (1, 0));
    assert!(core.get(&hash(&wallet, &draft(1))).is_some());
}

#[test]
fn a_block_removes_what_it_included_and_looks_at_touched_senders_only() {
    let (mut core, touched, other) = (core(|_| {}), Wallet::numbered(1), Wallet::numbered(2));
    for nonce in 0..3 {
        add(&mut core, &touched, &draft(nonce)).unwrap();
        add(&mut core, &other, &draft(nonce)).unwrap();
    }
    let account = SenderAccount { nonce: 2, ..RICH };
    let executable = block(&mut core, &[(touched.address(), account)]);
    assert!(executable.is_empty(), "nothing new became executable");
    assert_eq!(core.size(), (4, 0));
    assert_eq!(core.pending_nonce(touched.address()), Some(3));
}

#[test]
fn a_block_drops_what_its_sender_can_no_longer_pay() {
    let (mut core, wallet) = (core(|_| {}), Wallet::numbered(1));
    add(&mut core, &wallet, &draft(0)).unwrap();
    let dear = Draft {
        value: RICH.balance / U256::from(2),
        ..draft(1)
    };
    add(&mut core, &wallet, &dear).unwrap();
    add(&mut core, &wallet, &draft(2)).unwrap();
    let poorer = SenderAccount {
        balance: RICH.balance / U256::from(3),
        ..RICH
    };
    block(&mut core, &[(wallet.address(), poorer)]);
    assert_eq!(core.size(), (1, 1), "the one after the hole waits");
    assert_eq!(core.pending_nonce(wallet.address()), Some(1));
}

/// D18.
#[test]
fn a_dropped_transaction_can_be_sent_again() {
    let (mut core, wallet) = (core(|_| {}), Wallet::numbered(1));
    add(&mut core, &wallet, &draft(0)).unwrap();
    let broke = SenderAccount {
        balance: U256::ZERO,
        ..RICH
    };
    block(&mut core, &[(wallet.address(), broke)]);
    assert_eq!(core.size(), (0, 0));
    assert_eq!(core.pending_nonce(wallet.address()), None);
    assert!(add(&mut core, &wallet, &draft(0)).unwrap().pending);
}

/// A7.
#[test]
fn recheck_does_not_change_its_mind_over_empty_blocks() {
    let (mut core, wallet) = (core(|_| {}), Wallet::numbered(1));
    for nonce in [0, 1, 3] {
        add(&mut core, &wallet, &draft(nonce)).unwrap();
    }
    let verdicts = |core: &Core| -> Vec<_> {
        (0..5)
            .map(|nonce| core.recheck(&hash(&wallet, &draft(nonce))))
            .collect()
    };
    let first = verdicts(&core);
    assert_eq!(
        first,
        [
            Ok(()),
            Ok(()),
            Err(Rejection::NoLongerInPool),
            Err(Rejection::NonceGap {
                expected: 2,
                got: 3
            }),
            Err(Rejection::NoLongerInPool),
        ]
    );
    for _ in 0..20 {
        block(&mut core, &[]);
        assert_eq!(verdicts(&core), first);
    }
}

#[test]
fn best_is_by_tip_then_arrival_with_nonces_in_order() {
    let mut core = core(|_| {});
    let [first, second, third] = [1, 2, 3].map(Wallet::numbered);
    add(&mut core, &first, &paying(0, 5)).unwrap();
    add(&mut core, &first, &paying(1, 50)).unwrap();
    add(&mut core, &second, &paying(0, 7)).unwrap();
    add(&mut core, &third, &paying(0, 5)).unwrap();
    let order: Vec<(Address, u64)> = core
        .best(0)
        .map(|transaction| (transaction.sender(), nonces(&[transaction])[0]))
        .collect();
    assert_eq!(
        order,
        [
            (second.address(), 0),
            (first.address(), 0),
            (first.address(), 1),
            (third.address(), 0),
        ]
    );
}

#[test]
fn what_the_base_fee_outruns_waits_with_all_that_follows() {
    let (mut core, wallet) = (core(|_| {}), Wallet::numbered(1));
    for (nonce, price_wei) in [(0, 50), (1, 20), (2, 50)] {
        add(&mut core, &wallet, &paying(nonce, price_wei)).unwrap();
    }
    let at = |core: &Core, base_fee_wei| nonces(&core.best(base_fee_wei).collect::<Vec<_>>());
    assert_eq!(at(&core, 30), [0]);
    assert_eq!(core.size(), (3, 0), "they stay");
    assert_eq!(at(&core, 20), [0, 1, 2]);
}

#[test]
fn the_tip_that_counts_is_what_the_base_fee_leaves() {
    let mut core = core(|_| {});
    let (capped, open) = (Wallet::numbered(1), Wallet::numbered(2));
    let high_tip = Draft {
        fee_cap_wei: 110,
        tip_wei: 100,
        ..Draft::default()
    };
    let high_cap = Draft {
        fee_cap_wei: 500,
        tip_wei: 50,
        ..Draft::default()
    };
    add(&mut core, &capped, &high_tip).unwrap();
    add(&mut core, &open, &high_cap).unwrap();
    let first = |base_fee_wei| core.best(base_fee_wei).next().unwrap().sender();
    assert_eq!(first(0), capped.address());
    assert_eq!(first(100), open.address());
}
