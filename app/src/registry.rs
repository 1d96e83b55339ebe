//! Native reads of the `ValidatorRegistry` system contract.

use crate::{
    block::ConsensusAddress,
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
