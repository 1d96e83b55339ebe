//! What is kept, what is found, and the caps.

use super::*;
use alloy_primitives::Bytes;
use cloister_app::block::{ConsensusAddress, Misbehaviour, Vote};

const PARENT: B256 = B256::repeat_byte(1);

fn input(time_ms: u64, size_bytes: usize) -> BlockInput {
    BlockInput {
        height: 1,
        time_ms,
        proposer: ConsensusAddress::ZERO,
        transactions: vec![Bytes::from(vec![0; size_bytes])],
        misbehaviour: Vec::new(),
        last_commit: Vec::new(),
    }
}

fn block(gas_used: u64) -> ExecutedBlock {
    ExecutedBlock {
        header: alloy_consensus::Header {
            gas_used,
            ..Default::default()
        },
        transactions: Vec::new(),
        results: Vec::new(),
        validator_updates: Vec::new(),
        changes: Default::default(),
    }
}

fn kept(count_max: usize, size_bytes_max: usize) -> ExecutedBlocks {
    ExecutedBlocks::new(ExecutedLimits {
        count_max,
        size_bytes_max,
    })
}

#[test]
fn finds_only_the_whole_input_on_the_same_parent() {
    let mut blocks = kept(4, 1_000_000);
    let original = input(5, 10);
    blocks.insert(PARENT, original.clone(), block(7));
    let vote = Vote {
        validator: ConsensusAddress::ZERO,
        power: 1,
        signed: false,
    };
    let misbehaviour = Misbehaviour {
        duplicate_vote: true,
        validator: ConsensusAddress::ZERO,
        height: 1,
    };
    let changes: [fn(&mut BlockInput); 4] = [
        |input| input.height += 1,
        |input| input.time_ms += 1,
        |input| input.proposer = ConsensusAddress::repeat_byte(1),
        |input| input.transactions.push(Bytes::new()),
    ];
    let mut others: Vec<BlockInput> = changes
        .iter()
        .map(|change| {
            let mut other = original.clone();
            change(&mut other);
            other
        })
        .collect();
    others.push(BlockInput {
        last_commit: vec![vote],
        ..original.clone()
    });
    others.push(BlockInput {
        misbehaviour: vec![misbehaviour],
        ..original.clone()
    });
    for other in others {
        assert!(blocks.take(PARENT, &other).is_none(), "{other:?}");
    }
    assert!(blocks.take(B256::repeat_byte(2), &original).is_none());
    let found = blocks.take(PARENT, &original).expect("it was kept");
    assert_eq!(found.header.gas_used, 7);
    assert!(blocks.take(PARENT, &original).is_none(), "taken once");
    assert_eq!(blocks.size_bytes, 0);
}

#[test]
fn the_oldest_make_room_by_count() {
    let mut blocks = kept(2, 1_000_000);
    for time_ms in 0..5 {
        blocks.insert(PARENT, input(time_ms, 10), block(0));
    }
    let found: Vec<bool> = (0..5)
        .map(|time_ms| blocks.contains(PARENT, &input(time_ms, 10)))
        .collect();
    assert_eq!(found, [false, false, false, true, true]);
}

#[test]
fn the_oldest_make_room_by_size_and_one_too_large_is_not_kept() {
    let mut blocks = kept(10, 10_000);
    for time_ms in 0..5 {
        blocks.insert(PARENT, input(time_ms, 4_000), block(0));
        assert!(blocks.size_bytes <= 10_000);
    }
    assert_eq!(blocks.kept.len(), 2);
    blocks.insert(PARENT, input(9, 20_000), block(0));
    assert!(!blocks.contains(PARENT, &input(9, 20_000)));
    assert_eq!(blocks.kept.len(), 2, "and it pushed nothing out");
}

#[test]
fn a_limit_of_none_keeps_none() {
    let mut blocks = kept(0, 1_000_000);
    blocks.insert(PARENT, input(0, 1), block(0));
    assert!(!blocks.contains(PARENT, &input(0, 1)));
}
