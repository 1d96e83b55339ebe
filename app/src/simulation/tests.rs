use super::*;
use crate::state::memory::MemoryState;
use alloy_genesis::GenesisAccount;
use alloy_primitives::{address, b256, hex};
use std::sync::atomic::{AtomicU32, Ordering};

const CONTRACT: Address = address!("00000000000000000000000000000000c0de0001");
const RICH: Address = address!("00000000000000000000000000000000000a11ce");
const NOBODY: Address = address!("0000000000000000000000000000000000000b0b");
const IDENTITY: Address = address!("0000000000000000000000000000000000000004");
const SHA256: Address = address!("0000000000000000000000000000000000000002");

struct Bench {
    app: App,
    state: MemoryState,
    header: Header,
}

impl Bench {
    /// A chain at block 0 with `code` at [`CONTRACT`].
    fn with(code: &[u8], slots: &[(u64, u64)]) -> Self {
        let mut genesis = cloister_genesis::dev_genesis();
        let word = |number: &u64| B256::from(U256::from(*number));
        let contract = GenesisAccount {
            code: Some(Bytes::copy_from_slice(code)),
            storage: Some(
                slots
                    .iter()
                    .map(|(slot, value)| (word(slot), word(value)))
                    .collect(),
            ),
            ..GenesisAccount::default()
        };
        let rich = GenesisAccount {
            balance: U256::from(10).pow(U256::from(18)),
            ..GenesisAccount::default()
        };
        genesis.alloc.insert(CONTRACT, contract);
        genesis.alloc.insert(RICH, rich);
        let app = App::new(&genesis);
        let outcome = app.init_chain(&genesis);
        let mut state = MemoryState::default();
        state.apply(&outcome.changes);
        Self {
            app,
            state,
            header: outcome.header,
        }
    }

    fn scene<'a>(&'a self, overrides: &'a Overrides) -> Scene<'a> {
        Scene {
            app: &self.app,
            state: &self.state,
            header: &self.header,
            overrides,
            limits: Limits {
                gas_max: 50_000_000,
                stop: &|| false,
            },
        }
    }

    fn call(&self, request: &CallRequest) -> Result<Simulated, SimulationError> {
        call(&self.scene(&Overrides::default()), request)
    }

    fn estimate(&self, request: &CallRequest) -> Result<Estimate, SimulationError> {
        estimate_gas(&self.scene(&Overrides::default()), request)
    }

    fn estimated(&self, request: &CallRequest) -> u64 {
        match self.estimate(request) {
            Ok(Estimate::Gas(gas)) => gas,
            other => panic!("no estimate: {other:?}"),
        }
    }

    fn succeeds_with(&self, request: &CallRequest, gas: u64) -> bool {
        let request = CallRequest {
            gas_limit: Some(gas),
            ..request.clone()
        };
        self.call(&request).is_ok_and(|run| run.ending.is_success())
    }
}

fn to_contract(input: &[u8]) -> CallRequest {
    CallRequest {
        from: RICH,
        to: Some(CONTRACT),
        input: Bytes::copy_from_slice(input),
        ..CallRequest::default()
    }
}

fn words(ending: Ending) -> Vec<U256> {
    match ending {
        Ending::Success { output } => output.chunks(32).map(U256::from_be_slice).collect(),
        other => panic!("no success: {other:?}"),
    }
}

/// Code that returns the words which `instructions` push, one each, in order.
fn returning(instructions: &[&[u8]]) -> Vec<u8> {
    let mut code = Vec::new();
    for (index, instruction) in instructions.iter().enumerate() {
        code.extend_from_slice(instruction);
        code.extend_from_slice(&[0x60, u8::try_from(index * 32).expect("few words"), 0x52]);
    }
    code.extend_from_slice(&[
        0x60,
        u8::try_from(instructions.len() * 32).expect("few words"),
        0x60,
        0,
        0xf3,
    ]);
    code
}

#[test]
fn d10_code_override_runs_on_an_address_without_code() {
    let bench = Bench::with(&[], &[]);
    let account = AccountOverride {
        code: Some(returning(&[&[0x60, 42]]).into()),
        ..AccountOverride::default()
    };
    let overrides = Overrides {
        accounts: BTreeMap::from([(NOBODY, account)]),
        ..Overrides::default()
    };
    let request = CallRequest {
        to: Some(NOBODY),
        ..CallRequest::default()
    };
    let run = call(&bench.scene(&overrides), &request).expect("runs");
    assert_eq!(words(run.ending), [U256::from(42)]);
    assert_eq!(
        words(bench.call(&request).expect("runs").ending),
        [U256::ZERO; 0],
        "nothing remains of the override"
    );
}

#[test]
fn d11_estimate_of_code_that_clears_slots_covers_gas_before_refunds() {
    let slots: Vec<(u64, u64)> = (0..12).map(|slot| (slot, 1)).collect();
    let code: Vec<u8> = (0..12)
        .flat_map(|slot| [0x60, 0, 0x60, slot, 0x55])
        .collect();
    let bench = Bench::with(&code, &slots);
    let request = to_contract(&[]);
    let used = bench.call(&request).expect("runs").gas_used;
    let estimate = bench.estimated(&request);
    assert!(
        !bench.succeeds_with(&request, used),
        "gas after refunds is not enough"
    );
    assert!(bench.succeeds_with(&request, estimate));
}

/// Calls itself with one byte of input less until none is left; then writes a slot. Reverts when a call fails.
const RECURSIVE: &[u8] = &hex!(
    "3615 601a 57 6000 6000 6001 36 03 6000 6000 30 5a f1 15 6021 57 00 00 5b 6001 6000 55 00 00 5b 6000 6000 fd"
);

#[test]
fn d11_estimate_of_nested_calls_covers_what_each_level_keeps_back() {
    let mut code = RECURSIVE.to_vec();
    let (leaf, fail) = (
        code.iter().position(|byte| *byte == 0x5b).expect("a leaf"),
        code.iter()
            .rposition(|byte| *byte == 0x5b)
            .expect("a failure branch"),
    );
    code[3] = u8::try_from(leaf).expect("short code");
    let jump = code
        .windows(3)
        .position(|window| window == [0x15, 0x60, 0x21])
        .expect("the second jump");
    code[jump + 2] = u8::try_from(fail).expect("short code");
    let bench = Bench::with(&code, &[]);
    let request = to_contract(&[1; 12]);
    let run = bench.call(&request).expect("runs");
    assert!(run.ending.is_success());
    let estimate = bench.estimated(&request);
    assert!(
        !bench.succeeds_with(&request, run.gas_used),
        "gas used is not enough for 63/64 at each level"
    );
    assert!(bench.succeeds_with(&request, estimate));
}

#[test]
fn d12_call_without_fee_needs_no_balance_and_sees_no_fee() {
    let bench = Bench::with(&returning(&[&[0x3a], &[0x48]]), &[]);
    let request = CallRequest {
        from: NOBODY,
        gas_limit: Some(25_000_000),
        ..to_contract(&[])
    };
    let run = bench.call(&request).expect("an empty account may ask");
    assert_eq!(words(run.ending), [U256::ZERO, U256::ZERO]);
}

#[test]
fn d13_estimate_of_value_to_a_precompile_is_found_by_running() {
    let bench = Bench::with(&[], &[]);
    let request = CallRequest {
        from: RICH,
        to: Some(IDENTITY),
        value: U256::ONE,
        ..CallRequest::default()
    };
    let estimate = bench.estimated(&request);
    assert!(!bench.succeeds_with(&request, 21_000));
    assert!(
        estimate > 21_000 && bench.succeeds_with(&request, estimate),
        "{estimate}"
    );
}

#[test]
fn estimate_of_a_plain_transfer_is_exact() {
    let bench = Bench::with(&[], &[]);
    let request = CallRequest {
        from: RICH,
        to: Some(NOBODY),
        value: U256::ONE,
        ..CallRequest::default()
    };
    assert_eq!(bench.estimated(&request), 21_000);
}

#[test]
fn estimate_covers_the_calldata_floor() {
    let bench = Bench::with(&[], &[]);
    let request = CallRequest {
        from: RICH,
        to: Some(NOBODY),
        input: vec![1; 1000].into(),
        ..CallRequest::default()
    };
    // EIP-7623: 10 gas for each of the 4 tokens of a non-zero byte.
    let floor = 21_000 + 40_000;
    assert!(!bench.succeeds_with(&request, floor - 1) && bench.succeeds_with(&request, floor));
    let estimate = bench.estimated(&request);
    assert!(
        (floor..floor + floor * 15 / 1000).contains(&estimate),
        "{estimate}"
    );
}

#[test]
fn estimate_never_exceeds_the_transaction_gas_cap() {
    // JUMPDEST PUSH1 0 JUMP: for ever.
    let bench = Bench::with(&[0x5b, 0x60, 0x00, 0x56], &[]);
    assert!(bench.header.gas_limit > 1 << 24);
    let request = CallRequest {
        gas_limit: Some(40_000_000),
        ..to_contract(&[])
    };
    assert_eq!(
        bench.estimate(&request).expect("an answer"),
        Estimate::AllowanceExceeded { allowance: 1 << 24 }
    );
}

#[test]
fn estimate_is_bounded_by_what_the_sender_can_pay() {
    let bench = Bench::with(&[], &[]);
    let fees = Fees::Legacy {
        price_wei: 10_u128.pow(15),
    };
    let request = CallRequest {
        from: RICH,
        to: Some(CONTRACT),
        input: vec![1].into(),
        fees,
        ..CallRequest::default()
    };
    // 10^18 wei at 10^15 wei a gas pays for 1,000 gas.
    assert_eq!(
        bench.estimate(&request).expect("an answer"),
        Estimate::AllowanceExceeded { allowance: 1_000 }
    );
    let request = CallRequest {
        value: U256::MAX,
        ..request
    };
    assert!(matches!(
        bench.estimate(&request),
        Err(SimulationError::InsufficientFundsForTransfer)
    ));
}

#[test]
fn estimate_reports_a_revert_with_its_data() {
    // MSTORE8(0, 0x99); REVERT(0, 1)
    let bench = Bench::with(&hex!("6099 6000 53 6001 6000 fd"), &[]);
    let fails = bench.estimate(&to_contract(&[1])).expect("an answer");
    assert_eq!(
        fails,
        Estimate::Fails(Ending::Revert {
            output: vec![0x99].into()
        })
    );
}

#[test]
fn named_fee_must_be_affordable() {
    let bench = Bench::with(&[], &[]);
    let fees = Fees::Dynamic {
        fee_cap_wei: 10_u128.pow(12),
        tip_wei: 1,
    };
    let request = CallRequest {
        from: NOBODY,
        to: Some(RICH),
        fees,
        gas_limit: Some(21_000),
        ..CallRequest::default()
    };
    let refused = bench.call(&request);
    assert!(
        matches!(
            refused,
            Err(SimulationError::Rejected(
                Rejection::InsufficientFunds { .. }
            ))
        ),
        "{refused:?}"
    );
}

#[test]
fn value_must_be_affordable_without_a_fee_too() {
    let bench = Bench::with(&[], &[]);
    let request = CallRequest {
        from: NOBODY,
        to: Some(RICH),
        value: U256::ONE,
        ..CallRequest::default()
    };
    let refused = bench.call(&request);
    assert!(
        matches!(
            refused,
            Err(SimulationError::Rejected(
                Rejection::InsufficientFunds { .. }
            ))
        ),
        "{refused:?}"
    );
}

#[test]
fn tip_above_the_cap_is_refused() {
    let bench = Bench::with(&[], &[]);
    let fees = Fees::Dynamic {
        fee_cap_wei: 1,
        tip_wei: 2,
    };
    let request = CallRequest {
        from: RICH,
        to: Some(NOBODY),
        fees,
        gas_limit: Some(21_000),
        ..CallRequest::default()
    };
    assert!(matches!(
        bench.call(&request),
        Err(SimulationError::Rejected(Rejection::TipAboveFeeCap { .. }))
    ));
}

#[test]
fn call_without_gas_gets_the_cap_and_more_is_capped() {
    let bench = Bench::with(&returning(&[&[0x5a]]), &[]);
    for gas_limit in [None, Some(u64::MAX)] {
        let request = CallRequest {
            gas_limit,
            ..to_contract(&[])
        };
        let left = words(bench.call(&request).expect("runs").ending)[0];
        assert!(
            left > U256::from(49_900_000) && left < U256::from(50_000_000),
            "{left}"
        );
    }
}

#[test]
fn endless_code_stops_when_told() {
    let bench = Bench::with(&[0x5b, 0x60, 0x00, 0x56], &[]);
    let overrides = Overrides::default();
    let asked = AtomicU32::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) > 20;
    let mut scene = bench.scene(&overrides);
    scene.limits = Limits {
        gas_max: u64::MAX / 2,
        stop: &stop,
    };
    assert!(matches!(
        call(&scene, &to_contract(&[])),
        Err(SimulationError::Stopped)
    ));
}

#[test]
fn reads_of_state_stop_when_told() {
    let bench = Bench::with(&[], &[]);
    let overrides = Overrides::default();
    let mut scene = bench.scene(&overrides);
    scene.limits.stop = &|| true;
    assert!(matches!(
        call(&scene, &to_contract(&[])),
        Err(SimulationError::Stopped)
    ));
}

#[test]
fn block_overrides_show_in_the_environment() {
    let code = returning(&[
        &[0x43],
        &[0x42],
        &[0x41],
        &[0x44],
        &[0x45],
        &[0x48],
        &[0x60, 5, 0x40],
    ]);
    let bench = Bench::with(&code, &[]);
    let hash = b256!("1111111111111111111111111111111111111111111111111111111111111111");
    let overrides = Overrides {
        block: BlockOverride {
            number: Some(9),
            timestamp: Some(1_000),
            gas_limit: Some(77),
            beneficiary: Some(NOBODY),
            prev_randao: Some(hash),
            base_fee_wei: Some(3),
            block_hashes: BTreeMap::from([(5, hash)]),
        },
        ..Overrides::default()
    };
    let run = call(&bench.scene(&overrides), &to_contract(&[])).expect("runs");
    let hash = U256::from_be_bytes(hash.0);
    let beneficiary = U256::from_be_slice(NOBODY.as_slice());
    assert_eq!(
        words(run.ending),
        [
            U256::from(9),
            U256::from(1_000),
            beneficiary,
            hash,
            U256::from(77),
            U256::from(3),
            hash
        ]
    );
}

#[test]
fn state_override_replaces_all_slots_and_state_diff_some() {
    // Returns slots 0 and 1.
    let bench = Bench::with(
        &returning(&[&[0x60, 0, 0x54], &[0x60, 1, 0x54]]),
        &[(0, 10), (1, 11)],
    );
    let seven = BTreeMap::from([(U256::ZERO, U256::from(7))]);
    let with = |slots| {
        let account = AccountOverride {
            slots: Some(slots),
            ..AccountOverride::default()
        };
        let overrides = Overrides {
            accounts: BTreeMap::from([(CONTRACT, account)]),
            ..Overrides::default()
        };
        words(
            call(&bench.scene(&overrides), &to_contract(&[]))
                .expect("runs")
                .ending,
        )
    };
    assert_eq!(
        with(SlotOverride::Replace(seven.clone())),
        [U256::from(7), U256::ZERO]
    );
    assert_eq!(
        with(SlotOverride::Change(seven)),
        [U256::from(7), U256::from(11)]
    );
}

#[test]
fn balance_and_nonce_overrides_hold() {
    // Creates an empty contract and returns its address, then the sender's balance.
    let bench = Bench::with(
        &returning(&[&[0x60, 0, 0x60, 0, 0x60, 0, 0xf0], &[0x33, 0x31]]),
        &[],
    );
    let contract = AccountOverride {
        nonce: Some(5),
        ..AccountOverride::default()
    };
    let sender = AccountOverride {
        balance: Some(U256::from(99)),
        ..AccountOverride::default()
    };
    let overrides = Overrides {
        accounts: BTreeMap::from([(CONTRACT, contract), (NOBODY, sender)]),
        ..Overrides::default()
    };
    let request = CallRequest {
        from: NOBODY,
        ..to_contract(&[])
    };
    let run = call(&bench.scene(&overrides), &request).expect("runs");
    assert_eq!(
        words(run.ending),
        [
            U256::from_be_slice(CONTRACT.create(5).as_slice()),
            U256::from(99)
        ]
    );
}

#[test]
fn moved_precompile_answers_at_its_new_address_only() {
    let bench = Bench::with(&[], &[]);
    let moved = AccountOverride {
        code: Some(returning(&[&[0x60, 1]]).into()),
        move_precompile_to: Some(NOBODY),
        ..AccountOverride::default()
    };
    let overrides = Overrides {
        accounts: BTreeMap::from([(SHA256, moved.clone())]),
        ..Overrides::default()
    };
    let ask = |to| {
        let request = CallRequest {
            to: Some(to),
            input: b"abc".as_slice().into(),
            ..CallRequest::default()
        };
        words(
            call(&bench.scene(&overrides), &request)
                .expect("runs")
                .ending,
        )
    };
    let digest = b256!("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(ask(NOBODY), [U256::from_be_bytes(digest.0)]);
    assert_eq!(ask(SHA256), [U256::ONE]);
    let wrong = Overrides {
        accounts: BTreeMap::from([(RICH, moved)]),
        ..Overrides::default()
    };
    let refused = call(&bench.scene(&wrong), &to_contract(&[]));
    assert!(matches!(
        refused,
        Err(SimulationError::NotAPrecompile { address: RICH })
    ));
}

#[test]
fn access_list_names_slots_and_other_accounts_only() {
    // SLOAD(3); BALANCE(0xb0b); STATICCALL(identity); BALANCE(sender)
    let code = hex!("6003 54 50 610b0b 31 50 6000 6000 6000 6000 6004 5a fa 50 33 31 50 00");
    let bench = Bench::with(&code, &[]);
    let outcome =
        create_access_list(&bench.scene(&Overrides::default()), &to_contract(&[])).expect("a list");
    let slot = B256::from(U256::from(3));
    let items: Vec<_> = outcome
        .access_list
        .0
        .iter()
        .map(|item| (item.address, item.storage_keys.clone()))
        .collect();
    assert_eq!(items, [(NOBODY, vec![]), (CONTRACT, vec![slot])]);
    assert!(outcome.ending.is_success());
    let request = CallRequest {
        access_list: Some(outcome.access_list),
        ..to_contract(&[])
    };
    assert_eq!(
        bench.call(&request).expect("runs").gas_used,
        outcome.gas_used
    );
}

#[test]
fn halts_and_creations_are_told_apart() {
    let bench = Bench::with(&[0xfe], &[]);
    let run = bench.call(&to_contract(&[])).expect("runs");
    assert_eq!(run.ending, Ending::Halt(HaltReason::InvalidFEOpcode));
    // Init code that deploys the byte 0x00.
    let create = CallRequest {
        from: RICH,
        input: hex!("6001 6000 f3").as_slice().into(),
        ..CallRequest::default()
    };
    let run = bench.call(&create).expect("runs");
    assert_eq!(
        run.ending,
        Ending::Success {
            output: vec![0].into()
        }
    );
}

#[test]
fn simulation_leaves_the_state_as_it_was() {
    let bench = Bench::with(&hex!("6001 6000 55"), &[]);
    let before = bench.state.clone();
    bench.call(&to_contract(&[])).expect("runs");
    bench.estimated(&to_contract(&[]));
    assert_eq!(bench.state, before);
}
