mod contract;
mod downtime;
mod evidence;
mod model;
mod steps;

use super::*;
use crate::block::{Misbehaviour, Vote};
use cloister_genesis::{GenesisBuilder, GenesisValidator, registry::index_slot};
use std::{cell::Cell, sync::LazyLock};

/// Seed of validator number `n`'s consensus key.
fn signing_key(n: u8) -> ed25519_consensus::SigningKey {
    ed25519_consensus::SigningKey::from([n; 32])
}

fn public_key(n: u8) -> [u8; 32] {
    static KEYS: LazyLock<Vec<[u8; 32]>> = LazyLock::new(|| {
        (0..=u8::MAX)
            .map(|n| signing_key(n).verification_key().to_bytes())
            .collect()
    });
    KEYS[usize::from(n)]
}

fn consensus(n: u8) -> ConsensusAddress {
    consensus_address(&public_key(n)).0
}

fn genesis_validator(n: u8, power: u64) -> GenesisValidator {
    GenesisValidator {
        member: Address::repeat_byte(n),
        public_key: public_key(n),
        power,
        payout: Address::repeat_byte(n.wrapping_add(100)),
        name: format!("validator {n}"),
    }
}

/// The registry's storage alone, with a CometBFT that keeps its own set by the rules it enforces, and checks of all that
/// must hold in every block.
struct Network {
    slots: BTreeMap<U256, U256>,
    parameters: Parameters,
    height: u64,
    /// Sets of CometBFT by height: an update of block H is in force from H + 2.
    sets: BTreeMap<u64, BTreeMap<[u8; 32], u64>>,
}

impl Network {
    fn new(validators: impl IntoIterator<Item = (u8, u64)>) -> Self {
        let validators: Vec<GenesisValidator> = validators
            .into_iter()
            .map(|(n, power)| genesis_validator(n, power))
            .collect();
        let set: BTreeMap<[u8; 32], u64> = validators
            .iter()
            .map(|validator| (validator.public_key, validator.power))
            .collect();
        let genesis = GenesisBuilder::new(1)
            .parameters(|parameters| {
                parameters.downtime_window_blocks = 10;
                parameters.jail_blocks = 20;
            })
            .validators(validators)
            .build()
            .expect("sound");
        let slots = genesis.alloc[&VALIDATOR_REGISTRY_ADDRESS]
            .storage
            .iter()
            .flatten()
            .map(|(slot, value)| ((*slot).into(), (*value).into()))
            .collect();
        Self {
            slots,
            parameters: genesis.parameters,
            height: 0,
            sets: BTreeMap::from([(1, set.clone()), (2, set)]),
        }
    }

    fn read(&self) -> impl FnMut(U256) -> Result<U256, StateError> + '_ {
        |slot| Ok(self.slots.get(&slot).copied().unwrap_or_default())
    }

    fn wanted(&self) -> Vec<Validator> {
        validators(&mut self.read()).expect("in memory")
    }

    fn active(&self) -> Vec<ActiveValidator> {
        active_validators(&mut self.read()).expect("in memory")
    }

    fn power(&self, n: u8) -> u64 {
        let key = public_key(n);
        let found = self
            .active()
            .into_iter()
            .find(|validator| validator.public_key == key);
        found.map_or(0, |validator| validator.power)
    }

    fn status(&self, n: u8) -> Status {
        let key = public_key(n);
        let found = self
            .wanted()
            .into_iter()
            .find(|validator| validator.public_key == key);
        found.expect("a member").status
    }

    fn key_state(&self, n: u8) -> KeyState {
        let slot = key_slot(consensus_address(&public_key(n)));
        key_state(self.slots.get(&slot).copied().unwrap_or_default())
    }

    /// Writes the wanted set as the contract would.
    fn want(&mut self, change: impl FnOnce(&mut Vec<Validator>)) {
        let before = self.wanted();
        let mut after = before.clone();
        change(&mut after);
        for gone in &before {
            let address = consensus_address(&gone.public_key);
            let entry = self
                .slots
                .get(&key_slot(address))
                .copied()
                .unwrap_or_default();
            if key_state(entry) == KeyState::Held {
                let released = encode_key(key_payout(entry), KeyState::Released);
                self.slots.insert(key_slot(address), released);
            }
        }
        for index in 0..before.len() as u64 {
            for word in 0..3 {
                self.slots.remove(&validator_slot(index, word));
            }
        }
        for (index, validator) in (0_u64..).zip(&after) {
            for (word, value) in (0_u64..).zip(validator.encode()) {
                self.slots.insert(validator_slot(index, word), value);
            }
            self.slots
                .insert(index_slot(validator.member), U256::from(index + 1));
            let address = consensus_address(&validator.public_key);
            if validator.status != Status::Barred {
                let held = encode_key(validator.payout, KeyState::Held);
                self.slots.insert(key_slot(address), held);
            }
        }
        self.slots
            .insert(U256::from(SLOT_VALIDATORS), U256::from(after.len()));
        self.slots.insert(U256::from(SLOT_PENDING), U256::from(1));
    }

    fn add(&mut self, n: u8, power: u64) {
        let joiner = genesis_validator(n, power);
        self.want(|validators| {
            validators.push(Validator {
                public_key: joiner.public_key,
                member: joiner.member,
                power,
                status: Status::Active,
                payout: joiner.payout,
                jailed_until: 0,
            });
        });
    }

    fn remove(&mut self, n: u8) {
        let key = public_key(n);
        self.want(|validators| validators.retain(|validator| validator.public_key != key));
    }

    fn change(&mut self, n: u8, change: impl FnOnce(&mut Validator)) {
        let key = public_key(n);
        self.want(|validators| {
            let found = validators
                .iter_mut()
                .find(|validator| validator.public_key == key);
            change(found.expect("a member"));
        });
    }

    fn input(&self, absent: &[u8], signed_twice: &[u8]) -> BlockInput {
        let height = self.height + 1;
        let absent: Vec<[u8; 32]> = absent.iter().map(|n| public_key(*n)).collect();
        let last_commit = self.sets.get(&self.height).into_iter().flatten();
        BlockInput {
            height,
            time_ms: height * 1_000,
            proposer: ConsensusAddress::ZERO,
            transactions: Vec::new(),
            misbehaviour: signed_twice
                .iter()
                .map(|n| Misbehaviour {
                    duplicate_vote: true,
                    validator: consensus(*n),
                    height: self.height,
                })
                .collect(),
            last_commit: last_commit
                .map(|(key, power)| Vote {
                    validator: consensus_address(key).0,
                    power: *power,
                    signed: !absent.contains(key),
                })
                .collect(),
        }
    }

    /// Makes a block, checks what must hold in every block, and plays CometBFT.
    fn block(&mut self, absent: &[u8], signed_twice: &[u8]) -> EndBlock {
        let input = self.input(absent, signed_twice);
        let end = evaluate(&self.parameters, &input, &mut self.read()).expect("in memory");
        self.height += 1;
        for (slot, value) in &end.writes {
            assert_ne!(self.slots.get(slot).copied().unwrap_or_default(), *value);
            if value.is_zero() {
                self.slots.remove(slot);
            } else {
                self.slots.insert(*slot, *value);
            }
        }
        let before = self.sets[&(self.height + 1)].clone();
        let after = apply_as_cometbft(&before, &end.updates);
        self.check_step(&before, &after, &end, signed_twice);
        let given: BTreeMap<[u8; 32], u64> = self
            .active()
            .iter()
            .map(|validator| (validator.public_key, validator.power))
            .collect();
        assert_eq!(
            given, after,
            "the registry and CometBFT disagree about the set"
        );
        let keys: Vec<_> = self
            .active()
            .iter()
            .map(|validator| validator.public_key)
            .collect();
        assert!(keys.is_sorted());
        self.sets.insert(self.height + 2, after);
        end
    }

    fn check_step(
        &self,
        before: &BTreeMap<[u8; 32], u64>,
        after: &BTreeMap<[u8; 32], u64>,
        end: &EndBlock,
        signed_twice: &[u8],
    ) {
        let total: u64 = before.values().sum();
        let mut changed = 0;
        let mut at_once = false;
        for update in &end.updates {
            let old = before.get(&update.public_key).copied().unwrap_or(0);
            let offender = signed_twice
                .iter()
                .any(|n| public_key(*n) == update.public_key);
            if offender && update.power == 0 {
                at_once = true;
            } else {
                changed += old.abs_diff(update.power);
            }
        }
        let below_third = changed * 3 < total;
        let no_such_step = total < 4 && changed <= 1;
        assert!(
            below_third || no_such_step,
            "changed {changed} of {total} at {}, at once: {at_once}, {after:?}",
            self.height
        );
    }

    /// Blocks in which all sign until the set is the one wanted; gives their number.
    fn settle(&mut self) -> u64 {
        let mut blocks = 0;
        while self.slots.contains_key(&U256::from(SLOT_PENDING)) {
            self.block(&[], &[]);
            blocks += 1;
            assert!(
                blocks < 2_000,
                "never settles: {:?} {:?}",
                self.wanted(),
                self.active()
            );
        }
        let wanted: BTreeMap<[u8; 32], u64> = self
            .wanted()
            .iter()
            .filter(|validator| validator.status == Status::Active)
            .map(|validator| (validator.public_key, validator.power))
            .collect();
        assert_eq!(self.sets[&(self.height + 2)], wanted);
        blocks
    }
}

/// The rules of CometBFT's validator updates; it panics where CometBFT would stop.
fn apply_as_cometbft(
    set: &BTreeMap<[u8; 32], u64>,
    updates: &[ValidatorUpdate],
) -> BTreeMap<[u8; 32], u64> {
    let mut after = set.clone();
    let mut seen = BTreeSet::new();
    assert!(updates.is_sorted_by_key(|update| update.public_key));
    for update in updates {
        assert!(seen.insert(update.public_key), "a key twice");
        if update.power == 0 {
            assert!(
                after.remove(&update.public_key).is_some(),
                "unknown key removed"
            );
        } else {
            after.insert(update.public_key, update.power);
        }
    }
    assert!(!after.is_empty(), "empty set");
    assert!(after.values().sum::<u64>() <= cloister_genesis::TOTAL_POWER_MAX);
    after
}
