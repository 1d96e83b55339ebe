#![expect(clippy::disallowed_methods, reason = "tests read their data")]

use super::*;
use crate::{
    block::ConsensusAddress,
    testing::{TestChain, TestKey},
};
use alloy_primitives::{TxKind, hex};
use alloy_rlp::{Decodable, Encodable};

const ETHEREUM: BaseFeeParameters = BaseFeeParameters {
    elasticity: 2,
    floor_wei: 0,
    initial_wei: 1_000_000_000,
    change_denominator: 8,
};

fn parent(base_fee: u64, gas_limit: u64, gas_used: u64) -> Header {
    Header {
        number: 5,
        base_fee_per_gas: Some(base_fee),
        gas_limit,
        gas_used,
        ..Header::default()
    }
}

/// EIP-1559 with elasticity 2; the first three are the values that Ethereum clients test.
#[test]
fn base_fee_follows_eip_1559() {
    for (base_fee, gas_limit, gas_used, next) in [
        (1_000_000_000, 20_000_000, 10_000_000, 1_000_000_000),
        (1_000_000_000, 20_000_000, 9_000_000, 987_500_000),
        (1_000_000_000, 20_000_000, 11_000_000, 1_012_500_000),
        (1_000_000_000, 20_000_000, 20_000_000, 1_125_000_000),
        (1_000_000_000, 20_000_000, 0, 875_000_000),
        (1, 20_000_000, 20_000_000, 2),
        (0, 20_000_000, 20_000_000, 1),
        (7, 20_000_000, 0, 7),
        (8, 20_000_000, 0, 7),
    ] {
        assert_eq!(
            next_base_fee(&ETHEREUM, &parent(base_fee, gas_limit, gas_used)),
            next,
            "{base_fee} {gas_limit} {gas_used}"
        );
    }
}

#[test]
fn base_fee_stays_at_its_floor() {
    let floored = BaseFeeParameters {
        floor_wei: 900_000_000,
        ..ETHEREUM
    };
    assert_eq!(
        next_base_fee(&floored, &parent(1_000_000_000, 20_000_000, 0)),
        900_000_000
    );
    // Elasticity 1: the target is the limit, so the fee never rises.
    let consortium = BaseFeeParameters {
        elasticity: 1,
        floor_wei: 1_000_000_000,
        ..ETHEREUM
    };
    for gas_used in [0, 1, 19_999_999, 20_000_000] {
        assert_eq!(
            next_base_fee(&consortium, &parent(1_000_000_000, 20_000_000, gas_used)),
            1_000_000_000
        );
    }
}

#[test]
fn block_1_has_the_initial_base_fee() {
    let genesis_header = Header {
        base_fee_per_gas: Some(1_000_000_000),
        gas_limit: 20_000_000,
        ..Header::default()
    };
    assert_eq!(next_base_fee(&ETHEREUM, &genesis_header), 1_000_000_000);
}

#[test]
fn base_fee_survives_extreme_headers() {
    for gas_limit in [0, 1, u64::MAX] {
        for gas_used in [0, 1, u64::MAX] {
            for base_fee in [0, 1, u64::MAX] {
                for (elasticity, change_denominator) in [(0, 0), (1, 1), (u64::MAX, u64::MAX)] {
                    let parameters = BaseFeeParameters {
                        elasticity,
                        change_denominator,
                        ..ETHEREUM
                    };
                    let _ = next_base_fee(&parameters, &parent(base_fee, gas_limit, gas_used));
                }
            }
        }
    }
}

/// A chain that another client made: every base fee from London on follows from its parent.
#[test]
fn base_fees_of_the_execution_apis_chain() {
    let Some(path) = crate::vectors::path("ethereum/execution-apis/chain.rlp") else {
        return;
    };
    let bytes = std::fs::read(path).expect("readable");
    let mut rest = bytes.as_slice();
    let mut headers = Vec::new();
    while !rest.is_empty() {
        let mut block = alloy_rlp::Header::decode_bytes(&mut rest, true).expect("a block");
        headers.push(Header::decode(&mut block).expect("a header"));
    }
    let mut compared = 0;
    for pair in headers.windows(2) {
        if let (Some(_), Some(base_fee)) = (pair[0].base_fee_per_gas, pair[1].base_fee_per_gas) {
            assert_eq!(
                next_base_fee(&ETHEREUM, &pair[0]),
                base_fee,
                "block {}",
                pair[1].number
            );
            compared += 1;
        }
        assert_eq!(pair[0].hash_slow(), pair[1].parent_hash);
    }
    println!(
        "execution-apis chain: {} headers, {compared} base fees met",
        headers.len()
    );
    assert!(compared > 0);
}

#[test]
fn timestamps_are_floored_seconds_and_never_fall() {
    let mut chain = TestChain::new(|_| {}, []);
    let start = chain.head.timestamp;
    for (time_ms, expected) in [
        (start * 1000 + 999, start),
        (start * 1000 + 1_000, start + 1),
        (start * 1000 + 1_999, start + 1),
        (0, start + 1),
        ((start + 9) * 1000, start + 9),
    ] {
        let mut input = chain.input(Vec::new());
        input.time_ms = time_ms;
        let executed = chain
            .app
            .execute_block(&chain.state, &chain.head, &input, &|_| None)
            .unwrap();
        assert_eq!(executed.header.timestamp, expected);
        chain.apply(executed);
    }
}

#[test]
fn header_names_parent_proposer_and_consensus_hashes() {
    let mut chain = TestChain::new(|_| {}, []);
    let genesis_hash = chain.head.hash_slow();
    let first = chain.run(Vec::new());
    let header = &first.block.header;
    assert_eq!(header.parent_hash, genesis_hash);
    assert_eq!(header.parent_beacon_block_root, Some(B256::ZERO));
    let proposer = ConsensusAddress::repeat_byte(7);
    assert_eq!(
        header.mix_hash,
        keccak256([genesis_hash.as_slice(), proposer.as_slice()].concat())
    );
    assert_eq!(header.requests_hash, Some(EMPTY_REQUESTS_HASH));
    assert_eq!(header.withdrawals_root, Some(EMPTY_ROOT_HASH));
    assert_eq!(
        (header.blob_gas_used, header.excess_blob_gas),
        (Some(0), Some(0))
    );
    assert_eq!(first.hash, header.hash_slow());
    let second = chain.run(Vec::new());
    assert_eq!(
        second.block.header.parent_beacon_block_root,
        Some(consensus_hash(&first.block.header))
    );
    assert_eq!(second.block.header.parent_hash, first.hash);
}

#[test]
fn requests_hash_is_sha256_of_nothing() {
    use sha2::Digest;
    assert_eq!(
        EMPTY_REQUESTS_HASH.as_slice(),
        &sha2::Sha256::digest([])[..]
    );
}

#[test]
fn fields_appear_with_their_fork() {
    for (fork, cancun, prague) in [
        (Fork::Shanghai, false, false),
        (Fork::Cancun, true, false),
        (Fork::Prague, true, true),
        (Fork::Osaka, true, true),
    ] {
        let mut chain = TestChain::new(|parameters| parameters.fork = fork, []);
        let header = chain.run(Vec::new()).block.header;
        assert_eq!(
            header.parent_beacon_block_root.is_some(),
            cancun,
            "{fork:?}"
        );
        assert_eq!(header.blob_gas_used.is_some(), cancun, "{fork:?}");
        assert_eq!(header.requests_hash.is_some(), prague, "{fork:?}");
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        assert_eq!(Header::decode(&mut bytes.as_slice()).unwrap(), header);
    }
}

/// Ten headers of a fixed chain: transfers, a deployment, calls, a revert, a type 4. `CLOISTER_BLESS=1` writes the file.
#[test]
fn golden_headers() {
    // Stores its second word under its first and logs both.
    let store = hex!("6020356000355560203560005260003560206000a100");
    let deploy = [&hex!("6016600c60003960166000f3")[..], &store].concat();
    let keys: Vec<TestKey> = (0..4).map(TestKey::new).collect();
    let contract = keys[1].address().create(0);
    let word = |value: u8| B256::with_last_byte(value);
    let call = |slot: u8, value: u8| [word(slot), word(value)].concat();
    let blocks = [
        vec![],
        vec![keys[0].transfer(0, keys[1].address(), 1)],
        vec![keys[1].call(0, TxKind::Create, 0, deploy)],
        vec![
            keys[1].call(1, TxKind::Call(contract), 0, call(1, 7)),
            keys[2].call(0, TxKind::Call(contract), 0, call(2, 8)),
        ],
        vec![keys[1].call(2, TxKind::Call(contract), 0, call(1, 0))],
        vec![keys[0].call(1, TxKind::Create, 5, hex!("60006000fd"))],
        vec![keys[3].delegate(0, contract, vec![keys[2].authorize(contract, 1)])],
        vec![b"not a transaction".into()],
        vec![keys[2].transfer(2, keys[2].address(), 9)],
        vec![],
    ];
    let mut chain = TestChain::new(|_| {}, []);
    let mut lines = String::new();
    for transactions in blocks {
        let outcome = chain.run(transactions);
        let mut rlp = Vec::new();
        outcome.block.header.encode(&mut rlp);
        let mut read = rlp.as_slice();
        assert_eq!(Header::decode(&mut read).unwrap(), outcome.block.header);
        assert!(read.is_empty());
        assert_eq!(keccak256(&rlp), outcome.hash);
        lines.push_str(&hex::encode(rlp));
        lines.push('\n');
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/header/golden_headers.txt");
    if std::env::var_os("CLOISTER_BLESS").is_some() {
        std::fs::write(path, &lines).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), lines);
}
