//! `cloister dev` ends cleanly each time: a database closed while the process exits would abort it now and then.

use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

#[test]
fn many_starts_and_stops_all_end_with_success() {
    let home = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cloister"))
            .args(["dev", "--http", "127.0.0.1:0", "--ws", "127.0.0.1:0"])
            .args(["--block-time", "20ms", "--home"])
            .arg(home.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let ready = output
            .lines()
            .map_while(Result::ok)
            .any(|line| line.starts_with("Home"));
        assert!(ready, "round {round}: it ended before it was ready");
        let signal = [Signal::TERM, Signal::INT][round % 2];
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success(), "round {round}: {status}");
    }
}
