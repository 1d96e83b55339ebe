//! `txpool_`: what waits in the pool, by sender and nonce.

use super::{
    answers,
    arguments::Arguments,
    context::Context,
    methods::{Answer, answer},
};
use crate::pool::SenderContent;
use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, U64};
use cloister_app::transaction::Transaction;
use serde::Serialize;
use std::{collections::BTreeMap, sync::Arc};

/// Executable and waiting, as geth shows them.
#[derive(Debug, Default, Serialize)]
struct Content<T> {
    pending: T,
    queued: T,
}

/// Decimal nonce to whatever is shown of the transaction.
type ByNonce<T> = BTreeMap<String, T>;

pub(super) fn status(context: &Context, _: &Arguments) -> Answer {
    let (pending, queued) = context.chain.pool().size();
    answer(&Content {
        pending: U64::from(pending),
        queued: U64::from(queued),
    })
}

pub(super) fn content(context: &Context, _: &Arguments) -> Answer {
    answer(&all(context, answers::pending_transaction))
}

pub(super) fn content_from(context: &Context, arguments: &Arguments) -> Answer {
    let sender: Address = arguments.required(0)?;
    let found = context.chain.pool().content_of(sender);
    answer(&Content {
        pending: by_nonce(&found.pending, answers::pending_transaction),
        queued: by_nonce(&found.queued, answers::pending_transaction),
    })
}

pub(super) fn inspect(context: &Context, _: &Arguments) -> Answer {
    answer(&all(context, summary))
}

fn all<T>(
    context: &Context,
    show: fn(&Transaction) -> T,
) -> Content<BTreeMap<Address, ByNonce<T>>> {
    let mut content = Content {
        pending: BTreeMap::new(),
        queued: BTreeMap::new(),
    };
    for SenderContent {
        sender,
        pending,
        queued,
    } in context.chain.pool().content()
    {
        if !pending.is_empty() {
            content.pending.insert(sender, by_nonce(&pending, show));
        }
        if !queued.is_empty() {
            content.queued.insert(sender, by_nonce(&queued, show));
        }
    }
    content
}

fn by_nonce<T>(transactions: &[Arc<Transaction>], show: fn(&Transaction) -> T) -> ByNonce<T> {
    transactions
        .iter()
        .map(|transaction| {
            (
                transaction.envelope().nonce().to_string(),
                show(transaction),
            )
        })
        .collect()
}

fn summary(transaction: &Transaction) -> String {
    let envelope = transaction.envelope();
    let to = envelope
        .to()
        .map_or_else(|| "contract creation".into(), |to| to.to_string());
    format!(
        "{to}: {} wei + {} gas × {} wei",
        envelope.value(),
        envelope.gas_limit(),
        envelope.max_fee_per_gas()
    )
}
