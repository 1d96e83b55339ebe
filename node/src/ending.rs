//! How the process ends when something of ours fails: told once, seen by all, and never survived.
//!
//! tower-abci ends only the task of one connection when a service fails, and hands out no handle; so every service,
//! thread and task records its fault here, the panic hook too, and the process exits within a second.

use crate::chain::Fatal;
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::sync::watch;

/// Exit code for a consensus fault or a bug of ours (EX_SOFTWARE).
pub const EXIT_CONSENSUS: u8 = 70;
/// Exit code for the store (EX_IOERR).
pub const EXIT_STORE: u8 = 74;
/// Exit code for configuration and genesis (EX_CONFIG).
pub const EXIT_CONFIG: u8 = 78;
/// Exit code for everything else, e.g. a node that does not answer.
pub const EXIT_OTHER: u8 = 1;

/// Time between a fault and the end of the process, for the report, the child and the sockets.
const GRACE: Duration = Duration::from_millis(250);

/// The first fault of the process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Ending {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    fatal: OnceLock<Fatal>,
    told: watch::Sender<bool>,
    exits: bool,
}

impl Ending {
    /// For a process that must not survive a fault: exits after a short grace, whatever the rest of it does.
    pub fn exiting() -> Self {
        Self::new(true)
    }

    /// For a host that ends its parts itself, such as a test.
    pub fn recording() -> Self {
        Self::new(false)
    }

    fn new(exits: bool) -> Self {
        Self {
            inner: Arc::new(Inner {
                fatal: OnceLock::new(),
                told: watch::Sender::new(false),
                exits,
            }),
        }
    }

    /// Records a fault. Only the first counts; later ones are its echoes.
    pub fn record(&self, fatal: Fatal) {
        let exit_code = i32::from(fatal.exit_code);
        if self.inner.fatal.set(fatal.clone()).is_err() {
            tracing::debug!("after the fault: {fatal}");
            return;
        }
        tracing::error!(exit_code, "fatal: {fatal}");
        self.inner.told.send_replace(true);
        if self.inner.exits {
            // A thread of its own: the runtime may be what has failed.
            std::thread::spawn(move || {
                std::thread::sleep(GRACE);
                std::process::exit(exit_code)
            });
        }
    }

    /// The fault, if there was one.
    pub fn fatal(&self) -> Option<Fatal> {
        self.inner.fatal.get().cloned()
    }

    /// Waits for a fault.
    pub async fn wait(&self) -> Fatal {
        let mut told = self.inner.told.subscribe();
        loop {
            if let Some(fatal) = self.fatal() {
                return fatal;
            }
            if told.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Makes every panic of this process its end, save one: tower-abci panics when a peer's connection breaks, which is
    /// CometBFT's ending and not ours.
    pub fn install_panic_hook(&self) {
        let ending = self.clone();
        std::panic::set_hook(Box::new(move |panic| {
            let message = panic
                .payload_as_str()
                .unwrap_or("a value that is not text")
                .to_owned();
            let place = panic
                .location()
                .map(ToString::to_string)
                .unwrap_or_default();
            let of_the_peer = panic
                .location()
                .is_some_and(|location| location.file().contains("tower-abci"));
            if of_the_peer {
                tracing::warn!("ABCI connection broke: {message}");
                return;
            }
            let thread = std::thread::current();
            ending.record(Fatal {
                exit_code: EXIT_CONSENSUS,
                report: format!(
                    "panic in thread {} at {place}: {message}",
                    thread.name().unwrap_or("unnamed"),
                ),
            });
            // Reading the symbols can take longer than the process has left, so it comes after the record.
            tracing::error!("{}", std::backtrace::Backtrace::force_capture());
        }));
    }
}
