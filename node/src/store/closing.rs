//! Waiting for RocksDB to be closed. A process that exits while another thread closes a database runs into RocksDB's
//! own exit handlers and is aborted; so the end of `main` waits for the last user of each store.

use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

static OPEN_COUNT: Mutex<usize> = Mutex::new(0);
static CLOSED: Condvar = Condvar::new();

/// Held by an open store, dropped after its database.
#[derive(Debug)]
pub(super) struct OpenGuard(());

impl OpenGuard {
    pub(super) fn new() -> Self {
        *OPEN_COUNT.lock() += 1;
        Self(())
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        *OPEN_COUNT.lock() -= 1;
        CLOSED.notify_all();
    }
}

/// Waits until no store is open in this process; `false` if one still is after `limit`.
pub fn wait_until_closed(limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    let mut open_count = OPEN_COUNT.lock();
    while *open_count > 0 {
        if CLOSED.wait_until(&mut open_count, deadline).timed_out() {
            return *open_count == 0;
        }
    }
    true
}
