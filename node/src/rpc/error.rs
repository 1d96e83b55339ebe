//! What a caller is told when a request fails: codes and texts as geth has them, because wallets and libraries match
//! on both. Internal detail goes to the log, never to the caller.

use crate::store::StoreError;
use alloy_primitives::Bytes;
use cloister_app::rejection::Rejection;
use jsonrpsee::types::ErrorObjectOwned;

/// A request that cannot be answered with a result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RpcError {
    /// An argument is malformed.
    #[error("invalid argument {index}: {reason}")]
    InvalidArgument { index: usize, reason: String },
    #[error("missing value for required argument {index}")]
    MissingArgument { index: usize },
    #[error("too many arguments, want at most {max}")]
    TooManyArguments { max: usize },
    #[error("non-array args")]
    ArgumentsNotArray,
    /// Well-formed arguments that contradict each other or a limit.
    #[error("{0}")]
    InvalidParameters(String),
    #[error("invalid block range params")]
    ReversedBlockRange,
    #[error("block range extends beyond current head block")]
    BlockRangeBeyondHead,
    /// A query larger than the node answers; the text says how to narrow it.
    #[error("{0}")]
    LimitExceeded(String),

    #[error("method handler crashed")]
    Crashed,
    #[error("the node has no block yet: the chain is not initialised")]
    NoBlockYet,
    #[error("header not found")]
    HeaderNotFound,
    #[error("header for hash not found")]
    HeaderForHashNotFound,
    #[error("unknown block")]
    UnknownBlock,
    #[error("filter not found")]
    FilterNotFound,
    #[error("request beyond head block: requested {requested}, head {head}")]
    BeyondHead { requested: u64, head: u64 },
    /// A refusal in geth's own words that needs no fields of ours.
    #[error("{0}")]
    Refused(String),

    /// The transaction breaks a rule of the chain or of the pool.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The called code reverted: code 3, with its return data.
    #[error("execution reverted{}", .reason.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Reverted { reason: Option<String>, data: Bytes },
    #[error("execution aborted (timeout = {timeout:?})")]
    TimedOut { timeout: std::time::Duration },
    #[error("all execution slots are busy, try again later")]
    Busy,

    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("internal error")]
    Internal(String),
}

const INVALID_PARAMS: i32 = -32602;
const INTERNAL: i32 = -32603;
const SERVER: i32 = -32000;
/// "Limit exceeded" of EIP-1474.
const LIMIT_EXCEEDED: i32 = -32005;
const REVERTED: i32 = 3;

impl RpcError {
    const fn code(&self) -> i32 {
        match self {
            Self::InvalidArgument { .. }
            | Self::MissingArgument { .. }
            | Self::TooManyArguments { .. }
            | Self::ArgumentsNotArray
            | Self::InvalidParameters(_)
            | Self::ReversedBlockRange
            | Self::BlockRangeBeyondHead => INVALID_PARAMS,
            Self::LimitExceeded(_) | Self::Busy => LIMIT_EXCEEDED,
            Self::NoBlockYet
            | Self::HeaderNotFound
            | Self::HeaderForHashNotFound
            | Self::UnknownBlock
            | Self::FilterNotFound
            | Self::BeyondHead { .. }
            | Self::Refused(_)
            | Self::Rejected(_)
            | Self::TimedOut { .. } => SERVER,
            Self::Reverted { .. } => REVERTED,
            Self::Crashed | Self::Internal(_) => INTERNAL,
            Self::Store(error) => match error {
                StoreError::HistoryPruned { .. } | StoreError::AboveHead { .. } => SERVER,
                StoreError::Database(_)
                | StoreError::Locked { .. }
                | StoreError::Corrupt { .. }
                | StoreError::Missing { .. }
                | StoreError::FormatVersion { .. }
                | StoreError::NotNext { .. }
                | StoreError::StateRoot { .. }
                | StoreError::Initialised { .. }
                | StoreError::Sync(_)
                | StoreError::State(_)
                | StoreError::File { .. }
                | StoreError::Io(_) => INTERNAL,
            },
        }
    }
}

impl From<RpcError> for ErrorObjectOwned {
    fn from(error: RpcError) -> Self {
        let code = error.code();
        if code == INTERNAL {
            tracing::error!(?error, "request failed inside the node");
            return Self::owned(code, "internal error", None::<()>);
        }
        let message = error.to_string();
        match error {
            RpcError::Reverted { data, .. } => Self::owned(code, message, Some(data)),
            RpcError::Store(StoreError::AboveHead { .. }) => {
                Self::owned(code, RpcError::HeaderNotFound.to_string(), None::<()>)
            }
            _ => Self::owned(code, message, None::<()>),
        }
    }
}

/// The reason in the data of a revert: the text of Solidity's `Error(string)` or the meaning of its `Panic(uint256)`.
pub(crate) fn revert_reason(data: &[u8]) -> Option<String> {
    use alloy_sol_types::{Panic, PanicKind, Revert, SolError};
    if let Ok(revert) = Revert::abi_decode(data) {
        return Some(revert.reason);
    }
    let panic = Panic::abi_decode(data).ok()?;
    Some(match panic.kind() {
        None => format!("unknown panic code: {:#x}", panic.code),
        Some(kind) => String::from(match kind {
            PanicKind::Generic => "generic panic",
            PanicKind::Assert => "assert(false)",
            PanicKind::UnderOverflow => "arithmetic underflow or overflow",
            PanicKind::DivisionByZero => "division or modulo by zero",
            PanicKind::EnumConversionError => "enum overflow",
            PanicKind::StorageEncodingError => "invalid encoded storage byte array accessed",
            PanicKind::EmptyArrayPop => "out-of-bounds array access; popping on an empty array",
            PanicKind::ArrayOutOfBounds => "out-of-bounds access of an array or bytesN",
            PanicKind::ResourceError => "out of memory",
            PanicKind::InvalidInternalFunction => "uninitialized function",
            _ => "unknown panic code",
        }),
    })
}
