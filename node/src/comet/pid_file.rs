//! Knows the child of an earlier run again, also after a kill -9 of ours.
//!
//! The file holds "pid start", start being field 22 of `/proc/pid/stat` (clock ticks since boot): a reused pid has
//! another start, so we never signal a stranger.

use super::CometError;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// A process that cannot be mistaken for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessId {
    /// The system's number.
    pub pid: u32,
    /// Clock ticks between boot and its start.
    pub start_ticks: u64,
}

impl ProcessId {
    /// The running process with this number.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, field 2, stands in parentheses and may hold anything; the rest follows the last one.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        // A zombie has ended; only its parent has not looked yet.
        let state = fields.next()?;
        let start_ticks = fields.nth(18)?.parse().ok()?;
        (state != "Z" && state != "X").then_some(Self { pid, start_ticks })
    }

    /// Whether it still runs.
    pub fn is_running(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Sends a signal, if it still runs.
    pub fn signal(self, signal: Signal) {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return;
        };
        if self.is_running() {
            // It may end between the two calls; then there is nobody to signal.
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits until it has ended; false if it has not by then.
    pub fn wait_ended(self, limit: Duration) -> bool {
        let start = Instant::now();
        while self.is_running() {
            if start.elapsed() >= limit {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }
}

/// The file beside CometBFT's home.
#[derive(Debug, Clone)]
pub struct PidFile(PathBuf);

impl PidFile {
    /// Names a file; does not touch the disk.
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The process it names, if that still runs.
    pub fn running(&self) -> Option<ProcessId> {
        let text = fs::read_to_string(&self.0).ok()?;
        let (pid, start_ticks) = text.trim().split_once(' ')?;
        let process = ProcessId {
            pid: pid.parse().ok()?,
            start_ticks: start_ticks.parse().ok()?,
        };
        process.is_running().then_some(process)
    }

    /// Remembers a process that was just started.
    pub fn write(&self, process: ProcessId) -> Result<(), CometError> {
        let temporary = self.0.with_extension("new");
        fs::write(
            &temporary,
            format!("{} {}\n", process.pid, process.start_ticks),
        )
        .and_then(|()| fs::rename(&temporary, &self.0))
        .map_err(CometError::io(&self.0))
    }

    /// Forgets it.
    pub fn remove(&self) {
        let _ = fs::remove_file(&self.0);
    }

    /// Makes sure that no process of an earlier run is left: waits for it (CometBFT stops itself when its application is gone), then
    /// asks it to end, then ends it.
    pub fn end_old(&self, patience: Duration) -> Result<(), CometError> {
        let Some(process) = self.running() else {
            self.remove();
            return Ok(());
        };
        tracing::info!(
            pid = process.pid,
            "waiting for CometBFT of an earlier run to end"
        );
        if !process.wait_ended(patience) {
            process.signal(Signal::TERM);
            if !process.wait_ended(patience) {
                tracing::warn!(pid = process.pid, "CometBFT of an earlier run is killed");
                process.signal(Signal::KILL);
                if !process.wait_ended(patience) {
                    return Err(CometError::OldChild { pid: process.pid });
                }
            }
        }
        self.remove();
        Ok(())
    }
}

/// The file's place for a CometBFT home.
pub fn beside(comet_home: &Path) -> PidFile {
    PidFile::new(comet_home.with_extension("pid"))
}

#[cfg(test)]
mod tests;
