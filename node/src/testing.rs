//! What the tests of several modules sign their transactions with.

use crate::{
    chain::{Chain, ChainOptions},
    store::{Durability, Store, StoreError, StoreOptions},
};
use alloy_consensus::{SignableTransaction, TxEip1559, TxEip7702, TxEnvelope};
use alloy_eips::{
    eip2718::Encodable2718 as _,
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256};
use alloy_signer::SignerSync as _;
use alloy_signer_local::PrivateKeySigner;
use cloister_app::transaction::Transaction;
use cloister_genesis::{DEV_CHAIN_ID, Genesis, dev_genesis};
use std::{
    path::Path,
    sync::{Arc, LazyLock},
};

pub(crate) const GWEI: u128 = 1_000_000_000;

/// A key of the tests.
#[derive(Debug, Clone)]
pub(crate) struct Wallet(PrivateKeySigner);

/// What a test says of a transaction; a transfer of 1 wei to an address without an account, otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) nonce: u64,
    pub(crate) fee_cap_wei: u128,
    pub(crate) tip_wei: u128,
    pub(crate) gas_limit: u64,
    pub(crate) to: TxKind,
    pub(crate) value: U256,
    pub(crate) input: Bytes,
    pub(crate) authorizations: Vec<SignedAuthorization>,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            nonce: 0,
            fee_cap_wei: 10 * GWEI,
            tip_wei: GWEI,
            gas_limit: 21_000,
            to: TxKind::Call(Address::repeat_byte(0x77)),
            value: U256::ONE,
            input: Bytes::new(),
            authorizations: Vec::new(),
        }
    }
}

impl Wallet {
    /// The wallet with this small number as secret key.
    pub(crate) fn numbered(number: u64) -> Self {
        let secret = B256::from(U256::from(number + 1));
        Self(PrivateKeySigner::from_bytes(&secret).expect("a small number is a secret key"))
    }

    /// A funded account of the development network.
    pub(crate) fn dev(index: u32) -> Self {
        Self(crate::engine::accounts::dev_signer(index))
    }

    pub(crate) fn address(&self) -> Address {
        self.0.address()
    }

    fn signature(&self, hash: B256) -> Signature {
        self.0
            .sign_hash_sync(&hash)
            .expect("a local key signs any hash")
    }

    /// Signs that this account's code be `delegate`'s.
    pub(crate) fn authorize(&self, delegate: Address, nonce: u64) -> SignedAuthorization {
        let authorization = Authorization {
            chain_id: U256::from(DEV_CHAIN_ID),
            address: delegate,
            nonce,
        };
        let signature = self.signature(authorization.signature_hash());
        authorization.into_signed(signature)
    }

    /// EIP-2718 bytes; type 4 with authorizations, else type 2.
    pub(crate) fn raw(&self, draft: &Draft) -> Bytes {
        let envelope = if draft.authorizations.is_empty() {
            let transaction = TxEip1559 {
                chain_id: DEV_CHAIN_ID,
                nonce: draft.nonce,
                gas_limit: draft.gas_limit,
                max_fee_per_gas: draft.fee_cap_wei,
                max_priority_fee_per_gas: draft.tip_wei,
                to: draft.to,
                value: draft.value,
                input: draft.input.clone(),
                access_list: Default::default(),
            };
            let signature = self.signature(transaction.signature_hash());
            TxEnvelope::from(transaction.into_signed(signature))
        } else {
            let transaction = TxEip7702 {
                chain_id: DEV_CHAIN_ID,
                nonce: draft.nonce,
                gas_limit: draft.gas_limit,
                max_fee_per_gas: draft.fee_cap_wei,
                max_priority_fee_per_gas: draft.tip_wei,
                to: draft.to.into_to().unwrap_or_default(),
                value: draft.value,
                input: draft.input.clone(),
                access_list: Default::default(),
                authorization_list: draft.authorizations.clone(),
            };
            let signature = self.signature(transaction.signature_hash());
            TxEnvelope::from(transaction.into_signed(signature))
        };
        envelope.encoded_2718().into()
    }

    /// Signed and parsed.
    pub(crate) fn sign(&self, draft: &Draft) -> Arc<Transaction> {
        let transaction = Transaction::decode(self.raw(draft), DEV_CHAIN_ID);
        Arc::new(transaction.expect("drafts of tests are well-formed"))
    }
}

/// What the tests say the hash of the genesis file is.
pub(crate) const GENESIS_SHA256: B256 = B256::repeat_byte(0x6e);

/// A chain of the development network on a real store in `folder`.
pub(crate) fn open_chain(folder: &Path, options: ChainOptions) -> Chain {
    try_open_chain(folder, options, Durability::Os).expect("a folder of the test's own opens")
}

/// The same in another durability mode, where the folder may be in use.
pub(crate) fn try_open_chain(
    folder: &Path,
    options: ChainOptions,
    durability: Durability,
) -> Result<Chain, StoreError> {
    static GENESIS: LazyLock<Arc<Genesis>> = LazyLock::new(|| Arc::new(dev_genesis()));
    let store_options = StoreOptions {
        durability,
        wal_folder: None,
        block_cache_bytes: 8 * 1024 * 1024,
        history_blocks: 1_000,
        proof_window_blocks: 16,
    };
    let store = Store::open(folder, store_options)?;
    Ok(Chain::new(
        Arc::clone(&GENESIS),
        GENESIS_SHA256,
        store,
        options,
    ))
}
