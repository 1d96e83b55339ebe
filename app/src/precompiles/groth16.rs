//! Groth16 verification. Input, words of 32 bytes:
//!
//! - registered key: `key reference || proof (256 bytes) || n public inputs`, n exactly the key's;
//! - key in the input: `length of the key in bytes || key || proof || n public inputs`.
//!
//! Order of checks, cheapest first: length, key reference, gas, cache, public inputs, proof points, key points, pairing.

use super::{
    Context, InvalidKey, InvalidLength, InvalidProof, InvalidPublicInput, Outcome, UnknownKey,
    answer, revert,
};
use alloy_primitives::{B256, U256};
use cloister_groth16::{KeyId, Proof, PublicInputs, VerifyingKey, verify_unprepared};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Mutex, PoisonError},
};

/// A price that grows with the number of public inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Price {
    pub(super) base_gas: u64,
    pub(super) input_gas: u64,
}

impl Price {
    pub(super) const fn of(self, public_input_count: usize) -> u64 {
        self.base_gas + self.input_gas * public_input_count as u64
    }
}

/// Verification under a registered key.
///
/// `cargo bench -p cloister-app --bench gas 300`, least of 300 rounds, two virtual x86-64 cores under load by other work:
/// ecrecover 42.3 µs; this call 1,044, 1,141, 1,683 and 2,259 µs for 1, 10, 50 and 100 inputs. At 3,000 gas an ecrecover
/// with a quarter on top that is 93,000 to 200,500 gas, in an earlier run 99,000 to 191,000: a line of 92,000 + 1,080·n.
/// Pinned a quarter above it, for slower runs: a block of 100 million gas holds 825 such calls, 0.86 s of one core.
pub(super) const REGISTERED: Price = Price {
    base_gas: 120_000,
    input_gas: 1_200,
};

/// Verification under a key in the input: its points are parsed, its pairings made.
///
/// Measured with [`REGISTERED`]: 1,533, 1,790, 2,658 and 3,997 µs, or 136,500 to 355,000 gas, in an earlier run 147,000 to
/// 357,500: a line of 140,000 + 2,200·n. Pinned a fifth above it.
pub(super) const WITH_KEY: Price = Price {
    base_gas: 170_000,
    input_gas: 2_500,
};

pub(super) fn verify_registered(context: &Context, input: &[u8], gas_limit: u64) -> Outcome {
    let Some((reference, statement)) = input.split_first_chunk() else {
        return revert::<InvalidLength>(gas_limit);
    };
    let Some(key) = context.keys.find(&B256::new(*reference)) else {
        return revert::<UnknownKey>(gas_limit);
    };
    let count = key.public_input_count();
    let Some((proof, inputs)) = split_statement(statement, count) else {
        return revert::<InvalidLength>(gas_limit);
    };
    let gas = REGISTERED.of(count);
    if gas > gas_limit {
        return Outcome::OutOfGas;
    }
    let name = VerifiedProofs::name(key.id(), statement);
    if context.verified.contains(&name) {
        return answer(gas, true);
    }
    let Ok(inputs) = PublicInputs::parse(inputs) else {
        return revert::<InvalidPublicInput>(gas_limit);
    };
    let Ok(proof) = Proof::parse(proof) else {
        return revert::<InvalidProof>(gas_limit);
    };
    let holds = key
        .prepared()
        .verify(&proof, &inputs)
        .expect("the input's length gave the key's number of inputs");
    if holds {
        context.verified.insert(name);
    }
    answer(gas, holds)
}

pub(super) fn verify_with_key(context: &Context, input: &[u8], gas_limit: u64) -> Outcome {
    let Some((key, statement)) = split_key(input) else {
        return revert::<InvalidLength>(gas_limit);
    };
    let Ok(count) = VerifyingKey::public_input_count_of_length(key.len()) else {
        return revert::<InvalidKey>(gas_limit);
    };
    let Some((proof, inputs)) = split_statement(statement, count) else {
        return revert::<InvalidLength>(gas_limit);
    };
    let gas = WITH_KEY.of(count);
    if gas > gas_limit {
        return Outcome::OutOfGas;
    }
    // A success was a success of a checked key: the id stands for its bytes.
    let name = VerifiedProofs::name(KeyId(Sha256::digest(key).into()), statement);
    if context.verified.contains(&name) {
        return answer(gas, true);
    }
    let Ok(inputs) = PublicInputs::parse(inputs) else {
        return revert::<InvalidPublicInput>(gas_limit);
    };
    let Ok(proof) = Proof::parse(proof) else {
        return revert::<InvalidProof>(gas_limit);
    };
    let Ok(key) = VerifyingKey::parse(key) else {
        return revert::<InvalidKey>(gas_limit);
    };
    let holds = verify_unprepared(&key, &proof, &inputs)
        .expect("the input's length gave the key's number of inputs");
    if holds {
        context.verified.insert(name);
    }
    answer(gas, holds)
}

/// Key and the rest, by the length word in front.
fn split_key(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = input.split_first_chunk()?;
    let length_bytes = usize::try_from(U256::from_be_bytes::<32>(*length)).ok()?;
    rest.split_at_checked(length_bytes)
}

/// Proof and public inputs, if there is exactly that much.
fn split_statement(statement: &[u8], input_count: usize) -> Option<(&[u8], &[u8])> {
    let (proof, inputs) = statement.split_at_checked(Proof::BYTES)?;
    (inputs.len().is_multiple_of(32) && inputs.len() / 32 == input_count).then_some((proof, inputs))
}

/// Statements found true lately: a call simulated, proposed and decided verifies once. Only successes are kept, under a
/// hash of key id, proof and inputs; a hit is charged like a miss, so nothing that consensus sees depends on it.
#[derive(Debug, Default)]
pub(super) struct VerifiedProofs(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    names: BTreeSet<[u8; 32]>,
    oldest_first: VecDeque<[u8; 32]>,
}

impl VerifiedProofs {
    /// Most names kept, about half a megabyte.
    pub(super) const COUNT_MAX: usize = 4_096;

    fn name(key: KeyId, statement: &[u8]) -> [u8; 32] {
        Sha256::new()
            .chain_update(key.0)
            .chain_update(statement)
            .finalize()
            .into()
    }

    fn contains(&self, name: &[u8; 32]) -> bool {
        self.recent().names.contains(name)
    }

    fn insert(&self, name: [u8; 32]) {
        let mut recent = self.recent();
        if !recent.names.insert(name) {
            return;
        }
        recent.oldest_first.push_back(name);
        if recent.oldest_first.len() > Self::COUNT_MAX
            && let Some(oldest) = recent.oldest_first.pop_front()
        {
            recent.names.remove(&oldest);
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.recent().names.len()
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, Recent> {
        // Names are inserted and removed whole: a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_a_bounded_number_of_the_latest_names() {
        let verified = VerifiedProofs::default();
        let name = |n: usize| VerifiedProofs::name(KeyId([7; 32]), &n.to_be_bytes());
        for n in 0..VerifiedProofs::COUNT_MAX + 10 {
            verified.insert(name(n));
            verified.insert(name(n));
        }
        assert_eq!(verified.count(), VerifiedProofs::COUNT_MAX);
        assert!(!verified.contains(&name(9)));
        assert!(verified.contains(&name(10)));
    }
}
