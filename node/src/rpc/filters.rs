//! Filters that a client polls. They hold a position, not results: what is new is read from the store when asked for.
//!
//! Bounded: at most so many filters, each gone when not polled for a while (the oldest goes first when room is needed).

use super::{
    arguments::{Arguments, BlockTag, FromArgument},
    context::Context,
    error::RpcError,
    logs::{Blocks, LogFilter},
    methods::{Answer, answer},
};
use alloy_primitives::{B256, U128};
use parking_lot::Mutex;
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

/// Hashes of pending transactions remembered for filters.
const PENDING_HASHES_MAX: usize = 8192;

/// All filters of this node.
pub(crate) struct Filters {
    lifetime: Duration,
    filters_max: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    filters: BTreeMap<U128, Filter>,
    pending: VecDeque<B256>,
    /// Position of the first hash in `pending`, counted from start.
    pending_start: u64,
}

struct Filter {
    polled: Instant,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    /// Next height to report.
    Logs {
        filter: LogFilter,
        next: u64,
    },
    Blocks {
        next: u64,
    },
    /// Next position to report.
    Pending {
        next: u64,
    },
}

/// The number of a filter.
struct FilterId(U128);

impl FromArgument for FilterId {
    fn from_argument(value: &Value) -> Result<Self, String> {
        u128::from_argument(value).map(|id| Self(U128::from(id)))
    }
}

impl Filters {
    pub(crate) fn new(filters_max: usize, lifetime: Duration) -> Self {
        Self {
            lifetime,
            filters_max,
            inner: Mutex::default(),
        }
    }

    /// Remembers a transaction that became executable.
    pub(crate) fn note_pending(&self, hash: B256) {
        let mut inner = self.inner.lock();
        inner.pending.push_back(hash);
        if inner.pending.len() > PENDING_HASHES_MAX {
            inner.pending.pop_front();
            inner.pending_start += 1;
        }
    }

    fn install(&self, kind: impl FnOnce(&Inner) -> Kind) -> U128 {
        let mut inner = self.inner.lock();
        let now = Instant::now();
        let lifetime = self.lifetime;
        inner
            .filters
            .retain(|_, filter| now.duration_since(filter.polled) < lifetime);
        while inner.filters.len() >= self.filters_max {
            let oldest = inner
                .filters
                .iter()
                .min_by_key(|(_, filter)| filter.polled)
                .map(|(id, _)| *id);
            let Some(oldest) = oldest else { break };
            inner.filters.remove(&oldest);
        }
        // Random, so that one client cannot guess another's filter.
        let id = U128::from(rand::random::<u128>() | 1 << 127);
        let kind = kind(&inner);
        inner.filters.insert(id, Filter { polled: now, kind });
        id
    }

    fn touch(&self, id: U128) -> Result<Kind, RpcError> {
        let mut inner = self.inner.lock();
        let lifetime = self.lifetime;
        let filter = inner
            .filters
            .get_mut(&id)
            .filter(|filter| filter.polled.elapsed() < lifetime)
            .ok_or(RpcError::FilterNotFound)?;
        filter.polled = Instant::now();
        Ok(filter.kind.clone())
    }

    fn advance(&self, id: U128, to: u64) {
        if let Some(filter) = self.inner.lock().filters.get_mut(&id) {
            match &mut filter.kind {
                Kind::Logs { next, .. } | Kind::Blocks { next } | Kind::Pending { next } => {
                    *next = to.max(*next)
                }
            }
        }
    }

    fn pending_since(&self, next: u64) -> (Vec<B256>, u64) {
        let inner = self.inner.lock();
        let skip = usize::try_from(next.saturating_sub(inner.pending_start)).unwrap_or(usize::MAX);
        (
            inner.pending.iter().skip(skip).copied().collect(),
            inner.pending_start + inner.pending.len() as u64,
        )
    }
}

pub(super) fn new_filter(context: &Context, arguments: &Arguments) -> Answer {
    let filter: LogFilter = arguments.required(0)?;
    let head = context.head()?.height;
    if let Blocks::Range {
        from: Some(BlockTag::Number(from)),
        to: Some(BlockTag::Number(to)),
    } = filter.blocks
        && from > to
    {
        return Err(RpcError::ReversedBlockRange);
    }
    // Changes are what comes after this moment; eth_getFilterLogs gives what the filter covers in full.
    answer(&context.filters.install(|_| Kind::Logs {
        filter,
        next: head + 1,
    }))
}

pub(super) fn new_block_filter(context: &Context, _: &Arguments) -> Answer {
    let next = context.head()?.height + 1;
    answer(&context.filters.install(|_| Kind::Blocks { next }))
}

pub(super) fn new_pending_filter(context: &Context, _: &Arguments) -> Answer {
    answer(&context.filters.install(|inner| Kind::Pending {
        next: inner.pending_start + inner.pending.len() as u64,
    }))
}

pub(super) fn uninstall(context: &Context, arguments: &Arguments) -> Answer {
    let FilterId(id) = arguments.required(0)?;
    answer(&context.filters.inner.lock().filters.remove(&id).is_some())
}

pub(super) fn logs(context: &Context, arguments: &Arguments) -> Answer {
    let FilterId(id) = arguments.required(0)?;
    match context.filters.touch(id)? {
        Kind::Logs { filter, .. } => answer(&filter.run(context)?),
        Kind::Blocks { .. } | Kind::Pending { .. } => Err(RpcError::FilterNotFound),
    }
}

pub(super) fn changes(context: &Context, arguments: &Arguments) -> Answer {
    let FilterId(id) = arguments.required(0)?;
    // At most one range of blocks at a time: a client that was away catches up poll by poll.
    let reach = |next: u64| -> Result<u64, RpcError> {
        let last = next.saturating_add(context.config.log_range_blocks_max - 1);
        Ok(context.head()?.height.min(last))
    };
    match context.filters.touch(id)? {
        Kind::Logs { filter, next } => {
            let Blocks::Range { from, to } = filter.blocks else {
                return answer(&Vec::<()>::new());
            };
            let first = match from {
                Some(BlockTag::Number(from)) => from.max(next),
                _ => next,
            };
            let reached = reach(next)?;
            let last = match to {
                Some(BlockTag::Number(to)) => to.min(reached),
                _ => reached,
            };
            let (logs, read_to) = filter.pattern.select_some(context, first, last)?;
            context.filters.advance(id, read_to.unwrap_or(reached) + 1);
            answer(&logs)
        }
        Kind::Blocks { next } => {
            let reached = reach(next)?;
            let mut hashes = Vec::new();
            for height in next..=reached {
                hashes.extend(context.store().header(height)?.map(|(_, hash)| hash));
            }
            context.filters.advance(id, reached + 1);
            answer(&hashes)
        }
        Kind::Pending { next } => {
            let (hashes, end) = context.filters.pending_since(next);
            context.filters.advance(id, end);
            answer(&hashes)
        }
    }
}
