//! Signed transactions and the genesis that funds their senders. Everything is derived from counters, so two runs
//! measure the same bytes.

use alloy_consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use alloy_eips::eip2718::Encodable2718;
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, keccak256};
use alloy_signer::SignerSync;
use alloy_signer_local::PrivateKeySigner;
use anyhow::Context as _;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Chain id of every bench network.
pub(crate) const CHAIN_ID: u64 = 31_338;
/// Where the bench token lives.
pub(crate) const TOKEN: Address = Address::repeat_byte(0x7e);
/// Runtime code of contracts/Token.sol (solc 0.8.37, optimizer 1,000,000 runs, osaka, no metadata).
const TOKEN_RUNTIME_HEX: &str = include_str!("../contracts/Token.runtime.hex");
/// Balance of every account: 10^24 wei.
fn funding() -> U256 {
    U256::from(10u64).pow(U256::from(24u64))
}

/// What a block is filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A coin transfer to an existing account.
    Native,
    /// `Token.transfer` to an account that holds some.
    Erc20,
}

/// The n-th account that signs.
pub(crate) fn signer(index: u64) -> anyhow::Result<PrivateKeySigner> {
    let key = keccak256([b"cloister bench signer ".as_slice(), &index.to_be_bytes()].concat());
    PrivateKeySigner::from_bytes(&key)
        .context("a keccak digest is a valid secp256k1 key but for odds of 2^-128")
}

/// The n-th account that only holds coins.
pub(crate) fn holder(index: u64) -> Address {
    Address::from_word(keccak256(
        [b"cloister bench holder ".as_slice(), &index.to_be_bytes()].concat(),
    ))
}

/// Senders, holders and the token with a balance for each sender and the first `senders` holders.
pub(crate) fn alloc(
    senders: &[PrivateKeySigner],
    holders: u64,
) -> anyhow::Result<BTreeMap<Address, GenesisAccount>> {
    let funded = || GenesisAccount {
        balance: funding(),
        ..Default::default()
    };
    let mut alloc: BTreeMap<Address, GenesisAccount> = senders
        .iter()
        .map(|signer| (signer.address(), funded()))
        .collect();
    alloc.extend((0..holders).map(|index| (holder(index), funded())));
    let balances = senders
        .iter()
        .map(PrivateKeySigner::address)
        .chain((0..holders.min(senders.len() as u64)).map(holder))
        .map(|owner| (balance_slot(owner), B256::from(funding())))
        .collect();
    let code = hex::decode(TOKEN_RUNTIME_HEX.trim()).context("Token.runtime.hex")?;
    alloc.insert(
        TOKEN,
        GenesisAccount {
            nonce: Some(1),
            code: Some(code.into()),
            storage: Some(balances),
            ..Default::default()
        },
    );
    Ok(alloc)
}

/// Slot of `balanceOf[owner]`: the mapping is at slot 0.
fn balance_slot(owner: Address) -> B256 {
    let mut preimage = [0u8; 64];
    preimage[12..32].copy_from_slice(owner.as_slice());
    keccak256(preimage)
}

/// One transaction of `nonce` from each sender, in order.
pub(crate) fn block(
    kind: Kind,
    senders: &[PrivateKeySigner],
    nonce: u64,
    holders: u64,
) -> anyhow::Result<Vec<Bytes>> {
    senders
        .par_iter()
        .enumerate()
        .map(|(index, signer)| transaction(kind, signer, nonce, index as u64, holders))
        .collect()
}

/// An EIP-1559 transaction; the recipient depends on nonce and sender.
pub(crate) fn transaction(
    kind: Kind,
    signer: &PrivateKeySigner,
    nonce: u64,
    index: u64,
    holders: u64,
) -> anyhow::Result<Bytes> {
    let recipients = match kind {
        Kind::Native => holders,
        Kind::Erc20 => holders.min(1_000),
    };
    let recipient = holder(
        index
            .wrapping_mul(7_919)
            .wrapping_add(nonce.wrapping_mul(104_729))
            % recipients.max(1),
    );
    let (to, value, input, gas_limit) = match kind {
        Kind::Native => (recipient, U256::from(1), Bytes::new(), 21_000),
        Kind::Erc20 => {
            let mut call = keccak256("transfer(address,uint256)")[..4].to_vec();
            call.extend_from_slice(recipient.into_word().as_slice());
            call.extend_from_slice(&U256::from(1).to_be_bytes::<32>());
            (TOKEN, U256::ZERO, call.into(), 60_000)
        }
    };
    let unsigned = TxEip1559 {
        chain_id: CHAIN_ID,
        nonce,
        gas_limit,
        max_fee_per_gas: 10_000_000_000,
        max_priority_fee_per_gas: 1_000_000_000,
        to: TxKind::Call(to),
        value,
        access_list: Default::default(),
        input,
    };
    let signature = signer
        .sign_hash_sync(&unsigned.signature_hash())
        .context("signing")?;
    Ok(TxEnvelope::from(unsigned.into_signed(signature))
        .encoded_2718()
        .into())
}
