//! JSON read into a tree that keeps what serde_json's own drops (keys given twice, numbers too large for it), and a
//! reader that walks the tree and collects every fault with the path to it.

use crate::error::{Fault, GenesisError, Rule};
use alloy_primitives::{Address, B256, Bytes, U256};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::{borrow::Cow, fmt};

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    /// Negative, fractional or above 2^64: nothing here wants one, and a float would not be exact.
    Other(f64),
    String(Cow<'a, str>),
    Array(Vec<Self>),
    Object(Vec<(Cow<'a, str>, Self)>),
}

impl Json<'_> {
    /// The value as an error message shows it.
    fn shown(&self) -> String {
        match self {
            Self::Null => "null".into(),
            Self::Bool(value) => value.to_string(),
            Self::Unsigned(value) => value.to_string(),
            Self::Other(value) => value.to_string(),
            Self::String(value) if value.len() <= 80 => format!("{value:?}"),
            Self::String(value) => format!("a string of {} bytes", value.len()),
            Self::Array(items) => format!("an array of {}", items.len()),
            Self::Object(entries) => format!("an object of {}", entries.len()),
        }
    }
}

/// Parses JSON bytes.
pub(crate) fn parse(bytes: &[u8]) -> Result<Json<'_>, GenesisError> {
    serde_json::from_slice(bytes).map_err(|error| GenesisError::Syntax {
        line: error.line(),
        column: error.column(),
        reason: error.to_string(),
    })
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Tree;
        impl<'de> Visitor<'de> for Tree {
            type Value = Json<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Json::Null)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
                Ok(Json::Bool(value))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
                Ok(Json::Unsigned(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
                Ok(Json::Other(value as f64))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
                Ok(Json::Other(value))
            }
            fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
                Ok(Json::String(Cow::Owned(value.into())))
            }
            fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
                Ok(Json::String(Cow::Borrowed(value)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Json::Array(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((Json::String(key), value)) = map.next_entry()? {
                    entries.push((key, value));
                }
                Ok(Json::Object(entries))
            }
        }
        deserializer.deserialize_any(Tree)
    }
}

/// Collects faults while a tree is read. Every method gives a stand-in after a fault, so that reading goes on.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pub(crate) faults: Vec<Fault>,
}

/// The entries of one object, taken one by one.
pub(crate) struct Fields<'t, 'a> {
    path: String,
    known: &'static [&'static str],
    entries: &'t [(Cow<'a, str>, Json<'a>)],
}

impl<'t, 'a> Fields<'t, 'a> {
    pub(crate) fn optional(&self, key: &str) -> Option<&'t Json<'a>> {
        self.entries
            .iter()
            .find(|entry| entry.0 == key)
            .map(|entry| &entry.1)
    }

    pub(crate) fn path(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.into()
        } else {
            format!("{}.{key}", self.path)
        }
    }
}

impl Reader {
    pub(crate) fn fault(&mut self, field: impl Into<String>, rule: Rule) {
        self.faults.push(Fault {
            field: field.into(),
            rule,
        });
    }

    fn wrong_type(&mut self, path: &str, json: &Json<'_>, want: &'static str) {
        let rule = Rule::WrongType {
            got: json.shown(),
            want,
        };
        self.fault(if path.is_empty() { "genesis" } else { path }, rule);
    }

    /// The entries of an object; refuses keys that are not `known` and keys given twice.
    pub(crate) fn object<'t, 'a>(
        &mut self,
        path: &str,
        json: &'t Json<'a>,
        known: &'static [&'static str],
    ) -> Option<Fields<'t, 'a>> {
        let entries = self.entries(path, json)?;
        let fields = Fields {
            path: path.into(),
            known,
            entries,
        };
        for (index, (key, _)) in entries.iter().enumerate() {
            if !fields.known.contains(&key.as_ref()) {
                self.fault(fields.path(key), Rule::UnknownKey { known });
            } else if entries.iter().take(index).any(|earlier| earlier.0 == *key) {
                self.fault(fields.path(key), Rule::DuplicateKey);
            }
        }
        Some(fields)
    }

    /// The entries of an object with free keys.
    pub(crate) fn entries<'t, 'a>(
        &mut self,
        path: &str,
        json: &'t Json<'a>,
    ) -> Option<&'t [(Cow<'a, str>, Json<'a>)]> {
        match json {
            Json::Object(entries) => Some(entries),
            Json::Null
            | Json::Bool(_)
            | Json::Unsigned(_)
            | Json::Other(_)
            | Json::String(_)
            | Json::Array(_) => {
                self.wrong_type(path, json, "an object");
                None
            }
        }
    }

    /// A field that must be there.
    pub(crate) fn required<'t, 'a>(
        &mut self,
        fields: &Fields<'t, 'a>,
        key: &str,
    ) -> Option<&'t Json<'a>> {
        let value = fields.optional(key);
        if value.is_none() {
            self.fault(fields.path(key), Rule::Missing);
        }
        value
    }

    pub(crate) fn array<'t, 'a>(&mut self, fields: &Fields<'t, 'a>, key: &str) -> &'t [Json<'a>] {
        match self.required(fields, key) {
            None => &[],
            Some(Json::Array(items)) => items,
            Some(other) => {
                self.wrong_type(&fields.path(key), other, "an array");
                &[]
            }
        }
    }

    /// A JSON integer from `min` to `max`.
    pub(crate) fn integer(
        &mut self,
        fields: &Fields<'_, '_>,
        key: &str,
        min: u64,
        max: u64,
    ) -> u64 {
        let Some(json) = self.required(fields, key) else {
            return min;
        };
        let path = fields.path(key);
        match json {
            Json::Unsigned(value) if *value < min => {
                self.fault(
                    path,
                    Rule::TooSmall {
                        got: value.to_string(),
                        min,
                    },
                );
                min
            }
            Json::Unsigned(value) if *value > max => {
                let rule = Rule::TooLarge {
                    got: value.to_string(),
                    max: U256::from(max),
                };
                self.fault(path, rule);
                min
            }
            Json::Unsigned(value) => *value,
            other => {
                self.wrong_type(&path, other, "a whole number");
                min
            }
        }
    }

    pub(crate) fn boolean(&mut self, fields: &Fields<'_, '_>, key: &str, stand_in: bool) -> bool {
        match self.required(fields, key) {
            None => stand_in,
            Some(Json::Bool(value)) => *value,
            Some(other) => {
                self.wrong_type(&fields.path(key), other, "true or false");
                stand_in
            }
        }
    }

    pub(crate) fn string(&mut self, fields: &Fields<'_, '_>, key: &str) -> String {
        match self.required(fields, key) {
            None => String::new(),
            Some(Json::String(value)) => value.to_string(),
            Some(other) => {
                self.wrong_type(&fields.path(key), other, "a string");
                String::new()
            }
        }
    }

    /// A quantity as Ethereum genesis files write it: `"0x1f"`, `"31"` or a JSON integer below 2^64.
    pub(crate) fn quantity(&mut self, path: &str, json: &Json<'_>) -> U256 {
        let value = match json {
            Json::Unsigned(value) => Some(U256::from(*value)),
            Json::String(text) => parse_quantity(text),
            Json::Null | Json::Bool(_) | Json::Other(_) | Json::Array(_) | Json::Object(_) => None,
        };
        value.unwrap_or_else(|| {
            self.wrong_type(
                path,
                json,
                "a string: a decimal or 0x-prefixed number below 2^256",
            );
            U256::ZERO
        })
    }

    /// Bytes as hex, with or without 0x.
    pub(crate) fn bytes(&mut self, path: &str, json: &Json<'_>) -> Bytes {
        let bytes = match json {
            Json::String(text) => hex::decode(strip_prefix(text)).ok(),
            Json::Null
            | Json::Bool(_)
            | Json::Unsigned(_)
            | Json::Other(_)
            | Json::Array(_)
            | Json::Object(_) => None,
        };
        bytes.map_or_else(
            || {
                self.wrong_type(path, json, "bytes in hex");
                Bytes::new()
            },
            Bytes::from,
        )
    }

    /// Exactly `N` bytes as hex.
    pub(crate) fn fixed<const N: usize>(
        &mut self,
        fields: &Fields<'_, '_>,
        key: &str,
        want: &'static str,
    ) -> [u8; N] {
        let Some(json) = self.required(fields, key) else {
            return [0; N];
        };
        let bytes = match json {
            Json::String(text) => parse_fixed(text),
            Json::Null
            | Json::Bool(_)
            | Json::Unsigned(_)
            | Json::Other(_)
            | Json::Array(_)
            | Json::Object(_) => None,
        };
        bytes.unwrap_or_else(|| {
            self.wrong_type(&fields.path(key), json, want);
            [0; N]
        })
    }

    pub(crate) fn address(&mut self, fields: &Fields<'_, '_>, key: &str) -> Address {
        Address::from(self.fixed::<20>(fields, key, "an address: 20 bytes in hex"))
    }

    /// A storage key or value: up to 32 bytes in hex, padded on the left.
    pub(crate) fn word(&mut self, path: &str, text: &str) -> B256 {
        let digits = strip_prefix(text);
        let word = (digits.len() <= 64)
            .then(|| hex::decode(format!("{digits:0>64}")).ok())
            .flatten()
            .and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        word.map_or_else(
            || {
                let rule = Rule::WrongType {
                    got: Json::String(Cow::Borrowed(text)).shown(),
                    want: "at most 32 bytes in hex",
                };
                self.fault(path, rule);
                B256::ZERO
            },
            B256::from,
        )
    }
}

/// A string as JSON writes it.
pub(crate) fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("a string always serialises")
}

pub(crate) fn strip_prefix(text: &str) -> &str {
    text.strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))
        .unwrap_or(text)
}

pub(crate) fn parse_fixed<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(strip_prefix(text), &mut bytes).ok()?;
    Some(bytes)
}

fn parse_quantity(text: &str) -> Option<U256> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // ruint takes underscores and an empty string; Ethereum's files hold neither.
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    U256::from_str_radix(digits, radix).ok()
}
