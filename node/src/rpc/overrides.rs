//! Calls and overrides as callers write them, parsed strictly.

use super::arguments::{Fields, FromArgument};
use alloy_eips::{
    eip2930::{AccessList, AccessListItem},
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::{Address, B256, Bytes, U256};
use cloister_app::simulation::{AccountOverride, BlockOverride, CallRequest, Fees, SlotOverride};
use serde_json::Value;
use std::collections::BTreeMap;

/// A call, and the chain id its caller believes in.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) request: CallRequest,
    pub(super) chain_id: Option<u64>,
}

impl FromArgument for Call {
    fn from_argument(value: &Value) -> Result<Self, String> {
        let fields = Fields::of(value)?;
        // Checked, though nothing hangs on it: nonces are not compared. `type` is ignored as geth ignores it: the fields in use
        // tell the type, and web3.py writes it as a number.
        fields.get::<u64>("nonce")?;
        let request = CallRequest {
            from: fields.get("from")?.unwrap_or_default(),
            to: fields.get("to")?,
            gas_limit: fields.get("gas")?,
            fees: fees(&fields)?,
            value: fields.get("value")?.unwrap_or_default(),
            input: input(&fields)?,
            access_list: fields.get("accessList")?,
            authorization_list: fields.get("authorizationList")?.unwrap_or_default(),
            blob_hashes: fields.get("blobVersionedHashes")?.unwrap_or_default(),
            max_fee_per_blob_gas: fields.get("maxFeePerBlobGas")?,
        };
        Ok(Self {
            request,
            chain_id: fields.get("chainId")?,
        })
    }
}

fn fees(fields: &Fields<'_>) -> Result<Fees, String> {
    let price: Option<u128> = fields.get("gasPrice")?;
    let cap: Option<u128> = fields.get("maxFeePerGas")?;
    let tip: Option<u128> = fields.get("maxPriorityFeePerGas")?;
    match (price, cap, tip) {
        (None, None, None) => Ok(Fees::Absent),
        (Some(price_wei), None, None) => Ok(Fees::Legacy { price_wei }),
        (None, cap, tip) => Ok(Fees::Dynamic {
            fee_cap_wei: cap.unwrap_or_default(),
            tip_wei: tip.unwrap_or_default(),
        }),
        (Some(_), _, _) => {
            Err("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified".into())
        }
    }
}

fn input(fields: &Fields<'_>) -> Result<Bytes, String> {
    let input: Option<Bytes> = fields.get("input")?;
    let data: Option<Bytes> = fields.get("data")?;
    match (input, data) {
        (Some(input), Some(data)) if input != data => Err(
            "both \"data\" and \"input\" are set and not equal. Please use \"input\" to pass transaction call data"
                .into(),
        ),
        (Some(bytes), _) | (None, Some(bytes)) => Ok(bytes),
        (None, None) => Ok(Bytes::new()),
    }
}

impl FromArgument for AccessList {
    fn from_argument(value: &Value) -> Result<Self, String> {
        Vec::from_argument(value).map(Self)
    }
}

impl FromArgument for AccessListItem {
    fn from_argument(value: &Value) -> Result<Self, String> {
        let fields = Fields::of(value)?;
        Ok(Self {
            address: fields.need("address")?,
            storage_keys: fields.get("storageKeys")?.unwrap_or_default(),
        })
    }
}

impl FromArgument for SignedAuthorization {
    fn from_argument(value: &Value) -> Result<Self, String> {
        let fields = Fields::of(value)?;
        let authorization = Authorization {
            chain_id: fields.need("chainId")?,
            address: fields.need("address")?,
            nonce: fields.need("nonce")?,
        };
        let parity = fields
            .get_any::<u64>(&["yParity", "v"])?
            .ok_or("missing required field 'yParity'")?;
        let parity = u8::try_from(parity).map_err(|_| "yParity: hex number > 8 bits")?;
        Ok(Self::new_unchecked(
            authorization,
            parity,
            fields.need("r")?,
            fields.need("s")?,
        ))
    }
}

/// State overrides by address.
#[derive(Debug, Default)]
pub(super) struct StateOverrides(pub(super) BTreeMap<Address, AccountOverride>);

impl FromArgument for StateOverrides {
    fn from_argument(value: &Value) -> Result<Self, String> {
        let mut overrides = BTreeMap::new();
        for (address, account) in Fields::of(value)?.entries() {
            let key = Address::from_argument(&Value::String(address.clone()))?;
            let account = account_override(account)
                .map_err(|reason| format!("account {address}: {reason}"))?;
            overrides.insert(key, account);
        }
        Ok(Self(overrides))
    }
}

fn account_override(value: &Value) -> Result<AccountOverride, String> {
    let fields = Fields::of(value)?;
    let state = fields.get::<Slots>("state")?;
    let diff = fields.get::<Slots>("stateDiff")?;
    let slots = match (state, diff) {
        (Some(_), Some(_)) => return Err("has both 'state' and 'stateDiff'".into()),
        (Some(Slots(slots)), None) => Some(SlotOverride::Replace(slots)),
        (None, Some(Slots(slots))) => Some(SlotOverride::Change(slots)),
        (None, None) => None,
    };
    Ok(AccountOverride {
        balance: fields.get("balance")?,
        nonce: fields.get("nonce")?,
        code: fields.get("code")?,
        slots,
        move_precompile_to: fields.get("movePrecompileToAddress")?,
    })
}

/// Slot to value, each a full word.
struct Slots(BTreeMap<U256, U256>);

impl FromArgument for Slots {
    fn from_argument(value: &Value) -> Result<Self, String> {
        let word =
            |value: &Value| B256::from_argument(value).map(|word| U256::from_be_bytes(word.0));
        Fields::of(value)?
            .entries()
            .map(|(slot, value)| {
                let key = word(&Value::String(slot.clone()));
                let value = word(value).map_err(|reason| format!("slot {slot}: {reason}"));
                Ok((key?, value?))
            })
            .collect::<Result<_, String>>()
            .map(Self)
    }
}

/// Overrides of the block's environment.
#[derive(Debug, Default)]
pub(super) struct BlockOverrides(pub(super) BlockOverride);

impl FromArgument for BlockOverrides {
    fn from_argument(value: &Value) -> Result<Self, String> {
        let fields = Fields::of(value)?;
        let hashes = fields.get::<BlockHashes>("blockHash")?;
        Ok(Self(BlockOverride {
            number: fields.get("number")?,
            timestamp: fields.get_any(&["time", "timestamp"])?,
            gas_limit: fields.get("gasLimit")?,
            beneficiary: fields.get_any(&["feeRecipient", "coinbase"])?,
            prev_randao: fields.get_any(&["prevRandao", "random"])?,
            base_fee_wei: fields.get_any(&["baseFeePerGas", "baseFee"])?,
            block_hashes: hashes.map_or_else(BTreeMap::new, |BlockHashes(hashes)| hashes),
        }))
    }
}

/// Height to hash.
struct BlockHashes(BTreeMap<u64, B256>);

impl FromArgument for BlockHashes {
    fn from_argument(value: &Value) -> Result<Self, String> {
        Fields::of(value)?
            .entries()
            .map(|(height, hash)| {
                let decimal = height.parse().ok();
                let height = match decimal {
                    Some(height) => height,
                    None => u64::from_argument(&Value::String(height.clone()))?,
                };
                Ok((height, B256::from_argument(hash)?))
            })
            .collect::<Result<_, String>>()
            .map(Self)
    }
}
