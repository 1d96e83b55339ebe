//! When the write-ahead log reaches the disk, and up to which height it is known to have.
//!
//! In the modes `interval` and `os` a background thread syncs, off the way of a block. Every mode survives the loss of what was not
//! synced: CometBFT replays it, as long as `retain_height` stays at or below [`Log::durable_height`].
//!
//! A sync that fails is final. The pages it was to write may be marked clean though they never reached the disk, so a second
//! try could succeed without them; every later sync and commit reports the fault instead.

use super::{Durability, StoreError, database::Database};
use parking_lot::{Condvar, Mutex};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// The write-ahead log with its background thread.
pub(super) struct Log {
    shared: Arc<Shared>,
    durability: Durability,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    database: Arc<Database>,
    durable_height: AtomicU64,
    progress: Mutex<Progress>,
    wake: Condvar,
}

#[derive(Default)]
struct Progress {
    /// Height of the last batch written.
    written_height: u64,
    /// When the oldest batch not yet synced was written.
    unsynced_since: Option<Instant>,
    sync_requested: bool,
    stopping: bool,
    fault: Option<rocksdb::Error>,
}

impl Log {
    pub(super) fn start(database: Arc<Database>, durability: Durability) -> Self {
        let shared = Arc::new(Shared {
            database,
            durable_height: AtomicU64::new(0),
            progress: Mutex::new(Progress::default()),
            wake: Condvar::new(),
        });
        let interval = match durability {
            Durability::EveryBlock => None,
            Durability::Interval { blocks, ms } => Some((blocks, Some(Duration::from_millis(ms)))),
            Durability::Os => Some((u64::MAX, None)),
        };
        let thread = interval.map(|(blocks_max, age_max)| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("store-sync".to_owned())
                .spawn(move || shared.sync_when_due(blocks_max, age_max))
                .expect("a process that starts can start one more thread")
        });
        Self {
            shared,
            durability,
            thread,
        }
    }

    /// Whether a block's batch is to be written with a sync.
    pub(super) const fn syncs_every_block(&self) -> bool {
        matches!(self.durability, Durability::EveryBlock)
    }

    /// The batch of `height` is in the log, not synced.
    pub(super) fn wrote(&self, height: u64) {
        let mut progress = self.shared.progress.lock();
        progress.written_height = height;
        progress.unsynced_since.get_or_insert_with(Instant::now);
        drop(progress);
        self.shared.wake.notify_one();
    }

    /// The batch of `height` is in the log and the log was synced with it.
    pub(super) fn wrote_synced(&self, height: u64) {
        let mut progress = self.shared.progress.lock();
        progress.written_height = height;
        progress.unsynced_since = None;
        self.shared
            .durable_height
            .fetch_max(height, Ordering::SeqCst);
    }

    pub(super) fn durable_height(&self) -> u64 {
        self.shared.durable_height.load(Ordering::SeqCst)
    }

    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.shared.sync()
    }

    pub(super) fn request_sync(&self) {
        self.shared.progress.lock().sync_requested = true;
        self.shared.wake.notify_one();
    }

    /// An earlier sync failed: nothing more may be acknowledged.
    pub(super) fn check_fault(&self) -> Result<(), StoreError> {
        match &self.shared.progress.lock().fault {
            None => Ok(()),
            Some(fault) => Err(StoreError::Sync(fault.clone())),
        }
    }

    /// Whether a batch was written since the last sync began.
    #[cfg(test)]
    pub(super) fn has_unsynced(&self) -> bool {
        self.shared.progress.lock().unsynced_since.is_some()
    }

    /// Makes every later sync and commit fail, as a failed sync does.
    #[cfg(test)]
    pub(super) fn inject_fault(&self, fault: rocksdb::Error) {
        self.shared.progress.lock().fault = Some(fault);
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.progress.lock().stopping = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("thread store-sync panicked");
        }
    }
}

impl Shared {
    fn sync(&self) -> Result<(), StoreError> {
        let mut progress = self.progress.lock();
        if let Some(fault) = &progress.fault {
            return Err(StoreError::Sync(fault.clone()));
        }
        let height = progress.written_height;
        progress.sync_requested = false;
        progress.unsynced_since = None;
        drop(progress);
        if let Err(fault) = self.database.flush_wal(true) {
            self.progress.lock().fault = Some(fault.clone());
            return Err(StoreError::Sync(fault));
        }
        self.durable_height.fetch_max(height, Ordering::SeqCst);
        Ok(())
    }

    fn sync_when_due(&self, blocks_max: u64, age_max: Option<Duration>) {
        loop {
            let mut progress = self.progress.lock();
            loop {
                if progress.stopping || progress.fault.is_some() {
                    return;
                }
                let durable = self.durable_height.load(Ordering::SeqCst);
                let unsynced = progress.written_height.saturating_sub(durable);
                if progress.sync_requested || unsynced >= blocks_max {
                    break;
                }
                match progress.unsynced_since.zip(age_max) {
                    None => self.wake.wait(&mut progress),
                    Some((since, age_max)) => {
                        let left = age_max.saturating_sub(since.elapsed());
                        if left.is_zero() {
                            break;
                        }
                        self.wake.wait_for(&mut progress, left);
                    }
                }
            }
            drop(progress);
            if let Err(error) = self.sync() {
                tracing::error!(%error, "store: the next commit will fail");
                return;
            }
        }
    }
}
