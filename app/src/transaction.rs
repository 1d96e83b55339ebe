//! A transaction parsed once at the edge: strict decoding, supported type, checked signature, our chain id.
//!
//! [`Transaction::decode`] checks all that needs neither state nor fork, cheapest first: size, type, RLP, chain id,
//! the fields among themselves, intrinsic gas, and at last the signature, which costs fifty times the rest.
//! [`Transaction::check_fork`] adds what the fork decides.

use crate::{
    evm::{self, TRANSACTION_GAS_LIMIT_MAX},
    rejection::Rejection,
};
use alloy_consensus::{
    Transaction as _, TxEnvelope, Typed2718, crypto::secp256k1::recover_signer,
    transaction::SignerRecoverable,
};
use alloy_eips::{
    eip2718::{Decodable2718, Eip2718Error, Encodable2718},
    eip7702::SignedAuthorization,
};
use alloy_primitives::{Address, B256, Bytes, keccak256};
use cloister_genesis::Fork;
use rayon::prelude::*;
use std::sync::Arc;

/// Largest encoded transaction, as in geth's pool (128 KiB).
pub const TRANSACTION_SIZE_BYTES_MAX: usize = 128 * 1024;

/// Largest init code of a creation (EIP-3860).
pub const INIT_CODE_SIZE_BYTES_MAX: usize = 2 * 24_576;

/// A well-formed, signed transaction of type 0, 1, 2 or 4 for this chain, with its recovered sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    envelope: TxEnvelope,
    sender: Address,
    /// One for each EIP-7702 authorization; `None` where its signature is invalid.
    authorities: Vec<Option<Address>>,
    hash: B256,
    raw: Bytes,
}

impl Transaction {
    /// Parses `raw` (EIP-2718 bytes, nothing trailing) and recovers the sender. Needs no state.
    pub fn decode(raw: Bytes, chain_id: u64) -> Result<Self, Rejection> {
        let hash = keccak256(check_size(&raw)?);
        Self::decode_hashed(raw, hash, chain_id)
    }

    /// A transaction of a committed block read back from the store, which kept the sender beside it: no signature is checked.
    pub fn from_stored(raw: Bytes, sender: Address) -> Result<Self, Rejection> {
        let hash = keccak256(&raw);
        let envelope = decode_envelope(&raw)?;
        let authorities = recover_authorities(&envelope);
        Ok(Self {
            envelope,
            sender,
            authorities,
            hash,
            raw,
        })
    }

    fn decode_hashed(raw: Bytes, hash: B256, chain_id: u64) -> Result<Self, Rejection> {
        let envelope = decode_envelope(&raw)?;
        check_chain_id(&envelope, chain_id)?;
        check_fields(&envelope)?;
        let mut transaction = Self {
            envelope,
            sender: Address::ZERO,
            authorities: Vec::new(),
            hash,
            raw,
        };
        transaction.check_intrinsic_gas()?;
        transaction.sender = transaction
            .envelope
            .recover_signer()
            .map_err(|_| Rejection::InvalidSignature)?;
        transaction.authorities = recover_authorities(&transaction.envelope);
        Ok(transaction)
    }

    /// Refuses what `fork` does not allow: type 4 before Prague, less gas than the floor of EIP-7623 from Prague on.
    pub fn check_fork(&self, fork: Fork) -> Result<(), Rejection> {
        match fork {
            Fork::Shanghai | Fork::Cancun if self.envelope.is_eip7702() => {
                Err(Rejection::UnsupportedType {
                    transaction_type: self.envelope.ty(),
                })
            }
            Fork::Shanghai | Fork::Cancun => Ok(()),
            Fork::Prague | Fork::Osaka => {
                let (_, needed) = evm::intrinsic_gas(fork, &self.envelope);
                let gas_limit = self.envelope.gas_limit();
                if gas_limit < needed {
                    return Err(Rejection::FloorDataGasTooLow { gas_limit, needed });
                }
                Ok(())
            }
        }
    }

    /// The signed transaction.
    pub const fn envelope(&self) -> &TxEnvelope {
        &self.envelope
    }

    /// Recovered from the signature.
    pub const fn sender(&self) -> Address {
        self.sender
    }

    /// Signers of the EIP-7702 authorizations, in order; `None` where a signature is invalid.
    pub fn authorities(&self) -> &[Option<Address>] {
        &self.authorities
    }

    /// keccak256 of the raw bytes.
    pub const fn hash(&self) -> B256 {
        self.hash
    }

    /// EIP-2718 bytes.
    pub const fn raw(&self) -> &Bytes {
        &self.raw
    }

    fn check_intrinsic_gas(&self) -> Result<(), Rejection> {
        // The same in every fork we know; only the floor differs.
        let (needed, _) = evm::intrinsic_gas(Fork::Osaka, &self.envelope);
        let gas_limit = self.envelope.gas_limit();
        if gas_limit < needed {
            return Err(Rejection::IntrinsicGasTooLow { gas_limit, needed });
        }
        Ok(())
    }
}

fn recover_authorities(envelope: &TxEnvelope) -> Vec<Option<Address>> {
    let list = envelope.authorization_list().unwrap_or_default();
    list.iter().map(recover_authority).collect()
}

/// Parses the transactions of a block in parallel, in order. `known` spares those that were parsed before.
pub fn decode_all(
    raw: &[Bytes],
    chain_id: u64,
    known: &(dyn Fn(&B256) -> Option<Arc<Transaction>> + Sync),
) -> Vec<Result<Arc<Transaction>, Rejection>> {
    raw.par_iter()
        .map(|bytes| {
            let hash = keccak256(check_size(bytes)?);
            match known(&hash) {
                Some(transaction) => Ok(transaction),
                None => Transaction::decode_hashed(bytes.clone(), hash, chain_id).map(Arc::new),
            }
        })
        .collect()
}

fn check_size(raw: &Bytes) -> Result<&Bytes, Rejection> {
    if raw.len() > TRANSACTION_SIZE_BYTES_MAX {
        return Err(Rejection::Oversized {
            size_bytes: raw.len(),
            max_bytes: TRANSACTION_SIZE_BYTES_MAX,
        });
    }
    Ok(raw)
}

fn decode_envelope(raw: &Bytes) -> Result<TxEnvelope, Rejection> {
    match raw.first() {
        None => return Err(Rejection::Undecodable("typed transaction too short")),
        Some(1 | 2 | 4 | 0xc0..=0xff) => {}
        Some(&transaction_type) => {
            return Err(Rejection::UnsupportedType { transaction_type });
        }
    }
    let envelope = TxEnvelope::decode_2718_exact(raw).map_err(undecodable)?;
    // One transaction, one encoding: else its hash could be changed by others.
    if envelope.encode_2718_len() != raw.len() || envelope.encoded_2718() != raw[..] {
        return Err(Rejection::Undecodable("non-canonical encoding"));
    }
    Ok(envelope)
}

const fn undecodable(error: Eip2718Error) -> Rejection {
    use alloy_rlp::Error;
    Rejection::Undecodable(match error {
        Eip2718Error::RlpError(error) => match error {
            Error::Overflow => "integer overflow",
            Error::LeadingZero => "non-canonical integer (leading zero bytes)",
            Error::InputTooShort => "value size exceeds available input length",
            Error::NonCanonicalSingleByte | Error::NonCanonicalSize => {
                "non-canonical size information"
            }
            Error::UnexpectedLength | Error::ListLengthMismatch { .. } => {
                "input list has wrong number of elements or trailing bytes"
            }
            Error::UnexpectedString => "expected input list",
            Error::UnexpectedList => "expected input string or byte",
            Error::Custom(reason) => reason,
        },
        _ => "malformed transaction",
    })
}

fn check_chain_id(envelope: &TxEnvelope, expected: u64) -> Result<(), Rejection> {
    match envelope.chain_id() {
        None => Err(Rejection::NotReplayProtected),
        Some(got) if got != expected => Err(Rejection::WrongChainId { expected, got }),
        Some(_) => Ok(()),
    }
}

fn check_fields(envelope: &TxEnvelope) -> Result<(), Rejection> {
    let fee_cap_wei = envelope.max_fee_per_gas();
    let tip_wei = envelope.max_priority_fee_per_gas().unwrap_or_default();
    if tip_wei > fee_cap_wei {
        return Err(Rejection::TipAboveFeeCap {
            tip_wei,
            fee_cap_wei,
        });
    }
    let gas_limit = envelope.gas_limit();
    if gas_limit > TRANSACTION_GAS_LIMIT_MAX {
        return Err(Rejection::GasLimitAboveTransactionCap {
            cap: TRANSACTION_GAS_LIMIT_MAX,
            gas_limit,
        });
    }
    if envelope.nonce() == u64::MAX {
        return Err(Rejection::NonceMax);
    }
    if envelope.authorization_list().is_some_and(<[_]>::is_empty) {
        return Err(Rejection::EmptyAuthorizationList);
    }
    let size_bytes = envelope.input().len();
    if envelope.is_create() && size_bytes > INIT_CODE_SIZE_BYTES_MAX {
        return Err(Rejection::InitCodeTooLarge {
            size_bytes,
            max_bytes: INIT_CODE_SIZE_BYTES_MAX,
        });
    }
    Ok(())
}

/// EIP-7702: an authorization with a bad signature is skipped when the transaction runs, not refused.
fn recover_authority(authorization: &SignedAuthorization) -> Option<Address> {
    let signature = authorization.signature().ok()?;
    recover_signer(&signature, authorization.signature_hash()).ok()
}

#[cfg(test)]
mod tests;
