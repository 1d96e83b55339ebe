//! The other file: CometBFT's genesis (JSON as v0.38 reads it), and the addresses of consensus keys.

use crate::{Fault, Genesis, GenesisError, Rule, file_hash, json};
use alloy_primitives::Address;
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use sha2::{Digest, Sha256};

/// Version of the application's rules: in Info, in the consensus parameters and in every header of consensus.
pub const APP_VERSION: u64 = 1;
/// CometBFT's defaults: evidence is accepted for 100,000 blocks or 48 hours, whichever ends later.
const EVIDENCE_MAX_AGE_BLOCKS: u64 = 100_000;
const EVIDENCE_MAX_AGE_NS: u64 = 48 * 3_600 * 1_000_000_000;

/// What `app_state` of the CometBFT genesis says: which `genesis.json` belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppState {
    /// SHA-256 of the bytes of `genesis.json`.
    pub genesis_sha256: [u8; 32],
    /// EVM chain id, for people who read the file.
    pub evm_chain_id: u64,
}

impl AppState {
    /// Reads the bytes that InitChain carries.
    pub fn parse(bytes: &[u8]) -> Result<Self, GenesisError> {
        let tree = json::parse(bytes)?;
        let mut reader = json::Reader::default();
        let mut state = Self {
            genesis_sha256: [0; 32],
            evm_chain_id: 0,
        };
        if let Some(fields) = reader.object("app_state", &tree, &["genesis_sha256", "evm_chain_id"])
        {
            state.genesis_sha256 = reader.fixed(&fields, "genesis_sha256", "32 bytes in hex");
            state.evm_chain_id = reader.integer(&fields, "evm_chain_id", 1, crate::CHAIN_ID_MAX);
        }
        if reader.faults.is_empty() {
            Ok(state)
        } else {
            Err(GenesisError::Invalid(reader.faults))
        }
    }

    /// Parses `genesis.json` if it is the file meant.
    pub fn open(&self, genesis_json: &[u8]) -> Result<Genesis, GenesisError> {
        let got = file_hash(genesis_json);
        if got != self.genesis_sha256 {
            return Err(GenesisError::HashMismatch {
                expected: self.genesis_sha256,
                got,
            });
        }
        let genesis = Genesis::parse(genesis_json)?;
        if genesis.parameters.chain_id == self.evm_chain_id {
            Ok(genesis)
        } else {
            Err(GenesisError::Invalid(vec![Fault {
                field: "app_state.evm_chain_id".into(),
                rule: Rule::WrongType {
                    got: self.evm_chain_id.to_string(),
                    want: "the chain id of genesis.json",
                },
            }]))
        }
    }
}

impl Genesis {
    /// The CometBFT genesis that names `genesis_json`, the bytes of the file that holds this genesis.
    pub fn to_cometbft_json(&self, genesis_json: &[u8]) -> Vec<u8> {
        let max_bytes = self.parameters.max_block_bytes;
        // Written by hand: serde_json's maps keep another order when a crate elsewhere asks for it.
        let validators: Vec<String> = self
            .validators
            .iter()
            .map(|validator| {
                format!(
                    r#"    {{"address": "{}", "pub_key": {{"type": "tendermint/PubKeyEd25519", "value": "{}"}}, "power": "{}", "name": {}}}"#,
                    hex::encode_upper(consensus_address(&validator.public_key)),
                    BASE64.encode(validator.public_key),
                    validator.power,
                    json::quote(&validator.name),
                )
            })
            .collect();
        format!(
            r#"{{
  "genesis_time": "{time}",
  "chain_id": {network},
  "initial_height": "1",
  "consensus_params": {{
    "block": {{"max_bytes": "{max_bytes}", "max_gas": "-1"}},
    "evidence": {{"max_age_num_blocks": "{EVIDENCE_MAX_AGE_BLOCKS}", "max_age_duration": "{EVIDENCE_MAX_AGE_NS}", "max_bytes": "{evidence_max_bytes}"}},
    "validator": {{"pub_key_types": ["ed25519"]}},
    "version": {{"app": "{APP_VERSION}"}},
    "abci": {{"vote_extensions_enable_height": "0"}}
  }},
  "validators": [
{validators}
  ],
  "app_hash": "",
  "app_state": {{"genesis_sha256": "{hash}", "evm_chain_id": {chain_id}}}
}}
"#,
            time = rfc3339(self.timestamp),
            network = json::quote(&self.network),
            evidence_max_bytes = (max_bytes / 4).min(1024 * 1024),
            validators = validators.join(",\n"),
            hash = hex::encode(file_hash(genesis_json)),
            chain_id = self.parameters.chain_id,
        )
        .into_bytes()
    }
}

/// Address of a consensus key in CometBFT: first 20 bytes of its SHA-256.
pub fn consensus_address(public_key: &[u8; 32]) -> Address {
    Address::from_slice(&Sha256::digest(public_key)[..20])
}

/// y-coordinates (little-endian, sign bit clear) of the points of order 1, 2, 4 and 8.
const SMALL_ORDER: [[u8; 32]; 5] = [
    alloy_primitives::hex!("0000000000000000000000000000000000000000000000000000000000000000"),
    alloy_primitives::hex!("0100000000000000000000000000000000000000000000000000000000000000"),
    alloy_primitives::hex!("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
    alloy_primitives::hex!("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    alloy_primitives::hex!("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
];

/// Whether 32 bytes are the one encoding of a point of large order. A second encoding of a key would have a second
/// consensus address and slip past a bar; with a point of small order anyone can sign.
pub fn is_canonical_public_key(public_key: &[u8; 32]) -> bool {
    // 2^255 - 19, little-endian.
    const PRIME: [u8; 32] =
        alloy_primitives::hex!("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f");
    let mut y = *public_key;
    y[31] &= 0x7f;
    y.iter().rev().lt(PRIME.iter().rev())
        && !SMALL_ORDER.contains(&y)
        && ed25519_consensus::VerificationKey::try_from(*public_key).is_ok()
}

/// Seconds since the epoch as RFC 3339 in UTC.
pub(crate) fn rfc3339(timestamp: u64) -> String {
    let (days, seconds) = (timestamp / 86_400, timestamp % 86_400);
    // Days to civil date in a calendar of 400-year eras whose years begin on 1 March, so that leap days come last.
    let shifted = days.saturating_add(719_468);
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}
