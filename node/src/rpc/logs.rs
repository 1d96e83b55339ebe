//! Log queries: filter, bloom, and the caps that keep a query from reading the whole chain.

use super::{
    answers,
    arguments::{Arguments, BlockReference, BlockTag, Fields, FromArgument},
    context::{BlockWithReceipts, Context},
    error::RpcError,
    methods::{Answer, answer},
};
use alloy_primitives::{Address, B256, Bloom, BloomInput};
use alloy_rpc_types_eth::Log;
use serde_json::Value;

/// Topics of one log.
const TOPICS_MAX: usize = 4;
/// Addresses, or alternatives at one topic position, of one filter.
const ALTERNATIVES_MAX: usize = 1000;

/// Which blocks a query covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocks {
    Hash(B256),
    /// Both ends included; absent ends are the head.
    Range {
        from: Option<BlockTag>,
        to: Option<BlockTag>,
    },
}

/// A log query: blocks, and what a log must look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogFilter {
    pub(crate) blocks: Blocks,
    pub(crate) pattern: LogPattern,
}

/// An empty list of alternatives matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LogPattern {
    addresses: Vec<Address>,
    topics: Vec<Vec<B256>>,
}

/// One value or a list of alternatives.
struct OneOrMany<T>(Vec<T>);

impl<T: FromArgument> FromArgument for OneOrMany<T> {
    fn from_argument(value: &Value) -> Result<Self, String> {
        match value {
            Value::Array(values) if values.len() > ALTERNATIVES_MAX => Err(format!(
                "more than {ALTERNATIVES_MAX} alternatives: {}",
                values.len()
            )),
            Value::Array(_) => Vec::from_argument(value).map(Self),
            _ => T::from_argument(value).map(|one| Self(vec![one])),
        }
    }
}

/// The alternatives at one topic position; null, alone or in a list, matches everything.
struct TopicPosition(Vec<B256>);

impl FromArgument for TopicPosition {
    fn from_argument(value: &Value) -> Result<Self, String> {
        match value {
            Value::Null => Ok(Self(Vec::new())),
            Value::Array(values) if values.iter().any(Value::is_null) => Ok(Self(Vec::new())),
            _ => OneOrMany::from_argument(value).map(|OneOrMany(topics)| Self(topics)),
        }
    }
}

impl FromArgument for LogFilter {
    fn from_argument(value: &Value) -> Result<Self, String> {
        let fields = Fields::of(value)?;
        let hash = fields.get::<B256>("blockHash")?;
        let from = fields.get::<BlockTag>("fromBlock")?;
        let to = fields.get::<BlockTag>("toBlock")?;
        let blocks = match hash {
            Some(_) if from.is_some() || to.is_some() => {
                return Err(
                    "cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other"
                        .into(),
                );
            }
            Some(hash) => Blocks::Hash(hash),
            None => Blocks::Range { from, to },
        };
        Ok(Self {
            blocks,
            pattern: LogPattern::from_argument(value)?,
        })
    }
}

impl FromArgument for LogPattern {
    fn from_argument(value: &Value) -> Result<Self, String> {
        let fields = Fields::of(value)?;
        let addresses = fields
            .get::<OneOrMany<Address>>("address")?
            .map_or_else(Vec::new, |OneOrMany(all)| all);
        let topics: Vec<TopicPosition> = fields.get("topics")?.unwrap_or_default();
        if topics.len() > TOPICS_MAX {
            return Err(format!(
                "exceed max topics: {}, at most {TOPICS_MAX}",
                topics.len()
            ));
        }
        Ok(Self {
            addresses,
            topics: topics
                .into_iter()
                .map(|TopicPosition(topics)| topics)
                .collect(),
        })
    }
}

impl LogPattern {
    /// Whether a block with this bloom can hold such a log.
    fn may_match(&self, bloom: &Bloom) -> bool {
        let holds = |value: &[u8]| bloom.contains_input(BloomInput::Raw(value));
        (self.addresses.is_empty()
            || self
                .addresses
                .iter()
                .any(|address| holds(address.as_slice())))
            && self.topics.iter().all(|alternatives| {
                alternatives.is_empty() || alternatives.iter().any(|topic| holds(topic.as_slice()))
            })
    }

    fn matches(&self, log: &alloy_primitives::Log) -> bool {
        let topics = log.data.topics();
        (self.addresses.is_empty() || self.addresses.contains(&log.address))
            && self.topics.len() <= topics.len()
            && self.topics.iter().zip(topics).all(|(alternatives, topic)| {
                alternatives.is_empty() || alternatives.contains(topic)
            })
    }

    /// Logs of one block that match, in order.
    pub(crate) fn select(&self, found: &BlockWithReceipts) -> Vec<Log> {
        let BlockWithReceipts { block, receipts } = found;
        let mut log_index = 0;
        let mut selected = Vec::new();
        for (index, (transaction, receipt)) in
            block.transactions.iter().zip(receipts.iter()).enumerate()
        {
            for log in receipt.logs() {
                if self.matches(log) {
                    selected.push(answers::log(
                        block,
                        transaction,
                        index,
                        log_index,
                        log.clone(),
                    ));
                }
                log_index += 1;
            }
        }
        selected
    }

    /// Logs of the block at `height`; nothing is read but its header when its bloom rules them out.
    pub(crate) fn select_at(&self, context: &Context, height: u64) -> Result<Vec<Log>, RpcError> {
        let (header, _) = context
            .store()
            .header(height)?
            .ok_or(RpcError::UnknownBlock)?;
        if !self.may_match(&header.logs_bloom) {
            return Ok(Vec::new());
        }
        let found = context
            .block_with_receipts(height)?
            .ok_or(RpcError::UnknownBlock)?;
        Ok(self.select(&found))
    }

    /// Logs of blocks `from` to `to`, both included and both committed.
    pub(crate) fn select_range(
        &self,
        context: &Context,
        from: u64,
        to: u64,
    ) -> Result<Vec<Log>, RpcError> {
        let blocks_max = context.config.log_range_blocks_max;
        if to - from >= blocks_max {
            return Err(RpcError::LimitExceeded(format!(
                "query spans {} blocks, at most {blocks_max} are searched at once: narrow the range, e.g. {from} to {}",
                to - from + 1,
                from + blocks_max - 1
            )));
        }
        let deadline = std::time::Instant::now() + context.config.evm_timeout;
        let mut selected = Vec::new();
        for height in from..=to {
            selected.append(&mut self.select_at(context, height)?);
            let narrow = |what: String| {
                let hint = if height > from {
                    format!("narrow the range, e.g. {from} to {}", height - 1)
                } else {
                    "filter by address or topics".into()
                };
                Err(RpcError::LimitExceeded(format!("{what}: {hint}")))
            };
            if selected.len() > context.config.log_results_max {
                return narrow(format!(
                    "query returns more than {} logs",
                    context.config.log_results_max
                ));
            }
            if std::time::Instant::now() > deadline && height < to {
                return narrow(format!(
                    "query takes longer than {:?}",
                    context.config.evm_timeout
                ));
            }
        }
        Ok(selected)
    }
}

impl LogPattern {
    /// As many blocks of the range as the caps allow, for clients that come back for the rest: the logs, and the last
    /// height read if it is not `to`.
    pub(crate) fn select_some(
        &self,
        context: &Context,
        from: u64,
        to: u64,
    ) -> Result<(Vec<Log>, Option<u64>), RpcError> {
        let deadline = std::time::Instant::now() + context.config.evm_timeout;
        let mut selected = Vec::new();
        for height in from..=to {
            selected.append(&mut self.select_at(context, height)?);
            let enough = selected.len() >= context.config.log_results_max
                || std::time::Instant::now() > deadline;
            if enough && height < to {
                return Ok((selected, Some(height)));
            }
        }
        Ok((selected, None))
    }
}

impl LogFilter {
    /// All logs of the query, in order of block and index.
    pub(crate) fn run(&self, context: &Context) -> Result<Vec<Log>, RpcError> {
        let (from, to) = match self.blocks {
            Blocks::Hash(hash) => {
                let found = context
                    .find_block_with_receipts(BlockReference::Hash(hash))?
                    .ok_or(RpcError::UnknownBlock)?;
                return Ok(self.pattern.select(&found));
            }
            Blocks::Range { from, to } => (
                from.unwrap_or(BlockTag::Latest),
                to.unwrap_or(BlockTag::Latest),
            ),
        };
        let head = context.head()?.height;
        let resolve = |tag| match tag {
            BlockTag::Latest | BlockTag::Pending => head,
            BlockTag::Earliest => 0,
            BlockTag::Number(height) => height,
        };
        let (from, to) = (resolve(from), resolve(to));
        if from > to {
            return Err(RpcError::ReversedBlockRange);
        }
        if to > head {
            return Err(RpcError::BlockRangeBeyondHead);
        }
        self.pattern.select_range(context, from, to)
    }
}

pub(super) fn logs(context: &Context, arguments: &Arguments) -> Answer {
    let filter: LogFilter = arguments.required(0)?;
    answer(&filter.run(context)?)
}
