//! Puts a network together.

use crate::{
    Fault, Genesis, GenesisError, GenesisValidator, GenesisVerifyingKey, Parameters, Rule,
    contracts, parse, validate,
};
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, U256};
use std::collections::BTreeMap;

/// Collects what a network is made of. [`GenesisBuilder::build`] adds the system contracts and checks the whole.
#[derive(Debug, Clone)]
pub struct GenesisBuilder {
    genesis: Genesis,
    faults: Vec<Fault>,
}

impl GenesisBuilder {
    /// A network of this EVM chain id with default parameters, called `cloister-<chain id>`.
    pub fn new(chain_id: u64) -> Self {
        Self {
            genesis: Genesis {
                network: format!("cloister-{chain_id}"),
                development: false,
                timestamp: 0,
                parameters: Parameters::new(chain_id),
                validators: Vec::new(),
                verifying_keys: Vec::new(),
                alloc: BTreeMap::new(),
            },
            faults: Vec::new(),
        }
    }

    /// CometBFT's chain-id string.
    #[must_use]
    pub fn network(mut self, name: impl Into<String>) -> Self {
        self.genesis.network = name.into();
        self
    }

    /// Marks a development network: keys made without a ceremony are allowed.
    #[must_use]
    pub const fn development(mut self, development: bool) -> Self {
        self.genesis.development = development;
        self
    }

    /// Time of block 0 in seconds since the epoch.
    #[must_use]
    pub const fn timestamp(mut self, seconds: u64) -> Self {
        self.genesis.timestamp = seconds;
        self
    }

    /// Changes parameters in place.
    #[must_use]
    pub fn parameters(mut self, change: impl FnOnce(&mut Parameters)) -> Self {
        change(&mut self.genesis.parameters);
        self
    }

    /// Adds validators.
    #[must_use]
    pub fn validators(mut self, validators: impl IntoIterator<Item = GenesisValidator>) -> Self {
        self.genesis.validators.extend(validators);
        self
    }

    /// Adds verifying keys, in order of their ids.
    #[must_use]
    pub fn verifying_keys(mut self, keys: impl IntoIterator<Item = GenesisVerifyingKey>) -> Self {
        self.genesis.verifying_keys.extend(keys);
        self
    }

    /// Gives an account a balance in wei.
    #[must_use]
    pub fn fund(self, address: Address, balance_wei: U256) -> Self {
        self.account(address, GenesisAccount::default().with_balance(balance_wei))
    }

    /// Adds an account.
    #[must_use]
    pub fn account(mut self, address: Address, account: GenesisAccount) -> Self {
        if self.genesis.alloc.insert(address, account).is_some() {
            self.faults.push(Fault {
                field: format!("alloc.{address:#x}"),
                rule: Rule::DuplicateAccount { address },
            });
        }
        self
    }

    /// Adds the alloc of an Ethereum genesis: the whole file (all but its `alloc` is ignored), or the alloc alone.
    #[must_use]
    pub fn alloc_ethereum(mut self, json: &[u8]) -> Self {
        match parse::ethereum_alloc(json) {
            Ok(accounts) => accounts
                .into_iter()
                .fold(self, |builder, (address, account)| {
                    builder.account(address, account)
                }),
            Err(GenesisError::Invalid(faults)) => {
                self.faults.extend(faults);
                self
            }
            Err(error @ (GenesisError::Syntax { .. } | GenesisError::HashMismatch { .. })) => {
                self.faults.push(Fault {
                    field: "alloc".into(),
                    rule: Rule::WrongType {
                        got: error.to_string(),
                        want: "JSON",
                    },
                });
                self
            }
        }
    }

    /// Adds the system contracts and checks everything.
    pub fn build(self) -> Result<Genesis, GenesisError> {
        let Self {
            mut genesis,
            mut faults,
        } = self;
        for contract in contracts::predeployed(&genesis.validators) {
            let address = contract.address;
            // Ethereum's own genesis files may hold its system contracts already, with a balance of their own.
            let same_code = |given: &GenesisAccount| {
                given.code == contract.account.code && given.storage.is_none()
            };
            match genesis.alloc.get(&address) {
                Some(given)
                    if same_code(given) && address != contracts::VALIDATOR_REGISTRY_ADDRESS => {}
                Some(_) => faults.push(Fault {
                    field: format!("alloc.{address:#x}"),
                    rule: Rule::SystemAddress {
                        address,
                        contract: contract.name,
                    },
                }),
                None => {
                    genesis.alloc.insert(address, contract.account);
                }
            }
        }
        validate::finish(genesis, faults)
    }
}
