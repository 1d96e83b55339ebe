use super::*;
use std::{fs, os::unix::fs::PermissionsExt};

/// A program that prints `said` when asked for its version.
fn program(said: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("cometbft");
    fs::write(&path, format!("#!/bin/sh\necho '{said}'\n")).expect("the folder is ours");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
    (folder, path)
}

#[test]
fn accepts_the_pinned_version_and_later_fixes_of_its_line() {
    for said in ["0.38.26", "v0.38.26", "0.38.27+0a1b2c3", "0.38.100"] {
        let (_folder, path) = program(said);
        assert!(CometBinary::check(path).is_ok(), "{said}");
    }
}

#[test]
fn refuses_other_versions_with_the_remedy() {
    for said in [
        "0.38.25",
        "0.38.26-rc1",
        "0.37.99",
        "0.39.0",
        "1.0.0",
        "hello",
        "",
    ] {
        let (_folder, path) = program(said);
        let error = CometBinary::check(path).expect_err(said);
        assert!(matches!(error, CometError::Version { .. }), "{said}");
        assert!(error.hint().contains("go install"));
    }
}

#[test]
fn refuses_a_configured_program_that_is_not_there() {
    let error = CometBinary::find(Some(Path::new("/nonexistent/cometbft"))).expect_err("absent");
    assert!(matches!(error, CometError::NotRunnable { .. }));
}
