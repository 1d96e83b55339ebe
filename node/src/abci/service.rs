//! Stands between tower-abci and a connection's handler.
//!
//! tower-abci does not drive answers while it waits for a service to be ready. So readiness here hangs on tasks
//! that run by themselves, never on an answer being read: the wait always ends.

use super::fail_point;
use crate::{
    chain::{ChainHandle, Fatal},
    ending::{EXIT_CONSENSUS, Ending},
};
use futures::future::BoxFuture;
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::PollSemaphore;
use tower::Service;
use tower_abci::BoxError;

/// Answers the calls of one kind of connection.
pub trait Handler: Send + Sync + 'static {
    /// What comes in.
    type Request: Send + 'static;
    /// What goes out.
    type Response: Send + 'static;
    /// The ABCI name of a call, for logs and fail points.
    fn name(request: &Self::Request) -> &'static str;
    /// Answers a call; an error ends the process.
    fn answer(
        &self,
        request: Self::Request,
    ) -> impl Future<Output = Result<Self::Response, Fatal>> + Send;
}

/// A handler as tower-abci takes it. tower-abci clones it once for every connection.
#[derive(Debug)]
pub struct Guarded<H> {
    handler: Arc<H>,
    ending: Ending,
    slots: PollSemaphore,
    slot: Option<OwnedSemaphorePermit>,
    peer: Option<Peer>,
}

impl<H: Handler> Guarded<H> {
    /// At most `concurrency` calls are in progress at once, over all connections.
    pub fn new(handler: H, concurrency: usize, ending: Ending) -> Self {
        Self {
            handler: Arc::new(handler),
            ending,
            slots: PollSemaphore::new(Arc::new(Semaphore::new(concurrency))),
            slot: None,
            peer: None,
        }
    }

    /// The same, telling the chain when a connection that has made calls closes.
    pub fn with_peer(handler: H, concurrency: usize, ending: Ending, peer: Peer) -> Self {
        Self {
            peer: Some(peer),
            ..Self::new(handler, concurrency, ending)
        }
    }
}

impl<H> Clone for Guarded<H> {
    fn clone(&self) -> Self {
        Self {
            handler: Arc::clone(&self.handler),
            ending: self.ending.clone(),
            slots: self.slots.clone(),
            slot: None,
            peer: self.peer.clone(),
        }
    }
}

impl<H: Handler> Service<H::Request> for Guarded<H> {
    type Response = H::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<H::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if self.slot.is_none() {
            self.slot = match self.slots.poll_acquire(context) {
                Poll::Ready(slot) => slot,
                Poll::Pending => return Poll::Pending,
            };
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: H::Request) -> Self::Future {
        let slot = self.slot.take();
        if let Some(peer) = &self.peer {
            peer.has_called.store(true, Ordering::Relaxed);
        }
        let name = H::name(&request);
        let handler = Arc::clone(&self.handler);
        let task = tokio::spawn(async move {
            fail_point::hit(name)?;
            let answer = handler.answer(request).await;
            drop(slot);
            answer
        });
        let ending = self.ending.clone();
        Box::pin(async move {
            let fatal = match task.await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(fatal)) => fatal,
                Err(panic) => Fatal {
                    exit_code: EXIT_CONSENSUS,
                    report: format!("{name}: {panic}"),
                },
            };
            ending.record(fatal);
            // An error here would only make tower-abci panic; the process is about to exit, and there is no answer.
            std::future::pending().await
        })
    }
}

/// Knows when the connection that drives consensus closes: by the drop of the service clone that tower-abci made for it.
#[derive(Debug)]
pub struct Peer {
    handle: ChainHandle,
    has_called: AtomicBool,
}

impl Peer {
    /// For one server.
    pub const fn new(handle: ChainHandle) -> Self {
        Self {
            handle,
            has_called: AtomicBool::new(false),
        }
    }
}

impl Clone for Peer {
    fn clone(&self) -> Self {
        Self::new(self.handle.clone())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if !self.has_called.load(Ordering::Relaxed) {
            return;
        }
        let handle = self.handle.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                tracing::info!("CometBFT closed its consensus connection");
                handle.disconnect().await;
            });
        }
    }
}
