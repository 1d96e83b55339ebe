//! ABCI 2.0 for CometBFT v0.38: four connections, one file each, over a socket.
//!
//! tower-abci speaks the wire. [`service::Guarded`] stands between it and our handlers: work runs in tasks of its own (so a
//! full connection never stops answers under way), at most so many at once, and an error or panic of ours ends the
//! process. A peer that closes is another matter: the pending outcome is dropped, the last commit kept.
//!
//! Not bounded: the length of a frame. tower-abci's decoder waits for as many bytes as the frame's head names; it allocates
//! only what has come in. The socket is therefore open to CometBFT alone (a folder that only this user may enter).

pub mod consensus;
pub mod convert;
mod fail_point;
pub mod info;
pub mod mempool;
pub mod service;
pub mod snapshot;
pub mod socket;

use crate::{
    broadcast::Carried,
    chain::{Chain, ChainHandle},
    ending::{EXIT_CONFIG, Ending},
};
use service::{Guarded, Peer};
use socket::{AbciAddress, SocketError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tower_abci::v038::Server;

/// Calls in progress on the connections that may have several.
const CONCURRENCY: usize = 256;

/// A listening application. Stops when dropped.
#[derive(Debug)]
pub struct AbciServer {
    task: JoinHandle<()>,
    /// For CometBFT's `proxy_app`.
    pub address: AbciAddress,
}

impl AbciServer {
    /// Listens at `address` for CometBFT's connections.
    pub async fn start(
        address: AbciAddress,
        chain: &Chain,
        handle: &ChainHandle,
        carried: &Carried,
        ending: &Ending,
    ) -> Result<Self, SocketError> {
        address.prepare()?;
        let peer = Peer::new(handle.clone());
        let mempool = mempool::Mempool::start(chain.clone(), carried.clone(), ending.clone());
        let server = Server::builder()
            .consensus(Guarded::with_peer(
                consensus::Consensus::new(chain.clone(), handle.clone()),
                1,
                ending.clone(),
                peer,
            ))
            .mempool(Guarded::new(mempool, CONCURRENCY, ending.clone()))
            .info(Guarded::new(
                info::Info::new(chain.clone(), handle.clone()),
                CONCURRENCY,
                ending.clone(),
            ))
            .snapshot(Guarded::new(snapshot::Snapshot, 4, ending.clone()))
            .finish()
            .expect("all four services are given");
        let listening = address.clone();
        let ending = ending.clone();
        let (failed, failure) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let result = match &listening {
                AbciAddress::Unix { path, .. } => server.listen_unix(path).await,
                AbciAddress::Tcp(address) => server.listen_tcp(*address).await,
            };
            if let Err(error) = result {
                let report = format!("ABCI cannot listen at {listening}: {error}");
                // The starter is told if it still waits; else the process ends.
                if let Err(report) = failed.send(report) {
                    ending.record(crate::chain::Fatal {
                        exit_code: EXIT_CONFIG,
                        report,
                    });
                }
            }
        });
        // CometBFT waits three seconds after a refused connection: it is started only once we listen.
        let server = Self { task, address };
        tokio::select! {
            failure = failure => Err(SocketError::Listen {
                reason: failure.unwrap_or_else(|_| "the listener ended".to_owned()),
            }),
            ready = server.address.wait_ready(Duration::from_secs(5)) => ready.map(|()| server),
        }
    }
}

impl Drop for AbciServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
