//! The least gas with which a transaction succeeds, found by running it: gas used after refunds is not enough for one
//! that clears storage, nor for one whose inner calls get 63/64 of what is left.

use super::{CallRequest, Ending, Guard, Machine, Scene, Simulated, SimulationError, Watch};
use crate::{evm::TRANSACTION_GAS_LIMIT_MAX, rejection::Rejection};
use alloy_primitives::U256;

/// Gas of a transfer to an account without code.
const TRANSFER_GAS: u64 = 21_000;
/// Gas given along with coins.
const CALL_STIPEND: u64 = 2_300;

/// What an estimate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Estimate {
    /// A gas limit with which it succeeds, at most 1.5 % above the least, never above 2^24.
    Gas(u64),
    /// It fails for another reason than gas.
    Fails(Ending),
    /// It does not succeed with the most gas that is allowed.
    AllowanceExceeded {
        /// That much.
        allowance: u64,
    },
}

/// Searches the least gas limit with which the call succeeds.
pub fn estimate_gas(scene: &Scene<'_>, request: &CallRequest) -> Result<Estimate, SimulationError> {
    let guard = Guard::new(scene);
    let mut machine = Machine::new(scene, &guard, request.fees, Watch::new(scene.limits.stop))?;
    let mut high = match request.gas_limit {
        Some(gas) if gas >= TRANSFER_GAS => gas,
        _ => machine.block.gas_limit,
    }
    .min(scene.limits.gas_max)
    .min(TRANSACTION_GAS_LIMIT_MAX);
    if let Some(affordable) = affordable_gas(&mut machine, request)? {
        high = high.min(affordable);
    }

    // Most estimates are for plain transfers. Running it also catches those to a precompile, which need more.
    if is_plain_transfer(&mut machine, request)?
        && let Attempt::Ran(run) = attempt(&mut machine, request, TRANSFER_GAS.min(high))?
        && run.ending.is_success()
    {
        return Ok(Estimate::Gas(TRANSFER_GAS));
    }

    let run = match attempt(&mut machine, request, high)? {
        Attempt::TooLittleGas => return Ok(Estimate::AllowanceExceeded { allowance: high }),
        Attempt::Ran(run) => run,
    };
    match run.ending {
        Ending::Success { .. } => {}
        Ending::Halt(crate::evm::HaltReason::OutOfGas(_)) => {
            return Ok(Estimate::AllowanceExceeded { allowance: high });
        }
        ending @ (Ending::Revert { .. } | Ending::Halt(_)) => return Ok(Estimate::Fails(ending)),
    }
    search(&mut machine, request, &run, high).map(Estimate::Gas)
}

/// Bisects between what was used, which may not be enough, and `high`, which is.
fn search(
    machine: &mut Machine<'_>,
    request: &CallRequest,
    run: &Simulated,
    mut high: u64,
) -> Result<u64, SimulationError> {
    let mut low = run.gas_used.saturating_sub(1);
    let mut succeeds = |gas: u64| -> Result<bool, SimulationError> {
        Ok(match attempt(machine, request, gas)? {
            Attempt::TooLittleGas => false,
            Attempt::Ran(run) => run.ending.is_success(),
        })
    };
    // One nested call needs 64/63 of what it used, plus the stipend: right for nearly all.
    let optimistic = run.gas_peak.saturating_add(CALL_STIPEND).saturating_mul(64) / 63;
    if optimistic < high {
        if succeeds(optimistic)? {
            high = optimistic;
        } else {
            low = optimistic;
        }
    }
    while low.saturating_add(1) < high {
        // As precise as geth: within 1.5 %.
        if high.saturating_sub(low).saturating_mul(1000) < high.saturating_mul(15) {
            break;
        }
        // Most need little more than they use: near the low end the middle is too far.
        let middle = low.midpoint(high).min(low.saturating_mul(2));
        if succeeds(middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}

enum Attempt {
    Ran(Simulated),
    /// Less than the transaction costs before it runs.
    TooLittleGas,
}

fn attempt(
    machine: &mut Machine<'_>,
    request: &CallRequest,
    gas_limit: u64,
) -> Result<Attempt, SimulationError> {
    match machine.run(request, gas_limit) {
        Ok(run) => Ok(Attempt::Ran(run)),
        Err(SimulationError::Rejected(
            Rejection::IntrinsicGasTooLow { .. } | Rejection::FloorDataGasTooLow { .. },
        )) => Ok(Attempt::TooLittleGas),
        Err(error) => Err(error),
    }
}

/// Gas that the sender can pay for, `None` if the call names no fee.
fn affordable_gas(
    machine: &mut Machine<'_>,
    request: &CallRequest,
) -> Result<Option<u64>, SimulationError> {
    let cap_wei = U256::from(request.fees.cap_wei());
    if cap_wei.is_zero() {
        return Ok(None);
    }
    let balance = machine
        .evm
        .overlay()
        .account(request.from)?
        .unwrap_or_default()
        .balance;
    let left = balance
        .checked_sub(request.value)
        .ok_or(SimulationError::InsufficientFundsForTransfer)?;
    let gas = left.checked_div(cap_wei).unwrap_or(U256::MAX);
    Ok(Some(u64::try_from(gas).unwrap_or(u64::MAX)))
}

fn is_plain_transfer(
    machine: &mut Machine<'_>,
    request: &CallRequest,
) -> Result<bool, SimulationError> {
    let Some(to) = request.to.filter(|_| request.input.is_empty()) else {
        return Ok(false);
    };
    let account = machine.evm.overlay().account(to)?.unwrap_or_default();
    Ok(account.code_hash == alloy_primitives::KECCAK256_EMPTY)
}
