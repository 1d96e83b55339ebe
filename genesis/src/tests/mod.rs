mod builder;
mod files;
mod parse;
mod registry;

use crate::*;
use serde_json::{Value, json};

/// Faults of the development genesis after an edit of its JSON.
fn faults(edit: impl FnOnce(&mut Value)) -> Vec<Fault> {
    let mut json: Value = serde_json::from_slice(&dev_genesis().to_json()).expect("ours is JSON");
    edit(&mut json);
    match Genesis::parse(json.to_string().as_bytes()) {
        Ok(_) => Vec::new(),
        Err(error) => {
            assert_eq!(error.hint().lines().count(), error.faults().len());
            error.faults().to_vec()
        }
    }
}

/// The development genesis with the value at a JSON pointer replaced has exactly this fault.
#[track_caller]
fn refuses(pointer: &str, value: Value, field: &str, rule: Rule) {
    let got = faults(|json| *json.pointer_mut(pointer).expect("the path exists") = value);
    assert_eq!(
        got,
        [Fault {
            field: field.into(),
            rule
        }]
    );
}

/// Validator number `n` with a key of its own.
fn validator(n: u8) -> GenesisValidator {
    GenesisValidator {
        member: Address::repeat_byte(n),
        public_key: ed25519_consensus::SigningKey::from([n; 32])
            .verification_key()
            .to_bytes(),
        power: 100,
        payout: Address::repeat_byte(n.wrapping_add(100)),
        name: format!("validator {n}"),
    }
}

fn four_validators() -> GenesisBuilder {
    GenesisBuilder::new(7)
        .network("test-net")
        .timestamp(1_700_000_000)
        .validators([1, 2, 3, 4].map(validator))
}
