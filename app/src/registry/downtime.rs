//! Downtime: a ring of bits per validator, one bit for each of the last `downtime_window_blocks` blocks, set if the
//! validator's signature was missing from the last commit that the block carries.

use super::Slots;
use crate::{block::BlockInput, state::StateError};
use alloy_primitives::{Address, U256};
use cloister_genesis::registry::{
    ActiveValidator, Status, Validator, active_slot, missed_blocks_slot,
};
use std::collections::BTreeMap;

/// Enters the block's last commit into the rings. Gives the keys that missed this block and more than half of the window.
///
/// A validator that signs and has no miss in the window costs nothing; one that leaves the set is forgotten, so a ring
/// holds no bit from an earlier stay.
pub(super) fn count(
    slots: &mut Slots<'_, '_>,
    active: &mut [ActiveValidator],
    input: &BlockInput,
    window_blocks: u64,
) -> Result<Vec<[u8; 32]>, StateError> {
    let signed: BTreeMap<Address, bool> = input
        .last_commit
        .iter()
        .map(|vote| (Address::from(vote.validator), vote.signed))
        .collect();
    let bit_index = input.height % window_blocks;
    let (word_index, bit) = (bit_index / 256, U256::from(1) << (bit_index % 256));
    let mut absent = Vec::new();
    for (index, validator) in (0_u64..).zip(active) {
        // Not in the commit: it joined too lately to be asked. A vote of one that has left counts no more.
        let Some(signed) = signed.get(&validator.consensus_address) else {
            continue;
        };
        if *signed && validator.missed == 0 {
            continue;
        }
        let slot = missed_blocks_slot(validator.consensus_address, word_index);
        let word = slots.get(slot)?;
        let missed_before = !(word & bit).is_zero();
        match (missed_before, *signed) {
            (true, true) => {
                slots.set(slot, word & !bit)?;
                validator.missed = validator.missed.saturating_sub(1);
            }
            (false, false) => {
                slots.set(slot, word | bit)?;
                validator.missed = validator.missed.saturating_add(1);
            }
            (true, false) | (false, true) => {}
        }
        slots.set(active_slot(index, 1), validator.encode_second())?;
        if !signed && u64::from(validator.missed).saturating_mul(2) > window_blocks {
            absent.push(validator.public_key);
        }
    }
    Ok(absent)
}

/// Jails a validator, unless those left would hold less than half of the power (of all that are not barred).
pub(super) fn jail(
    validators: &mut [Validator],
    public_key: [u8; 32],
    height: u64,
    jail_blocks: u64,
) {
    let power_of = |keep: &dyn Fn(&Validator) -> bool| -> u128 {
        validators
            .iter()
            .filter(|validator| keep(validator))
            .map(|validator| u128::from(validator.power))
            .sum()
    };
    let all = power_of(&|validator| validator.status != Status::Barred);
    let left = power_of(&|validator| {
        validator.status == Status::Active && validator.public_key != public_key
    });
    if left.saturating_mul(2) < all {
        return;
    }
    let found = validators
        .iter_mut()
        .find(|validator| validator.public_key == public_key && validator.status == Status::Active);
    if let Some(validator) = found {
        validator.status = Status::Jailed;
        validator.jailed_until = height.saturating_add(jail_blocks);
    }
}

/// Clears the ring of a validator that leaves the set.
pub(super) fn forget(
    slots: &mut Slots<'_, '_>,
    consensus_address: Address,
    window_blocks: u64,
) -> Result<(), StateError> {
    for word_index in 0..window_blocks.div_ceil(256) {
        slots.set(
            missed_blocks_slot(consensus_address, word_index),
            U256::ZERO,
        )?;
    }
    Ok(())
}
