//! Account proofs checked by two verifiers that are not ours: alloy-trie here, and a JavaScript one in `clients/proof.mjs`.

use crate::{not_run, root, rpc::Rpc};
use alloy_primitives::{Address, B256, keccak256};
use alloy_rlp::Encodable;
use alloy_rpc_types_eth::EIP1186AccountProofResponse;
use alloy_trie::{KECCAK_EMPTY, Nibbles, TrieAccount, proof::verify_proof};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::{
    io::Write,
    process::{Command, Stdio},
};

/// Whether the account is in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// It has a leaf.
    Account,
    /// The proof shows that it has none.
    Absent,
}

/// Checks the answer against a state root with alloy's verifier.
pub fn verify(
    state_root: B256,
    answer: &EIP1186AccountProofResponse,
    expect: Expect,
) -> Result<()> {
    let key = Nibbles::unpack(keccak256(answer.address));
    let leaf = match expect {
        Expect::Absent => None,
        Expect::Account => Some(alloy_rlp::encode(TrieAccount {
            nonce: answer.nonce,
            balance: answer.balance,
            storage_root: answer.storage_hash,
            code_hash: if answer.code_hash.is_zero() {
                KECCAK_EMPTY
            } else {
                answer.code_hash
            },
        })),
    };
    verify_proof(state_root, key, leaf, &answer.account_proof)
        .with_context(|| format!("account proof of {} ({expect:?})", answer.address))?;
    if expect == Expect::Account {
        for slot in &answer.storage_proof {
            let mut value = Vec::new();
            slot.value.encode(&mut value);
            let expected = (!slot.value.is_zero()).then_some(value);
            verify_proof(
                answer.storage_hash,
                Nibbles::unpack(keccak256(slot.key.as_b256())),
                expected,
                &slot.proof,
            )
            .with_context(|| format!("storage proof of {} slot {:?}", answer.address, slot.key))?;
        }
    }
    Ok(())
}

/// Fetches the proof at a height, checks block hash and proof with alloy, and gives the case for the JavaScript verifier.
/// `app_hash` is CometBFT's, from the header of the next height.
pub async fn check(
    rpc: &Rpc,
    address: Address,
    slots: &[B256],
    height: u64,
    app_hash: B256,
    expect: Expect,
) -> Result<Value> {
    let block = rpc.block(height).await?;
    ensure!(
        block.header.hash == app_hash,
        "block {height}: hash {} and app hash {app_hash}",
        block.header.hash
    );
    let computed = block.header.inner.hash_slow();
    ensure!(
        computed == app_hash,
        "block {height}: its header hashes to {computed}, the app hash is {app_hash}"
    );
    let answer = rpc.proof(address, slots, height).await?;
    verify(block.header.state_root, &answer, expect)?;
    let raw_block: Value = rpc
        .call(
            "eth_getBlockByNumber",
            json!([format!("{height:#x}"), false]),
        )
        .await?;
    let raw_proof: Value = rpc
        .call(
            "eth_getProof",
            json!([address, slots, format!("{height:#x}")]),
        )
        .await?;
    let expect = match expect {
        Expect::Account => "account",
        Expect::Absent => "absent",
    };
    Ok(json!({ "block": raw_block, "proof": raw_proof, "expect": expect }))
}

/// Runs the JavaScript verifier over cases of [`check`]; says so where it cannot be run.
pub fn verify_in_javascript(cases: &[Value]) -> Result<()> {
    let folder = root().join("e2e/clients");
    let has_node = Command::new("node")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !has_node || !folder.join("node_modules/@ethereumjs/mpt").exists() {
        not_run(
            "proofs checked by @ethereumjs/mpt",
            "its packages are not installed (scripts/setup.sh clients)",
        );
        return Ok(());
    }
    let mut child = Command::new("node")
        .arg(folder.join("proof.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let input = serde_json::to_vec(cases)?;
    child
        .stdin
        .take()
        .context("the pipe asked for")?
        .write_all(&input)?;
    let output = child.wait_with_output()?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success(),
        "proof.mjs: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    ensure!(
        printed.lines().count() == cases.len(),
        "proof.mjs checked {} of {} cases",
        printed.lines().count(),
        cases.len()
    );
    Ok(())
}
