//! Proofs, keys and public inputs made by gnark, as calls of the Groth16 precompiles.

use crate::root;
use alloy_primitives::{Address, B256, Bytes, U256, address};
use anyhow::{Context, Result};
use serde_json::Value;

/// Verification under a registered key.
pub const VERIFY: Address = address!("0000000000000000000000000000000000000c01");
/// Verification under a key that the input carries.
pub const VERIFY_WITH_KEY: Address = address!("0000000000000000000000000000000000000c02");

/// Circuits whose keys hold no identity point.
pub const CIRCUITS: [&str; 7] = [
    "transfer_k2",
    "transfer_k3",
    "transfer_k4",
    "transfer_k5",
    "transfer_k6",
    "deposit_k2",
    "withdraw_k2",
];
/// Circuits whose keys hold identity points: refused as keys.
pub const CIRCUITS_REFUSED: [&str; 2] = ["joinsplit", "erc721"];

/// Order of the scalar field of BN254.
pub const SCALAR_ORDER: U256 = alloy_primitives::uint!(
    21888242871839275222246405745257275088548364400416034343698204186575808495617_U256
);

/// One file, encoded for the precompiles.
#[derive(Debug, Clone)]
pub struct Statement {
    /// `alpha || beta || gamma || delta || ic`
    pub key: Vec<u8>,
    /// `a || b || c`
    pub proof: Vec<u8>,
    /// Below the scalar order.
    pub inputs: Vec<U256>,
}

impl Statement {
    /// Reads the file of a circuit.
    pub fn read(circuit: &str) -> Result<Self> {
        let path = root().join(format!(
            "modules/groth16/tests/vectors/groth16_{circuit}.json"
        ));
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let file: Value = serde_json::from_str(&text)?;
        let mut key = Vec::new();
        let vk = &file["verifying_key"];
        g1(&vk["alpha_g1"], &mut key)?;
        for point in ["beta_g2", "gamma_g2", "delta_g2"] {
            g2(&vk[point], &mut key)?;
        }
        for point in vk["ic"].as_array().context("ic is a list")? {
            g1(point, &mut key)?;
        }
        let mut proof = Vec::new();
        g1(&file["proof"]["a"], &mut proof)?;
        g2(&file["proof"]["b"], &mut proof)?;
        g1(&file["proof"]["c"], &mut proof)?;
        let inputs = file["public_inputs"]
            .as_array()
            .context("public_inputs is a list")?;
        let inputs = inputs.iter().map(number).collect::<Result<_>>()?;
        Ok(Self { key, proof, inputs })
    }

    /// Call data for [`VERIFY_WITH_KEY`].
    pub fn with_key(&self) -> Bytes {
        let mut data = U256::from(self.key.len()).to_be_bytes_vec();
        data.extend(&self.key);
        self.finish(data)
    }

    /// Call data for [`VERIFY`] under a key's index or id.
    pub fn registered(&self, reference: B256) -> Bytes {
        self.finish(reference.to_vec())
    }

    fn finish(&self, mut data: Vec<u8>) -> Bytes {
        data.extend(&self.proof);
        for input in &self.inputs {
            data.extend(input.to_be_bytes::<32>());
        }
        data.into()
    }
}

fn number(value: &Value) -> Result<U256> {
    let text = value
        .as_str()
        .with_context(|| format!("a decimal string, not {value}"))?;
    U256::from_str_radix(text, 10).map_err(|error| anyhow::anyhow!("{text}: {error}"))
}

fn push(value: &Value, bytes: &mut Vec<u8>) -> Result<()> {
    bytes.extend(number(value)?.to_be_bytes::<32>());
    Ok(())
}

fn g1(point: &Value, bytes: &mut Vec<u8>) -> Result<()> {
    push(&point[0], bytes)?;
    push(&point[1], bytes)
}

/// The imaginary part comes first, as in EIP-197.
fn g2(point: &Value, bytes: &mut Vec<u8>) -> Result<()> {
    for coordinate in [&point[0], &point[1]] {
        push(&coordinate[1], bytes)?;
        push(&coordinate[0], bytes)?;
    }
    Ok(())
}
