use super::*;
use tendermint::abci::types::{BlockSignatureInfo, ExtendedVoteInfo, Validator, VoteInfo};
use tendermint::block::BlockIdFlag;

const KEY: [u8; 32] =
    alloy_primitives::hex!("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");

fn validator(index: u8) -> Validator {
    Validator {
        address: [index; 20],
        power: vote::Power::from(10u32 + u32::from(index)),
    }
}

const FLAGS: [BlockIdFlag; 3] = [BlockIdFlag::Commit, BlockIdFlag::Absent, BlockIdFlag::Nil];

fn commit() -> CommitInfo {
    CommitInfo {
        round: block::Round::default(),
        votes: (0..3u8)
            .map(|index| VoteInfo {
                validator: validator(index),
                sig_info: BlockSignatureInfo::Flag(FLAGS[usize::from(index)]),
            })
            .collect(),
    }
}

fn extended_commit() -> ExtendedCommitInfo {
    ExtendedCommitInfo {
        round: block::Round::default(),
        votes: (0..3u8)
            .map(|index| ExtendedVoteInfo {
                validator: validator(index),
                sig_info: BlockSignatureInfo::Flag(FLAGS[usize::from(index)]),
                vote_extension: bytes::Bytes::new(),
                extension_signature: None,
            })
            .collect(),
    }
}

fn evidence() -> Vec<Misbehavior> {
    vec![Misbehavior {
        kind: MisbehaviorKind::DuplicateVote,
        validator: validator(1),
        height: height(7),
        time: Time::unix_epoch(),
        total_voting_power: vote::Power::from(30u32),
    }]
}

fn time() -> Time {
    Time::from_unix_timestamp(1_700_000_000, 123_999_999).expect("a sound time")
}

fn finalize() -> request::FinalizeBlock {
    request::FinalizeBlock {
        txs: vec![
            bytes::Bytes::from_static(b"one"),
            bytes::Bytes::from_static(b"two"),
        ],
        decided_last_commit: commit(),
        misbehavior: evidence(),
        hash: Hash::Sha256([9; 32]),
        height: height(8),
        time: time(),
        next_validators_hash: Hash::None,
        proposer_address: account::Id::new([5; 20]),
    }
}

#[test]
fn the_three_calls_of_one_block_give_one_input() {
    let finalized = finalize_input(finalize()).expect("a sound request");
    let block = finalize();
    let processed = process_input(request::ProcessProposal {
        txs: block.txs.clone(),
        proposed_last_commit: Some(commit()),
        misbehavior: evidence(),
        hash: block.hash,
        height: block.height,
        time: block.time,
        next_validators_hash: Hash::None,
        proposer_address: block.proposer_address,
    })
    .expect("a sound request");
    let prepared = prepare_input(request::PrepareProposal {
        max_tx_bytes: -1,
        txs: block.txs.clone(),
        local_last_commit: Some(extended_commit()),
        misbehavior: evidence(),
        height: block.height,
        time: block.time,
        next_validators_hash: Hash::None,
        proposer_address: block.proposer_address,
    })
    .expect("a sound request");
    assert_eq!(finalized, processed);
    assert_eq!(finalized, prepared);
}

#[test]
fn time_is_rounded_down_to_milliseconds() {
    let input = finalize_input(finalize()).expect("a sound request");
    assert_eq!(input.time_ms, 1_700_000_000_123);
}

#[test]
fn refuses_a_time_before_1970() {
    let mut request = finalize();
    request.time = Time::from_unix_timestamp(-1, 999_999_999).expect("a time of tendermint's");
    assert!(finalize_input(request).is_err());
}

#[test]
fn a_vote_for_nil_counts_as_signed_and_an_absent_one_does_not() {
    let input = finalize_input(finalize()).expect("a sound request");
    let signed: Vec<bool> = input.last_commit.iter().map(|vote| vote.signed).collect();
    assert_eq!(signed, [true, false, true]);
    assert_eq!(input.last_commit[2].power, 12);
    assert_eq!(
        input.misbehaviour,
        [Misbehaviour {
            duplicate_vote: true,
            validator: ConsensusAddress::from([1; 20]),
            height: 7
        }]
    );
}

#[test]
fn refuses_a_block_without_its_hash() {
    assert!(consensus_hash(&Hash::None).is_err());
    assert_eq!(
        consensus_hash(&Hash::Sha256([3; 32])).ok(),
        Some(B256::repeat_byte(3))
    );
}

#[test]
fn no_limit_means_the_blocks_own() {
    assert_eq!(max_tx_bytes(-1, 1_000), 1_000);
    assert_eq!(max_tx_bytes(500, 1_000), 500);
    assert_eq!(max_tx_bytes(5_000, 1_000), 1_000);
}

#[test]
fn validator_updates_keep_order_and_zero_power() {
    let updates = validator_updates(&[ValidatorUpdate {
        public_key: KEY,
        power: 0,
    }])
    .expect("one removal");
    assert_eq!(updates[0].power.value(), 0);
    assert_eq!(updates[0].pub_key.to_bytes(), KEY);
}

#[test]
fn refuses_a_key_that_comes_twice_or_a_power_too_large() {
    let update = ValidatorUpdate {
        public_key: KEY,
        power: 5,
    };
    assert!(validator_updates(&[update, update]).is_err());
    assert!(
        validator_updates(&[ValidatorUpdate {
            power: u64::MAX,
            ..update
        }])
        .is_err()
    );
}

#[test]
fn rejected_transactions_carry_their_code_and_no_data() {
    let rejection = Rejection::NonceTooLow {
        expected: 7,
        got: 5,
    };
    let result = tx_result(&TransactionResult {
        code: rejection.code(),
        gas_wanted: 0,
        gas_used: 0,
        placement: Err(rejection.clone()),
    });
    assert_eq!(result.code.value(), rejection.code());
    assert_eq!(result.log, rejection.to_string());
    assert!(result.data.is_empty());
    assert_eq!(check_tx_response(Err(rejection)).codespace, "evm");
    assert_eq!(check_tx_response(Err(Rejection::PoolFull)).codespace, "app");
    assert!(check_tx_response(Ok(())).code.is_ok());
}
