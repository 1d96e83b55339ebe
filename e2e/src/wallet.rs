//! Accounts of the well-known test mnemonic, signing every type of transaction.

use crate::rpc::Rpc;
use alloy_consensus::{SignableTransaction, TxEip1559, TxEip2930, TxEip7702, TxEnvelope, TxLegacy};
use alloy_eips::{
    eip2718::Encodable2718,
    eip2930::AccessList,
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::{Address, Bytes, Signature, TxKind, U256};
use alloy_rpc_types_eth::TransactionReceipt;
use alloy_signer::SignerSync;
use alloy_signer_local::{MnemonicBuilder, PrivateKeySigner, coins_bip39::English};
use anyhow::{Result, ensure};
use std::time::Duration;

/// Known to everyone: for tests alone.
pub const MNEMONIC: &str = "test test test test test test test test test test test junk";

/// What a transaction does, apart from fees and nonce.
#[derive(Debug, Clone, Default)]
pub struct Action {
    /// Nobody: creates a contract.
    pub to: Option<Address>,
    /// In wei.
    pub value: U256,
    /// Call data or creation code.
    pub data: Bytes,
    /// Gas limit.
    pub gas: u64,
}

impl Action {
    /// Coins to an account.
    pub fn transfer(to: Address, value: u64) -> Self {
        Self {
            to: Some(to),
            value: U256::from(value),
            gas: 21_000,
            ..Self::default()
        }
    }
    /// A call of a contract.
    pub fn call(to: Address, data: impl Into<Bytes>) -> Self {
        Self {
            to: Some(to),
            data: data.into(),
            gas: 1_000_000,
            ..Self::default()
        }
    }
    /// A new contract.
    pub fn create(code: impl Into<Bytes>) -> Self {
        Self {
            data: code.into(),
            gas: 3_000_000,
            ..Self::default()
        }
    }
    /// With coins.
    pub fn with_value(mut self, wei: u64) -> Self {
        self.value = U256::from(wei);
        self
    }
    /// With another gas limit.
    pub const fn with_gas(mut self, gas: u64) -> Self {
        self.gas = gas;
        self
    }
    fn kind(&self) -> TxKind {
        self.to.map_or(TxKind::Create, TxKind::Call)
    }
}

/// EIP-2718 type of a transaction.
#[derive(Debug, Clone)]
pub enum Type {
    /// 0, with EIP-155.
    Legacy,
    /// 1
    AccessList(AccessList),
    /// 2
    DynamicFee,
    /// 4
    SetCode(Vec<SignedAuthorization>),
}

/// Price of a unit of gas offered by every transaction of these tests, in wei: above any floor that they use.
pub const FEE_PER_GAS_WEI: u128 = 20_000_000_000;
/// Part of it for the proposer.
pub const TIP_PER_GAS_WEI: u128 = 1_000_000_000;

/// A key that signs for one chain.
#[derive(Debug, Clone)]
pub struct Wallet {
    signer: PrivateKeySigner,
    /// EVM chain id signed for.
    pub chain_id: u64,
    /// Price of a unit of gas offered, in wei.
    pub fee_per_gas_wei: u128,
}

impl Wallet {
    /// An account of the mnemonic.
    pub fn of_mnemonic(index: u32, chain_id: u64) -> Self {
        let signer = MnemonicBuilder::<English>::default()
            .phrase(MNEMONIC)
            .index(index)
            .and_then(|builder| builder.build())
            .expect("the well-known mnemonic is valid");
        Self {
            signer,
            chain_id,
            fee_per_gas_wei: FEE_PER_GAS_WEI,
        }
    }

    /// A fresh key.
    pub fn random(chain_id: u64) -> Self {
        Self {
            signer: PrivateKeySigner::random(),
            chain_id,
            fee_per_gas_wei: FEE_PER_GAS_WEI,
        }
    }

    /// Its account.
    pub const fn address(&self) -> Address {
        self.signer.address()
    }

    /// The signed bytes.
    pub fn sign(&self, kind: &Type, action: &Action, nonce: u64) -> Bytes {
        let (chain_id, fee, tip) = (
            self.chain_id,
            self.fee_per_gas_wei,
            TIP_PER_GAS_WEI.min(self.fee_per_gas_wei),
        );
        let (to, value, input, gas_limit) =
            (action.kind(), action.value, action.data.clone(), action.gas);
        let envelope: TxEnvelope = match kind {
            Type::Legacy => self.signed(TxLegacy {
                chain_id: Some(chain_id),
                nonce,
                gas_price: fee,
                gas_limit,
                to,
                value,
                input,
            }),
            Type::AccessList(list) => self.signed(TxEip2930 {
                chain_id,
                nonce,
                gas_price: fee,
                gas_limit,
                to,
                value,
                access_list: list.clone(),
                input,
            }),
            Type::DynamicFee => self.signed(TxEip1559 {
                chain_id,
                nonce,
                gas_limit,
                max_fee_per_gas: fee,
                max_priority_fee_per_gas: tip,
                to,
                value,
                access_list: AccessList::default(),
                input,
            }),
            Type::SetCode(authorizations) => self.signed(TxEip7702 {
                chain_id,
                nonce,
                gas_limit,
                max_fee_per_gas: fee,
                max_priority_fee_per_gas: tip,
                to: action.to.unwrap_or_default(),
                value,
                access_list: AccessList::default(),
                authorization_list: authorizations.clone(),
                input,
            }),
        };
        envelope.encoded_2718().into()
    }

    /// An authorisation to run code of `target` in this account.
    pub fn authorize(&self, target: Address, nonce: u64) -> SignedAuthorization {
        let authorization = Authorization {
            chain_id: U256::from(self.chain_id),
            address: target,
            nonce,
        };
        let signature = self.sign_hash(authorization.signature_hash());
        authorization.into_signed(signature)
    }

    /// Sends at the next pending nonce and waits for a receipt; any status.
    pub async fn send(
        &self,
        rpc: &Rpc,
        kind: &Type,
        action: &Action,
    ) -> Result<TransactionReceipt> {
        let nonce = rpc.pending_nonce(self.address()).await?;
        let hash = rpc.send_raw(self.sign(kind, action, nonce)).await?;
        rpc.receipt(hash, Duration::from_secs(30)).await
    }

    /// Sends and asserts success.
    pub async fn send_ok(
        &self,
        rpc: &Rpc,
        kind: &Type,
        action: &Action,
    ) -> Result<TransactionReceipt> {
        let receipt = self.send(rpc, kind, action).await?;
        ensure!(
            receipt.status(),
            "transaction {} failed: {action:?}",
            receipt.transaction_hash
        );
        Ok(receipt)
    }

    /// Creates a contract and gives its address.
    pub async fn deploy(&self, rpc: &Rpc, code: impl Into<Bytes>) -> Result<Address> {
        let receipt = self
            .send_ok(rpc, &Type::DynamicFee, &Action::create(code))
            .await?;
        receipt
            .contract_address
            .ok_or_else(|| anyhow::anyhow!("no contract address in the receipt of a creation"))
    }

    fn sign_hash(&self, hash: alloy_primitives::B256) -> Signature {
        self.signer
            .sign_hash_sync(&hash)
            .expect("a local key signs any hash")
    }

    fn signed<T>(&self, transaction: T) -> TxEnvelope
    where
        T: SignableTransaction<Signature>,
        TxEnvelope: From<alloy_consensus::Signed<T>>,
    {
        let signature = self.sign_hash(transaction.signature_hash());
        transaction.into_signed(signature).into()
    }
}
