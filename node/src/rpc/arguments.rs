//! Arguments of a request, parsed strictly: positional, typed, with geth's wording for what is wrong.
//!
//! Quantities are `0x` and at least one digit without leading zeros; data is `0x` and an even number of digits; tags are
//! lower case. The argument list is capped before it is parsed, so a body of a million numbers costs nothing.

use super::error::RpcError;
use alloy_primitives::{Address, B256, Bytes, U256};
use jsonrpsee::types::Params;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// The positional arguments of one request.
#[derive(Debug)]
pub(crate) struct Arguments {
    values: Vec<Value>,
}

impl Arguments {
    /// At most `max` arguments; absent and `null` parameters are no arguments.
    pub(crate) fn parse(params: &Params<'_>, max: usize) -> Result<Self, RpcError> {
        let Some(text) = params
            .as_str()
            .map(str::trim)
            .filter(|text| !text.is_empty() && *text != "null")
        else {
            return Ok(Self { values: Vec::new() });
        };
        if !text.starts_with('[') {
            return Err(RpcError::ArgumentsNotArray);
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let values = serde::Deserializer::deserialize_seq(&mut reader, CappedArray { max })
            .map_err(|error| RpcError::InvalidParameters(error.to_string()))?;
        values.map_or(Err(RpcError::TooManyArguments { max }), |values| {
            Ok(Self { values })
        })
    }

    /// The argument at `index`, which must be there.
    pub(crate) fn required<T: FromArgument>(&self, index: usize) -> Result<T, RpcError> {
        self.optional(index)?
            .ok_or(RpcError::MissingArgument { index })
    }

    /// The argument at `index`, unless it is absent or null.
    pub(crate) fn optional<T: FromArgument>(&self, index: usize) -> Result<Option<T>, RpcError> {
        match self.values.get(index) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => T::from_argument(value)
                .map(Some)
                .map_err(|reason| RpcError::InvalidArgument { index, reason }),
        }
    }
}

/// Reads an array of at most `max` values; `None` if it is longer.
struct CappedArray {
    max: usize,
}

impl<'de> Visitor<'de> for CappedArray {
    type Value = Option<Vec<Value>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of arguments")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while values.len() < self.max {
            match array.next_element()? {
                Some(value) => values.push(value),
                None => return Ok(Some(values)),
            }
        }
        let mut longer = false;
        while array.next_element::<IgnoredAny>()?.is_some() {
            longer = true;
        }
        Ok((!longer).then_some(values))
    }
}

/// A type that an argument, or a field of one, is read into.
pub(crate) trait FromArgument: Sized {
    /// `Err` says what is wrong with the value, without naming the argument.
    fn from_argument(value: &Value) -> Result<Self, String>;
}

/// The named fields of an object; those nobody asks for are ignored, as geth does.
pub(crate) struct Fields<'a>(&'a serde_json::Map<String, Value>);

impl<'a> Fields<'a> {
    pub(crate) fn of(value: &'a Value) -> Result<Self, String> {
        value
            .as_object()
            .map(Self)
            .ok_or_else(|| expected("an object", value))
    }

    /// The field, unless it is absent or null.
    pub(crate) fn get<T: FromArgument>(&self, name: &str) -> Result<Option<T>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => T::from_argument(value)
                .map(Some)
                .map_err(|reason| format!("{name}: {reason}")),
        }
    }

    /// The first of several names of one field.
    pub(crate) fn get_any<T: FromArgument>(&self, names: &[&str]) -> Result<Option<T>, String> {
        for name in names {
            if let Some(value) = self.get(name)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    pub(crate) fn need<T: FromArgument>(&self, name: &str) -> Result<T, String> {
        self.get(name)?
            .ok_or_else(|| format!("missing required field '{name}'"))
    }

    /// All entries, in order of their names.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        self.0.iter()
    }
}

fn expected(what: &str, found: &Value) -> String {
    let kind = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    format!("expected {what}, found {kind}")
}

fn text(value: &Value) -> Result<&str, String> {
    value
        .as_str()
        .ok_or_else(|| expected("a hex string", value))
}

/// Digits after `0x`, all of them hexadecimal.
fn digits(text: &str) -> Result<&str, String> {
    if text.is_empty() {
        return Err("empty hex string".into());
    }
    let digits = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))
        .ok_or("hex string without 0x prefix")?;
    if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(digits)
    } else {
        Err("invalid hex string".into())
    }
}

fn quantity(text: &str, bits_max: usize) -> Result<U256, String> {
    let digits = digits(text)?;
    if digits.is_empty() {
        return Err("hex string \"0x\"".into());
    }
    if digits.len() > 1 && digits.starts_with('0') {
        return Err("hex number with leading zero digits".into());
    }
    let number = (digits.len() <= 64)
        .then(|| U256::from_str_radix(digits, 16).ok())
        .flatten();
    number
        .filter(|number| number.bit_len() <= bits_max)
        .ok_or_else(|| format!("hex number > {bits_max} bits"))
}

fn bytes(text: &str) -> Result<Bytes, String> {
    let digits = digits(text)?;
    if digits.len() % 2 == 1 {
        return Err("hex string of odd length".into());
    }
    hex::decode(digits)
        .map(Bytes::from)
        .map_err(|error| error.to_string())
}

fn fixed<const N: usize>(text: &str, what: &str) -> Result<[u8; N], String> {
    let digits = digits(text)?;
    if digits.len() != 2 * N {
        return Err(format!(
            "hex string has length {}, want {} for {what}",
            digits.len(),
            2 * N
        ));
    }
    let mut out = [0; N];
    hex::decode_to_slice(digits, &mut out).map_err(|error| error.to_string())?;
    Ok(out)
}

impl FromArgument for U256 {
    fn from_argument(value: &Value) -> Result<Self, String> {
        quantity(text(value)?, 256)
    }
}

impl FromArgument for u128 {
    fn from_argument(value: &Value) -> Result<Self, String> {
        Ok(quantity(text(value)?, 128)?.to())
    }
}

impl FromArgument for u64 {
    fn from_argument(value: &Value) -> Result<Self, String> {
        Ok(quantity(text(value)?, 64)?.to())
    }
}

impl FromArgument for bool {
    fn from_argument(value: &Value) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| expected("a boolean", value))
    }
}

impl FromArgument for String {
    fn from_argument(value: &Value) -> Result<Self, String> {
        value
            .as_str()
            .map(Self::from)
            .ok_or_else(|| expected("a string", value))
    }
}

impl FromArgument for Bytes {
    fn from_argument(value: &Value) -> Result<Self, String> {
        bytes(text(value)?)
    }
}

impl FromArgument for Address {
    fn from_argument(value: &Value) -> Result<Self, String> {
        fixed::<20>(text(value)?, "an address").map(Self::from)
    }
}

impl FromArgument for B256 {
    fn from_argument(value: &Value) -> Result<Self, String> {
        fixed::<32>(text(value)?, "a hash").map(Self::from)
    }
}

impl<T: FromArgument> FromArgument for Vec<T> {
    fn from_argument(value: &Value) -> Result<Self, String> {
        let values = value
            .as_array()
            .ok_or_else(|| expected("an array", value))?;
        values
            .iter()
            .enumerate()
            .map(|(index, value)| {
                T::from_argument(value).map_err(|reason| format!("index {index}: {reason}"))
            })
            .collect()
    }
}

/// A number that may be written as a quantity, a JSON number or a decimal string (block counts of `eth_feeHistory`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct LooseNumber(pub(crate) u64);

impl FromArgument for LooseNumber {
    fn from_argument(value: &Value) -> Result<Self, String> {
        if let Some(number) = value.as_u64() {
            return Ok(Self(number));
        }
        let text = text(value)?;
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text
                .parse()
                .map(Self)
                .map_err(|_| "number > 64 bits".into());
        }
        u64::from_argument(value).map(Self)
    }
}

/// A percentile of `eth_feeHistory`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Percentile(pub(crate) f64);

impl FromArgument for Percentile {
    fn from_argument(value: &Value) -> Result<Self, String> {
        value
            .as_f64()
            .map(Self)
            .ok_or_else(|| expected("a number", value))
    }
}

/// A storage slot: up to 32 bytes of hex, the prefix and leading zeros optional. Remembers how it was written, because
/// `eth_getProof` answers in the caller's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) number: U256,
    /// Written out with all 64 digits.
    pub(crate) full_width: bool,
}

impl Slot {
    pub(crate) fn parse(written: &str) -> Result<Self, String> {
        let digits = written
            .strip_prefix("0x")
            .or_else(|| written.strip_prefix("0X"))
            .unwrap_or(written);
        if digits.len() > 64 {
            return Err(format!(
                "storage key too long (want at most 32 bytes): \"{written}\""
            ));
        }
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(format!("invalid hex in storage key: \"{written}\""));
        }
        let number = if digits.is_empty() {
            U256::ZERO
        } else {
            U256::from_str_radix(digits, 16).map_err(|error| error.to_string())?
        };
        Ok(Self {
            number,
            full_width: digits.len() == 64,
        })
    }
}

impl FromArgument for Slot {
    fn from_argument(value: &Value) -> Result<Self, String> {
        Self::parse(text(value)?)
    }
}

/// A block by its height or by a name for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockTag {
    /// `latest`, `safe`, `finalized`: every committed block is final.
    Latest,
    /// The last commit's state with the pool's nonces.
    Pending,
    /// Block 0.
    Earliest,
    /// A height.
    Number(u64),
}

impl FromArgument for BlockTag {
    fn from_argument(value: &Value) -> Result<Self, String> {
        match text(value)? {
            "latest" | "safe" | "finalized" => Ok(Self::Latest),
            "pending" => Ok(Self::Pending),
            "earliest" => Ok(Self::Earliest),
            number => quantity(number, 64).map(|number| Self::Number(number.to())),
        }
    }
}

/// A block as EIP-1898 names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockReference {
    Tag(BlockTag),
    /// Every stored block is canonical, so `requireCanonical` always holds.
    Hash(B256),
}

impl Default for BlockReference {
    fn default() -> Self {
        Self::Tag(BlockTag::Latest)
    }
}

impl FromArgument for BlockReference {
    fn from_argument(value: &Value) -> Result<Self, String> {
        if let Some(text) = value.as_str() {
            return if text.len() == 66 {
                B256::from_argument(value).map(Self::Hash)
            } else {
                BlockTag::from_argument(value).map(Self::Tag)
            };
        }
        let fields = Fields::of(value)?;
        fields.get::<bool>("requireCanonical")?;
        match (
            fields.get::<BlockTag>("blockNumber")?,
            fields.get::<B256>("blockHash")?,
        ) {
            (Some(_), Some(_)) => {
                Err("cannot specify both BlockHash and BlockNumber, choose one or the other".into())
            }
            (Some(tag), None) => Ok(Self::Tag(tag)),
            (None, Some(hash)) => Ok(Self::Hash(hash)),
            (None, None) => Err("block reference needs blockHash or blockNumber".into()),
        }
    }
}
