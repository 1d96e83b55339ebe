//! Accepts connections: at most so many, and none that only waits.

use super::{RpcConfig, Transport, gate};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use jsonrpsee::{
    Methods,
    server::{Server, ServerHandle, StopHandle, middleware::rpc::RpcServiceBuilder, stop_channel},
};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

/// Pause after a failed accept (out of file descriptors): trying again at once would only burn a core.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves one transport, or both, on one address. Returns the address with the port the system chose.
pub(super) async fn listen(
    address: SocketAddr,
    transport: Transport,
    config: &RpcConfig,
    methods: Methods,
) -> std::io::Result<(SocketAddr, ServerHandle)> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    let (stop, handle) = stop_channel();
    let gate = gate::Gate::new(
        &config.allowed_hosts,
        &config.cors_origins,
        config.request_timeout,
    );
    let builder = Server::builder()
        .set_config(transport.server_config(config))
        .set_http_middleware(tower::ServiceBuilder::new().layer(gate))
        .set_rpc_middleware(RpcServiceBuilder::new().layer_fn(gate::Wording))
        .to_service_builder();
    let connections = Arc::new(Semaphore::new(config.connections_max as usize));
    let header_timeout = config.header_timeout;
    tokio::spawn(async move {
        let stopped = stop.clone().shutdown();
        tokio::pin!(stopped);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stopped => return,
            };
            let Ok((socket, _)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            // A connection too many is closed at once: the client sees it and may try again.
            let Ok(permit) = Arc::clone(&connections).try_acquire_owned() else {
                continue;
            };
            let service =
                TowerToHyperService::new(builder.clone().build(methods.clone(), stop.clone()));
            let stop = stop.clone();
            tokio::spawn(async move {
                let _permit = permit;
                serve_connection(socket, service, header_timeout, stop).await;
            });
        }
    });
    Ok((bound, handle))
}

async fn serve_connection<S>(
    socket: TcpStream,
    service: S,
    header_timeout: Duration,
    stop: StopHandle,
) where
    S: hyper::service::HttpService<hyper::body::Incoming, ResBody = jsonrpsee::server::HttpBody>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    // Small answers must not wait for more; a socket that refuses the option is served all the same.
    let _ = socket.set_nodelay(true);
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        // For the head of the next request too: an idle connection is closed, a WebSocket is none of it.
        .header_read_timeout(header_timeout)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    tokio::pin!(connection);
    let stopped = stop.shutdown();
    tokio::pin!(stopped);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = &mut stopped => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}
