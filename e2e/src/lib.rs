//! What the end-to-end tests share: real processes on free ports, an RPC client, wallets, load.
//!
//! Every process is started by a test, in its own process group and temporary folder, and ended with the test's value.
//! `CLOISTER_E2E_KEEP=1` keeps the folders. Heights are blocks, times are seconds unless the name says otherwise.

pub mod comet;
pub mod contracts;
pub mod gnark;
pub mod load;
pub mod network;
pub mod process;
pub mod proof;
pub mod rpc;
pub mod wallet;

use std::{
    io::Write,
    path::{Path, PathBuf},
};

/// The workspace's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the crate lies one folder below the workspace")
        .to_owned()
}

/// A program of this workspace, beside the tests in the build folder.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the system names the running program");
    let folder = test
        .ancestors()
        .nth(2)
        .expect("tests lie in deps/ of the build folder");
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is not built; hint: cargo build --release --workspace",
        path.display()
    );
    path
}

/// Whether the full figures are asked for.
pub fn is_soak() -> bool {
    std::env::var_os("CLOISTER_SOAK").is_some_and(|value| value == "1")
}

/// The bounded figure, or the full one in a soak.
pub fn bounded_or_full(bounded: u64, full: u64) -> u64 {
    if is_soak() { full } else { bounded }
}

/// Says, past the capture of test output, that a test or a part of one did not run.
pub fn not_run(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "not run: {what}: {why}");
}

/// A line about progress or a measured figure, past the capture of test output.
pub fn report(line: &str) {
    let _ = writeln!(std::io::stderr(), "    {line}");
}
