//! Child processes of a run: started with their output in a file, stopped and reaped when dropped.

use anyhow::Context as _;
use std::{
    ffi::OsStr,
    fs::File,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A child that does not outlive its owner.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// Starts `program`, its output in `log`.
    pub(crate) fn start<A: AsRef<OsStr>>(
        program: &Path,
        arguments: &[A],
        environment: &[(&str, String)],
        log: &Path,
    ) -> anyhow::Result<Self> {
        let output = File::create(log).with_context(|| format!("creating {}", log.display()))?;
        let errors = output.try_clone().context("duplicating a file handle")?;
        let child = Command::new(program)
            .args(arguments)
            .envs(environment.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        Ok(Self(child))
    }

    /// Waits for it to end by itself, with success.
    pub(crate) fn wait(&mut self) -> anyhow::Result<()> {
        let status = self.0.wait().context("waiting for a child")?;
        anyhow::ensure!(status.success(), "it ended with {status}");
        Ok(())
    }

    /// Resident memory in KiB as Linux counts it.
    pub(crate) fn resident_kib(&self) -> anyhow::Result<u64> {
        let path = format!("/proc/{}/status", self.0.id());
        let status = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .context("no VmRSS line")?;
        line.split_whitespace()
            .nth(1)
            .and_then(|word| word.parse().ok())
            .with_context(|| format!("reading `{line}`"))
    }

    /// Asks it to end and waits up to ten seconds, then kills it.
    pub(crate) fn stop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.0.id().cast_signed()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            match self.0.try_wait() {
                Ok(Some(_)) => return,
                Ok(None) => std::thread::sleep(Duration::from_millis(50)),
                Err(_) => break,
            }
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A loopback port that was free a moment ago.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        .context("binding a free port")?;
    Ok(listener.local_addr().context("its address")?.port())
}
