//! The EVM: the only file that names revm, which changes its major version often.
//!
//! [`Evm`] runs one transaction at a time over an [`Overlay`]; nothing reaches the overlay but by [`Evm::commit`], so
//! block execution and simulations differ only in [`Switches`] and in what they do with the outcome.
//! An error of the store is never an EVM outcome: it comes out as [`StateError`].

use crate::{
    execution::overlay::{Overlay, Touch},
    precompiles::{self, Outcome},
    rejection::Rejection,
    state::StateError,
    transaction::Transaction,
    trie::AccountRecord,
};
use alloy_consensus::{Transaction as _, TxEnvelope, Typed2718};
use alloy_eips::eip7702::{RecoveredAuthority, RecoveredAuthorization};
use alloy_primitives::{
    Address, B256, Bytes, Log, TxKind, U256,
    map::{AddressMap, AddressSet, B256Map},
};
use cloister_genesis::Fork;
use revm::{
    Context, Database, ExecuteEvm, InspectEvm, Journal, SystemCallEvm,
    bytecode::Bytecode,
    context::{
        BlockEnv, CfgEnv, FrameStack, TxEnv,
        result::{EVMError, InvalidTransaction},
    },
    context_interface::{block::BlobExcessGasAndPrice, cfg::GasParams, either::Either},
    database_interface::DBErrorMarker,
    handler::{
        EthFrame, EthPrecompiles, PrecompileProvider, instructions::EthInstructions,
        precompile_output_to_interpreter_result,
    },
    interpreter::{CallInputs, InterpreterResult, interpreter::EthInterpreter},
    precompile::{PrecompileHalt, PrecompileOutput},
    primitives::hardfork::SpecId,
    state::{AccountInfo, EvmState},
};

pub use revm::{
    context::{
        TxEnv as TransactionEnvironment,
        result::{ExecutionResult, HaltReason, Output},
    },
    inspector::{Inspector, NoOpInspector},
    interpreter,
};

/// EIP-7825: most gas one transaction may ask for. Enforced under every fork.
pub const TRANSACTION_GAS_LIMIT_MAX: u64 = 1 << 24;

/// What instructions can learn of the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockEnvironment {
    /// Height.
    pub number: u64,
    /// Seconds since the epoch.
    pub timestamp: u64,
    /// Who gets the tips.
    pub beneficiary: Address,
    /// Gas limit of the block.
    pub gas_limit: u64,
    /// Base fee per gas in wei.
    pub base_fee_wei: u64,
    /// The header's mixHash.
    pub prev_randao: B256,
}

/// The network's rules as the EVM needs them.
#[derive(Debug, Clone, Copy)]
pub struct Network<'a> {
    /// EIP-155 chain id.
    pub chain_id: u64,
    /// Rules in force.
    pub fork: Fork,
    /// What our precompiles know.
    pub precompiles: &'a precompiles::Context,
}

/// Which checks of a transaction are on. Blocks have them all; simulations relax some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    /// Most gas one transaction may ask for.
    pub transaction_gas_limit_max: u64,
    /// The nonce must be the account's.
    pub nonce: bool,
    /// The sender must afford value and gas.
    pub balance: bool,
    /// The fee cap must cover the base fee.
    pub base_fee: bool,
    /// The sender must have no code (EIP-3607).
    pub sender_without_code: bool,
    /// The gas limit must fit the block.
    pub block_gas_limit: bool,
    /// A transaction for another chain id is refused.
    pub chain_id: bool,
    /// Fees are taken and tips paid.
    pub fees: bool,
    /// A block hash that the store lacks is an error of the store; else it reads as zero.
    pub block_hashes_complete: bool,
}

impl Switches {
    /// All checks: block execution.
    pub const BLOCK: Self = Self {
        transaction_gas_limit_max: TRANSACTION_GAS_LIMIT_MAX,
        nonce: true,
        balance: true,
        base_fee: true,
        sender_without_code: true,
        block_gas_limit: true,
        chain_id: true,
        fees: true,
        block_hashes_complete: true,
    };

    /// What eth_call leaves: nothing that depends on who pays.
    pub const fn simulation(transaction_gas_limit_max: u64) -> Self {
        Self {
            transaction_gas_limit_max,
            nonce: false,
            balance: false,
            base_fee: false,
            sender_without_code: false,
            block_gas_limit: false,
            chain_id: true,
            fees: true,
            block_hashes_complete: false,
        }
    }
}

/// Why a transaction did not run.
#[derive(Debug, thiserror::Error)]
pub enum EvmError {
    /// It breaks a rule.
    #[error(transparent)]
    Invalid(InvalidTransaction),
    /// The store failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// The EVM gave up: a fault of ours.
    #[error("EVM fault: {0}")]
    Fault(String),
}

/// A transaction that ran: its result, and its writes, not yet applied.
#[derive(Debug)]
pub struct Executed {
    /// Status, gas, logs, output.
    pub result: ExecutionResult<HaltReason>,
    /// For [`Evm::commit`], or to be dropped.
    pub writes: Writes,
}

/// The writes of one transaction.
#[derive(Debug)]
pub struct Writes(pub EvmState);

type EvmContext<'a> = Context<BlockEnv, TxEnv, CfgEnv, EvmDatabase<'a>, Journal<EvmDatabase<'a>>>;

type Inner<'a, I> = revm::context::Evm<
    EvmContext<'a>,
    I,
    EthInstructions<EthInterpreter, EvmContext<'a>>,
    MountedPrecompiles<'a>,
    EthFrame<EthInterpreter>,
>;

/// The context that an inspector sees.
pub type InspectedContext<'a> = EvmContext<'a>;

/// An EVM in one block's environment over one overlay.
#[expect(
    missing_debug_implementations,
    reason = "revm's context is not for people"
)]
pub struct Evm<'a, I = NoOpInspector> {
    inner: Inner<'a, I>,
}

impl<'a> Evm<'a> {
    /// An EVM without inspector.
    pub fn new(
        network: Network<'a>,
        block: &BlockEnvironment,
        switches: &Switches,
        overlay: Overlay<'a>,
    ) -> Self {
        Self::with_inspector(network, block, switches, overlay, NoOpInspector)
    }
}

impl<'a, I> Evm<'a, I> {
    /// An EVM that reports each step to `inspector` when run by [`Evm::inspect`].
    pub fn with_inspector(
        network: Network<'a>,
        block: &BlockEnvironment,
        switches: &Switches,
        overlay: Overlay<'a>,
        inspector: I,
    ) -> Self {
        let spec = spec_id(network.fork);
        let database = EvmDatabase {
            overlay,
            analysed: B256Map::default(),
            block_hashes_complete: switches.block_hashes_complete,
        };
        let mut context: EvmContext<'a> = Context::new(database, spec);
        context.modify_cfg(|cfg| configure(cfg, network, switches));
        context.modify_block(|env| *env = block_env(block));
        Self {
            inner: Inner {
                ctx: context,
                inspector,
                instruction: EthInstructions::new_mainnet_with_spec(spec),
                precompiles: MountedPrecompiles::new(spec, network.precompiles),
                frame_stack: FrameStack::new_prealloc(8),
            },
        }
    }

    /// Runs a transaction; the overlay stays as it was.
    pub fn run(&mut self, transaction: TxEnv) -> Result<Executed, EvmError> {
        executed(self.inner.transact(transaction))
    }

    /// Runs a call of the protocol itself: no fee, no nonce, 30 million gas beside the block's.
    pub fn system_call(&mut self, contract: Address, input: Bytes) -> Result<Executed, EvmError> {
        executed(self.inner.system_call(contract, input))
    }

    /// Applies the writes of a transaction.
    pub fn commit(&mut self, writes: Writes) -> Result<(), StateError> {
        let database = &mut self.inner.ctx.journaled_state.database;
        for (address, account) in writes.0 {
            if !account.is_touched() {
                continue;
            }
            let record = AccountRecord {
                nonce: account.info.nonce,
                balance: account.info.balance,
                code_hash: account.info.code_hash,
            };
            let touch = if account.is_selfdestructed() {
                Touch::Destroy
            } else if account.is_created() {
                Touch::Create(record)
            } else {
                Touch::Keep(record)
            };
            if touch != Touch::Destroy
                && let Some(code) = account.info.code
                && !code.is_empty()
            {
                database.keep_code(record.code_hash, code);
            }
            let changed = account
                .storage
                .into_iter()
                .filter(|(_, slot)| slot.is_changed())
                .map(|(key, slot)| (key, slot.present_value));
            database.overlay.apply(address, touch, changed)?;
        }
        Ok(())
    }

    /// The state as of the last commit.
    pub const fn overlay(&mut self) -> &mut Overlay<'a> {
        &mut self.inner.ctx.journaled_state.database.overlay
    }

    /// The inspector.
    pub const fn inspector(&mut self) -> &mut I {
        &mut self.inner.inspector
    }

    /// Whether a precompile answers at `address`.
    pub fn is_precompile(&self, address: &Address) -> bool {
        self.inner.precompiles.warm.contains(address)
    }

    /// The precompile at `from` answers at `to` instead, for simulations. `false` if there is none at `from`.
    pub fn move_precompile(&mut self, from: Address, to: Address) -> bool {
        self.inner.precompiles.relocate(from, to)
    }

    /// Ends execution: the overlay with all that was committed.
    pub fn into_overlay(self) -> Overlay<'a> {
        self.inner.ctx.journaled_state.database.overlay
    }

    /// Changes the environment, for simulations of several blocks.
    pub fn set_block(&mut self, block: &BlockEnvironment) {
        self.inner.ctx.modify_block(|env| *env = block_env(block));
    }
}

impl<'a, I: Inspector<EvmContext<'a>, EthInterpreter>> Evm<'a, I> {
    /// As [`Evm::run`], telling the inspector of each step.
    pub fn inspect(&mut self, transaction: TxEnv) -> Result<Executed, EvmError> {
        executed(self.inner.inspect_tx(transaction))
    }
}

/// Intrinsic gas, and the least that calldata costs (EIP-7623), in that order. Read from the signed bytes alone: it is asked
/// before any signature is recovered.
pub fn intrinsic_gas(fork: Fork, envelope: &TxEnvelope) -> (u64, u64) {
    let access_list = envelope.access_list().map_or(&[][..], |list| &list.0);
    let slots: usize = access_list.iter().map(|item| item.storage_keys.len()).sum();
    let authorizations = envelope.authorization_list().map_or(0, <[_]>::len);
    let gas = GasParams::new_spec(spec_id(fork)).initial_tx_gas(
        envelope.input(),
        envelope.is_create(),
        access_list.len() as u64,
        slots as u64,
        authorizations as u64,
        None,
    );
    let floor = match fork {
        Fork::Shanghai | Fork::Cancun => 0,
        Fork::Prague | Fork::Osaka => gas.floor_gas(),
    };
    (gas.initial_total_gas(), floor)
}

/// A transaction as the EVM takes it.
pub fn transaction_environment(transaction: &Transaction) -> TxEnv {
    let envelope = transaction.envelope();
    let authorization_list = envelope
        .authorization_list()
        .unwrap_or_default()
        .iter()
        .zip(transaction.authorities())
        .map(|(signed, authority)| {
            let authority = match authority {
                Some(address) => RecoveredAuthority::Valid(*address),
                None => RecoveredAuthority::Invalid,
            };
            Either::Right(RecoveredAuthorization::new_unchecked(
                signed.inner().clone(),
                authority,
            ))
        })
        .collect();
    TxEnv {
        tx_type: envelope.ty(),
        caller: transaction.sender(),
        gas_limit: envelope.gas_limit(),
        gas_price: envelope.max_fee_per_gas(),
        kind: envelope.kind(),
        value: envelope.value(),
        data: envelope.input().clone(),
        nonce: envelope.nonce(),
        chain_id: envelope.chain_id(),
        access_list: envelope.access_list().cloned().unwrap_or_default(),
        gas_priority_fee: envelope.max_priority_fee_per_gas(),
        blob_hashes: Vec::new(),
        max_fee_per_blob_gas: 0,
        authorization_list,
    }
}

/// A call of `to` (or a creation) with nothing else set, for simulations to fill in.
pub fn empty_transaction(chain_id: u64, caller: Address, kind: TxKind) -> TxEnv {
    TxEnv {
        tx_type: 0,
        caller,
        gas_limit: 0,
        gas_price: 0,
        kind,
        value: U256::ZERO,
        data: Bytes::new(),
        nonce: 0,
        chain_id: Some(chain_id),
        access_list: Default::default(),
        gas_priority_fee: None,
        blob_hashes: Vec::new(),
        max_fee_per_blob_gas: 0,
        authorization_list: Vec::new(),
    }
}

/// What a transaction offers for gas: the numbers a rejection names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GasOffer {
    /// Gas limit.
    pub gas_limit: u64,
    /// Most wei per gas.
    pub fee_cap_wei: u128,
    /// Most wei per gas for the proposer.
    pub tip_wei: u128,
}

impl From<&TxEnv> for GasOffer {
    fn from(transaction: &TxEnv) -> Self {
        Self {
            gas_limit: transaction.gas_limit,
            fee_cap_wei: transaction.gas_price,
            tip_wei: transaction.gas_priority_fee.unwrap_or_default(),
        }
    }
}

/// What the EVM refused, in our terms.
pub fn rejection(
    invalid: InvalidTransaction,
    offer: GasOffer,
    block: &BlockEnvironment,
) -> Rejection {
    use InvalidTransaction as Invalid;
    let GasOffer {
        gas_limit,
        fee_cap_wei,
        tip_wei,
    } = offer;
    match invalid {
        Invalid::PriorityFeeGreaterThanMaxFee => Rejection::TipAboveFeeCap {
            tip_wei,
            fee_cap_wei,
        },
        Invalid::GasPriceLessThanBasefee => Rejection::FeeCapBelowBaseFee {
            fee_cap_wei,
            base_fee_wei: block.base_fee_wei,
        },
        Invalid::CallerGasLimitMoreThanBlock => Rejection::GasLimitAboveBlock {
            block: block.gas_limit,
            gas_limit,
        },
        Invalid::CallGasCostMoreThanGasLimit {
            initial_gas,
            gas_limit,
        } => Rejection::IntrinsicGasTooLow {
            gas_limit,
            needed: initial_gas,
        },
        Invalid::GasFloorMoreThanGasLimit {
            gas_floor,
            gas_limit,
        } => Rejection::FloorDataGasTooLow {
            gas_limit,
            needed: gas_floor,
        },
        Invalid::RejectCallerWithCode => Rejection::SenderHasCode,
        Invalid::LackOfFundForMaxFee { fee, balance } => Rejection::InsufficientFunds {
            balance: *balance,
            cost: *fee,
        },
        Invalid::OverflowPaymentInTransaction => Rejection::InsufficientFunds {
            balance: U256::ZERO,
            cost: U256::MAX,
        },
        Invalid::NonceOverflowInTransaction => Rejection::NonceMax,
        Invalid::NonceTooHigh { tx, state } => Rejection::NonceGap {
            expected: state,
            got: tx,
        },
        Invalid::NonceTooLow { tx, state } => Rejection::NonceTooLow {
            expected: state,
            got: tx,
        },
        Invalid::TxGasLimitGreaterThanCap { gas_limit, cap } => {
            Rejection::GasLimitAboveTransactionCap { cap, gas_limit }
        }
        Invalid::EmptyAuthorizationList => Rejection::EmptyAuthorizationList,
        Invalid::Eip7702NotSupported => Rejection::UnsupportedType {
            transaction_type: 4,
        },
        other => Rejection::Evm(other.to_string()),
    }
}

/// Status and logs for a receipt, and the gas used.
pub fn receipt_parts(result: ExecutionResult<HaltReason>) -> (bool, u64, Vec<Log>) {
    let gas_used = result.tx_gas_used();
    match result {
        ExecutionResult::Success { logs, .. } => (true, gas_used, logs),
        ExecutionResult::Revert { .. } | ExecutionResult::Halt { .. } => {
            (false, gas_used, Vec::new())
        }
    }
}

fn executed<S>(
    outcome: Result<
        revm::context::result::ExecResultAndState<ExecutionResult<HaltReason>, S>,
        EVMError<StateError, InvalidTransaction>,
    >,
) -> Result<Executed, EvmError>
where
    S: Into<EvmState>,
{
    match outcome {
        Ok(done) => Ok(Executed {
            result: done.result,
            writes: Writes(done.state.into()),
        }),
        Err(EVMError::Transaction(invalid)) => Err(EvmError::Invalid(invalid)),
        Err(EVMError::Database(error)) => Err(EvmError::State(error)),
        Err(other) => Err(EvmError::Fault(other.to_string())),
    }
}

const fn spec_id(fork: Fork) -> SpecId {
    match fork {
        Fork::Shanghai => SpecId::SHANGHAI,
        Fork::Cancun => SpecId::CANCUN,
        Fork::Prague => SpecId::PRAGUE,
        Fork::Osaka => SpecId::OSAKA,
    }
}

fn configure(cfg: &mut CfgEnv, network: Network<'_>, switches: &Switches) {
    cfg.set_spec_and_mainnet_gas_params(spec_id(network.fork));
    cfg.chain_id = network.chain_id;
    cfg.tx_chain_id_check = switches.chain_id;
    cfg.tx_gas_limit_cap = Some(switches.transaction_gas_limit_max);
    cfg.disable_nonce_check = !switches.nonce;
    cfg.disable_balance_check = !switches.balance;
    cfg.disable_base_fee = !switches.base_fee;
    cfg.disable_eip3607 = !switches.sender_without_code;
    cfg.disable_block_gas_limit = !switches.block_gas_limit;
    cfg.disable_fee_charge = !switches.fees;
}

fn block_env(block: &BlockEnvironment) -> BlockEnv {
    BlockEnv {
        number: U256::from(block.number),
        beneficiary: block.beneficiary,
        timestamp: U256::from(block.timestamp),
        gas_limit: block.gas_limit,
        basefee: block.base_fee_wei,
        difficulty: U256::ZERO,
        prevrandao: Some(block.prev_randao),
        // No blobs here: excess 0, and the least price that EIP-4844 knows.
        blob_excess_gas_and_price: Some(BlobExcessGasAndPrice {
            excess_blob_gas: 0,
            blob_gasprice: 1,
        }),
        slot_num: 0,
    }
}

impl DBErrorMarker for StateError {}

/// The overlay as revm reads it, with code analysed once per block.
#[derive(Debug)]
pub struct EvmDatabase<'a> {
    overlay: Overlay<'a>,
    analysed: B256Map<Bytecode>,
    block_hashes_complete: bool,
}

impl EvmDatabase<'_> {
    /// Keeps code that a transaction deployed; code that was only loaded is known already.
    fn keep_code(&mut self, code_hash: B256, code: Bytecode) {
        if self.analysed.contains_key(&code_hash) {
            return;
        }
        self.overlay.add_code(code_hash, code.original_bytes());
        self.analysed.insert(code_hash, code);
    }
}

impl Database for EvmDatabase<'_> {
    type Error = StateError;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, StateError> {
        Ok(self.overlay.account(address)?.map(|record| AccountInfo {
            balance: record.balance,
            nonce: record.nonce,
            code_hash: record.code_hash,
            account_id: None,
            code: None,
        }))
    }

    fn code_by_hash(&mut self, code_hash: B256) -> Result<Bytecode, StateError> {
        if let Some(code) = self.analysed.get(&code_hash) {
            return Ok(code.clone());
        }
        let bytes = self.overlay.code(code_hash)?;
        // Only genesis could hold bytes that look like a broken EIP-7702 delegation: they run as plain code.
        let code = Bytecode::new_raw_checked(bytes.clone())
            .unwrap_or_else(|_| Bytecode::new_legacy(bytes));
        self.analysed.insert(code_hash, code.clone());
        Ok(code)
    }

    fn storage(&mut self, address: Address, index: U256) -> Result<U256, StateError> {
        self.overlay.storage(address, index)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        match self.overlay.block_hash(number)? {
            Some(hash) => Ok(hash),
            None if self.block_hashes_complete => Err(MissingBlockHash(number).into()),
            None => Ok(B256::ZERO),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("hash of block {0} is not stored")]
struct MissingBlockHash(u64);

impl From<MissingBlockHash> for StateError {
    fn from(missing: MissingBlockHash) -> Self {
        Self(std::sync::Arc::new(missing))
    }
}

/// Ethereum's precompiles and ours.
#[derive(Debug)]
pub struct MountedPrecompiles<'a> {
    standard: EthPrecompiles,
    context: &'a precompiles::Context,
    warm: AddressSet,
    /// New address to original one, in simulations that move some.
    moved: AddressMap<Address>,
}

impl<'a> MountedPrecompiles<'a> {
    fn new(spec: SpecId, context: &'a precompiles::Context) -> Self {
        let standard = EthPrecompiles::new(spec);
        let mut warm = standard.warm_addresses().clone();
        warm.extend(precompiles::TABLE.iter().map(|row| row.address));
        Self {
            standard,
            context,
            warm,
            moved: AddressMap::default(),
        }
    }

    fn relocate(&mut self, from: Address, to: Address) -> bool {
        if !self.warm.remove(&from) {
            return false;
        }
        let original = self.moved.remove(&from).unwrap_or(from);
        self.moved.insert(to, original);
        self.warm.insert(to);
        true
    }
}

impl<'a> PrecompileProvider<EvmContext<'a>> for MountedPrecompiles<'a> {
    type Output = InterpreterResult;

    fn set_spec(&mut self, spec: SpecId) -> bool {
        assert_eq!(spec, self.standard.spec, "the fork is fixed by genesis");
        false
    }

    fn run(
        &mut self,
        context: &mut EvmContext<'a>,
        inputs: &CallInputs,
    ) -> Result<Option<InterpreterResult>, String> {
        if !self.moved.is_empty() {
            let Some(original) = self.original(&inputs.bytecode_address) else {
                return Ok(None);
            };
            let mut inputs = inputs.clone();
            inputs.bytecode_address = original;
            return self.answer(context, &inputs);
        }
        self.answer(context, inputs)
    }

    fn warm_addresses(&self) -> &AddressSet {
        &self.warm
    }
}

impl<'a> MountedPrecompiles<'a> {
    /// Whose precompile answers at `address`.
    fn original(&self, address: &Address) -> Option<Address> {
        self.warm
            .contains(address)
            .then(|| self.moved.get(address).copied().unwrap_or(*address))
    }

    fn answer(
        &mut self,
        context: &mut EvmContext<'a>,
        inputs: &CallInputs,
    ) -> Result<Option<InterpreterResult>, String> {
        let Some(row) = precompiles::find(&inputs.bytecode_address) else {
            return self.standard.run(context, inputs);
        };
        let outcome = (row.run)(
            self.context,
            &inputs.input.as_bytes(context),
            inputs.gas_limit,
        );
        let output = match outcome {
            Outcome::Success { gas_used, output } => {
                PrecompileOutput::new(gas_used, output, inputs.reservoir)
            }
            Outcome::Revert { gas_used, output } => {
                PrecompileOutput::revert(gas_used, output, inputs.reservoir)
            }
            Outcome::OutOfGas => PrecompileOutput::halt(PrecompileHalt::OutOfGas, inputs.reservoir),
        };
        Ok(Some(precompile_output_to_interpreter_result(
            output,
            inputs.gas_limit,
        )))
    }
}

#[cfg(test)]
mod tests;
