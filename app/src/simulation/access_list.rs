//! The access list with which a call would be cheapest to warm: what it touches, found by running it until the list
//! stays the same, for a list can change what a contract does.

use super::{CallRequest, Ending, Guard, Machine, Scene, SimulationError, Watch, watch::Touched};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::Address;
use std::collections::BTreeSet;

/// Runs after which a list that keeps changing is returned as it is.
const ROUNDS_MAX: u32 = 16;

/// An access list, and what the call does with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessListOutcome {
    /// In order of address and slot.
    pub access_list: AccessList,
    /// Gas used with the list.
    pub gas_used: u64,
    /// How the call ended.
    pub ending: Ending,
}

/// Finds the access list of a call.
pub fn create_access_list(
    scene: &Scene<'_>,
    request: &CallRequest,
) -> Result<AccessListOutcome, SimulationError> {
    let guard = Guard::new(scene);
    let mut machine = Machine::new(
        scene,
        &guard,
        request.fees,
        Watch::noting(scene.limits.stop),
    )?;
    let gas_limit = request
        .gas_limit
        .unwrap_or(scene.limits.gas_max)
        .min(scene.limits.gas_max);
    let warm = warm_anyway(&mut machine, request)?;
    let mut list = touched_by(request.access_list.as_ref());
    let mut request = request.clone();
    let mut round: u32 = 0;
    loop {
        request.access_list = Some(to_access_list(&list));
        let run = machine.run(&request, gas_limit)?;
        let mut touched = machine.evm.inspector().take_touched();
        // What is warm anyway is listed for its slots alone.
        touched.retain(|address, slots| {
            !slots.is_empty() || !(warm.contains(address) || machine.evm.is_precompile(address))
        });
        round = round.saturating_add(1);
        if touched == list || round == ROUNDS_MAX {
            let access_list = to_access_list(&list);
            return Ok(AccessListOutcome {
                access_list,
                gas_used: run.gas_used,
                ending: run.ending,
            });
        }
        list = touched;
    }
}

/// Sender, callee (or the contract to be created) and authorities.
fn warm_anyway(
    machine: &mut Machine<'_>,
    request: &CallRequest,
) -> Result<BTreeSet<Address>, SimulationError> {
    let callee = match request.to {
        Some(to) => to,
        None => {
            let nonce = machine
                .evm
                .overlay()
                .account(request.from)?
                .unwrap_or_default()
                .nonce;
            request.from.create(nonce)
        }
    };
    let authorities = request
        .authorization_list
        .iter()
        .filter_map(|signed| signed.recover_authority().ok());
    Ok(authorities.chain([request.from, callee]).collect())
}

fn touched_by(list: Option<&AccessList>) -> Touched {
    let mut touched = Touched::new();
    for item in list.map(|list| &list.0).into_iter().flatten() {
        touched
            .entry(item.address)
            .or_default()
            .extend(&item.storage_keys);
    }
    touched
}

fn to_access_list(touched: &Touched) -> AccessList {
    AccessList(
        touched
            .iter()
            .map(|(address, slots)| AccessListItem {
                address: *address,
                storage_keys: slots.iter().copied().collect(),
            })
            .collect(),
    )
}
