//! What can be wrong with a genesis: every fault names its field, the bad value and a remedy.

use alloy_primitives::{Address, U256};

/// Why a genesis is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GenesisError {
    /// Not JSON at all.
    #[error("not JSON: {reason} (line {line}, column {column})")]
    Syntax {
        line: usize,
        column: usize,
        reason: String,
    },
    /// Another file than the one the CometBFT genesis names.
    #[error(
        "genesis.json has SHA-256 {}, the CometBFT genesis names {}",
        hex::encode(got),
        hex::encode(expected)
    )]
    HashMismatch { expected: [u8; 32], got: [u8; 32] },
    /// All that is wrong with it.
    #[error("{}", list(.0))]
    Invalid(Vec<Fault>),
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {rule}")]
pub struct Fault {
    /// Path from the top, e.g. `parameters.gas_limit` or `validators[2].power`.
    pub field: String,
    /// The broken rule.
    pub rule: Rule,
}

/// A rule of genesis files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    #[error("missing")]
    Missing,
    #[error("unknown key")]
    UnknownKey { known: &'static [&'static str] },
    #[error("given twice")]
    DuplicateKey,
    #[error("got {got}, want {want}")]
    WrongType { got: String, want: &'static str },
    #[error("{got} is below the least allowed: {min}")]
    TooSmall { got: String, min: u64 },
    #[error("{got} is above the largest allowed: {max}")]
    TooLarge { got: String, max: U256 },
    #[error("unknown fork: {got}")]
    UnknownFork { got: String },
    #[error("not a name of 1 to 50 printable ASCII characters: {got:?}")]
    NetworkName { got: String },
    #[error("no validators")]
    NoValidators,
    #[error("{got} validators, at most {max}")]
    TooManyValidators { got: usize, max: usize },
    #[error("member appears twice: {member}")]
    DuplicateMember { member: Address },
    #[error("the zero address: {got}")]
    ZeroAddress { got: Address },
    #[error("public key appears twice: {}", hex::encode(public_key))]
    DuplicatePublicKey { public_key: [u8; 32] },
    #[error(
        "not a canonical ed25519 public key of large order: {}",
        hex::encode(public_key)
    )]
    PublicKey { public_key: [u8; 32] },
    #[error("total power is {got}, at most {max}")]
    TotalPower { got: u128, max: u64 },
    #[error("initial base fee {initial_wei} is below the floor {floor_wei}")]
    InitialBelowFloor { initial_wei: u64, floor_wei: u64 },
    #[error("name appears twice: {name}")]
    DuplicateKeyName { name: String },
    #[error("verifying key refused: {reason}")]
    VerifyingKey { reason: String },
    #[error("same verifying key as verifying_keys[{first}]")]
    DuplicateVerifyingKey { first: usize },
    #[error("development key in a network that is not a development network: {name}")]
    DevelopmentKey { name: String },
    #[error("account appears twice: {address}")]
    DuplicateAccount { address: Address },
    #[error("address belongs to the system contract {contract}: {address}")]
    SystemAddress {
        address: Address,
        contract: &'static str,
    },
    #[error("address of a precompile cannot hold code, a nonce or storage: {address}")]
    PrecompileAddress { address: Address },
    #[error("system contract {contract} is missing or altered: {address}")]
    SystemContract {
        address: Address,
        contract: &'static str,
    },
    #[error("balances add up to more than 2^256 - 1 wei")]
    TotalBalance,
}

impl Rule {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Missing => "add it; `cloister init` writes a file with every field".into(),
            Self::UnknownKey { known } => format!("remove it; known here: {}", known.join(", ")),
            Self::DuplicateKey => "keep one of the two".into(),
            Self::WrongType { want, .. } => format!("write {want}"),
            Self::TooSmall { min, .. } => format!("choose at least {min}"),
            Self::TooLarge { max, .. } => format!("choose at most {max}"),
            Self::UnknownFork { .. } => "one of shanghai, cancun, prague, osaka".into(),
            Self::NetworkName { .. } => {
                "for example cloister-31337; CometBFT uses it as its chain id".into()
            }
            Self::NoValidators => "a chain needs at least one validator to make a block".into(),
            Self::TooManyValidators { max, .. } => format!("name at most {max}"),
            Self::DuplicateMember { .. } => "each validator needs its own member account".into(),
            Self::ZeroAddress { .. } => "name an account whose key someone holds".into(),
            Self::DuplicatePublicKey { .. } => "each validator needs its own consensus key".into(),
            Self::PublicKey { .. } => {
                "copy the 32 bytes of pub_key in CometBFT's priv_validator_key.json, as hex".into()
            }
            Self::TotalPower { .. } => {
                "scale all powers down; only their ratios matter, e.g. 100 each".into()
            }
            Self::InitialBelowFloor { floor_wei, .. } => {
                format!("set base_fee.initial_wei to at least {floor_wei}")
            }
            Self::DuplicateKeyName { .. } => "give each verifying key its own name".into(),
            Self::VerifyingKey { .. } => {
                "use a key from a finished ceremony; degenerate keys let anyone forge proofs".into()
            }
            Self::DuplicateVerifyingKey { .. } => "register each verifying key once".into(),
            Self::DevelopmentKey { .. } => {
                "register a key from a ceremony, or set development: true on a test network".into()
            }
            Self::DuplicateAccount { .. } => {
                "keep one entry; case and the 0x prefix do not tell addresses apart".into()
            }
            Self::SystemAddress { .. } => {
                "leave it out: the builder puts the contract there itself".into()
            }
            Self::PrecompileAddress { .. } => "leave it out, or keep its balance alone".into(),
            Self::SystemContract { .. } => {
                "build the file with `cloister init`; validators are changed there, not by hand"
                    .into()
            }
            Self::TotalBalance => "lower the balances".into(),
        }
    }
}

impl GenesisError {
    /// What to do about it, one line for each fault.
    pub fn hint(&self) -> String {
        match self {
            Self::Syntax { .. } => "write strict JSON: no comments, no trailing commas".into(),
            Self::HashMismatch { .. } => {
                "fetch both files from one source; never edit genesis.json after the network began"
                    .into()
            }
            Self::Invalid(faults) => faults
                .iter()
                .map(|fault| format!("{}: {}", fault.field, fault.rule.hint()))
                .collect::<Vec<_>>()
                .join("\n"),
        }
    }

    /// The faults, empty unless the file is JSON with faults.
    pub fn faults(&self) -> &[Fault] {
        match self {
            Self::Invalid(faults) => faults,
            Self::Syntax { .. } | Self::HashMismatch { .. } => &[],
        }
    }
}

/// At most this many faults are shown: a broken alloc of 200,000 accounts would drown the reader.
const FAULTS_SHOWN_MAX: usize = 20;

fn list(faults: &[Fault]) -> String {
    let mut lines: Vec<String> = faults
        .iter()
        .take(FAULTS_SHOWN_MAX)
        .map(ToString::to_string)
        .collect();
    if faults.len() > FAULTS_SHOWN_MAX {
        lines.push(format!(
            "and {} more",
            faults.len().saturating_sub(FAULTS_SHOWN_MAX)
        ));
    }
    lines.join("\n")
}
