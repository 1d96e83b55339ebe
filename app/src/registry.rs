//! Native reads of the `ValidatorRegistry` system contract.

use crate::{
    block::{BlockInput, ConsensusAddress, ValidatorUpdate},
    state::{StateError, StateRead},
};
use alloy_primitives::Address;

/// Payout address the registry holds for a proposer; zero if none.
pub fn payout_address(
    state: &dyn StateRead,
    proposer: ConsensusAddress,
) -> Result<Address, StateError> {
    let _ = (state, proposer);
    Ok(Address::ZERO)
}

/// What the registry makes of a block after its transactions: changes of the validator set.
pub fn end_block(
    state: &dyn StateRead,
    input: &BlockInput,
) -> Result<Vec<ValidatorUpdate>, StateError> {
    let _ = (state, input);
    Ok(Vec::new())
}
