//! Why a transaction is refused: one variant per rule, with a stable code.
//!
//! Codes below 100 are rules of the transaction itself, 100 to 199 of the state it meets, 200 and up of the pool
//! (never in a block result). Codes are consensus data (they enter LastResultsHash): never renumber one.

use alloy_primitives::U256;

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("oversized data: transaction size {size_bytes}, limit {max_bytes}")]
    Oversized { size_bytes: usize, max_bytes: usize },
    #[error("rlp: {0}")]
    Undecodable(&'static str),
    #[error("transaction type not supported")]
    UnsupportedType { transaction_type: u8 },
    #[error("invalid transaction v, r, s values")]
    InvalidSignature,
    #[error("only replay-protected (EIP-155) transactions allowed over RPC")]
    NotReplayProtected,
    #[error("invalid chain id for signer: have {got} want {expected}")]
    WrongChainId { expected: u64, got: u64 },
    #[error("max priority fee per gas higher than max fee per gas")]
    TipAboveFeeCap { tip_wei: u128, fee_cap_wei: u128 },
    #[error("transaction gas limit too high (cap: {cap}, tx: {gas_limit})")]
    GasLimitAboveTransactionCap { cap: u64, gas_limit: u64 },
    #[error("exceeds block gas limit")]
    GasLimitAboveBlock { block: u64, gas_limit: u64 },
    #[error("intrinsic gas too low: gas {gas_limit}, minimum needed {needed}")]
    IntrinsicGasTooLow { gas_limit: u64, needed: u64 },
    #[error("insufficient gas for floor data gas cost: gas {gas_limit}, minimum needed {needed}")]
    FloorDataGasTooLow { gas_limit: u64, needed: u64 },
    #[error("max initcode size exceeded: code size {size_bytes} limit {max_bytes}")]
    InitCodeTooLarge { size_bytes: usize, max_bytes: usize },
    #[error("EIP-7702 transaction with empty auth list")]
    EmptyAuthorizationList,
    #[error("nonce has max value: 2^64-1")]
    NonceMax,

    #[error("nonce too low: next nonce {expected}, tx nonce {got}")]
    NonceTooLow { expected: u64, got: u64 },
    #[error("nonce too high: next nonce {expected}, tx nonce {got}")]
    NonceGap { expected: u64, got: u64 },
    #[error("insufficient funds for gas * price + value: balance {balance}, tx cost {cost}")]
    InsufficientFunds { balance: U256, cost: U256 },
    #[error(
        "max fee per gas less than block base fee: maxFeePerGas: {fee_cap_wei}, baseFee: {base_fee_wei}"
    )]
    FeeCapBelowBaseFee {
        fee_cap_wei: u128,
        base_fee_wei: u64,
    },
    #[error("sender not an eoa")]
    SenderHasCode,
    #[error("gas limit reached")]
    BlockGasExhausted { left: u64, gas_limit: u64 },
    /// revm refused for a reason our own checks do not foresee.
    #[error("transaction refused by the EVM: {0}")]
    Evm(String),

    #[error("already known")]
    AlreadyKnown,
    #[error("replacement transaction underpriced")]
    ReplacementUnderpriced,
    #[error("txpool is full")]
    PoolFull,
    #[error("account limit exceeded: {limit} transactions of one sender")]
    SenderLimit { limit: usize },
    #[error("in-flight transaction limit reached for delegated accounts")]
    DelegatedAccountLimit,
    #[error("dropped from the pool")]
    NoLongerInPool,
    #[error("gapped-nonce tx from delegated accounts")]
    DelegatedAccountGap,
    #[error("authority already reserved")]
    AuthorityReserved,
}

impl Rejection {
    /// Stable number of the rule, never 0.
    pub const fn code(&self) -> u32 {
        match self {
            Self::Oversized { .. } => 1,
            Self::Undecodable(_) => 2,
            Self::UnsupportedType { .. } => 3,
            Self::InvalidSignature => 4,
            Self::NotReplayProtected => 5,
            Self::WrongChainId { .. } => 6,
            Self::TipAboveFeeCap { .. } => 7,
            Self::GasLimitAboveTransactionCap { .. } => 8,
            Self::GasLimitAboveBlock { .. } => 9,
            Self::IntrinsicGasTooLow { .. } => 10,
            Self::FloorDataGasTooLow { .. } => 11,
            Self::InitCodeTooLarge { .. } => 12,
            Self::EmptyAuthorizationList => 13,
            Self::NonceMax => 14,
            Self::NonceTooLow { .. } => 100,
            Self::NonceGap { .. } => 101,
            Self::InsufficientFunds { .. } => 102,
            Self::FeeCapBelowBaseFee { .. } => 103,
            Self::SenderHasCode => 104,
            Self::BlockGasExhausted { .. } => 105,
            Self::Evm(_) => 199,
            Self::AlreadyKnown => 200,
            Self::ReplacementUnderpriced => 201,
            Self::PoolFull => 202,
            Self::SenderLimit { .. } => 203,
            Self::DelegatedAccountLimit => 204,
            Self::NoLongerInPool => 205,
            Self::DelegatedAccountGap => 206,
            Self::AuthorityReserved => 207,
        }
    }
}

#[cfg(test)]
mod tests;
