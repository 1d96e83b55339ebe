//! Layout and artifact of the registry.

use super::*;
use crate::registry::*;
use sha2::{Digest, Sha256};

fn artifact() -> Value {
    serde_json::from_str(contracts::VALIDATOR_REGISTRY_ARTIFACT).expect("JSON")
}

#[test]
fn artifact_is_of_the_source() {
    let source = include_bytes!("../../contracts/ValidatorRegistry.sol");
    assert_eq!(
        artifact()["sourceSha256"],
        hex::encode(Sha256::digest(source)),
        "rebuild it: contracts/README in genesis/README.md"
    );
    assert!(contracts::VALIDATOR_REGISTRY_CODE.len() > 1_000);
}

#[test]
fn slots_are_where_the_compiler_put_them() {
    for (name, slot) in [
        ("validators", SLOT_VALIDATORS),
        ("indexPlusOne", SLOT_INDEX_PLUS_ONE),
        ("keys", SLOT_KEYS),
        ("nonces", SLOT_NONCES),
        ("pending", SLOT_PENDING),
        ("active", SLOT_ACTIVE),
        ("missedBlocks", SLOT_MISSED_BLOCKS),
    ] {
        assert_eq!(artifact()["storage"][name], slot, "{name}");
    }
}

#[test]
fn entries_read_back_what_was_written() {
    for status in [Status::Active, Status::Jailed, Status::Barred] {
        let validator = Validator {
            public_key: [0xff; 32],
            member: Address::repeat_byte(0xee),
            power: u64::MAX,
            status,
            payout: Address::repeat_byte(0xdd),
            jailed_until: u64::MAX - 1,
        };
        assert_eq!(Validator::decode(validator.encode()), validator);
    }
    let active = ActiveValidator {
        public_key: [1; 32],
        consensus_address: Address::repeat_byte(0xcc),
        power: u64::MAX,
        missed: u32::MAX,
    };
    assert_eq!(ActiveValidator::decode(active.encode()), active);
    for state in [
        KeyState::Unknown,
        KeyState::Held,
        KeyState::Released,
        KeyState::Barred,
    ] {
        let entry = encode_key(Address::repeat_byte(3), state);
        assert_eq!(key_state(entry), state);
        assert_eq!(key_payout(entry), Address::repeat_byte(3));
    }
}

#[test]
fn consensus_addresses_are_cometbfts() {
    // SHA-256 of 32 zero bytes begins 66687aadf862bd776c8fc18b8e9f8e20.
    let address = consensus_address(&[0; 32]);
    assert!(hex::encode(address).starts_with("66687aadf862bd776c8fc18b8e9f8e20"));
}
