//! Methods that read accounts, and the one that sends a transaction.

use super::{
    arguments::{Arguments, BlockReference, BlockTag, Slot},
    context::Context,
    error::RpcError,
    methods::{Answer, answer},
};
use crate::pool::Origin;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U64};
use alloy_rpc_types_eth::{EIP1186AccountProofResponse, EIP1186StorageProof};
use alloy_serde::JsonStorageKey;
use cloister_app::{
    state::{Account, HashedAddress, HashedSlot, StateError, StateRead},
    transaction::Transaction,
};
use std::sync::Arc;

/// Storage keys of one `eth_getProof`, as geth.
const PROOF_SLOTS_MAX: usize = 1024;

pub(super) fn state_fault(error: StateError) -> RpcError {
    RpcError::Internal(error.to_string())
}

fn account(
    context: &Context,
    arguments: &Arguments,
    block_index: usize,
) -> Result<Account, RpcError> {
    let address: Address = arguments.required(0)?;
    let state = context.state(arguments.optional(block_index)?.unwrap_or_default())?;
    Ok(state
        .account(HashedAddress::from(address))
        .map_err(state_fault)?
        .unwrap_or_default())
}

pub(super) fn balance(context: &Context, arguments: &Arguments) -> Answer {
    answer(&account(context, arguments, 1)?.balance)
}

pub(super) fn code(context: &Context, arguments: &Arguments) -> Answer {
    let address: Address = arguments.required(0)?;
    let state = context.state(arguments.optional(1)?.unwrap_or_default())?;
    let account = state
        .account(HashedAddress::from(address))
        .map_err(state_fault)?
        .unwrap_or_default();
    if account.code_hash == KECCAK256_EMPTY {
        return answer(&Bytes::new());
    }
    answer(&state.code(account.code_hash).map_err(state_fault)?)
}

pub(super) fn storage_at(context: &Context, arguments: &Arguments) -> Answer {
    let address: Address = arguments.required(0)?;
    let slot =
        Slot::parse(&arguments.required::<String>(1)?).map_err(RpcError::InvalidParameters)?;
    let state = context.state(arguments.optional(2)?.unwrap_or_default())?;
    let value = state
        .storage(HashedAddress::from(address), HashedSlot::from(slot.number))
        .map_err(state_fault)?;
    answer(&B256::from(value))
}

/// For `pending` the next usable nonce: contiguous, not jumping over a gap.
pub(super) fn transaction_count(context: &Context, arguments: &Arguments) -> Answer {
    let address: Address = arguments.required(0)?;
    let reference: BlockReference = arguments.optional(1)?.unwrap_or_default();
    let pooled = match reference {
        BlockReference::Tag(BlockTag::Pending) => context.chain.pool().pending_nonce(address),
        BlockReference::Tag(_) | BlockReference::Hash(_) => None,
    };
    let state = context.state(reference)?;
    let committed = state
        .account(HashedAddress::from(address))
        .map_err(state_fault)?
        .unwrap_or_default()
        .nonce;
    // A block may have been committed between the two reads: the larger one is the newer.
    answer(&U64::from(
        pooled.map_or(committed, |pooled| pooled.max(committed)),
    ))
}

pub(super) fn proof(context: &Context, arguments: &Arguments) -> Answer {
    let address: Address = arguments.required(0)?;
    let slots: Vec<Slot> = arguments.required(1)?;
    if slots.len() > PROOF_SLOTS_MAX {
        return Err(RpcError::InvalidParameters(format!(
            "too many keys (max {PROOF_SLOTS_MAX})"
        )));
    }
    let height = context.state_height(arguments.optional(2)?.unwrap_or_default())?;
    let numbers: Vec<_> = slots.iter().map(|slot| slot.number).collect();
    let proof = context.store().proof(height, address, &numbers)?;
    let storage_proof = slots
        .iter()
        .zip(proof.storage)
        .map(|(slot, proof)| EIP1186StorageProof {
            key: if slot.full_width {
                JsonStorageKey::Hash(B256::from(slot.number))
            } else {
                JsonStorageKey::Number(slot.number)
            },
            value: proof.value,
            proof: proof.proof,
        })
        .collect();
    answer(&EIP1186AccountProofResponse {
        address,
        balance: proof.account.balance,
        code_hash: proof.account.code_hash,
        nonce: proof.account.nonce,
        storage_hash: proof.account.storage_root,
        account_proof: proof.account_proof,
        storage_proof,
    })
}

/// Into our own pool; never waits for consensus.
pub(super) fn send_raw_transaction(context: &Context, arguments: &Arguments) -> Answer {
    let raw: Bytes = arguments.required(0)?;
    let transaction = Arc::new(Transaction::decode(raw, context.chain_id())?);
    let hash = transaction.hash();
    context.chain.pool().add(transaction, Origin::Local)?;
    answer(&hash)
}

/// Accounts whose keys this node holds: none, but for those a development node lists.
pub(super) fn accounts(context: &Context, _: &Arguments) -> Answer {
    answer(&context.config.accounts)
}
