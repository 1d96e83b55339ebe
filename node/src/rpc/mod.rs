//! JSON-RPC over HTTP and WebSocket, as Ethereum's clients expect it.
//!
//! The road of a request: [`gate`] checks host and origin, the server parses JSON-RPC, the table in [`methods`] names
//! the function, [`context`] runs it off the runtime's threads under a bound, [`arguments`] parses strictly,
//! [`answers`] shows blocks, transactions, receipts and logs, [`error`] words what went wrong.
//! Reads see committed blocks only; nothing here waits for consensus.

mod accounts;
mod answers;
mod arguments;
mod blocks;
mod calls;
mod context;
mod error;
mod fees;
mod filters;
mod gate;
mod listen;
mod logs;
mod methods;
mod overrides;
mod pool;
mod status;
mod subscriptions;

pub use context::ConsensusStatus;

use crate::chain::Chain;
use alloy_primitives::Address;
use arguments::Arguments;
use context::Context;
use jsonrpsee::{
    Methods, RpcModule,
    server::{BatchRequestConfig, PingConfig, ServerConfig, ServerHandle},
    types::ErrorObjectOwned,
};
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::sync::{broadcast::error::RecvError, watch};

/// Addresses and limits of the JSON-RPC server.
#[derive(Debug, Clone)]
pub struct RpcConfig {
    /// Where HTTP is served. The same address as `ws` serves both on one port. `None` serves none.
    pub http: Option<SocketAddr>,
    /// Where WebSocket is served.
    pub ws: Option<SocketAddr>,
    /// Web pages that may ask (CORS, and the origin of WebSockets); `*` for all. None by default.
    pub cors_origins: Vec<String>,
    /// Names that the Host header may have besides `localhost` and IP addresses; `*` for all.
    pub allowed_hosts: Vec<String>,
    /// Largest request body.
    pub request_bytes_max: u32,
    /// Largest response body.
    pub response_bytes_max: u32,
    /// Calls in one batch.
    pub batch_calls_max: u32,
    /// Connections of one server.
    pub connections_max: u32,
    /// How long a client may take for the head of a request, and a connection stay idle.
    pub header_timeout: Duration,
    /// From the head of a request to its answer, batches included.
    pub request_timeout: Duration,
    /// Subscriptions of one connection.
    pub subscriptions_per_connection_max: u32,
    /// Messages waiting for a slow WebSocket client.
    pub message_buffer_capacity: u32,
    /// Gas of one simulated call.
    pub call_gas_max: u64,
    /// Time of one simulated call or log query.
    pub evm_timeout: Duration,
    /// Blocks that one log query may span.
    pub log_range_blocks_max: u64,
    /// Logs that one query may return.
    pub log_results_max: usize,
    /// Installed filters.
    pub filters_max: usize,
    /// How long a filter lives without being polled.
    pub filter_lifetime: Duration,
    /// What `eth_accounts` answers: the funded accounts of a development node, else none.
    pub accounts: Vec<Address>,
}

impl Default for RpcConfig {
    fn default() -> Self {
        Self {
            http: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 8545))),
            ws: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 8546))),
            cors_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            request_bytes_max: 2 * 1024 * 1024,
            response_bytes_max: 25 * 1024 * 1024,
            batch_calls_max: 100,
            connections_max: 500,
            header_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(60),
            subscriptions_per_connection_max: 128,
            message_buffer_capacity: 256,
            call_gas_max: 50_000_000,
            evm_timeout: Duration::from_secs(5),
            log_range_blocks_max: 10_000,
            log_results_max: 20_000,
            filters_max: 1_000,
            filter_lifetime: Duration::from_secs(300),
            accounts: Vec::new(),
        }
    }
}

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum RpcStartError {
    /// The address is taken or not ours.
    #[error("JSON-RPC cannot listen on {address}: {source}")]
    Listen {
        /// As configured.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Where the server listens, with the ports the system chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RpcAddresses {
    /// HTTP.
    pub http: Option<SocketAddr>,
    /// WebSocket.
    pub ws: Option<SocketAddr>,
}

/// A running server. Stops when dropped or told to.
#[derive(Debug)]
pub struct RpcServer {
    /// Where it listens.
    pub addresses: RpcAddresses,
    handles: Vec<ServerHandle>,
    follower: tokio::task::JoinHandle<()>,
}

impl RpcServer {
    /// Closes all connections and waits until none is left.
    pub async fn stop(mut self) {
        self.follower.abort();
        for handle in self.handles.drain(..) {
            // An error says that it has stopped already.
            let _ = handle.stop();
            handle.stopped().await;
        }
    }
}

impl Drop for RpcServer {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

/// Starts the server on the current tokio runtime.
pub async fn serve(
    chain: Chain,
    config: RpcConfig,
    consensus: watch::Receiver<ConsensusStatus>,
) -> Result<RpcServer, RpcStartError> {
    let context = Arc::new(Context::new(chain, config.clone(), consensus));
    let methods = Methods::from(module(&context));
    let mut handles = Vec::new();
    let mut addresses = RpcAddresses::default();
    let mut listen = async |address: SocketAddr, transport: Transport| {
        let (bound, handle) = listen::listen(address, transport, &config, methods.clone())
            .await
            .map_err(|source| RpcStartError::Listen { address, source })?;
        handles.push(handle);
        Ok::<_, RpcStartError>(bound)
    };
    match (config.http, config.ws) {
        (Some(http), Some(ws)) if http == ws && http.port() != 0 => {
            let bound = listen(http, Transport::Both).await?;
            addresses = RpcAddresses {
                http: Some(bound),
                ws: Some(bound),
            };
        }
        (http, ws) => {
            if let Some(http) = http {
                addresses.http = Some(listen(http, Transport::Http).await?);
            }
            if let Some(ws) = ws {
                addresses.ws = Some(listen(ws, Transport::WebSocket).await?);
            }
        }
    }
    let follower = tokio::spawn(note_pending_transactions(context));
    Ok(RpcServer {
        addresses,
        handles,
        follower,
    })
}

#[derive(Debug, Clone, Copy)]
enum Transport {
    Http,
    WebSocket,
    Both,
}

impl Transport {
    fn server_config(self, config: &RpcConfig) -> ServerConfig {
        let builder = ServerConfig::builder()
            .max_request_body_size(config.request_bytes_max)
            .max_response_body_size(config.response_bytes_max)
            .max_connections(config.connections_max)
            .max_subscriptions_per_connection(config.subscriptions_per_connection_max)
            .set_batch_request_config(BatchRequestConfig::Limit(config.batch_calls_max))
            .set_message_buffer_capacity(config.message_buffer_capacity)
            .set_id_provider(subscriptions::HexIds)
            .enable_ws_ping(PingConfig::new());
        match self {
            Self::Http => builder.http_only(),
            Self::WebSocket => builder.ws_only(),
            Self::Both => builder,
        }
        .build()
    }
}

fn module(context: &Arc<Context>) -> RpcModule<Context> {
    let mut module = RpcModule::from_arc(Arc::clone(context));
    for method in methods::METHODS {
        let registered =
            module.register_async_method(method.name, move |params, context, _| async move {
                let work = move |context: &Context| {
                    let arguments = Arguments::parse(&params, method.arguments_max)?;
                    (method.run)(context, &arguments)
                };
                context
                    .run(method.cost, work)
                    .await
                    .map_err(ErrorObjectOwned::from)
            });
        registered.expect("method names in the table differ");
    }
    module
        .register_subscription(
            gate::SUBSCRIBE,
            "eth_subscription",
            gate::UNSUBSCRIBE,
            |params, pending, context, _| subscriptions::serve(params, pending, context),
        )
        .expect("subscription names are not in the table");
    module
}

/// Feeds the pending-transaction filters.
async fn note_pending_transactions(context: Arc<Context>) {
    let mut pending = context.chain.pool().subscribe_pending();
    loop {
        match pending.recv().await {
            Ok(transaction) => context.filters.note_pending(transaction.hash()),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

#[cfg(test)]
mod tests;
