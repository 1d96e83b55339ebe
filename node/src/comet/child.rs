//! CometBFT as our child: started, its output read, restarted when it ends by itself, stopped when we stop.
//!
//! It runs in a process group of its own, so that a Ctrl-C in the terminal reaches us alone and we stop it first. When we are
//! killed it ends by itself: its ABCI connections break, and so does the pipe of its output.

use super::{
    CometError,
    binary::CometBinary,
    home::CometHome,
    log_lines,
    pid_file::{PidFile, ProcessId},
};
use crate::{
    chain::{Chain, Fatal},
    ending::{EXIT_CONFIG, EXIT_CONSENSUS},
};
use rustix::process::Signal;
use std::{
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, Command},
    sync::watch,
};
use tokio_util::sync::CancellationToken;

/// How long it may take to end when asked to.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// How long the child of an earlier run may take to notice that its application is gone.
const OLD_CHILD_PATIENCE: Duration = Duration::from_secs(5);
/// First and longest wait before a restart.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// Restarts in a row without a new block before we give up: something is wrong that restarting does not mend.
const FRUITLESS_RESTARTS_MAX: u32 = 8;

/// Runs the child.
#[derive(Debug)]
pub struct Supervisor {
    binary: CometBinary,
    home: CometHome,
    pid_file: PidFile,
    chain: Chain,
    starts: watch::Sender<u64>,
}

impl Supervisor {
    /// Makes sure that no child of an earlier run is left. Blocks for some seconds if there is one.
    pub fn new(
        binary: CometBinary,
        home: CometHome,
        pid_file: PidFile,
        chain: Chain,
    ) -> Result<Self, CometError> {
        pid_file.end_old(OLD_CHILD_PATIENCE)?;
        Ok(Self {
            binary,
            home,
            pid_file,
            chain,
            starts: watch::Sender::new(0),
        })
    }

    /// Counts the child's starts: whoever follows knows when it has forgotten its mempool.
    pub fn starts(&self) -> watch::Receiver<u64> {
        self.starts.subscribe()
    }

    /// Keeps the child running until told to stop. An error ends the process.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Fatal> {
        let mut fruitless = 0;
        let mut back_off = BACK_OFF.0;
        loop {
            let height = self.height();
            let started = Instant::now();
            let mut child = self.start()?;
            let ended = tokio::select! {
                () = stop.cancelled() => {
                    self.stop(&mut child).await;
                    return Ok(());
                }
                ended = child.wait() => ended,
            };
            self.pid_file.remove();
            let how = ended.map_or_else(|error| error.to_string(), describe);
            if self.height() > height {
                fruitless = 0;
                back_off = BACK_OFF.0;
            } else {
                fruitless += 1;
            }
            if fruitless >= FRUITLESS_RESTARTS_MAX {
                return Err(Fatal {
                    exit_code: EXIT_CONSENSUS,
                    report: format!(
                        "CometBFT ended {fruitless} times in a row without a new block (last: {how}); its last lines above say why. If \
                         they speak of heights or app hashes, its data folder and our store do not belong together: restore both \
                         from one backup"
                    ),
                });
            }
            tracing::warn!(
                restart_in_ms = back_off.as_millis(),
                ran_ms = started.elapsed().as_millis(),
                "CometBFT ended by itself: {how}"
            );
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = tokio::time::sleep(back_off) => {}
            }
            back_off = (back_off * 2).min(BACK_OFF.1);
        }
    }

    fn height(&self) -> u64 {
        self.chain.store().head().map_or(0, |head| head.height)
    }

    fn start(&self) -> Result<Child, Fatal> {
        let refuse = |reason: String| Fatal {
            exit_code: EXIT_CONFIG,
            report: format!("cannot start {}: {reason}", self.binary.path.display()),
        };
        let mut child = Command::new(&self.binary.path)
            .arg("start")
            .arg("--home")
            .arg(self.home.folder())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| refuse(error.to_string()))?;
        if let Some(process) = child.id().and_then(ProcessId::of) {
            tracing::info!(pid = process.pid, version = %self.binary.version, "CometBFT started");
            self.pid_file
                .write(process)
                .map_err(|error| refuse(error.to_string()))?;
        }
        forward(child.stdout.take());
        forward(child.stderr.take());
        self.starts.send_modify(|starts| *starts += 1);
        Ok(child)
    }

    async fn stop(&self, child: &mut Child) {
        if let Some(process) = child.id().and_then(ProcessId::of) {
            process.signal(Signal::TERM);
        }
        match tokio::time::timeout(STOP_PATIENCE, child.wait()).await {
            Ok(ended) => {
                let how = ended.map_or_else(|error| error.to_string(), describe);
                tracing::info!("CometBFT stopped: {how}");
            }
            Err(_) => {
                tracing::warn!("CometBFT does not stop within {STOP_PATIENCE:?} and is killed");
                // It can only fail if the child has just ended.
                let _ = child.kill().await;
            }
        }
        self.pid_file.remove();
    }
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// Reads the child's lines into our log until it closes them.
fn forward(output: Option<impl AsyncRead + Unpin + Send + 'static>) {
    let Some(output) = output else {
        return;
    };
    tokio::spawn(async move {
        let mut lines = BufReader::new(output).split(b'\n');
        while let Ok(Some(line)) = lines.next_segment().await {
            log_lines::emit(&String::from_utf8_lossy(&line));
        }
    });
}
