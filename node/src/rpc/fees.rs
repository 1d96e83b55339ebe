//! What gas costs: suggestions and history.
//!
//! The suggested tip is the 60th percentile of the smallest tips (three a block) of the last 20 blocks, as geth's oracle
//! has it. On a chain with nothing to learn from it is the base fee, at most 1 gwei: an idle chain without fees suggests 0.

use super::{
    arguments::{Arguments, BlockTag, LooseNumber, Percentile},
    context::Context,
    error::RpcError,
    methods::{Answer, answer},
};
use alloy_consensus::{Header, Transaction as _};
use alloy_primitives::U256;
use alloy_rpc_types_eth::FeeHistory;

const ORACLE_BLOCKS: u64 = 20;
const ORACLE_TIPS_PER_BLOCK: usize = 3;
const ORACLE_PERCENTILE: usize = 60;
const ORACLE_TIP_WEI_MAX: u128 = 500_000_000_000;
const DEFAULT_TIP_WEI_MAX: u128 = 1_000_000_000;
/// Blocks of one `eth_feeHistory`, as geth.
const HISTORY_BLOCKS_MAX: u64 = 1024;
const PERCENTILES_MAX: usize = 100;

pub(super) fn gas_price(context: &Context, _: &Arguments) -> Answer {
    let head = context.head()?;
    let base_fee = context.chain.app().next_base_fee(&head.header);
    answer(&U256::from(
        suggested_tip(context)?.saturating_add(u128::from(base_fee)),
    ))
}

pub(super) fn max_priority_fee(context: &Context, _: &Arguments) -> Answer {
    answer(&U256::from(suggested_tip(context)?))
}

/// There are no blobs: the least price that EIP-4844 knows.
pub(super) fn blob_base_fee(_: &Context, _: &Arguments) -> Answer {
    answer(&U256::ONE)
}

fn suggested_tip(context: &Context) -> Result<u128, RpcError> {
    let head = context.head()?;
    let mut tips = Vec::new();
    for height in head.height.saturating_sub(ORACLE_BLOCKS - 1)..=head.height {
        let Some(block) = context.store().block(height)? else {
            continue;
        };
        let base_fee = block.header.base_fee_per_gas.unwrap_or_default();
        let mut of_block: Vec<u128> = block
            .transactions
            .iter()
            .filter_map(|transaction| transaction.envelope().effective_tip_per_gas(base_fee))
            .collect();
        of_block.sort_unstable();
        tips.extend(of_block.into_iter().take(ORACLE_TIPS_PER_BLOCK));
    }
    tips.sort_unstable();
    let at = tips.len().saturating_sub(1) * ORACLE_PERCENTILE / 100;
    Ok(tips.get(at).map_or_else(
        || u128::from(context.chain.app().next_base_fee(&head.header)).min(DEFAULT_TIP_WEI_MAX),
        |tip| (*tip).min(ORACLE_TIP_WEI_MAX),
    ))
}

pub(super) fn fee_history(context: &Context, arguments: &Arguments) -> Answer {
    let LooseNumber(count) = arguments.required(0)?;
    let newest = context.height(arguments.required::<BlockTag>(1)?)?;
    let percentiles: Vec<Percentile> = arguments.optional(2)?.unwrap_or_default();
    check_percentiles(&percentiles)?;
    let head = context.head()?.height;
    if newest > head {
        return Err(RpcError::BeyondHead {
            requested: newest,
            head,
        });
    }
    if count == 0 {
        return answer(&FeeHistory::default());
    }
    let count = count.min(HISTORY_BLOCKS_MAX).min(newest.saturating_add(1));
    let oldest = newest + 1 - count;
    let mut history = FeeHistory {
        oldest_block: oldest,
        ..FeeHistory::default()
    };
    let mut rewards = Vec::new();
    for height in oldest..=newest {
        let (header, _) = context
            .store()
            .header(height)?
            .ok_or(RpcError::HeaderNotFound)?;
        history
            .base_fee_per_gas
            .push(u128::from(header.base_fee_per_gas.unwrap_or_default()));
        history
            .gas_used_ratio
            .push(ratio(header.gas_used, header.gas_limit));
        // There are no blobs: their fee stays at its minimum of 1 wei and their use at 0.
        history.base_fee_per_blob_gas.push(1);
        history.blob_gas_used_ratio.push(0.0);
        if !percentiles.is_empty() {
            rewards.push(rewards_of(context, height, &header, &percentiles)?);
        }
        if height == newest {
            let next = context.chain.app().next_base_fee(&header);
            history.base_fee_per_gas.push(u128::from(next));
            history.base_fee_per_blob_gas.push(1);
        }
    }
    history.reward = (!percentiles.is_empty()).then_some(rewards);
    answer(&history)
}

fn check_percentiles(percentiles: &[Percentile]) -> Result<(), RpcError> {
    if percentiles.len() > PERCENTILES_MAX {
        return Err(RpcError::Refused(format!(
            "invalid reward percentile: over the query limit {PERCENTILES_MAX}"
        )));
    }
    let mut previous = 0.0;
    for (index, Percentile(percentile)) in percentiles.iter().enumerate() {
        if !(0.0..=100.0).contains(percentile) {
            return Err(RpcError::Refused(format!(
                "invalid reward percentile: {percentile:.6}"
            )));
        }
        if *percentile < previous {
            return Err(RpcError::Refused(format!(
                "invalid reward percentile: #{}:{previous:.6} >= #{index}:{percentile:.6}",
                index.saturating_sub(1)
            )));
        }
        previous = *percentile;
    }
    Ok(())
}

fn ratio(gas_used: u64, gas_limit: u64) -> f64 {
    if gas_limit == 0 {
        0.0
    } else {
        gas_used as f64 / gas_limit as f64
    }
}

/// For each percentile of the block's gas, the tip of the transaction that reaches it, in wei.
fn rewards_of(
    context: &Context,
    height: u64,
    header: &Header,
    percentiles: &[Percentile],
) -> Result<Vec<u128>, RpcError> {
    let Some(found) = context.block_with_receipts(height)? else {
        return Err(RpcError::HeaderNotFound);
    };
    let base_fee = header.base_fee_per_gas.unwrap_or_default();
    let mut before = 0;
    let mut tips: Vec<(u128, u64)> = Vec::with_capacity(found.receipts.len());
    for (transaction, receipt) in found.block.transactions.iter().zip(found.receipts.iter()) {
        let cumulative = receipt.cumulative_gas_used();
        let tip = transaction
            .envelope()
            .effective_tip_per_gas(base_fee)
            .unwrap_or_default();
        tips.push((tip, cumulative.saturating_sub(before)));
        before = cumulative;
    }
    tips.sort_unstable_by_key(|(tip, _)| *tip);
    let Some(((first_tip, first_gas), rest)) = tips.split_first() else {
        return Ok(vec![0; percentiles.len()]);
    };
    let (mut tip, mut sum, mut rest) = (*first_tip, *first_gas, rest.iter());
    Ok(percentiles
        .iter()
        .map(|Percentile(percentile)| {
            // Truncation is what geth does: a threshold in whole gas.
            let threshold = (header.gas_used as f64 * percentile / 100.0) as u64;
            while sum < threshold {
                let Some((next, gas)) = rest.next() else {
                    break;
                };
                tip = *next;
                sum = sum.saturating_add(*gas);
            }
            tip
        })
        .collect())
}
