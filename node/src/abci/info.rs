//! The info connection: the handshake's Info, Echo, and Query.
//!
//! Query paths (`data` is the argument, `height` 0 means the head; values are JSON):
//! `/head`: height and app hash; `/account`: nonce, balance, code hash and storage root of a 20-byte address;
//! `/storage`: the value of a slot, data = address || 32-byte slot. Code 1: unknown path; 2: malformed data; 3: not served.

use super::service::Handler;
use crate::{
    chain::{Chain, ChainHandle, Fatal},
    ending::EXIT_CONSENSUS,
};
use alloy_primitives::{Address, B256, U256};
use cloister_app::state::{HashedAddress, HashedSlot, StateRead};
use serde_json::json;
use tendermint::{
    AppHash,
    v0_38::abci::{InfoRequest, InfoResponse, request, response},
};

/// Answers from the store.
#[derive(Debug)]
pub struct Info {
    chain: Chain,
    handle: ChainHandle,
}

impl Info {
    /// Reads `chain`; the handshake goes through the block thread, so that it never sees a block half committed.
    pub const fn new(chain: Chain, handle: ChainHandle) -> Self {
        Self { chain, handle }
    }

    async fn info(&self) -> Result<response::Info, Fatal> {
        let (height, app_hash) = self.handle.info().await?;
        Ok(response::Info {
            data: "cloister".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            app_version: cloister_genesis::APP_VERSION,
            last_block_height: super::convert::height(height),
            // Before InitChain CometBFT expects no hash.
            last_block_app_hash: match height {
                0 => AppHash::default(),
                _ => super::convert::app_hash(app_hash),
            },
        })
    }
}

impl Handler for Info {
    type Request = InfoRequest;
    type Response = InfoResponse;

    fn name(request: &InfoRequest) -> &'static str {
        match request {
            InfoRequest::Info(_) => "info",
            InfoRequest::Query(_) => "query",
            InfoRequest::Echo(_) => "echo",
        }
    }

    async fn answer(&self, request: InfoRequest) -> Result<InfoResponse, Fatal> {
        Ok(match request {
            InfoRequest::Echo(echo) => InfoResponse::Echo(response::Echo {
                message: echo.message,
            }),
            InfoRequest::Info(_) => InfoResponse::Info(self.info().await?),
            InfoRequest::Query(request) => {
                let chain = self.chain.clone();
                // Reads may wait for the disk.
                let answer = tokio::task::spawn_blocking(move || query(&chain, &request))
                    .await
                    .map_err(|panic| Fatal {
                        exit_code: EXIT_CONSENSUS,
                        report: format!("query: {panic}"),
                    })?;
                InfoResponse::Query(answer)
            }
        })
    }
}

const CODE_UNKNOWN_PATH: u32 = 1;
const CODE_MALFORMED: u32 = 2;
const CODE_NOT_SERVED: u32 = 3;

fn query(chain: &Chain, request: &request::Query) -> response::Query {
    match value(chain, request) {
        Ok((height, value)) => response::Query {
            key: request.data.clone(),
            value: value.to_string().into(),
            height: super::convert::height(height),
            ..Default::default()
        },
        Err((code, log)) => response::Query {
            code: code.into(),
            log,
            codespace: "query".to_owned(),
            ..Default::default()
        },
    }
}

fn value(
    chain: &Chain,
    request: &request::Query,
) -> Result<(u64, serde_json::Value), (u32, String)> {
    let not_served = |error: &dyn std::fmt::Display| (CODE_NOT_SERVED, error.to_string());
    let malformed = |expected: &str| {
        let got = request.data.len();
        (
            CODE_MALFORMED,
            format!("data is {got} bytes, expected {expected}"),
        )
    };
    let path = request.path.as_str();
    if !matches!(path, "/head" | "/account" | "/storage") {
        return Err((
            CODE_UNKNOWN_PATH,
            format!("unknown path {path:?}; known: /head, /account, /storage"),
        ));
    }
    if request.prove {
        return Err((
            CODE_NOT_SERVED,
            "proofs are served by eth_getProof of JSON-RPC".to_owned(),
        ));
    }
    let head = chain
        .store()
        .head()
        .ok_or_else(|| not_served(&"the chain has not begun"))?;
    if path == "/head" {
        return Ok((
            head.height,
            json!({ "height": head.height, "hash": head.hash }),
        ));
    }
    let height = match request.height.value() {
        0 => head.height,
        height => height,
    };
    let state = chain.store().state_at(height).map_err(|e| not_served(&e))?;
    if path == "/account" {
        let address: [u8; 20] = request.data[..]
            .try_into()
            .map_err(|_| malformed("20: an address"))?;
        let account = state
            .account(HashedAddress::from(Address::from(address)))
            .map_err(|e| not_served(&e))?
            .unwrap_or_default();
        return Ok((
            height,
            json!({
                "nonce": account.nonce,
                "balance": account.balance,
                "codeHash": account.code_hash,
                "storageRoot": account.storage_root,
            }),
        ));
    }
    let (address, slot) = request
        .data
        .split_at_checked(20)
        .filter(|(_, slot)| slot.len() == 32)
        .ok_or_else(|| malformed("52: an address and a slot"))?;
    let value = state
        .storage(
            HashedAddress::from(Address::from_slice(address)),
            HashedSlot::from(U256::from_be_slice(slot)),
        )
        .map_err(|e| not_served(&e))?;
    Ok((height, json!(B256::from(value))))
}
