//! What people read: the help of every command, and the configuration file. `UPDATE_GOLDEN=1` rewrites the files on purpose.

use std::{fs, path::PathBuf, process::Command};

fn golden(name: &str, got: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, got).expect("the folder is in the source tree");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == got,
        "{name} has changed (UPDATE_GOLDEN=1 rewrites it):\n{got}"
    );
}

fn help(command: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_cloister"))
        .args(command)
        .arg("--help")
        .env("COLUMNS", "110")
        .output()
        .expect("our own program");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("plain text")
}

#[test]
fn help_of_every_command() {
    golden("help/cloister.txt", &help(&[]));
    for command in [
        "init", "start", "dev", "testnet", "status", "keys", "version",
    ] {
        golden(&format!("help/{command}.txt"), &help(&[command]));
    }
}

#[test]
fn configuration_file() {
    let text = cloister_node::config::document::render(&cloister_node::config::Config::default());
    golden("cloister.toml", &text);
}
