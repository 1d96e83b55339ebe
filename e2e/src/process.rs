//! Children: started with a log file, ended with the value.

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::{
    fs::File,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// A child in its own process group. Dropping it ends the whole group.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Both output streams, appended over restarts.
    pub log: PathBuf,
    /// A pid file of a grandchild ("pid start"), for one that left the group.
    grandchild: Option<PathBuf>,
    is_forgotten: bool,
}

impl Process {
    /// Starts the command.
    pub fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("start {command:?}"))?;
        Ok(Self {
            child,
            log: log.to_owned(),
            grandchild: None,
            is_forgotten: false,
        })
    }

    /// Also ends the process that this pid file names.
    pub fn with_grandchild(mut self, pid_file: PathBuf) -> Self {
        self.grandchild = Some(pid_file);
        self
    }

    /// The child's number.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The grandchild's number, if its file names a running process of that name.
    pub fn grandchild_pid(&self) -> Option<Pid> {
        let text = std::fs::read_to_string(self.grandchild.as_ref()?).ok()?;
        let number: i32 = text.split_whitespace().next()?.parse().ok()?;
        let command = std::fs::read_to_string(format!("/proc/{number}/comm")).ok()?;
        (command.trim() == "cometbft")
            .then(|| Pid::from_raw(number))
            .flatten()
    }

    /// Sends a signal to the child alone.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid(), signal);
    }

    /// Its exit status, if it has ended.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Lets go of a process that has ended without ending what it started.
    pub fn forget(mut self) {
        self.is_forgotten = true;
    }

    /// Waits for its end.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if started.elapsed() > limit {
                bail!(
                    "process {:?} did not end within {limit:?}\n{}",
                    self.pid(),
                    self.log_tail(20)
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks it to stop and waits.
    pub fn stop(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.signal(Signal::TERM);
        self.wait(limit)
    }

    /// The last lines of its output.
    pub fn log_tail(&self, lines: usize) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<_> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    /// Resident memory in MiB.
    pub fn resident_mib(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.pid().as_raw_nonzero());
        let status = std::fs::read_to_string(&path)?;
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .context("VmRSS in status")?;
        let kib: u64 = line
            .split_whitespace()
            .nth(1)
            .context("a number in VmRSS")?
            .parse()?;
        Ok(kib / 1024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_forgotten {
            return;
        }
        let grandchild = self.grandchild_pid();
        let _ = kill_process_group(self.pid(), Signal::KILL);
        let _ = self.child.wait();
        if let Some(pid) = grandchild {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
