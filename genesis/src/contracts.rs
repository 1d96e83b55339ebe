//! Contracts of block 0: addresses, code and first state.

use crate::{GenesisValidator, registry};
use alloy_eips::{eip2935, eip4788};
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, Bytes, address, bytes};
use std::sync::LazyLock;

/// `ValidatorRegistry`. System contracts of our own live from 0x…c101 on, apart from the precompiles at 0x…0c01.
pub const VALIDATOR_REGISTRY_ADDRESS: Address =
    address!("000000000000000000000000000000000000c101");
pub(crate) const VALIDATOR_REGISTRY_NAME: &str = "ValidatorRegistry";

/// The deterministic deployment proxy: `create2(salt = first word, init code = rest)`. Tools expect it at this address.
pub const DETERMINISTIC_DEPLOYER_ADDRESS: Address =
    address!("4e59b44847b379578588920ca78fbf26c0b4956c");
const DETERMINISTIC_DEPLOYER_CODE: Bytes = bytes!(
    "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3"
);

/// First and last precompile of our own.
pub const PRECOMPILES: (Address, Address) = (
    address!("0000000000000000000000000000000000000c01"),
    address!("0000000000000000000000000000000000000cff"),
);

/// What `contracts/build.mjs` makes of `ValidatorRegistry.sol`: ABI, storage layout, hash of the source, runtime code.
pub const VALIDATOR_REGISTRY_ARTIFACT: &str = include_str!("../contracts/ValidatorRegistry.json");

/// Runtime code of `ValidatorRegistry`.
pub static VALIDATOR_REGISTRY_CODE: LazyLock<Bytes> = LazyLock::new(|| {
    #[derive(serde::Deserialize)]
    struct Artifact {
        runtime: Bytes,
    }
    let artifact: Artifact = serde_json::from_str(VALIDATOR_REGISTRY_ARTIFACT)
        .expect("build.mjs writes the artifact, and a test reads it");
    artifact.runtime
});

/// A contract of block 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemContract {
    /// Where it lives.
    pub address: Address,
    /// Shown to people.
    pub name: &'static str,
    /// Code, nonce and storage.
    pub account: GenesisAccount,
}

/// The contracts that a network cannot do without.
pub fn required(validators: &[GenesisValidator]) -> Vec<SystemContract> {
    let contract = |address, name, code: Bytes| SystemContract {
        address,
        name,
        account: GenesisAccount::default()
            .with_nonce(Some(1))
            .with_code(Some(code)),
    };
    let mut registry = contract(
        VALIDATOR_REGISTRY_ADDRESS,
        VALIDATOR_REGISTRY_NAME,
        VALIDATOR_REGISTRY_CODE.clone(),
    );
    let storage = registry::initial_storage(validators);
    registry.account.storage = (!storage.is_empty()).then_some(storage);
    vec![
        contract(
            eip4788::BEACON_ROOTS_ADDRESS,
            "BeaconRoots (EIP-4788)",
            eip4788::BEACON_ROOTS_CODE.clone(),
        ),
        contract(
            eip2935::HISTORY_STORAGE_ADDRESS,
            "HistoryStorage (EIP-2935)",
            eip2935::HISTORY_STORAGE_CODE.clone(),
        ),
        registry,
    ]
}

/// All contracts that the builder puts into block 0.
pub fn predeployed(validators: &[GenesisValidator]) -> Vec<SystemContract> {
    let mut contracts = required(validators);
    contracts.push(SystemContract {
        address: DETERMINISTIC_DEPLOYER_ADDRESS,
        name: "deterministic deployer",
        account: GenesisAccount::default()
            .with_nonce(Some(1))
            .with_code(Some(DETERMINISTIC_DEPLOYER_CODE)),
    });
    contracts
}

/// Whether calls to an address run native code: Ethereum's precompiles (1 to 0x11 and 0x100) and ours.
pub fn is_precompile(address: Address) -> bool {
    let ethereum = address!("0000000000000000000000000000000000000001")
        ..=address!("0000000000000000000000000000000000000011");
    ethereum.contains(&address)
        || address == address!("0000000000000000000000000000000000000100")
        || (PRECOMPILES.0..=PRECOMPILES.1).contains(&address)
}
