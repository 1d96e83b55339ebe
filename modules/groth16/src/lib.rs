//! Groth16 over BN254: verifying keys, proofs, verification. Usable without revm or tokio.
