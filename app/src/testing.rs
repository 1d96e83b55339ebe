//! A chain in memory, and keys that sign: for the tests of this crate and of those above it.

use crate::{
    app::App,
    block::{BlockInput, BlockOutcome, ConsensusAddress, ExecutedBlock},
    state::{Account, HashedAddress, HashedSlot, memory::MemoryState},
};
use alloy_consensus::{
    Header, SignableTransaction, TxEip1559, TxEip7702, TxEnvelope, TxLegacy, TypedTransaction,
    crypto::secp256k1::{recover_signer, sign_message},
};
use alloy_eips::{
    eip2718::Encodable2718,
    eip2935, eip4788,
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, keccak256};
use cloister_genesis::{Genesis, Parameters};
use std::collections::BTreeMap;

/// EVM chain id of [`TestChain::new`].
pub const CHAIN_ID: u64 = 31_337;
/// Balance of each test key: 1,000 coins.
pub const BALANCE_WEI: u128 = 1_000_000_000_000_000_000_000;
/// Fee cap that covers the default floor with room.
pub const FEE_CAP_WEI: u128 = 3_000_000_000;

/// A secp256k1 key.
#[derive(Debug, Clone, Copy)]
pub struct TestKey {
    secret: B256,
    address: Address,
}

impl TestKey {
    /// The `index`th key of the fixed list.
    pub fn new(index: u64) -> Self {
        let secret = keccak256(index.to_be_bytes());
        let message = B256::repeat_byte(1);
        let signature = sign_message(secret, message).expect("a hash is a secret key");
        let address = recover_signer(&signature, message).expect("our own signature");
        Self { secret, address }
    }

    /// Its account.
    pub const fn address(&self) -> Address {
        self.address
    }

    /// Signs and encodes.
    pub fn sign(&self, transaction: impl Into<TypedTransaction>) -> Bytes {
        let transaction = transaction.into();
        let signature = sign_message(self.secret, transaction.signature_hash()).expect("valid key");
        TxEnvelope::from(transaction.into_signed(signature))
            .encoded_2718()
            .into()
    }

    /// An EIP-7702 authorization of this key's account.
    pub fn authorize(&self, address: Address, nonce: u64) -> SignedAuthorization {
        let authorization = Authorization {
            chain_id: U256::from(CHAIN_ID),
            address,
            nonce,
        };
        let signature =
            sign_message(self.secret, authorization.signature_hash()).expect("valid key");
        authorization.into_signed(signature)
    }

    /// A plain transfer: legacy, 21,000 gas.
    pub fn transfer(&self, nonce: u64, to: Address, value_wei: u128) -> Bytes {
        self.sign(TxLegacy {
            chain_id: Some(CHAIN_ID),
            nonce,
            gas_price: FEE_CAP_WEI,
            gas_limit: 21_000,
            to: TxKind::Call(to),
            value: U256::from(value_wei),
            input: Bytes::new(),
        })
    }

    /// A call with data: EIP-1559, a million gas, a tip of one gwei.
    pub fn call(&self, nonce: u64, to: TxKind, value_wei: u128, input: impl Into<Bytes>) -> Bytes {
        self.sign(self.call_fields(nonce, to, value_wei, input))
    }

    /// The transaction that [`Self::call`] signs.
    pub fn call_fields(
        &self,
        nonce: u64,
        to: TxKind,
        value_wei: u128,
        input: impl Into<Bytes>,
    ) -> TxEip1559 {
        TxEip1559 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit: 1_000_000,
            max_fee_per_gas: FEE_CAP_WEI,
            max_priority_fee_per_gas: 1_000_000_000,
            to,
            value: U256::from(value_wei),
            access_list: Default::default(),
            input: input.into(),
        }
    }

    /// An EIP-7702 transaction to `to`.
    pub fn delegate(
        &self,
        nonce: u64,
        to: Address,
        authorization_list: Vec<SignedAuthorization>,
    ) -> Bytes {
        self.sign(TxEip7702 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit: 1_000_000,
            max_fee_per_gas: FEE_CAP_WEI,
            max_priority_fee_per_gas: 0,
            to,
            value: U256::ZERO,
            access_list: Default::default(),
            authorization_list,
            input: Bytes::new(),
        })
    }
}

/// A chain whose state is in memory.
#[derive(Debug)]
pub struct TestChain {
    /// Its rules.
    pub app: App,
    /// State after `head`.
    pub state: MemoryState,
    /// The last block.
    pub head: Header,
}

impl TestChain {
    /// Ten funded keys, the contracts of EIP-2935 and 4788, and `contracts` as code at addresses.
    pub fn new(
        change: impl FnOnce(&mut Parameters),
        contracts: impl IntoIterator<Item = (Address, Bytes)>,
    ) -> Self {
        let system = [
            (
                eip4788::BEACON_ROOTS_ADDRESS,
                eip4788::BEACON_ROOTS_CODE.clone(),
            ),
            (
                eip2935::HISTORY_STORAGE_ADDRESS,
                eip2935::HISTORY_STORAGE_CODE.clone(),
            ),
        ];
        Self::without_system_contracts(change, system.into_iter().chain(contracts))
    }

    /// As [`Self::new`] with nothing but the keys and `contracts`.
    pub fn without_system_contracts(
        change: impl FnOnce(&mut Parameters),
        contracts: impl IntoIterator<Item = (Address, Bytes)>,
    ) -> Self {
        let mut parameters = Parameters::new(CHAIN_ID);
        change(&mut parameters);
        let mut genesis = Genesis {
            network: "test".to_owned(),
            development: true,
            timestamp: 1_700_000_000,
            parameters,
            validators: Vec::new(),
            verifying_keys: Vec::new(),
            alloc: BTreeMap::new(),
        };
        for (address, code) in contracts {
            let account = genesis.alloc.entry(address).or_default();
            account.nonce = Some(1);
            account.code = Some(code);
        }
        for index in 0..10 {
            let address = TestKey::new(index).address();
            genesis.alloc.entry(address).or_default().balance = U256::from(BALANCE_WEI);
        }
        Self::from_genesis(&genesis)
    }

    /// A chain of any genesis.
    pub fn from_genesis(genesis: &Genesis) -> Self {
        let app = App::new(genesis);
        let outcome = app.init_chain(genesis);
        let mut state = MemoryState::default();
        state.apply(&outcome.changes);
        state.set_block_hash(0, outcome.hash);
        Self {
            app,
            state,
            head: outcome.header,
        }
    }

    /// The next block, one second after the last, with these transactions.
    pub const fn input(&self, transactions: Vec<Bytes>) -> BlockInput {
        BlockInput {
            height: self.head.number + 1,
            time_ms: (self.head.timestamp + 1) * 1000,
            proposer: ConsensusAddress::repeat_byte(7),
            transactions,
            misbehaviour: Vec::new(),
            last_commit: Vec::new(),
        }
    }

    /// Executes the next block without applying it.
    pub fn execute(&self, transactions: Vec<Bytes>) -> ExecutedBlock {
        self.app
            .execute_block(&self.state, &self.head, &self.input(transactions), &|_| {
                None
            })
            .expect("a state in memory answers every read")
    }

    /// Seals and applies an executed block.
    pub fn apply(&mut self, executed: ExecutedBlock) -> BlockOutcome {
        let consensus_hash = keccak256(executed.header.number.to_be_bytes());
        let outcome = executed.seal(consensus_hash);
        self.state.apply(&outcome.block.changes);
        self.head = outcome.block.header.clone();
        self.state.set_block_hash(self.head.number, outcome.hash);
        outcome
    }

    /// Executes and applies the next block.
    pub fn run(&mut self, transactions: Vec<Bytes>) -> BlockOutcome {
        let executed = self.execute(transactions);
        self.apply(executed)
    }

    /// An account, the default one if absent.
    pub fn account(&self, address: Address) -> Account {
        self.state
            .accounts
            .get(&HashedAddress::from(address))
            .copied()
            .unwrap_or_default()
    }

    /// A slot's value.
    pub fn slot(&self, address: Address, slot: u64) -> U256 {
        let key = (
            HashedAddress::from(address),
            HashedSlot::from(U256::from(slot)),
        );
        self.state.storage.get(&key).copied().unwrap_or_default()
    }
}
