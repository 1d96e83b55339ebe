//! `genesis.json` from bytes, and the alloc of Ethereum's genesis files.

use crate::{
    BaseFeeParameters, Fork, Genesis, GenesisError, GenesisValidator, GenesisVerifyingKey,
    Parameters, Rule,
    json::{self, Fields, Json, Reader, parse_fixed},
    validate,
};
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, U256};
use std::collections::BTreeMap;

const GENESIS_KEYS: &[&str] = &[
    "network",
    "development",
    "timestamp",
    "parameters",
    "validators",
    "verifying_keys",
    "alloc",
];
const PARAMETER_KEYS: &[&str] = &[
    "chain_id",
    "fork",
    "gas_limit",
    "base_fee",
    "block_reward_wei",
    "max_block_bytes",
    "snapshot_interval_blocks",
    "snapshot_format",
    "epoch_length_blocks",
    "stamp_difficulty_bits",
    "downtime_window_blocks",
    "jail_blocks",
];
const BASE_FEE_KEYS: &[&str] = &[
    "elasticity",
    "floor_wei",
    "initial_wei",
    "change_denominator",
];
const VALIDATOR_KEYS: &[&str] = &["member", "public_key", "power", "payout", "name"];
const VERIFYING_KEY_KEYS: &[&str] = &["name", "development", "key"];
const ACCOUNT_KEYS: &[&str] = &["balance", "nonce", "code", "storage"];
/// Ethereum's tools also write the secret key of test accounts; it is read over.
const ETHEREUM_ACCOUNT_KEYS: &[&str] = &["balance", "nonce", "code", "storage", "secretKey"];

impl Genesis {
    /// Reads and checks `genesis.json`. All faults are reported at once.
    pub fn parse(bytes: &[u8]) -> Result<Self, GenesisError> {
        let tree = json::parse(bytes)?;
        let mut reader = Reader::default();
        let Some(fields) = reader.object("", &tree, GENESIS_KEYS) else {
            return Err(GenesisError::Invalid(reader.faults));
        };
        let genesis = Self {
            network: reader.string(&fields, "network"),
            // Unread, it must not make every development key a fault of its own.
            development: reader.boolean(&fields, "development", true),
            timestamp: reader.integer(&fields, "timestamp", 0, u64::MAX),
            parameters: parameters(&mut reader, &fields),
            validators: validators(&mut reader, &fields),
            verifying_keys: verifying_keys(&mut reader, &fields),
            alloc: reader
                .required(&fields, "alloc")
                .map(|json| alloc(&mut reader, "alloc", json, ACCOUNT_KEYS))
                .unwrap_or_default(),
        };
        validate::finish(genesis, reader.faults)
    }
}

/// The alloc of an Ethereum genesis: the whole file with `alloc` inside, or the alloc alone.
pub(crate) fn ethereum_alloc(
    bytes: &[u8],
) -> Result<BTreeMap<Address, GenesisAccount>, GenesisError> {
    let tree = json::parse(bytes)?;
    let mut reader = Reader::default();
    let (path, inner) = match &tree {
        Json::Object(entries) => entries
            .iter()
            .find(|entry| entry.0 == "alloc")
            .map_or(("", &tree), |entry| ("alloc", &entry.1)),
        Json::Null
        | Json::Bool(_)
        | Json::Unsigned(_)
        | Json::Other(_)
        | Json::String(_)
        | Json::Array(_) => ("", &tree),
    };
    let accounts = alloc(&mut reader, path, inner, ETHEREUM_ACCOUNT_KEYS);
    if reader.faults.is_empty() {
        Ok(accounts)
    } else {
        Err(GenesisError::Invalid(reader.faults))
    }
}

fn parameters(reader: &mut Reader, genesis: &Fields<'_, '_>) -> Parameters {
    let stand_in = Parameters::new(1);
    let Some(json) = reader.required(genesis, "parameters") else {
        return stand_in;
    };
    let Some(fields) = reader.object("parameters", json, PARAMETER_KEYS) else {
        return stand_in;
    };
    let fields = &fields;
    Parameters {
        chain_id: reader.integer(fields, "chain_id", 0, u64::MAX),
        fork: fork(reader, fields),
        gas_limit: reader.integer(fields, "gas_limit", 0, u64::MAX),
        base_fee: base_fee(reader, fields),
        block_reward_wei: reader
            .required(fields, "block_reward_wei")
            .map(|json| reader.quantity("parameters.block_reward_wei", json))
            .unwrap_or_default(),
        max_block_bytes: reader.integer(fields, "max_block_bytes", 0, u64::MAX),
        snapshot_interval_blocks: reader.integer(fields, "snapshot_interval_blocks", 0, u64::MAX),
        snapshot_format: reader
            .integer(fields, "snapshot_format", 0, u32::MAX.into())
            .try_into()
            .expect("bounded by the line above"),
        epoch_length_blocks: reader.integer(fields, "epoch_length_blocks", 0, u64::MAX),
        stamp_difficulty_bits: reader
            .integer(fields, "stamp_difficulty_bits", 0, u8::MAX.into())
            .try_into()
            .expect("bounded by the line above"),
        downtime_window_blocks: reader.integer(fields, "downtime_window_blocks", 0, u64::MAX),
        jail_blocks: reader.integer(fields, "jail_blocks", 0, u64::MAX),
    }
}

fn fork(reader: &mut Reader, fields: &Fields<'_, '_>) -> Fork {
    let faults = reader.faults.len();
    let name = reader.string(fields, "fork");
    let known = Fork::NAMES.into_iter().find(|(known, _)| *known == name);
    if known.is_none() && reader.faults.len() == faults {
        reader.fault(fields.path("fork"), Rule::UnknownFork { got: name });
    }
    known.map(|(_, fork)| fork).unwrap_or_default()
}

fn base_fee(reader: &mut Reader, parameters: &Fields<'_, '_>) -> BaseFeeParameters {
    let stand_in = Parameters::new(1).base_fee;
    let Some(json) = reader.required(parameters, "base_fee") else {
        return stand_in;
    };
    let Some(fields) = reader.object("parameters.base_fee", json, BASE_FEE_KEYS) else {
        return stand_in;
    };
    BaseFeeParameters {
        elasticity: reader.integer(&fields, "elasticity", 0, u64::MAX),
        floor_wei: reader.integer(&fields, "floor_wei", 0, u64::MAX),
        initial_wei: reader.integer(&fields, "initial_wei", 0, u64::MAX),
        change_denominator: reader.integer(&fields, "change_denominator", 0, u64::MAX),
    }
}

fn validators(reader: &mut Reader, genesis: &Fields<'_, '_>) -> Vec<GenesisValidator> {
    let mut validators = Vec::new();
    for (index, json) in reader.array(genesis, "validators").iter().enumerate() {
        let path = format!("validators[{index}]");
        let Some(fields) = reader.object(&path, json, VALIDATOR_KEYS) else {
            continue;
        };
        validators.push(GenesisValidator {
            member: reader.address(&fields, "member"),
            public_key: reader.fixed(
                &fields,
                "public_key",
                "an ed25519 public key: 32 bytes in hex",
            ),
            power: reader.integer(&fields, "power", 0, u64::MAX),
            payout: reader.address(&fields, "payout"),
            name: reader.string(&fields, "name"),
        });
    }
    validators
}

fn verifying_keys(reader: &mut Reader, genesis: &Fields<'_, '_>) -> Vec<GenesisVerifyingKey> {
    let mut keys = Vec::new();
    for (index, json) in reader.array(genesis, "verifying_keys").iter().enumerate() {
        let path = format!("verifying_keys[{index}]");
        let Some(fields) = reader.object(&path, json, VERIFYING_KEY_KEYS) else {
            continue;
        };
        keys.push(GenesisVerifyingKey {
            name: reader.string(&fields, "name"),
            development: reader.boolean(&fields, "development", false),
            key: reader
                .required(&fields, "key")
                .map(|json| reader.bytes(&fields.path("key"), json))
                .unwrap_or_default(),
        });
    }
    keys
}

fn alloc(
    reader: &mut Reader,
    path: &str,
    json: &Json<'_>,
    known: &'static [&'static str],
) -> BTreeMap<Address, GenesisAccount> {
    let mut accounts = BTreeMap::new();
    for (key, value) in reader.entries(path, json).unwrap_or_default() {
        let account_path = || {
            if path.is_empty() {
                key.to_string()
            } else {
                format!("{path}.{key}")
            }
        };
        let Some(address) = parse_fixed(key).map(Address::from) else {
            let rule = Rule::WrongType {
                got: format!("{key:?}"),
                want: "an address: 20 bytes in hex",
            };
            reader.fault(account_path(), rule);
            continue;
        };
        let account = account(reader, &account_path(), value, known);
        if accounts.insert(address, account).is_some() {
            reader.fault(account_path(), Rule::DuplicateAccount { address });
        }
    }
    accounts
}

fn account(
    reader: &mut Reader,
    path: &str,
    json: &Json<'_>,
    known: &'static [&'static str],
) -> GenesisAccount {
    let mut account = GenesisAccount::default();
    let Some(fields) = reader.object(path, json, known) else {
        return account;
    };
    if let Some(json) = fields.optional("balance") {
        account.balance = reader.quantity(&fields.path("balance"), json);
    }
    if let Some(json) = fields.optional("nonce") {
        let nonce = reader.quantity(&fields.path("nonce"), json);
        // EIP-2681: the last nonce is below 2^64 - 1.
        let max = u64::MAX.saturating_sub(1);
        if nonce > U256::from(max) {
            let rule = Rule::TooLarge {
                got: nonce.to_string(),
                max: U256::from(max),
            };
            reader.fault(fields.path("nonce"), rule);
        } else {
            account.nonce = Some(nonce.to::<u64>()).filter(|nonce| *nonce > 0);
        }
    }
    if let Some(json) = fields.optional("code") {
        account.code =
            Some(reader.bytes(&fields.path("code"), json)).filter(|code| !code.is_empty());
    }
    if let Some(json) = fields.optional("storage") {
        account.storage = storage(reader, &fields.path("storage"), json);
    }
    account
}

fn storage(
    reader: &mut Reader,
    path: &str,
    json: &Json<'_>,
) -> Option<BTreeMap<alloy_primitives::B256, alloy_primitives::B256>> {
    let mut slots = BTreeMap::new();
    for (key, value) in reader.entries(path, json).unwrap_or_default() {
        let slot_path = format!("{path}.{key}");
        let slot = reader.word(&slot_path, key);
        let Json::String(value) = value else {
            let rule = Rule::WrongType {
                got: "no string".into(),
                want: "at most 32 bytes in hex",
            };
            reader.fault(slot_path, rule);
            continue;
        };
        let value = reader.word(&slot_path, value);
        if slots.insert(slot, value).is_some() {
            reader.fault(slot_path, Rule::DuplicateKey);
        }
    }
    // A zero slot is no slot.
    slots.retain(|_, value| !value.is_zero());
    (!slots.is_empty()).then_some(slots)
}
