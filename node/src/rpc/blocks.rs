//! Methods that show blocks, transactions and receipts.

use super::{
    answers,
    arguments::{Arguments, BlockReference, BlockTag},
    context::Context,
    error::RpcError,
    methods::{Answer, answer},
};
use crate::store::TransactionLocation;
use alloy_primitives::{B256, U64};

pub(super) fn block_number(context: &Context, _: &Arguments) -> Answer {
    answer(&U64::from(context.head()?.height))
}

pub(super) fn block_by_number(context: &Context, arguments: &Arguments) -> Answer {
    block(
        context,
        BlockReference::Tag(arguments.required(0)?),
        arguments.required(1)?,
    )
}

pub(super) fn block_by_hash(context: &Context, arguments: &Arguments) -> Answer {
    block(
        context,
        BlockReference::Hash(arguments.required(0)?),
        arguments.required(1)?,
    )
}

fn block(context: &Context, reference: BlockReference, full: bool) -> Answer {
    answer(
        &context
            .find_block(reference)?
            .map(|block| answers::block(&block, full)),
    )
}

pub(super) fn block_receipts(context: &Context, arguments: &Arguments) -> Answer {
    let found = context.find_block_with_receipts(arguments.required(0)?)?;
    answer(&found.map(|found| answers::receipts(&found.block, &found.receipts)))
}

pub(super) fn transaction_count_by_number(context: &Context, arguments: &Arguments) -> Answer {
    transaction_count(context, BlockReference::Tag(arguments.required(0)?))
}

pub(super) fn transaction_count_by_hash(context: &Context, arguments: &Arguments) -> Answer {
    transaction_count(context, BlockReference::Hash(arguments.required(0)?))
}

fn transaction_count(context: &Context, reference: BlockReference) -> Answer {
    answer(
        &context
            .find_block(reference)?
            .map(|block| U64::from(block.transactions.len())),
    )
}

pub(super) fn uncle_count_by_number(context: &Context, arguments: &Arguments) -> Answer {
    uncle_count(context, BlockReference::Tag(arguments.required(0)?))
}

pub(super) fn uncle_count_by_hash(context: &Context, arguments: &Arguments) -> Answer {
    uncle_count(context, BlockReference::Hash(arguments.required(0)?))
}

/// Blocks have no uncles here: 0 for a block, null for none.
fn uncle_count(context: &Context, reference: BlockReference) -> Answer {
    answer(&context.find_height(reference)?.map(|_| U64::ZERO))
}

pub(super) fn uncle_by_number(_: &Context, arguments: &Arguments) -> Answer {
    arguments.required::<BlockTag>(0)?;
    arguments.required::<u64>(1)?;
    answer(&())
}

pub(super) fn uncle_by_hash(_: &Context, arguments: &Arguments) -> Answer {
    arguments.required::<B256>(0)?;
    arguments.required::<u64>(1)?;
    answer(&())
}

pub(super) fn transaction_by_number_and_index(context: &Context, arguments: &Arguments) -> Answer {
    transaction_by_index(
        context,
        BlockReference::Tag(arguments.required(0)?),
        arguments.required(1)?,
    )
}

pub(super) fn transaction_by_hash_and_index(context: &Context, arguments: &Arguments) -> Answer {
    transaction_by_index(
        context,
        BlockReference::Hash(arguments.required(0)?),
        arguments.required(1)?,
    )
}

fn transaction_by_index(context: &Context, reference: BlockReference, index: u64) -> Answer {
    let block = context.find_block(reference)?;
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    answer(&block.and_then(|block| answers::transaction(&block, index)))
}

pub(super) fn transaction_by_hash(context: &Context, arguments: &Arguments) -> Answer {
    let hash: B256 = arguments.required(0)?;
    // The pool first: a transaction leaves it only after its block is in the store, so one of the two has it.
    let pooled = context.chain.pool().get(&hash);
    if let Some((block, index)) = located(context, hash)? {
        return answer(&answers::transaction(&block, index));
    }
    answer(&pooled.map(|transaction| answers::pending_transaction(&transaction)))
}

pub(super) fn transaction_receipt(context: &Context, arguments: &Arguments) -> Answer {
    let hash: B256 = arguments.required(0)?;
    let Some(TransactionLocation { height, index }) = context.store().transaction_location(hash)?
    else {
        return answer(&());
    };
    let found = context.block_with_receipts(height)?;
    answer(&found.and_then(|found| answers::receipt(&found.block, &found.receipts, index as usize)))
}

fn located(
    context: &Context,
    hash: B256,
) -> Result<Option<(std::sync::Arc<crate::store::StoredBlock>, usize)>, RpcError> {
    let Some(TransactionLocation { height, index }) = context.store().transaction_location(hash)?
    else {
        return Ok(None);
    };
    Ok(context
        .store()
        .block(height)?
        .map(|block| (block, index as usize)))
}
