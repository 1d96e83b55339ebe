//! The accounts of a development chain: those of the mnemonic that every client suite knows.

use alloy_signer_local::{MnemonicBuilder, PrivateKeySigner, coins_bip39::English};

/// The well-known mnemonic. Everyone has its keys: coins sent to them on another network are lost.
pub const DEV_MNEMONIC: &str = "test test test test test test test test test test test junk";

/// Signer of account `m/44'/60'/0'/0/index`.
pub fn dev_signer(index: u32) -> PrivateKeySigner {
    MnemonicBuilder::<English>::default()
        .phrase(DEV_MNEMONIC)
        .index(index)
        .and_then(|builder| builder.build())
        .expect("the mnemonic is valid, and so is each of its first accounts")
}
