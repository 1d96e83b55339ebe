//! The pool against a model that keeps a plain list and recomputes everything from it.

use super::*;
use proptest::{collection::vec, prelude::*};
use std::sync::{LazyLock, Mutex};

const SENDERS: u64 = 3;
const NONCES: u64 = 9;
const PENDING_PER_SENDER: usize = 4;
const QUEUED_PER_SENDER: usize = 2;

#[derive(Debug, Clone)]
enum Step {
    Add {
        sender: u64,
        nonce: u64,
        price_wei: u128,
    },
    /// A block after which the sender's nonce is higher by so much.
    Include { sender: u64, count: u64 },
    /// A block after which the sender can pay this price for one transaction, and no more.
    Drain { sender: u64, price_wei: u128 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..SENDERS, 0..NONCES, 1..6u128)
            .prop_map(|(sender, nonce, price_wei)| Step::Add { sender, nonce, price_wei }),
        1 => (0..SENDERS, 1..4u64).prop_map(|(sender, count)| Step::Include { sender, count }),
        1 => (0..SENDERS, 0..6u128).prop_map(|(sender, price_wei)| Step::Drain { sender, price_wei }),
    ]
}

/// Signing is what costs here: each transaction is signed once.
fn entry(sender: u64, nonce: u64, price_wei: u128) -> Entry {
    type Signed = BTreeMap<(u64, u64, u128), Arc<Transaction>>;
    static SIGNED: LazyLock<Mutex<Signed>> = LazyLock::new(Mutex::default);
    let mut signed = SIGNED.lock().unwrap();
    let transaction = signed
        .entry((sender, nonce, price_wei))
        .or_insert_with(|| Wallet::numbered(sender).sign(&paying(nonce, price_wei)));
    Entry::new(Arc::clone(transaction))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kept {
    sender: u64,
    nonce: u64,
    price_wei: u128,
    arrival: u64,
}

#[derive(Debug, Default)]
struct Model {
    kept: Vec<Kept>,
    nonces: [u64; SENDERS as usize],
    arrivals: u64,
}

impl Model {
    fn of(&self, sender: u64) -> Vec<Kept> {
        let mut list: Vec<Kept> = self
            .kept
            .iter()
            .copied()
            .filter(|kept| kept.sender == sender)
            .collect();
        list.sort_by_key(|kept| kept.nonce);
        list
    }

    fn pending(&self, sender: u64) -> Vec<Kept> {
        let first = self.nonces[sender as usize];
        self.of(sender)
            .into_iter()
            .zip(first..)
            .take_while(|(kept, expected)| kept.nonce == *expected)
            .map(|(kept, _)| kept)
            .take(PENDING_PER_SENDER)
            .collect()
    }

    fn queued(&self, sender: u64) -> Vec<Kept> {
        let pending = self.pending(sender).len();
        self.of(sender).split_off(pending)
    }

    fn add(&mut self, sender: u64, nonce: u64, price_wei: u128) -> bool {
        let same = |kept: &Kept| kept.sender == sender && kept.nonce == nonce;
        if nonce < self.nonces[sender as usize] {
            return false;
        }
        if let Some(old) = self.kept.iter().find(|kept| same(kept))
            && (price_wei <= old.price_wei || price_wei < old.price_wei * 110 / 100)
        {
            return false;
        }
        let before = self.kept.clone();
        self.kept.retain(|kept| !same(kept));
        let new = Kept {
            sender,
            nonce,
            price_wei,
            arrival: self.arrivals,
        };
        self.kept.push(new);
        self.trim(sender);
        if !self.kept.contains(&new) {
            self.kept = before;
            return false;
        }
        self.arrivals += 1;
        true
    }

    fn trim(&mut self, sender: u64) {
        while self.queued(sender).len() > QUEUED_PER_SENDER {
            let last = *self.of(sender).last().unwrap();
            self.kept.retain(|kept| *kept != last);
        }
    }

    fn best(&self) -> Vec<(u64, u64)> {
        let mut rest: Vec<Kept> = (0..SENDERS)
            .flat_map(|sender| self.pending(sender))
            .collect();
        let mut order = Vec::new();
        while !rest.is_empty() {
            let heads = rest.iter().filter(|kept| {
                !rest
                    .iter()
                    .any(|other| other.sender == kept.sender && other.nonce < kept.nonce)
            });
            let best = *heads
                .max_by_key(|kept| (kept.price_wei, Reverse(kept.arrival)))
                .unwrap();
            order.push((best.sender, best.nonce));
            rest.retain(|kept| *kept != best);
        }
        order
    }
}

fn sender_number(transaction: &Transaction) -> u64 {
    (0..SENDERS)
        .find(|number| Wallet::numbered(*number).address() == transaction.sender())
        .unwrap()
}

fn compare(core: &Core, model: &Model) {
    core.assert_consistent();
    for sender in 0..SENDERS {
        let content = core.of_sender(Wallet::numbered(sender).address());
        let ours: Vec<(u64, bool)> = content
            .iter()
            .map(|(transaction, pending)| (nonces(&[Arc::clone(transaction)])[0], *pending))
            .collect();
        let pending = model
            .pending(sender)
            .into_iter()
            .map(|kept| (kept.nonce, true));
        let queued = model
            .queued(sender)
            .into_iter()
            .map(|kept| (kept.nonce, false));
        assert_eq!(ours, pending.chain(queued).collect::<Vec<_>>());
    }
    let order: Vec<(u64, u64)> = core
        .best(0)
        .map(|transaction| (sender_number(&transaction), nonces(&[transaction])[0]))
        .collect();
    assert_eq!(order, model.best());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn agrees_with_the_model(steps in vec(step(), 1..60)) {
        let mut core = core(|limits| {
            limits.pending_per_sender = PENDING_PER_SENDER;
            limits.queued_per_sender = QUEUED_PER_SENDER;
        });
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Add { sender, nonce, price_wei } => {
                    let account = SenderAccount { nonce: model.nonces[sender as usize], ..RICH };
                    let ours = core.add(entry(sender, nonce, price_wei), account).is_ok();
                    prop_assert_eq!(ours, model.add(sender, nonce, price_wei));
                }
                Step::Include { sender, count } => {
                    let nonce = model.nonces[sender as usize] + count;
                    model.nonces[sender as usize] = nonce;
                    model.kept.retain(|kept| kept.sender != sender || kept.nonce >= nonce);
                    let account = SenderAccount { nonce, ..RICH };
                    block(&mut core, &[(Wallet::numbered(sender).address(), account)]);
                }
                Step::Drain { sender, price_wei } => {
                    model.kept.retain(|kept| kept.sender != sender || kept.price_wei <= price_wei);
                    model.trim(sender);
                    let nonce = model.nonces[sender as usize];
                    let address = Wallet::numbered(sender).address();
                    let balance = U256::from(21_000 * price_wei + 1);
                    block(&mut core, &[(address, SenderAccount { nonce, balance, ..RICH })]);
                    // Refilled, so that the next admission meets no shortage the model does not know.
                    block(&mut core, &[(address, SenderAccount { nonce, ..RICH })]);
                }
            }
            compare(&core, &model);
        }
    }

    #[test]
    fn stays_within_its_caps_and_consistent(steps in vec(step(), 1..120)) {
        let mut core = core(|limits| {
            limits.pending_per_sender = PENDING_PER_SENDER;
            limits.queued_per_sender = QUEUED_PER_SENDER;
            limits.transaction_count_max = 6;
            limits.queued_count_max = 3;
            limits.lifetime_blocks = 9;
        });
        let mut included = [0; SENDERS as usize];
        for step in steps {
            match step {
                Step::Add { sender, nonce, price_wei } => {
                    let account = SenderAccount { nonce: included[sender as usize], ..RICH };
                    let _ = core.add(entry(sender, nonce, price_wei), account);
                }
                Step::Include { sender, count } => {
                    included[sender as usize] += count;
                    let account = SenderAccount { nonce: included[sender as usize], ..RICH };
                    block(&mut core, &[(Wallet::numbered(sender).address(), account)]);
                }
                Step::Drain { sender, price_wei } => {
                    let nonce = included[sender as usize];
                    let balance = U256::from(21_000 * price_wei + 1);
                    let account = SenderAccount { nonce, balance, ..RICH };
                    block(&mut core, &[(Wallet::numbered(sender).address(), account)]);
                }
            }
            core.assert_consistent();
        }
    }
}
