//! Ethereum's state tests through our EVM, overlay and trie: same root and logs for every entry of a fork we know.

use crate::{
    evm::{
        BlockEnvironment, Evm, EvmError, Network, Switches, TransactionEnvironment,
        empty_transaction, receipt_parts,
    },
    execution::overlay::Overlay,
    precompiles,
    state::{HashedAddress, HashedSlot, memory::MemoryState},
    trie::{self, AccountRecord, AccountUpdate, PostState},
    vectors,
};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, TxKind, U256, keccak256};
use cloister_genesis::Fork;
use rayon::prelude::*;
use serde_json::Value;
use std::path::Path;

/// Entries that differ; each fails this test when it begins to pass. Both create a contract over an account that has
/// storage but neither nonce nor code, which EIP-7610 refuses and revm does not. No transaction can make such an account.
const DIFFERS: &[&str] = &[
    "dynamicAccountOverwriteEmpty_Paris",
    "RevertInCreateInInit_Paris",
];

/// These call EIP-2537 as an early draft had it: nine addresses from 0x0b to 0x13 and other prices. Prague has seven;
/// their vectors are in `precompile_vectors`.
const DRAFT_FOLDER: &str = "stEIP2537";

#[derive(Default)]
struct Tally {
    passed: usize,
    blob: usize,
    draft: usize,
    failed: Vec<String>,
}

#[test]
fn ethereum_state_tests() {
    let Some(files) = vectors::files("ethereum/state-tests") else {
        return;
    };
    // Deep call stacks need more than a test thread's 2 MiB.
    let pool = rayon::ThreadPoolBuilder::new()
        .stack_size(64 << 20)
        .build()
        .expect("threads");
    let tallies: Vec<Tally> =
        pool.install(|| files.par_iter().map(|file| run_file(file)).collect());
    let mut total = Tally::default();
    for tally in tallies {
        total.passed += tally.passed;
        total.blob += tally.blob;
        total.draft += tally.draft;
        total.failed.extend(tally.failed);
    }
    println!(
        "state tests: {} files, {} passed, {} differ (known), {} not run (blob transactions, which this chain refuses), \
         {} not run (a draft of EIP-2537)",
        files.len(),
        total.passed,
        total.failed.len(),
        total.blob,
        total.draft
    );
    let unexpected: Vec<_> = total
        .failed
        .iter()
        .filter(|name| !DIFFERS.iter().any(|known| name.contains(known)))
        .collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    for known in DIFFERS {
        assert!(
            total.failed.iter().any(|name| name.contains(known)),
            "{known} passes now"
        );
    }
    assert!(total.passed > 0);
}

fn run_file(file: &Path) -> Tally {
    let mut tally = Tally::default();
    for (name, case) in vectors::cases(file) {
        for (fork_name, fork) in Fork::NAMES {
            let entries = case["post"]
                .as_object()
                .expect("post")
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(fork_name));
            let Some((_, entries)) = entries else {
                continue;
            };
            for (index, expected) in entries.as_array().expect("entries").iter().enumerate() {
                if file.iter().any(|part| part == DRAFT_FOLDER) {
                    tally.draft += 1;
                    continue;
                }
                if case["transaction"].get("blobVersionedHashes").is_some() {
                    tally.blob += 1;
                    continue;
                }
                match run(&case, fork, expected) {
                    Ok(()) => tally.passed += 1,
                    Err(why) => tally
                        .failed
                        .push(format!("{name} {fork_name} {index}: {why}")),
                }
            }
        }
    }
    tally
}

fn run(case: &Value, fork: Fork, expected: &Value) -> Result<(), String> {
    let env = &case["env"];
    let mut state = MemoryState::default();
    let (pre_root, changes) =
        trie::commit(&state, pre_state(&case["pre"])).expect("memory answers");
    state.apply(&changes);
    let number = quantity(&env["currentNumber"]).to::<u64>();
    for height in number.saturating_sub(256)..number {
        state.set_block_hash(height, keccak256(height.to_string()));
    }
    let block = BlockEnvironment {
        number,
        timestamp: quantity(&env["currentTimestamp"]).to(),
        beneficiary: address(&env["currentCoinbase"]),
        gas_limit: quantity(&env["currentGasLimit"]).to(),
        base_fee_wei: quantity(&env["currentBaseFee"]).to(),
        prev_randao: quantity(&env["currentRandom"]).into(),
    };
    let precompiles = precompiles::Context::default();
    let network = Network {
        chain_id: 1,
        fork,
        precompiles: &precompiles,
    };
    let switches = Switches {
        transaction_gas_limit_max: match fork {
            Fork::Osaka => 1 << 24,
            _ => u64::MAX,
        },
        ..Switches::BLOCK
    };
    let mut evm = Evm::new(network, &block, &switches, Overlay::new(&state));
    let Some(transaction) = transaction(&case["transaction"], &expected["indexes"]) else {
        return expect(
            expected["expectException"].is_string(),
            "fields out of range",
        );
    };
    let logs = match evm.run(transaction) {
        Ok(executed) => {
            expect(expected["expectException"].is_null(), "accepted")?;
            evm.commit(executed.writes).expect("memory answers");
            receipt_parts(executed.result).2
        }
        Err(EvmError::Invalid(invalid)) => {
            expect(
                expected["expectException"].is_string(),
                &format!("refused: {invalid}"),
            )?;
            Vec::new()
        }
        Err(fault) => return Err(fault.to_string()),
    };
    let post = evm.into_overlay().into_post_state();
    let (root, _) = trie::commit(&state, post).expect("memory answers");
    let root = if root == B256::ZERO { pre_root } else { root };
    let wanted = B256::from(quantity(&expected["hash"]));
    expect(root == wanted, &format!("root {root}, expected {wanted}"))?;
    let logs_hash = keccak256(alloy_rlp::encode(&logs));
    expect(logs_hash == B256::from(quantity(&expected["logs"])), "logs")
}

fn expect(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_owned()) }
}

fn pre_state(pre: &Value) -> PostState {
    let mut post = PostState::default();
    for (key, account) in pre.as_object().expect("pre") {
        let code = bytes(&account["code"]);
        let code_hash = if code.is_empty() {
            KECCAK256_EMPTY
        } else {
            keccak256(&code)
        };
        post.code.insert(code_hash, code);
        let storage = account["storage"]
            .as_object()
            .expect("storage")
            .iter()
            .map(|(slot, value)| {
                let slot: U256 = slot.parse().expect("slot");
                (HashedSlot::from(slot), quantity(value))
            })
            .filter(|(_, value)| !value.is_zero())
            .collect();
        let update = AccountUpdate {
            account: Some(AccountRecord {
                nonce: quantity(&account["nonce"]).to(),
                balance: quantity(&account["balance"]),
                code_hash,
            }),
            wipe_storage: false,
            storage,
        };
        let address: Address = key.parse().expect("address");
        post.accounts.insert(HashedAddress::from(address), update);
    }
    post.code.remove(&KECCAK256_EMPTY);
    post
}

/// `None` if a number does not fit its field, as it then would not in the transaction's encoding.
fn transaction(fields: &Value, indexes: &Value) -> Option<TransactionEnvironment> {
    let index = |name: &str| indexes[name].as_u64().expect("index") as usize;
    let to = fields["to"].as_str().expect("to");
    let kind = if to.is_empty() {
        TxKind::Create
    } else {
        TxKind::Call(to.parse().expect("address"))
    };
    let mut transaction = empty_transaction(1, address(&fields["sender"]), kind);
    transaction.nonce = u64::try_from(quantity(&fields["nonce"])).ok()?;
    transaction.gas_limit = u64::try_from(quantity(&fields["gasLimit"][index("gas")])).ok()?;
    transaction.value = quantity_or_none(&fields["value"][index("value")])?;
    transaction.data = bytes(&fields["data"][index("data")]);
    if let Some(lists) = fields.get("accessLists")
        && !lists[index("data")].is_null()
    {
        transaction.tx_type = 1;
        transaction.access_list = access_list(&lists[index("data")]);
    }
    if let Some(fee_cap) = fields.get("maxFeePerGas") {
        transaction.tx_type = 2;
        transaction.gas_price = u128::try_from(quantity(fee_cap)).ok()?;
        let tip = quantity(&fields["maxPriorityFeePerGas"]);
        transaction.gas_priority_fee = Some(u128::try_from(tip).ok()?);
    } else {
        transaction.gas_price = u128::try_from(quantity(&fields["gasPrice"])).ok()?;
    }
    Some(transaction)
}

fn access_list(list: &Value) -> AccessList {
    let items = list
        .as_array()
        .expect("list")
        .iter()
        .map(|item| AccessListItem {
            address: address(&item["address"]),
            storage_keys: item["storageKeys"]
                .as_array()
                .expect("keys")
                .iter()
                .map(|key| B256::from(quantity(key)))
                .collect(),
        });
    AccessList(items.collect())
}

fn quantity(value: &Value) -> U256 {
    quantity_or_none(value).expect("number")
}

fn quantity_or_none(value: &Value) -> Option<U256> {
    value.as_str().expect("text").parse().ok()
}

fn address(value: &Value) -> Address {
    value.as_str().expect("text").parse().expect("address")
}

fn bytes(value: &Value) -> Bytes {
    value.as_str().expect("text").parse().expect("hex")
}
