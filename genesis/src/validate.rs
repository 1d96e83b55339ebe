//! The rules of a network definition, all checked and all reported at once.

use crate::{
    CHAIN_ID_MAX, DOWNTIME_WINDOW_BLOCKS_MAX, Fault, GAS_LIMIT_MAX, GAS_LIMIT_MIN, Genesis,
    GenesisError, MAX_BLOCK_BYTES_MAX, MAX_BLOCK_BYTES_MIN, NETWORK_NAME_BYTES_MAX, Parameters,
    Rule, SNAPSHOT_FORMAT, TOTAL_POWER_MAX, VALIDATOR_POWER_MIN, VALIDATORS_MAX, contracts,
    is_canonical_public_key,
};
use alloy_primitives::{Address, U256};
use cloister_groth16::VerifyingKey;
use std::collections::{BTreeMap, BTreeSet};

/// Gives `genesis` if reading it met no fault and it breaks no rule.
pub(crate) fn finish(genesis: Genesis, mut faults: Vec<Fault>) -> Result<Genesis, GenesisError> {
    // A field that could not be read holds a stand-in: what the rules say of it, or of what is in it, is noise.
    let unread: BTreeSet<String> = faults.iter().map(|fault| fault.field.clone()).collect();
    let mut checks = Checks::default();
    checks.network(&genesis);
    checks.parameters(&genesis.parameters);
    checks.validators(&genesis);
    checks.verifying_keys(&genesis);
    let validators_sound = unread
        .iter()
        .chain(checks.faults.iter().map(|fault| &fault.field))
        .all(|field| !field.starts_with("validators"));
    checks.alloc(&genesis, validators_sound);
    faults.extend(
        checks
            .faults
            .into_iter()
            .filter(|fault| !within(&fault.field, &unread)),
    );
    if faults.is_empty() {
        Ok(genesis)
    } else {
        Err(GenesisError::Invalid(faults))
    }
}

/// Whether `field` or one of the fields that contain it is in `unread`.
fn within(field: &str, unread: &BTreeSet<String>) -> bool {
    unread.contains(field)
        || field
            .char_indices()
            .filter(|(_, letter)| matches!(letter, '.' | '['))
            .any(|(at, _)| unread.contains(&field[..at]))
}

#[derive(Default)]
struct Checks {
    faults: Vec<Fault>,
}

impl Checks {
    fn fault(&mut self, field: impl Into<String>, rule: Rule) {
        self.faults.push(Fault {
            field: field.into(),
            rule,
        });
    }

    fn range(&mut self, field: &str, got: u64, min: u64, max: u64) {
        if got < min {
            self.fault(
                field,
                Rule::TooSmall {
                    got: got.to_string(),
                    min,
                },
            );
        } else if got > max {
            self.fault(
                field,
                Rule::TooLarge {
                    got: got.to_string(),
                    max: U256::from(max),
                },
            );
        }
    }

    fn network(&mut self, genesis: &Genesis) {
        let name = &genesis.network;
        let printable = name.bytes().all(|byte| byte.is_ascii_graphic());
        if name.is_empty() || name.len() > NETWORK_NAME_BYTES_MAX || !printable {
            self.fault("network", Rule::NetworkName { got: name.clone() });
        }
        // Years of four digits: up to the end of 9999.
        self.range("timestamp", genesis.timestamp, 0, 253_402_300_799);
    }

    fn parameters(&mut self, parameters: &Parameters) {
        self.range("parameters.chain_id", parameters.chain_id, 1, CHAIN_ID_MAX);
        self.range(
            "parameters.gas_limit",
            parameters.gas_limit,
            GAS_LIMIT_MIN,
            GAS_LIMIT_MAX,
        );
        let fee = &parameters.base_fee;
        self.range("parameters.base_fee.elasticity", fee.elasticity, 1, 1_000);
        self.range(
            "parameters.base_fee.change_denominator",
            fee.change_denominator,
            1,
            u64::MAX,
        );
        if fee.initial_wei < fee.floor_wei {
            let rule = Rule::InitialBelowFloor {
                initial_wei: fee.initial_wei,
                floor_wei: fee.floor_wei,
            };
            self.fault("parameters.base_fee.initial_wei", rule);
        }
        let reward_max = U256::from(u128::MAX);
        if parameters.block_reward_wei > reward_max {
            let got = parameters.block_reward_wei.to_string();
            self.fault(
                "parameters.block_reward_wei",
                Rule::TooLarge {
                    got,
                    max: reward_max,
                },
            );
        }
        self.range(
            "parameters.max_block_bytes",
            parameters.max_block_bytes,
            MAX_BLOCK_BYTES_MIN,
            MAX_BLOCK_BYTES_MAX,
        );
        // A snapshot is offered from two blocks later on.
        self.range(
            "parameters.snapshot_interval_blocks",
            parameters.snapshot_interval_blocks,
            2,
            1_000_000_000,
        );
        let format = u64::from(SNAPSHOT_FORMAT);
        self.range(
            "parameters.snapshot_format",
            parameters.snapshot_format.into(),
            format,
            format,
        );
        self.range(
            "parameters.epoch_length_blocks",
            parameters.epoch_length_blocks,
            1,
            1_000_000_000,
        );
        self.range(
            "parameters.stamp_difficulty_bits",
            parameters.stamp_difficulty_bits.into(),
            0,
            64,
        );
        self.range(
            "parameters.downtime_window_blocks",
            parameters.downtime_window_blocks,
            2,
            DOWNTIME_WINDOW_BLOCKS_MAX,
        );
        self.range(
            "parameters.jail_blocks",
            parameters.jail_blocks,
            1,
            1_000_000_000,
        );
    }

    fn validators(&mut self, genesis: &Genesis) {
        let validators = &genesis.validators;
        if validators.is_empty() {
            self.fault("validators", Rule::NoValidators);
        }
        if validators.len() > VALIDATORS_MAX {
            let rule = Rule::TooManyValidators {
                got: validators.len(),
                max: VALIDATORS_MAX,
            };
            self.fault("validators", rule);
        }
        let (mut members, mut keys) = (BTreeSet::new(), BTreeSet::new());
        for (index, validator) in validators.iter().enumerate() {
            let field = |name: &str| format!("validators[{index}].{name}");
            let member = validator.member;
            if member == Address::ZERO {
                self.fault(field("member"), Rule::ZeroAddress { got: member });
            } else if !members.insert(member) {
                self.fault(field("member"), Rule::DuplicateMember { member });
            }
            let public_key = validator.public_key;
            if !is_canonical_public_key(&public_key) {
                self.fault(field("public_key"), Rule::PublicKey { public_key });
            } else if !keys.insert(public_key) {
                self.fault(field("public_key"), Rule::DuplicatePublicKey { public_key });
            }
            self.range(
                &field("power"),
                validator.power,
                VALIDATOR_POWER_MIN,
                TOTAL_POWER_MAX,
            );
        }
        let total: u128 = validators
            .iter()
            .map(|validator| u128::from(validator.power))
            .sum();
        if total > u128::from(TOTAL_POWER_MAX) {
            self.fault(
                "validators",
                Rule::TotalPower {
                    got: total,
                    max: TOTAL_POWER_MAX,
                },
            );
        }
    }

    fn verifying_keys(&mut self, genesis: &Genesis) {
        let mut names = BTreeSet::new();
        let mut ids = BTreeMap::new();
        for (index, key) in genesis.verifying_keys.iter().enumerate() {
            let field = |name: &str| format!("verifying_keys[{index}].{name}");
            let name = key.name.clone();
            if !names.insert(&key.name) {
                self.fault(field("name"), Rule::DuplicateKeyName { name: name.clone() });
            }
            if key.development && !genesis.development {
                self.fault(field("development"), Rule::DevelopmentKey { name });
            }
            match VerifyingKey::parse(&key.key) {
                Ok(parsed) => {
                    if let Some(first) = ids.insert(parsed.id(), index) {
                        self.fault(field("key"), Rule::DuplicateVerifyingKey { first });
                    }
                }
                Err(error) => self.fault(
                    field("key"),
                    Rule::VerifyingKey {
                        reason: error.to_string(),
                    },
                ),
            }
        }
    }

    fn alloc(&mut self, genesis: &Genesis, validators_sound: bool) {
        let mut total = U256::ZERO;
        let mut overflow = false;
        for (address, account) in &genesis.alloc {
            let (sum, overflowed) = total.overflowing_add(account.balance);
            total = sum;
            overflow |= overflowed;
            let bare =
                account.code.is_none() && account.storage.is_none() && account.nonce.is_none();
            if contracts::is_precompile(*address) && !bare {
                let rule = Rule::PrecompileAddress { address: *address };
                self.fault(format!("alloc.{address:#x}"), rule);
            }
        }
        if overflow {
            self.fault("alloc", Rule::TotalBalance);
        }
        for contract in contracts::required(&genesis.validators) {
            let address = contract.address;
            let sound = genesis.alloc.get(&address).is_some_and(|account| {
                account.code == contract.account.code
                    && (contract.name != contracts::VALIDATOR_REGISTRY_NAME
                        || !validators_sound
                        || account.storage == contract.account.storage)
            });
            if !sound {
                let rule = Rule::SystemContract {
                    address,
                    contract: contract.name,
                };
                self.fault(format!("alloc.{address:#x}"), rule);
            }
        }
    }
}
