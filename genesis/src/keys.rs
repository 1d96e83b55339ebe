//! The development verifying keys, each with one proof that it accepts. Made by gnark for the private-transfer circuits;
//! one party set them up and could have kept what forges proofs, so only a development network may register them.

use crate::GenesisVerifyingKey;
use alloy_primitives::{B256, Bytes};

/// A development key with a statement proved under it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DevelopmentProof {
    /// Name of the circuit, e.g. `transfer_k2`.
    pub name: String,
    /// Always true.
    pub development: bool,
    /// Key id: SHA-256 of `key`.
    pub id: B256,
    /// Number of public inputs.
    pub public_input_count: usize,
    /// Verifying key in the encoding of `cloister_groth16`.
    pub key: Bytes,
    /// Proof, 256 bytes.
    pub proof: Bytes,
    /// Public inputs, 32 bytes each.
    pub public_inputs: Bytes,
}

impl DevelopmentProof {
    /// Input of the precompile `groth16_verify` at `0x…0c01` for this statement.
    pub fn verify_input(&self) -> Bytes {
        [&self.id[..], &self.proof, &self.public_inputs]
            .concat()
            .into()
    }
}

/// The development keys in the order in which development networks register them.
pub fn development_proofs() -> Vec<DevelopmentProof> {
    [
        include_str!("../keys/dev/transfer_k2.json"),
        include_str!("../keys/dev/transfer_k3.json"),
        include_str!("../keys/dev/transfer_k4.json"),
        include_str!("../keys/dev/transfer_k5.json"),
        include_str!("../keys/dev/transfer_k6.json"),
        include_str!("../keys/dev/deposit_k2.json"),
        include_str!("../keys/dev/withdraw_k2.json"),
    ]
    .map(|json| serde_json::from_str(json).expect("files of this crate, and a test reads them"))
    .into()
}

/// The same as a genesis registers them.
pub fn development_keys() -> Vec<GenesisVerifyingKey> {
    development_proofs()
        .into_iter()
        .map(|proof| GenesisVerifyingKey {
            name: proof.name,
            development: proof.development,
            key: proof.key,
        })
        .collect()
}

#[cfg(test)]
mod tests;
