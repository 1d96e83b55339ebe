//! Calls that change nothing: `eth_call`, `eth_estimateGas`, `eth_createAccessList`.
//!
//! A call runs in the environment of a committed block, on the state after it, both as overridden. A call that names no
//! fee pays none: gas price and base fee are zero, so an account without coins can ask anything. A call that names one
//! must afford it. Nonces, code of the sender and the block's gas limit are not checked.
//!
//! Bounded by gas and by [`Limits::stop`], which is asked every few thousand instructions and at every read of state.

mod access_list;
mod estimate;
mod guard;
mod watch;

pub use access_list::{AccessListOutcome, create_access_list};
pub use estimate::{Estimate, estimate_gas};

use crate::{
    app::App,
    evm::{
        self, BlockEnvironment, Evm, EvmError, GasOffer, HaltReason, Network, Switches,
        TransactionEnvironment,
    },
    execution::overlay::Overlay,
    rejection::Rejection,
    state::{StateError, StateRead},
};
use alloy_consensus::Header;
use alloy_eips::{eip2930::AccessList, eip7702::SignedAuthorization};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use guard::{Guard, Stopped};
use std::collections::BTreeMap;
use watch::Watch;

/// A call as its caller describes it.
#[derive(Debug, Clone, Default)]
pub struct CallRequest {
    /// Who calls; the zero address if absent.
    pub from: Address,
    /// Who is called; `None` creates a contract.
    pub to: Option<Address>,
    /// Gas limit; capped by [`Limits::gas_max`], which is also the default.
    pub gas_limit: Option<u64>,
    /// What the caller offers for gas.
    pub fees: Fees,
    /// Coins sent along, in wei.
    pub value: U256,
    /// Calldata or init code.
    pub input: Bytes,
    /// EIP-2930.
    pub access_list: Option<AccessList>,
    /// EIP-7702.
    pub authorization_list: Vec<SignedAuthorization>,
    /// EIP-4844: visible to the BLOBHASH instruction only.
    pub blob_hashes: Vec<B256>,
    /// EIP-4844, in wei.
    pub max_fee_per_blob_gas: Option<u128>,
}

/// Fees in wei per gas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fees {
    /// None named.
    #[default]
    Absent,
    /// `gasPrice`.
    Legacy { price_wei: u128 },
    /// `maxFeePerGas` and `maxPriorityFeePerGas`.
    Dynamic { fee_cap_wei: u128, tip_wei: u128 },
}

impl Fees {
    /// Most wei per gas.
    pub const fn cap_wei(self) -> u128 {
        match self {
            Self::Absent => 0,
            Self::Legacy { price_wei } => price_wei,
            Self::Dynamic { fee_cap_wei, .. } => fee_cap_wei,
        }
    }

    const fn is_free(self) -> bool {
        match self {
            Self::Absent => true,
            Self::Legacy { price_wei } => price_wei == 0,
            Self::Dynamic {
                fee_cap_wei,
                tip_wei,
            } => fee_cap_wei == 0 && tip_wei == 0,
        }
    }
}

/// What a simulation pretends of state and block.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// By address.
    pub accounts: BTreeMap<Address, AccountOverride>,
    /// Of the block's environment.
    pub block: BlockOverride,
}

/// What a simulation pretends of one account.
#[derive(Debug, Clone, Default)]
pub struct AccountOverride {
    /// Balance in wei.
    pub balance: Option<U256>,
    /// Nonce.
    pub nonce: Option<u64>,
    /// Code.
    pub code: Option<Bytes>,
    /// Slots.
    pub slots: Option<SlotOverride>,
    /// The precompile at this address answers there instead.
    pub move_precompile_to: Option<Address>,
}

/// Slots that a simulation pretends.
#[derive(Debug, Clone)]
pub enum SlotOverride {
    /// These and no others.
    Replace(BTreeMap<U256, U256>),
    /// These, the rest as stored.
    Change(BTreeMap<U256, U256>),
}

/// What a simulation pretends of the block.
#[derive(Debug, Clone, Default)]
pub struct BlockOverride {
    /// Height.
    pub number: Option<u64>,
    /// Seconds since the epoch.
    pub timestamp: Option<u64>,
    /// Gas limit.
    pub gas_limit: Option<u64>,
    /// Who gets the tips.
    pub beneficiary: Option<Address>,
    /// mixHash.
    pub prev_randao: Option<B256>,
    /// Base fee in wei; it holds for calls without fees too.
    pub base_fee_wei: Option<u64>,
    /// Answers of BLOCKHASH by height.
    pub block_hashes: BTreeMap<u64, B256>,
}

/// How much a simulation may take.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Gas of one run.
    pub gas_max: u64,
    /// Whether to give up now.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl std::fmt::Debug for Limits<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limits")
            .field("gas_max", &self.gas_max)
            .finish_non_exhaustive()
    }
}

/// A call that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulated {
    /// How it ended.
    pub ending: Ending,
    /// Gas charged, after refunds.
    pub gas_used: u64,
    /// Most gas held at any time: before refunds, and at least the calldata floor of EIP-7623.
    pub gas_peak: u64,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// With this return data (or deployed code).
    Success { output: Bytes },
    /// By REVERT.
    Revert { output: Bytes },
    /// By using up its gas on an error.
    Halt(HaltReason),
}

impl Ending {
    /// Whether the call succeeded.
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Success { .. })
    }
}

/// Why a simulation has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The call breaks a rule of transactions that holds for simulations too.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The sender cannot afford the value to be sent.
    #[error("insufficient funds for transfer")]
    InsufficientFundsForTransfer,
    /// An override cannot be met.
    #[error("account {address} is not a precompile")]
    NotAPrecompile {
        /// Whose precompile was to be moved.
        address: Address,
    },
    /// [`Limits::stop`] said so.
    #[error("stopped")]
    Stopped,
    /// The EVM gave up: a fault of ours.
    #[error("EVM fault: {0}")]
    Fault(String),
    /// The store failed.
    #[error(transparent)]
    State(StateError),
}

impl From<StateError> for SimulationError {
    fn from(error: StateError) -> Self {
        if error.0.is::<Stopped>() {
            Self::Stopped
        } else {
            Self::State(error)
        }
    }
}

/// Where a simulation takes place.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The network's rules.
    pub app: &'a App,
    /// State after the block.
    pub state: &'a dyn StateRead,
    /// The block.
    pub header: &'a Header,
    /// What to pretend.
    pub overrides: &'a Overrides,
    /// How much it may take.
    pub limits: Limits<'a>,
}

impl std::fmt::Debug for Scene<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scene")
            .field("height", &self.header.number)
            .finish_non_exhaustive()
    }
}

/// Runs a call.
pub fn call(scene: &Scene<'_>, request: &CallRequest) -> Result<Simulated, SimulationError> {
    let guard = Guard::new(scene);
    let mut machine = Machine::new(scene, &guard, request.fees, Watch::new(scene.limits.stop))?;
    let gas_max = scene.limits.gas_max;
    machine.run(request, request.gas_limit.unwrap_or(gas_max).min(gas_max))
}

/// An EVM set up for one scene. Runs are independent of each other.
struct Machine<'a> {
    evm: Evm<'a, Watch<'a>>,
    block: BlockEnvironment,
    chain_id: u64,
}

impl<'a> Machine<'a> {
    fn new(
        scene: &Scene<'a>,
        guard: &'a Guard<'a>,
        fees: Fees,
        watch: Watch<'a>,
    ) -> Result<Self, SimulationError> {
        let parameters = scene.app.parameters();
        let block = environment(scene.header, &scene.overrides.block, fees);
        let mut switches = Switches::simulation(scene.limits.gas_max);
        switches.balance = true;
        switches.base_fee = !fees.is_free();
        let network = Network {
            chain_id: parameters.chain_id,
            fork: parameters.fork,
            precompiles: scene.app.precompiles(),
        };
        let mut overlay = Overlay::new(guard);
        for (address, account) in &scene.overrides.accounts {
            override_account(&mut overlay, *address, account)?;
        }
        let mut evm = Evm::with_inspector(network, &block, &switches, overlay, watch);
        for (address, account) in &scene.overrides.accounts {
            if let Some(to) = account.move_precompile_to
                && !evm.move_precompile(*address, to)
            {
                return Err(SimulationError::NotAPrecompile { address: *address });
            }
        }
        Ok(Self {
            evm,
            block,
            chain_id: parameters.chain_id,
        })
    }

    fn run(&mut self, request: &CallRequest, gas_limit: u64) -> Result<Simulated, SimulationError> {
        let transaction = transaction(self.chain_id, request, gas_limit);
        let offer = GasOffer::from(&transaction);
        let executed = self.evm.inspect(transaction);
        if self.evm.inspector().stopped() {
            return Err(SimulationError::Stopped);
        }
        let result = match executed {
            Ok(executed) => executed.result,
            Err(EvmError::Invalid(invalid)) => {
                return Err(evm::rejection(invalid, offer, &self.block).into());
            }
            Err(EvmError::State(error)) => return Err(error.into()),
            Err(EvmError::Fault(fault)) => return Err(SimulationError::Fault(fault)),
        };
        let gas = result.gas();
        Ok(Simulated {
            gas_used: gas.tx_gas_used(),
            gas_peak: gas.total_gas_spent().max(gas.floor_gas()),
            ending: match result {
                evm::ExecutionResult::Success { output, .. } => Ending::Success {
                    output: output.into_data(),
                },
                evm::ExecutionResult::Revert { output, .. } => Ending::Revert { output },
                evm::ExecutionResult::Halt { reason, .. } => Ending::Halt(reason),
            },
        })
    }
}

fn environment(header: &Header, overrides: &BlockOverride, fees: Fees) -> BlockEnvironment {
    let base_fee_wei = if fees.is_free() {
        0
    } else {
        header.base_fee_per_gas.unwrap_or_default()
    };
    BlockEnvironment {
        number: overrides.number.unwrap_or(header.number),
        timestamp: overrides.timestamp.unwrap_or(header.timestamp),
        beneficiary: overrides.beneficiary.unwrap_or(header.beneficiary),
        gas_limit: overrides.gas_limit.unwrap_or(header.gas_limit),
        base_fee_wei: overrides.base_fee_wei.unwrap_or(base_fee_wei),
        prev_randao: overrides.prev_randao.unwrap_or(header.mix_hash),
    }
}

fn override_account(
    overlay: &mut Overlay<'_>,
    address: Address,
    account: &AccountOverride,
) -> Result<(), SimulationError> {
    if account.balance.is_some() || account.nonce.is_some() {
        let mut record = overlay.account(address)?.unwrap_or_default();
        record.balance = account.balance.unwrap_or(record.balance);
        record.nonce = account.nonce.unwrap_or(record.nonce);
        overlay.set_account(address, record)?;
    }
    if let Some(code) = &account.code {
        overlay.set_code(address, code.clone())?;
    }
    if let Some(slots) = &account.slots {
        let (slots, replace) = match slots {
            SlotOverride::Replace(slots) => (slots, true),
            SlotOverride::Change(slots) => (slots, false),
        };
        if replace {
            overlay.wipe_storage(address)?;
        }
        overlay.set_storage(address, slots.iter().map(|(slot, value)| (*slot, *value)))?;
    }
    Ok(())
}

fn transaction(chain_id: u64, request: &CallRequest, gas_limit: u64) -> TransactionEnvironment {
    let kind = request.to.map_or(TxKind::Create, TxKind::Call);
    let mut transaction = evm::empty_transaction(chain_id, request.from, kind);
    transaction.gas_limit = gas_limit;
    transaction.value = request.value;
    transaction.data = request.input.clone();
    transaction.gas_price = request.fees.cap_wei();
    if let Some(list) = &request.access_list {
        transaction.tx_type = 1;
        transaction.access_list = list.clone();
    }
    if let Fees::Dynamic { tip_wei, .. } = request.fees {
        transaction.tx_type = 2;
        transaction.gas_priority_fee = Some(tip_wei);
    }
    if !request.blob_hashes.is_empty() {
        transaction.tx_type = 3;
        transaction.blob_hashes = request.blob_hashes.clone();
        transaction.max_fee_per_blob_gas = request.max_fee_per_blob_gas.unwrap_or(1);
    }
    if !request.authorization_list.is_empty() {
        transaction.tx_type = 4;
        transaction.set_signed_authorization(request.authorization_list.clone());
    }
    transaction
}

#[cfg(test)]
mod tests;
