//! Runs a network: one `cloister start` for each node, under this process.

use super::{Network, NetworkNode};
use crate::{
    cli::{block_on, print, until_told},
    comet::pid_file::{PidFile, ProcessId},
    failure::Failure,
};
use futures::future::join_all;
use rustix::process::Signal;
use std::{fs, process::Stdio, time::Duration};
use tokio::process::{Child, Command};

/// How long a node may take to stop: CometBFT's own patience and the store.
const STOP_PATIENCE: Duration = Duration::from_secs(20);

/// Runs until SIGINT or SIGTERM. A node that ends by itself is reported; the others go on.
pub(super) fn run(network: &Network, supervisor: &PidFile) -> Result<(), Failure> {
    if let Some(process) = supervisor.running() {
        return Err(Failure::config(
            format!("the network runs already (process {})", process.pid),
            "stop it with `cloister testnet stop`",
        ));
    }
    let own = ProcessId::of(std::process::id())
        .ok_or_else(|| Failure::other("cannot read /proc", "this command needs a mounted /proc"))?;
    supervisor.write(own)?;
    let result = block_on(async {
        let until_told = until_told()?;
        let mut nodes = Vec::new();
        for node in &network.nodes {
            nodes.push((node, start(node)?));
        }
        print("running; stop with Ctrl-C\n");
        let mut early = 0_usize;
        {
            let mut until_told = std::pin::pin!(until_told);
            let mut ended = std::pin::pin!(join_all(nodes.iter_mut().map(watch)));
            tokio::select! {
                () = &mut until_told => {}
                failures = &mut ended => early = failures.len(),
            }
        }
        let stops = nodes.iter_mut().map(|(node, child)| stop(node, child));
        let unclean = join_all(stops)
            .await
            .into_iter()
            .filter(|clean| !clean)
            .count();
        if early > 0 || unclean > 0 {
            return Err(Failure::other(
                format!("{} nodes did not stop cleanly", early.max(unclean)),
                "see cloister.log in their homes",
            ));
        }
        Ok(())
    });
    supervisor.remove();
    result
}

fn start(node: &NetworkNode) -> Result<Child, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::other(error.to_string(), "start the nodes one by one"))?;
    let path = node.home.join("cloister.log");
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(Failure::io(&path))?;
    let output = log.try_clone().map_err(Failure::io(&path))?;
    Command::new(program)
        .arg("start")
        .arg("--home")
        .arg(&node.home)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(log)
        // A Ctrl-C reaches this process alone, which then stops the nodes.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            Failure::other(
                format!("{}: {error}", node.name),
                "check the limits of this user",
            )
        })
}

async fn watch((node, child): &mut (&NetworkNode, Child)) {
    let how = match child.wait().await {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    print(&format!(
        "{} ended by itself: {how}; see {}\n",
        node.name,
        node.home.join("cloister.log").display()
    ));
}

async fn stop(node: &NetworkNode, child: &mut Child) -> bool {
    if let Some(process) = child.id().and_then(ProcessId::of) {
        process.signal(Signal::TERM);
    }
    match tokio::time::timeout(STOP_PATIENCE, child.wait()).await {
        Ok(Ok(status)) => status.success(),
        Ok(Err(_)) => false,
        Err(_) => {
            print(&format!("{} does not stop and is killed\n", node.name));
            // It can only fail if the child has just ended.
            let _ = child.kill().await;
            false
        }
    }
}
