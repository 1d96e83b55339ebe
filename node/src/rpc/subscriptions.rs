//! `eth_subscribe`: each subscription follows the head by height and reads what it sends from the store, so it shows what
//! the methods show, in order, without gaps, and a slow client costs no memory.

use super::{
    answers,
    arguments::Arguments,
    context::{Context, Cost},
    error::RpcError,
    logs::LogPattern,
    methods::{Answer, answer},
    status::Syncing,
};
use alloy_primitives::U128;
use jsonrpsee::{
    PendingSubscriptionSink, SubscriptionMessage, SubscriptionSink,
    server::IdProvider,
    types::{ErrorObjectOwned, Params, SubscriptionId},
};
use serde_json::value::RawValue;
use std::sync::Arc;
use tokio::sync::broadcast::error::RecvError;

/// Subscription ids as geth has them: hexadecimal, random.
#[derive(Debug)]
pub(crate) struct HexIds;

impl IdProvider for HexIds {
    fn next_id(&self) -> SubscriptionId<'static> {
        SubscriptionId::from(format!(
            "{:#x}",
            U128::from(rand::random::<u128>() | 1 << 127)
        ))
    }
}

enum Topic {
    NewHeads,
    Logs(LogPattern),
    PendingTransactions { full: bool },
    Syncing,
}

fn topic(params: &Params<'_>) -> Result<Topic, RpcError> {
    let arguments = Arguments::parse(params, 2)?;
    let name: String = arguments.required(0)?;
    Ok(match name.as_str() {
        "newHeads" => Topic::NewHeads,
        "logs" => Topic::Logs(arguments.optional(1)?.unwrap_or_default()),
        "newPendingTransactions" => Topic::PendingTransactions {
            full: arguments.optional(1)?.unwrap_or_default(),
        },
        "syncing" => Topic::Syncing,
        other => {
            let shown: String = other.chars().take(64).collect();
            return Err(RpcError::InvalidParameters(format!(
                "no \"{shown}\" subscription in eth namespace"
            )));
        }
    })
}

/// Serves one subscription until the client leaves or the node stops.
pub(crate) async fn serve(
    params: Params<'static>,
    pending: PendingSubscriptionSink,
    context: Arc<Context>,
) {
    let topic = match topic(&params) {
        Ok(topic) => topic,
        Err(error) => return pending.reject(ErrorObjectOwned::from(error)).await,
    };
    match topic {
        Topic::NewHeads => {
            follow_blocks(pending, context, |context, height| {
                let block = context
                    .store()
                    .block(height)?
                    .ok_or(RpcError::UnknownBlock)?;
                Ok(vec![to_raw(&answers::header(&block))?])
            })
            .await;
        }
        Topic::Logs(pattern) => {
            follow_blocks(pending, context, move |context, height| {
                pattern
                    .select_at(context, height)?
                    .iter()
                    .map(to_raw)
                    .collect()
            })
            .await;
        }
        Topic::PendingTransactions { full } => follow_pool(pending, context, full).await,
        Topic::Syncing => follow_sync(pending, context).await,
    }
}

fn to_raw<T: serde::Serialize>(value: &T) -> Answer {
    answer(value)
}

/// `Err` when the client is gone.
async fn send(sink: &SubscriptionSink, value: &RawValue) -> Result<(), ()> {
    let message = SubscriptionMessage::new(sink.method_name(), sink.subscription_id(), &value)
        .map_err(|_| ())?;
    sink.send(message).await.map_err(|_| ())
}

async fn follow_blocks<F>(pending: PendingSubscriptionSink, context: Arc<Context>, show: F)
where
    F: Fn(&Context, u64) -> Result<Vec<Box<RawValue>>, RpcError> + Send + Sync + 'static,
{
    // Subscribed before the head is read: no block falls between the two.
    let mut events = context.chain.subscribe_blocks();
    let Ok(head) = context.head() else {
        return pending
            .reject(ErrorObjectOwned::from(RpcError::NoBlockYet))
            .await;
    };
    let mut next = head.height.saturating_add(1);
    let Ok(sink) = pending.accept().await else {
        return;
    };
    let show = Arc::new(show);
    loop {
        tokio::select! {
            event = events.recv() => match event {
                // A lagging receiver has lost events, not blocks: the head tells how far to go.
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            },
            () = sink.closed() => return,
        }
        while context
            .store()
            .head()
            .is_some_and(|head| head.height >= next)
        {
            let show = Arc::clone(&show);
            let at = next;
            let shown = context
                .run(Cost::Light, move |context| show(context, at))
                .await;
            match shown {
                Ok(values) => {
                    for value in values {
                        if send(&sink, &value).await.is_err() {
                            return;
                        }
                    }
                    next = next.saturating_add(1);
                }
                Err(RpcError::Busy) => {}
                Err(error) => {
                    tracing::warn!(height = at, %error, "subscription ended");
                    return;
                }
            }
        }
    }
}

async fn follow_pool(pending: PendingSubscriptionSink, context: Arc<Context>, full: bool) {
    let mut events = context.chain.pool().subscribe_pending();
    let Ok(sink) = pending.accept().await else {
        return;
    };
    loop {
        let transaction = tokio::select! {
            event = events.recv() => match event {
                Ok(transaction) => transaction,
                // Announcements are not history: what a slow client missed is not repeated.
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return,
            },
            () = sink.closed() => return,
        };
        let shown = if full {
            answer(&answers::pending_transaction(&transaction))
        } else {
            answer(&transaction.hash())
        };
        let Ok(shown) = shown else { return };
        if send(&sink, &shown).await.is_err() {
            return;
        }
    }
}

async fn follow_sync(pending: PendingSubscriptionSink, context: Arc<Context>) {
    let mut status = context.consensus.clone();
    let Ok(sink) = pending.accept().await else {
        return;
    };
    loop {
        let now = *status.borrow_and_update();
        let head = context.store().head().map_or(0, |head| head.height);
        let Ok(shown) = answer(&Syncing::now(now, head)) else {
            return;
        };
        if send(&sink, &shown).await.is_err() {
            return;
        }
        // Only a change between syncing and synced is news.
        tokio::select! {
            changed = status.wait_for(|status| status.catching_up != now.catching_up) => if changed.is_err() { return },
            () = sink.closed() => return,
        }
    }
}
