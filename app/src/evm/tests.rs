mod differential;
mod precompile_vectors;
mod state_tests;

use super::*;
use crate::{
    state::memory::MemoryState,
    testing::{CHAIN_ID, TestKey},
    transaction::Transaction,
};

fn transaction(raw: Bytes) -> Transaction {
    Transaction::decode(raw, CHAIN_ID).expect("well formed")
}

#[test]
fn a_run_leaves_the_overlay_alone_until_commit() {
    let mut state = MemoryState::default();
    let sender = TestKey::new(0);
    state.accounts.insert(
        sender.address().into(),
        crate::state::Account {
            balance: U256::from(10u64.pow(18)),
            ..Default::default()
        },
    );
    let precompiles = precompiles::Context::default();
    let network = Network {
        chain_id: CHAIN_ID,
        fork: Fork::Osaka,
        precompiles: &precompiles,
    };
    let block = BlockEnvironment {
        number: 1,
        timestamp: 1,
        beneficiary: Address::ZERO,
        gas_limit: 30_000_000,
        base_fee_wei: 7,
        prev_randao: B256::ZERO,
    };
    let mut evm = Evm::new(network, &block, &Switches::BLOCK, Overlay::new(&state));
    let to = Address::repeat_byte(9);
    let raw = transaction(sender.transfer(0, to, 5));
    let environment = transaction_environment(&raw);
    let executed = evm.run(environment.clone()).unwrap();
    assert!(executed.result.is_success());
    assert_eq!(evm.overlay().account(to).unwrap(), None);
    // Not committed, so the same nonce runs again.
    let again = evm.run(environment.clone()).unwrap();
    evm.commit(again.writes).unwrap();
    assert_eq!(
        evm.overlay().account(to).unwrap().unwrap().balance,
        U256::from(5)
    );
    let error = evm.run(environment).unwrap_err();
    assert!(matches!(
        error,
        EvmError::Invalid(InvalidTransaction::NonceTooLow { tx: 0, state: 1 })
    ));
}

#[test]
fn precompile_addresses_are_warm_and_ours_are_among_them() {
    let precompiles = precompiles::Context::default();
    let mounted = MountedPrecompiles::new(SpecId::OSAKA, &precompiles);
    for row in precompiles::TABLE {
        assert!(mounted.warm.contains(&row.address), "{}", row.name);
        assert!(
            !mounted.standard.contains(&row.address),
            "{} hides one of Ethereum's",
            row.name
        );
    }
    assert!(mounted.warm.contains(&Address::with_last_byte(1)));
}

/// What revm refuses comes out as the rule it breaks, with the numbers of the transaction.
#[test]
fn evm_refusals_name_the_rule() {
    use InvalidTransaction as Invalid;
    let block = BlockEnvironment {
        number: 1,
        timestamp: 1,
        beneficiary: Address::ZERO,
        gas_limit: 30_000_000,
        base_fee_wei: 7,
        prev_randao: B256::ZERO,
    };
    let raw = TestKey::new(0).call(0, TxKind::Call(Address::ZERO), 0, Bytes::new());
    let offer = GasOffer::from(&transaction_environment(&transaction(raw)));
    let wei = |value: u64| Box::new(U256::from(value));
    let refusals = [
        (Invalid::PriorityFeeGreaterThanMaxFee, 7),
        (Invalid::GasPriceLessThanBasefee, 103),
        (Invalid::CallerGasLimitMoreThanBlock, 9),
        (
            Invalid::CallGasCostMoreThanGasLimit {
                initial_gas: 2,
                gas_limit: 1,
            },
            10,
        ),
        (
            Invalid::GasFloorMoreThanGasLimit {
                gas_floor: 2,
                gas_limit: 1,
            },
            11,
        ),
        (Invalid::RejectCallerWithCode, 104),
        (
            Invalid::LackOfFundForMaxFee {
                fee: wei(2),
                balance: wei(1),
            },
            102,
        ),
        (Invalid::OverflowPaymentInTransaction, 102),
        (Invalid::NonceOverflowInTransaction, 14),
        (Invalid::NonceTooHigh { tx: 2, state: 1 }, 101),
        (Invalid::NonceTooLow { tx: 1, state: 2 }, 100),
        (
            Invalid::TxGasLimitGreaterThanCap {
                gas_limit: 2,
                cap: 1,
            },
            8,
        ),
        (Invalid::EmptyAuthorizationList, 13),
        (Invalid::Eip7702NotSupported, 3),
        (Invalid::MissingChainId, 199),
    ];
    for (invalid, code) in refusals {
        assert_eq!(
            rejection(invalid.clone(), offer, &block).code(),
            code,
            "{invalid}"
        );
    }
    assert_eq!(
        rejection(Invalid::GasPriceLessThanBasefee, offer, &block),
        Rejection::FeeCapBelowBaseFee {
            fee_cap_wei: crate::testing::FEE_CAP_WEI,
            base_fee_wei: 7
        }
    );
}
