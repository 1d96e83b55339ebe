//! From the set given to CometBFT towards the one wanted, in steps below one third of the power.
//!
//! A light client that trusts the old set follows a new one if more than a third of the old power signed it; and a
//! validator that joins and does not run must not stop the chain. So the sum of all changes of power in one block stays
//! below a third of the power before it. Removal for double signing is exempt, and uses up the block's share.

use cloister_genesis::{
    TOTAL_POWER_MAX, VALIDATOR_POWER_MIN, consensus_address,
    registry::{ActiveValidator, Status, Validator},
};
use std::collections::BTreeMap;

/// Moves `active` (sorted by key) by one step and says whether it is now the set wanted.
///
/// First those jailed go down, then all that is to grow grows, then the rest goes down. No step down leaves less power
/// than the least of one validator: from there every set can be reached, for a third of four is more than one.
pub(super) fn advance(
    active: &mut Vec<ActiveValidator>,
    validators: &[Validator],
    total_given: u64,
    removed_at_once: u64,
) -> bool {
    let targets: BTreeMap<[u8; 32], Target> = validators
        .iter()
        .map(|validator| (validator.public_key, Target::of(validator)))
        .collect();
    let mut step = Step {
        left: share(total_given, removed_at_once),
        total: active.iter().map(|validator| validator.power).sum(),
    };
    let mut set: BTreeMap<[u8; 32], ActiveValidator> = std::mem::take(active)
        .into_iter()
        .map(|validator| (validator.public_key, validator))
        .collect();

    for validator in set.values_mut() {
        if targets.get(&validator.public_key) == Some(&Target::Jailed) {
            step.down(&mut validator.power, 0);
        }
    }
    for (public_key, target) in &targets {
        let Target::Power(wanted) = *target else {
            continue;
        };
        let validator = set.entry(*public_key).or_insert_with(|| ActiveValidator {
            public_key: *public_key,
            consensus_address: consensus_address(public_key),
            power: 0,
            missed: 0,
        });
        step.up(&mut validator.power, wanted);
    }
    for validator in set.values_mut() {
        let wanted = match targets.get(&validator.public_key) {
            Some(Target::Power(wanted)) => *wanted,
            Some(Target::Jailed | Target::Out) | None => 0,
        };
        step.down(&mut validator.power, wanted);
    }

    let settled = set.values().all(|validator| {
        let wanted = match targets.get(&validator.public_key) {
            Some(Target::Power(wanted)) => *wanted,
            Some(Target::Jailed | Target::Out) | None => 0,
        };
        validator.power == wanted
    });
    active.extend(set.into_values().filter(|validator| validator.power > 0));
    settled
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Power(u64),
    Jailed,
    Out,
}

impl Target {
    const fn of(validator: &Validator) -> Self {
        match validator.status {
            Status::Active => Self::Power(validator.power),
            Status::Jailed => Self::Jailed,
            Status::Barred => Self::Out,
        }
    }
}

/// Most power that may change in this block.
const fn share(total_given: u64, removed_at_once: u64) -> u64 {
    // The largest number below a third. Removal for double signing can leave so little that there is none: then one.
    let below_third = total_given.saturating_sub(1) / 3;
    let share = if below_third == 0 { 1 } else { below_third };
    share.saturating_sub(removed_at_once)
}

struct Step {
    left: u64,
    total: u64,
}

impl Step {
    fn up(&mut self, power: &mut u64, wanted: u64) {
        let change = wanted
            .saturating_sub(*power)
            .min(self.left)
            .min(TOTAL_POWER_MAX.saturating_sub(self.total));
        *power = power.saturating_add(change);
        self.total = self.total.saturating_add(change);
        self.left = self.left.saturating_sub(change);
    }

    fn down(&mut self, power: &mut u64, wanted: u64) {
        let change = power
            .saturating_sub(wanted)
            .min(self.left)
            .min(self.total.saturating_sub(VALIDATOR_POWER_MIN));
        *power = power.saturating_sub(change);
        self.total = self.total.saturating_sub(change);
        self.left = self.left.saturating_sub(change);
    }
}
