//! `eth_call`, `eth_estimateGas`, `eth_createAccessList`: simulations on top of a committed block.

use super::{
    accounts::state_fault,
    arguments::{Arguments, BlockReference},
    context::Context,
    error::{RpcError, revert_reason},
    methods::{Answer, answer},
    overrides::{BlockOverrides, Call, StateOverrides},
};
use alloy_eips::eip2930::AccessList;
use alloy_primitives::{Bytes, U64};
use cloister_app::{
    evm::HaltReason,
    simulation::{self, CallRequest, Ending, Estimate, Limits, Overrides, Scene, SimulationError},
};
use serde::Serialize;
use std::time::Instant;

pub(super) fn call(context: &Context, arguments: &Arguments) -> Answer {
    let request = request(context, arguments)?;
    let simulated = at(context, arguments, |scene| {
        simulation::call(scene, &request)
    })?;
    answer(&output(simulated.ending)?)
}

pub(super) fn estimate_gas(context: &Context, arguments: &Arguments) -> Answer {
    let request = request(context, arguments)?;
    match at(context, arguments, |scene| {
        simulation::estimate_gas(scene, &request)
    })? {
        Estimate::Gas(gas) => answer(&U64::from(gas)),
        Estimate::AllowanceExceeded { allowance } => Err(RpcError::Refused(format!(
            "gas required exceeds allowance ({allowance})"
        ))),
        Estimate::Fails(ending) => match output(ending) {
            Ok(_) => Err(RpcError::Internal(
                "an estimate failed with a success".into(),
            )),
            Err(error) => Err(error),
        },
    }
}

/// As geth answers: a call that fails has a list all the same, and says why.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AccessListAnswer {
    access_list: AccessList,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    gas_used: U64,
}

pub(super) fn create_access_list(context: &Context, arguments: &Arguments) -> Answer {
    let request = request(context, arguments)?;
    let outcome = at(context, arguments, |scene| {
        simulation::create_access_list(scene, &request)
    })?;
    answer(&AccessListAnswer {
        access_list: outcome.access_list,
        error: output(outcome.ending).err().map(|error| error.to_string()),
        gas_used: U64::from(outcome.gas_used),
    })
}

fn request(context: &Context, arguments: &Arguments) -> Result<CallRequest, RpcError> {
    let call: Call = arguments.required(0)?;
    let ours = context.chain_id();
    match call.chain_id {
        Some(theirs) if theirs != ours => Err(RpcError::Refused(format!(
            "chainId does not match node's (have={theirs}, want={ours})"
        ))),
        _ => Ok(call.request),
    }
}

/// Runs a simulation at the block and with the overrides of arguments 1, 2 and 3.
fn at<T>(
    context: &Context,
    arguments: &Arguments,
    run: impl FnOnce(&Scene<'_>) -> Result<T, SimulationError>,
) -> Result<T, RpcError> {
    let block: BlockReference = arguments.optional(1)?.unwrap_or_default();
    let StateOverrides(accounts) = arguments.optional(2)?.unwrap_or_default();
    let BlockOverrides(block_override) = arguments.optional(3)?.unwrap_or_default();
    let (state, header) = context.state_and_header(block)?;
    let timeout = context.config.evm_timeout;
    let deadline = Instant::now() + timeout;
    let scene = Scene {
        app: context.chain.app(),
        state: &state,
        header: &header,
        overrides: &Overrides {
            accounts,
            block: block_override,
        },
        limits: Limits {
            gas_max: context.config.call_gas_max,
            stop: &|| Instant::now() >= deadline,
        },
    };
    run(&scene).map_err(|error| match error {
        SimulationError::Rejected(rejection) => RpcError::Rejected(rejection),
        SimulationError::Stopped => RpcError::TimedOut { timeout },
        SimulationError::State(error) => state_fault(error),
        SimulationError::Fault(fault) => RpcError::Internal(fault),
        refused @ (SimulationError::InsufficientFundsForTransfer
        | SimulationError::NotAPrecompile { .. }) => RpcError::Refused(refused.to_string()),
    })
}

/// Return data of a success; else the error as geth words it.
fn output(ending: Ending) -> Result<Bytes, RpcError> {
    match ending {
        Ending::Success { output } => Ok(output),
        Ending::Revert { output } => Err(RpcError::Reverted {
            reason: revert_reason(&output),
            data: output,
        }),
        Ending::Halt(reason) => Err(RpcError::Refused(halt_text(&reason))),
    }
}

fn halt_text(reason: &HaltReason) -> String {
    String::from(match reason {
        HaltReason::OutOfGas(_) => "out of gas",
        HaltReason::OpcodeNotFound | HaltReason::NotActivated => "invalid opcode",
        HaltReason::InvalidFEOpcode => "invalid opcode: INVALID",
        HaltReason::InvalidJump => "invalid jump destination",
        HaltReason::StackUnderflow => "stack underflow",
        HaltReason::StackOverflow => "stack limit reached 1024 (1023)",
        HaltReason::OutOfOffset => "return data out of bounds",
        HaltReason::CreateCollision => "contract address collision",
        HaltReason::NonceOverflow => "nonce uint64 overflow",
        HaltReason::CreateContractSizeLimit => "max code size exceeded",
        HaltReason::CreateContractStartingWithEF => "invalid code: must not begin with 0xef",
        HaltReason::CreateInitCodeSizeLimit => "max initcode size exceeded",
        HaltReason::StateChangeDuringStaticCall | HaltReason::CallNotAllowedInsideStatic => {
            "write protection"
        }
        HaltReason::OutOfFunds => "insufficient balance for transfer",
        HaltReason::CallTooDeep => "max call depth exceeded",
        HaltReason::PrecompileError
        | HaltReason::PrecompileErrorWithContext(_)
        | HaltReason::OverflowPayment => return reason.to_string(),
    })
}
