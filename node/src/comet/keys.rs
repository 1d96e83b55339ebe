//! ed25519 keys of a node and its validator, in CometBFT's JSON files.
//!
//! `node_key.json` identifies the node to its peers; `priv_validator_key.json` signs votes. A private key is 64 bytes:
//! seed || public key, base64. A node's id is the hex of the first 20 bytes of SHA-256 of its public key; a validator's
//! address is the same of its own key, in capitals. Secrets are wiped on drop and never printed.

use super::CometError;
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use cloister_app::block::ConsensusAddress;
use ed25519_consensus::{SigningKey, VerificationKeyBytes};
use rand::CryptoRng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{fs, io::Write, os::unix::fs::OpenOptionsExt, path::Path};
use zeroize::Zeroizing;

const PUBLIC_KEY_TYPE: &str = "tendermint/PubKeyEd25519";
const PRIVATE_KEY_TYPE: &str = "tendermint/PrivKeyEd25519";

/// A key pair of a node or of a validator.
pub struct KeyPair(SigningKey);

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "KeyPair({})", hex::encode(self.public_key()))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedValue {
    r#type: String,
    value: String,
}

#[derive(Serialize, Deserialize)]
struct NodeKeyFile {
    priv_key: TypedValue,
}

#[derive(Serialize, Deserialize)]
struct ValidatorKeyFile {
    address: String,
    pub_key: TypedValue,
    priv_key: TypedValue,
}

impl KeyPair {
    /// Makes a new key.
    pub fn generate(rng: &mut impl CryptoRng) -> Self {
        let mut seed = Zeroizing::new([0u8; 32]);
        rng.fill_bytes(seed.as_mut());
        Self(SigningKey::from(*seed))
    }

    /// The public key, 32 bytes.
    pub fn public_key(&self) -> [u8; 32] {
        self.0.verification_key().to_bytes()
    }

    /// First 20 bytes of SHA-256 of the public key.
    pub fn address(&self) -> ConsensusAddress {
        address(&self.public_key())
    }

    /// The id by which peers dial this node: 40 hex digits.
    pub fn node_id(&self) -> String {
        hex::encode(self.address())
    }

    /// Writes `node_key.json`, readable by this user alone. Refuses to overwrite.
    pub fn write_node_key(&self, path: &Path) -> Result<(), CometError> {
        let file = NodeKeyFile {
            priv_key: self.private_value(),
        };
        let text = Zeroizing::new(serde_json::to_string(&file).expect("plain text fields"));
        write_new_secret(path, &text)
    }

    /// Writes `priv_validator_key.json`, readable by this user alone. Refuses to overwrite.
    pub fn write_validator_key(&self, path: &Path) -> Result<(), CometError> {
        let file = ValidatorKeyFile {
            address: hex::encode_upper(self.address()),
            pub_key: TypedValue {
                r#type: PUBLIC_KEY_TYPE.to_owned(),
                value: BASE64.encode(self.public_key()),
            },
            priv_key: self.private_value(),
        };
        let text = Zeroizing::new(serde_json::to_string_pretty(&file).expect("plain text fields"));
        write_new_secret(path, &text)
    }

    /// Reads `node_key.json`.
    pub fn read_node_key(path: &Path) -> Result<Self, CometError> {
        let file: NodeKeyFile = read_json(path)?;
        parse_private(&file.priv_key).map_err(|reason| CometError::KeyFile {
            path: path.to_owned(),
            reason,
        })
    }

    /// Reads `priv_validator_key.json`; address and public key must belong to the private key.
    pub fn read_validator_key(path: &Path) -> Result<Self, CometError> {
        let file: ValidatorKeyFile = read_json(path)?;
        let refuse = |reason: String| CometError::KeyFile {
            path: path.to_owned(),
            reason,
        };
        let key = parse_private(&file.priv_key).map_err(refuse)?;
        if file.pub_key.r#type != PUBLIC_KEY_TYPE
            || file.pub_key.value != BASE64.encode(key.public_key())
        {
            return Err(refuse("pub_key is not that of priv_key".to_owned()));
        }
        if !file
            .address
            .eq_ignore_ascii_case(&hex::encode(key.address()))
        {
            return Err(refuse(format!(
                "address {} is not that of priv_key ({})",
                file.address,
                hex::encode_upper(key.address())
            )));
        }
        Ok(key)
    }

    fn private_value(&self) -> TypedValue {
        let mut bytes = Zeroizing::new([0u8; 64]);
        bytes[..32].copy_from_slice(self.0.as_bytes());
        bytes[32..].copy_from_slice(&self.public_key());
        TypedValue {
            r#type: PRIVATE_KEY_TYPE.to_owned(),
            value: BASE64.encode(bytes.as_ref()),
        }
    }
}

impl Drop for TypedValue {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.value);
    }
}

/// First 20 bytes of SHA-256 of an ed25519 public key.
pub fn address(public_key: &[u8; 32]) -> ConsensusAddress {
    ConsensusAddress::from_slice(&Sha256::digest(public_key)[..20])
}

fn parse_private(value: &TypedValue) -> Result<KeyPair, String> {
    if value.r#type != PRIVATE_KEY_TYPE {
        return Err(format!(
            "priv_key.type is {:?}, expected {PRIVATE_KEY_TYPE:?}",
            value.r#type
        ));
    }
    let bytes = Zeroizing::new(
        BASE64
            .decode(&value.value)
            .map_err(|_| "priv_key.value is not base64".to_owned())?,
    );
    if bytes.len() != 64 {
        return Err(format!(
            "priv_key.value is {} bytes, expected 64",
            bytes.len()
        ));
    }
    let seed = Zeroizing::new(<[u8; 32]>::try_from(&bytes[..32]).expect("32 of 64 bytes"));
    let key = KeyPair(SigningKey::from(*seed));
    let public = VerificationKeyBytes::try_from(&bytes[32..]).expect("the other 32 bytes");
    if public != VerificationKeyBytes::from(&key.0) {
        return Err("priv_key.value: its public half does not belong to its seed".to_owned());
    }
    Ok(key)
}

/// Errors name the place in the file, never its content.
fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, CometError> {
    let text = Zeroizing::new(fs::read_to_string(path).map_err(CometError::secret(path))?);
    serde_json::from_str(&text).map_err(|error| CometError::KeyFile {
        path: path.to_owned(),
        reason: if error.is_data() && error.to_string().starts_with("missing field") {
            error.to_string()
        } else {
            format!(
                "not as CometBFT writes it (line {}, column {})",
                error.line(),
                error.column()
            )
        },
    })
}

pub(super) fn write_new_secret(path: &Path, text: &str) -> Result<(), CometError> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(CometError::io(path))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(CometError::io(path))
}

#[cfg(test)]
mod tests;
