use super::*;
use std::process::{Child, Command};

fn sleeper() -> Child {
    Command::new("sleep")
        .arg("60")
        .spawn()
        .expect("every system has sleep")
}

fn file() -> (tempfile::TempDir, PidFile) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = PidFile::new(folder.path().join("child.pid"));
    (folder, file)
}

#[test]
fn ends_the_process_of_an_earlier_run() {
    let (_folder, file) = file();
    let mut child = sleeper();
    let process = ProcessId::of(child.id()).expect("just started");
    file.write(process).expect("the folder is ours");
    assert_eq!(file.running(), Some(process));
    file.end_old(Duration::from_millis(200))
        .expect("sleep ends on SIGTERM");
    assert_eq!(file.running(), None);
    child.wait().expect("our own child");
}

#[test]
fn leaves_a_stranger_with_a_reused_number_alone() {
    let (_folder, file) = file();
    let mut child = sleeper();
    let process = ProcessId::of(child.id()).expect("just started");
    file.write(ProcessId {
        start_ticks: process.start_ticks + 1,
        ..process
    })
    .expect("the folder is ours");
    file.end_old(Duration::from_millis(50))
        .expect("nothing to end");
    assert!(process.is_running());
    child.kill().expect("our own child");
    child.wait().expect("our own child");
}

#[test]
fn ignores_an_absent_or_damaged_file() {
    let (folder, file) = file();
    assert_eq!(file.running(), None);
    fs::write(folder.path().join("child.pid"), "not a pid").expect("the folder is ours");
    assert_eq!(file.running(), None);
    file.end_old(Duration::ZERO).expect("nothing to end");
}
