//! Native reads of the `ValidatorRegistry` system contract.

use crate::{
    block::{BlockInput, ConsensusAddress, ValidatorUpdate},
    execution::overlay::Overlay,
    state::{StateError, StateRead},
};
use alloy_primitives::Address;
use cloister_genesis::Parameters;

/// Payout address the registry holds for a proposer; zero if none.
pub fn payout_address(
    state: &dyn StateRead,
    proposer: ConsensusAddress,
) -> Result<Address, StateError> {
    let _ = (state, proposer);
    Ok(Address::ZERO)
}

/// What the registry makes of a block after its transactions: its own writes go to `overlay`, which holds the state with
/// all of them; the answer is the change of the validator set.
pub fn end_block(
    overlay: &mut Overlay<'_>,
    parameters: &Parameters,
    input: &BlockInput,
) -> Result<Vec<ValidatorUpdate>, StateError> {
    let _ = (overlay, parameters, input);
    Ok(Vec::new())
}
