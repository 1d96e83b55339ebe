//! The development network: chain id 31337, the ten accounts client suites expect, one validator whose key is public.

use crate::{Genesis, GenesisBuilder, GenesisValidator, VALIDATOR_POWER_DEFAULT, development_keys};
use alloy_primitives::{Address, U256, address};

/// EVM chain id of development networks, as client suites expect.
pub const DEV_CHAIN_ID: u64 = 31_337;

/// Time of block 0: 1 January 2026.
pub const DEV_TIMESTAMP: u64 = 1_767_225_600;

/// Balance of each development account: 10,000 coins of 10^18 wei.
pub const DEV_BALANCE_WEI: U256 = U256::from_limbs([0x19e0_c9ba_b240_0000, 0x21e, 0, 0]);

/// Accounts m/44'/60'/0'/0/0 to 9 of the mnemonic `test test test test test test test test test test test junk`.
pub const DEV_ACCOUNTS: [Address; 10] = [
    address!("f39Fd6e51aad88F6F4ce6aB8827279cffFb92266"),
    address!("70997970C51812dc3A010C7d01b50e0d17dc79C8"),
    address!("3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"),
    address!("90F79bf6EB2c4f870365E785982E1f101E93b906"),
    address!("15d34AAf54267DB7D7c367839AAf71A00a2C6A65"),
    address!("9965507D1a55bcC2695C58ba16FB37d819B0A4dc"),
    address!("976EA74026E726554dB657fA54763abd0C3a0aa9"),
    address!("14dC79964da2C08b23698B3D3cc7Ca32193d9955"),
    address!("23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f"),
    address!("a0Ee7A142d267C1f36714E4a8F75612F20a79720"),
];

/// Where fees go: an account nobody holds, so that tests of balances see no fee come back.
pub const DEV_PAYOUT: Address = address!("000000000000000000000000000000000000fee5");

/// ed25519 seed of the development validator. Public: it protects nothing.
pub const DEV_VALIDATOR_SEED: [u8; 32] = *b"cloister development validator!!";

/// The development network. Its member account is the first of [`DEV_ACCOUNTS`].
pub fn dev_genesis() -> Genesis {
    let public_key = ed25519_consensus::SigningKey::from(DEV_VALIDATOR_SEED)
        .verification_key()
        .to_bytes();
    DEV_ACCOUNTS
        .into_iter()
        .fold(GenesisBuilder::new(DEV_CHAIN_ID), |builder, account| {
            builder.fund(account, DEV_BALANCE_WEI)
        })
        .development(true)
        .timestamp(DEV_TIMESTAMP)
        .verifying_keys(development_keys())
        .validators([GenesisValidator {
            member: DEV_ACCOUNTS[0],
            public_key,
            power: VALIDATOR_POWER_DEFAULT,
            payout: DEV_PAYOUT,
            name: "dev".into(),
        }])
        .build()
        .expect("a fixed network, and a test builds it")
}
