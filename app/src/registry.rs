//! The native side of the `ValidatorRegistry` system contract: payout addresses, and the end of every block.
//!
//! The contract says which set the members want. [`evaluate`] reads it after the block's transactions and
//! 1. removes who signed twice, at once, and bars the key for ever (but never the last validator);
//! 2. counts who missed the last commit and jails who misses more than half of the window;
//! 3. moves the set given to CometBFT towards the one wanted, by less than a third of its power.
//!
//! All it knows is in the contract's storage (layout: [`cloister_genesis::registry`]), so it is in the state root. It
//! reads through a closure and returns its writes. A block in which all signed, and nobody has a miss in the window,
//! reads one slot per validator and writes none.

mod downtime;
mod steps;

use crate::{
    block::{BlockInput, ConsensusAddress, ValidatorUpdate},
    execution::overlay::Overlay,
    state::{HashedAddress, HashedSlot, StateError, StateRead},
};
use alloy_primitives::{Address, U256};
use cloister_genesis::{
    Parameters, consensus_address,
    contracts::VALIDATOR_REGISTRY_ADDRESS,
    registry::{
        ActiveValidator, KeyState, SLOT_ACTIVE, SLOT_PENDING, SLOT_VALIDATORS, Status, Validator,
        active_slot, encode_key, key_payout, key_slot, key_state, validator_slot,
    },
};
use std::collections::{BTreeMap, BTreeSet};

/// Reads a slot of the registry as the block has it now.
pub type ReadSlot<'a> = dyn FnMut(U256) -> Result<U256, StateError> + 'a;

/// What the end of a block does to the validators.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndBlock {
    /// For CometBFT: sorted by key, no key twice, never leaving the set empty.
    pub updates: Vec<ValidatorUpdate>,
    /// Slots of the registry to write.
    pub writes: BTreeMap<U256, U256>,
    /// Who signed twice and stays, for nobody else would be left.
    pub unpunished: Vec<ConsensusAddress>,
}

/// Payout address the registry holds for a proposer; zero if none.
pub fn payout_address(
    state: &dyn StateRead,
    proposer: ConsensusAddress,
) -> Result<Address, StateError> {
    let slot = key_slot(Address::from(proposer));
    let entry = state.storage(
        HashedAddress::from(VALIDATOR_REGISTRY_ADDRESS),
        HashedSlot::from(slot),
    )?;
    Ok(key_payout(entry))
}

/// The set given to CometBFT.
pub fn active_validators(read: &mut ReadSlot<'_>) -> Result<Vec<ActiveValidator>, StateError> {
    Slots::new(read).active()
}

/// The validators that the members want, with their standing.
pub fn validators(read: &mut ReadSlot<'_>) -> Result<Vec<Validator>, StateError> {
    Slots::new(read).validators()
}

/// Ends a block: its writes go to `overlay`, which holds the state with all transactions of the block.
pub fn end_block(
    overlay: &mut Overlay<'_>,
    parameters: &Parameters,
    input: &BlockInput,
) -> Result<Vec<ValidatorUpdate>, StateError> {
    let end = evaluate(parameters, input, &mut |slot| {
        overlay.storage(VALIDATOR_REGISTRY_ADDRESS, slot)
    })?;
    overlay.set_storage(VALIDATOR_REGISTRY_ADDRESS, end.writes.into_iter())?;
    for validator in end.unpunished {
        tracing::error!(
            height = input.height,
            "the last validator signed twice and stays: {validator}"
        );
    }
    Ok(end.updates)
}

/// What the end of a block does. `read` must see the writes of its transactions.
pub fn evaluate(
    parameters: &Parameters,
    input: &BlockInput,
    read: &mut ReadSlot<'_>,
) -> Result<EndBlock, StateError> {
    let mut slots = Slots::new(read);
    let given = slots.active()?;
    let mut active = given.clone();
    let absent = downtime::count(
        &mut slots,
        &mut active,
        input,
        parameters.downtime_window_blocks,
    )?;
    let offenders: BTreeSet<Address> = input
        .misbehaviour
        .iter()
        .map(|evidence| Address::from(evidence.validator))
        .collect();
    let pending = !slots.get(U256::from(SLOT_PENDING))?.is_zero();
    if absent.is_empty() && offenders.is_empty() && !pending {
        return Ok(EndBlock {
            writes: slots.into_writes(),
            ..EndBlock::default()
        });
    }

    let mut validators = slots.validators()?;
    let wanted_before = validators.clone();
    let mut unpunished = Vec::new();
    let mut removed_at_once = 0_u64;
    for offender in offenders {
        match bar(&mut slots, &mut validators, &mut active, offender)? {
            Punishment::Removed { power } => {
                removed_at_once = removed_at_once.saturating_add(power);
            }
            Punishment::None => {}
            Punishment::LastValidator => unpunished.push(offender.0),
        }
    }
    for public_key in absent {
        downtime::jail(
            &mut validators,
            public_key,
            input.height,
            parameters.jail_blocks,
        );
    }
    let total_given = given.iter().map(|validator| validator.power).sum();
    let settled = steps::advance(&mut active, &validators, total_given, removed_at_once);

    let updates = updates(&given, &active);
    for (index, (before, after)) in (0_u64..).zip(wanted_before.iter().zip(&validators)) {
        if before != after {
            slots.put_validator(index, after)?;
        }
    }
    if !updates.is_empty() {
        let staying: BTreeSet<Address> = active
            .iter()
            .map(|validator| validator.consensus_address)
            .collect();
        for gone in given
            .iter()
            .filter(|old| !staying.contains(&old.consensus_address))
        {
            downtime::forget(
                &mut slots,
                gone.consensus_address,
                parameters.downtime_window_blocks,
            )?;
        }
        slots.put_active(given.len(), &active)?;
    }
    slots.set(U256::from(SLOT_PENDING), U256::from(u8::from(!settled)))?;
    Ok(EndBlock {
        updates,
        writes: slots.into_writes(),
        unpunished,
    })
}

enum Punishment {
    /// The key is barred; it was in the set with this power.
    Removed { power: u64 },
    /// Nothing to remove: barred before, or barred now while out of the set.
    None,
    /// It stays.
    LastValidator,
}

/// Bars a key and takes its validator out of the set, unless no other wanted validator is in the set.
fn bar(
    slots: &mut Slots<'_, '_>,
    validators: &mut [Validator],
    active: &mut Vec<ActiveValidator>,
    offender: Address,
) -> Result<Punishment, StateError> {
    let entry = slots.get(key_slot(offender))?;
    let owner = validators
        .iter()
        .position(|validator| consensus_address(&validator.public_key) == offender);
    let place = active
        .iter()
        .position(|validator| validator.consensus_address == offender);
    // A barred key may still be in the set: see the last step. Then later evidence meets it as the first did.
    if place.is_none() && key_state(entry) == KeyState::Barred {
        return Ok(Punishment::None);
    }
    let another_stays = active.iter().any(|other| {
        other.consensus_address != offender
            && validators.iter().any(|validator| {
                validator.public_key == other.public_key && validator.status == Status::Active
            })
    });
    let wanted = owner.is_some_and(|index| validators[index].status == Status::Active);
    if wanted && !another_stays {
        return Ok(Punishment::LastValidator);
    }
    slots.set(
        key_slot(offender),
        encode_key(key_payout(entry), KeyState::Barred),
    )?;
    if let Some(index) = owner {
        validators[index].status = Status::Barred;
    }
    match place {
        // A key on its way out while its successor is not in yet goes on by steps: the set must not be empty.
        Some(_) if !another_stays => Ok(Punishment::LastValidator),
        Some(place) => Ok(Punishment::Removed {
            power: active.remove(place).power,
        }),
        None => Ok(Punishment::None),
    }
}

/// What CometBFT must be told, sorted by key: both sets are.
fn updates(given: &[ActiveValidator], active: &[ActiveValidator]) -> Vec<ValidatorUpdate> {
    let mut powers: BTreeMap<[u8; 32], (u64, u64)> = BTreeMap::new();
    for validator in given {
        powers.entry(validator.public_key).or_default().0 = validator.power;
    }
    for validator in active {
        powers.entry(validator.public_key).or_default().1 = validator.power;
    }
    powers
        .into_iter()
        .filter(|(_, (before, after))| before != after)
        .map(|(public_key, (_, power))| ValidatorUpdate { public_key, power })
        .collect()
}

/// Slots of the registry, each read once, and what is to be written.
struct Slots<'r, 'a> {
    read: &'r mut ReadSlot<'a>,
    known: BTreeMap<U256, Slot>,
}

struct Slot {
    before: U256,
    now: U256,
}

impl<'r, 'a> Slots<'r, 'a> {
    fn new(read: &'r mut ReadSlot<'a>) -> Self {
        Self {
            read,
            known: BTreeMap::new(),
        }
    }

    fn slot(&mut self, slot: U256) -> Result<&mut Slot, StateError> {
        use std::collections::btree_map::Entry;
        match self.known.entry(slot) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let value = (self.read)(slot)?;
                Ok(entry.insert(Slot {
                    before: value,
                    now: value,
                }))
            }
        }
    }

    fn get(&mut self, slot: U256) -> Result<U256, StateError> {
        Ok(self.slot(slot)?.now)
    }

    fn set(&mut self, slot: U256, value: U256) -> Result<(), StateError> {
        self.slot(slot)?.now = value;
        Ok(())
    }

    fn into_writes(self) -> BTreeMap<U256, U256> {
        self.known
            .into_iter()
            .filter(|(_, slot)| slot.before != slot.now)
            .map(|(key, slot)| (key, slot.now))
            .collect()
    }

    fn length(&mut self, slot: u64) -> Result<u64, StateError> {
        // Only our own code writes the lengths, and bounds them; another value could only fail more slowly.
        Ok(self.get(U256::from(slot))?.saturating_to())
    }

    fn active(&mut self) -> Result<Vec<ActiveValidator>, StateError> {
        (0..self.length(SLOT_ACTIVE)?)
            .map(|index| {
                Ok(ActiveValidator::decode([
                    self.get(active_slot(index, 0))?,
                    self.get(active_slot(index, 1))?,
                ]))
            })
            .collect()
    }

    fn validators(&mut self) -> Result<Vec<Validator>, StateError> {
        (0..self.length(SLOT_VALIDATORS)?)
            .map(|index| {
                Ok(Validator::decode([
                    self.get(validator_slot(index, 0))?,
                    self.get(validator_slot(index, 1))?,
                    self.get(validator_slot(index, 2))?,
                ]))
            })
            .collect()
    }

    fn put_validator(&mut self, index: u64, validator: &Validator) -> Result<(), StateError> {
        for (word, value) in (0_u64..).zip(validator.encode()) {
            self.set(validator_slot(index, word), value)?;
        }
        Ok(())
    }

    fn put_active(
        &mut self,
        length_before: usize,
        active: &[ActiveValidator],
    ) -> Result<(), StateError> {
        self.set(U256::from(SLOT_ACTIVE), U256::from(active.len()))?;
        let entries = active.iter().map(ActiveValidator::encode);
        let cleared =
            std::iter::repeat_n([U256::ZERO; 2], length_before.saturating_sub(active.len()));
        for (index, words) in (0_u64..).zip(entries.chain(cleared)) {
            for (word, value) in (0_u64..).zip(words) {
                self.set(active_slot(index, word), value)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
