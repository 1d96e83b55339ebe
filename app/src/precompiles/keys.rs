//! The verifying keys that a chain knows by name: those of its genesis, found by index or by id.

use alloy_primitives::B256;
use cloister_genesis::GenesisVerifyingKey;
use cloister_groth16::{KeyError, KeyId, PreparedVerifyingKey, VerifyingKey};
use std::{collections::BTreeMap, sync::OnceLock};

/// Why genesis keys cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// A key does not parse or must not be used.
    #[error("verifying key {index} ({name}): {source}")]
    Key {
        index: usize,
        name: String,
        source: KeyError,
    },
    /// The same key twice.
    #[error("verifying key {index} ({name}) is the same as key {first}")]
    Duplicate {
        index: usize,
        name: String,
        first: usize,
    },
}

/// Registered keys, checked; each is prepared when it is first used.
#[derive(Debug, Default)]
pub struct KeyRegistry {
    entries: Vec<RegisteredKey>,
    index_by_id: BTreeMap<KeyId, usize>,
}

/// One registered key.
#[derive(Debug)]
pub struct RegisteredKey {
    name: String,
    id: KeyId,
    key: VerifyingKey,
    /// Some 52 KB a public input: not spent on keys that no one calls.
    prepared: OnceLock<PreparedVerifyingKey>,
}

impl KeyRegistry {
    /// Parses, checks and registers keys; the index of a key is its place in the list.
    pub fn new(keys: &[GenesisVerifyingKey]) -> Result<Self, RegistryError> {
        let mut registry = Self::default();
        for (index, GenesisVerifyingKey { name, key, .. }) in keys.iter().enumerate() {
            let key = VerifyingKey::parse(key).map_err(|source| RegistryError::Key {
                index,
                name: name.clone(),
                source,
            })?;
            let id = key.id();
            if let Some(first) = registry.index_by_id.insert(id, index) {
                return Err(RegistryError::Duplicate {
                    index,
                    name: name.clone(),
                    first,
                });
            }
            registry.entries.push(RegisteredKey {
                name: name.clone(),
                id,
                key,
                prepared: OnceLock::new(),
            });
        }
        Ok(registry)
    }

    /// All keys in order.
    pub fn entries(&self) -> &[RegisteredKey] {
        &self.entries
    }

    /// The key that a word names: its index if the word is below 2^32, else its id.
    pub fn find(&self, reference: &B256) -> Option<&RegisteredKey> {
        let (high, low) = reference.split_last_chunk::<4>()?;
        let index = if high.iter().all(|byte| *byte == 0) {
            usize::try_from(u32::from_be_bytes(*low)).ok()?
        } else {
            *self.index_by_id.get(&KeyId(reference.0))?
        };
        self.entries.get(index)
    }
}

impl RegisteredKey {
    /// Name shown to people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 of the key's bytes.
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// Number of public inputs.
    pub const fn public_input_count(&self) -> usize {
        self.key.public_input_count()
    }

    /// The key ready for verification.
    pub fn prepared(&self) -> &PreparedVerifyingKey {
        self.prepared
            .get_or_init(|| PreparedVerifyingKey::new(self.key.clone()))
    }
}
