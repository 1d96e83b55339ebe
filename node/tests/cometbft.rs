//! Whole nodes with real CometBFT: blocks, kills, clean stops, four validators that agree.

use alloy_consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use alloy_eips::Encodable2718;
use alloy_primitives::{Address, TxKind, U256};
use alloy_signer::SignerSync;
use cloister_node::engine::accounts::dev_signer;
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

#[expect(clippy::print_stdout, reason = "what does not run is said")]
fn cometbft_missing() -> bool {
    let missing = cloister_node::comet::binary::CometBinary::find(None).is_err();
    if missing {
        println!("not run: node with real CometBFT, no cometbft 0.38.26 found");
    }
    missing
}

fn cloister() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cloister"));
    command.stdin(Stdio::null());
    command
}

/// A network below a temporary folder, made by `cloister testnet`.
struct Network {
    folder: tempfile::TempDir,
    nodes: Vec<Node>,
}

struct Node {
    home: PathBuf,
    http: String,
    process: Option<Child>,
}

impl Network {
    fn new(validators: usize) -> Self {
        Self::with_full_nodes(validators, 0)
    }

    fn with_full_nodes(validators: usize, full_nodes: usize) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("cl-net-")
            .tempdir()
            .expect("a temporary folder");
        let made = cloister()
            .args(["testnet", "--timeout-commit", "200ms"])
            .args(["--validators", &validators.to_string()])
            .args(["--full-nodes", &full_nodes.to_string(), "--home"])
            .arg(folder.path().join("n"))
            .output()
            .expect("our own program");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let list = fs::read(folder.path().join("n/testnet.json")).expect("just made");
        let list: Value = serde_json::from_slice(&list).expect("our own JSON");
        let nodes = list["nodes"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|node| Node {
                home: node["home"].as_str().expect("a path").into(),
                http: node["http"].as_str().expect("an address").to_owned(),
                process: None,
            })
            .collect();
        Self { folder, nodes }
    }
}

impl Node {
    fn start(&mut self) {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.home.join("cloister.log"))
            .expect("the folder is ours");
        let child = cloister()
            .args(["start", "--home"])
            .arg(&self.home)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("our own program");
        self.process = Some(child);
    }

    fn kill(&mut self) {
        let mut child = self.process.take().expect("it runs");
        child.kill().expect("our own child");
        child.wait().expect("our own child");
    }

    #[expect(clippy::zombie_processes, reason = "the other way out is a panic")]
    fn stop_cleanly(&mut self) {
        let mut child = self.process.take().expect("it runs");
        signal(child.id(), rustix::process::Signal::TERM);
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(15) {
            if let Some(status) = child.try_wait().expect("our own child") {
                assert!(
                    status.success(),
                    "clean stop ended with {status}\n{}",
                    self.log_tail()
                );
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("no clean stop within 15 s\n{}", self.log_tail());
    }

    fn log_tail(&self) -> String {
        let log = fs::read(self.home.join("cloister.log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    fn comet_pid(&self) -> Option<u32> {
        let text = fs::read_to_string(self.home.join("cometbft.pid")).ok()?;
        text.split(' ').next()?.parse().ok()
    }

    fn call(&self, method: &str, params: Value) -> Option<Value> {
        let body =
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let mut stream = TcpStream::connect(&self.http).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        write!(
            stream,
            "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        let body: Value = serde_json::from_str(body).ok()?;
        body.get("result").cloned()
    }

    fn height(&self) -> u64 {
        let height = self.call("eth_blockNumber", json!([]));
        let height = height.as_ref().and_then(Value::as_str).unwrap_or("0x0");
        u64::from_str_radix(height.trim_start_matches("0x"), 16).expect("a number")
    }

    fn block_hash(&self, height: u64) -> Value {
        let block = self
            .call(
                "eth_getBlockByNumber",
                json!([format!("{height:#x}"), false]),
            )
            .unwrap_or_else(|| panic!("block {height}\n{}", self.log_tail()));
        block["hash"].clone()
    }

    fn reach(&self, height: u64) {
        let started = Instant::now();
        while self.height() < height {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "height {height} not reached, now {}\n{}",
                self.height(),
                self.log_tail()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut child) = self.process.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        // Ours only: the file is in a folder of this test.
        if let Some(pid) = self.comet_pid().filter(|pid| is_cometbft(*pid)) {
            signal(pid, rustix::process::Signal::KILL);
        }
    }
}

fn is_cometbft(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "cometbft")
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let _ = rustix::process::kill_process(pid.expect("a pid"), signal);
}

#[test]
fn one_validator_survives_kills_of_either_and_stops_cleanly() {
    if cometbft_missing() {
        return;
    }
    let mut network = Network::new(1);
    let node = &mut network.nodes[0];
    node.start();
    node.reach(5);
    let early = node.block_hash(5);

    // CometBFT is killed: we restart it, with the same chain.
    let old = node.comet_pid().expect("it runs");
    signal(old, rustix::process::Signal::KILL);
    let height = node.height();
    node.reach(height + 3);
    assert_ne!(node.comet_pid(), Some(old));
    assert_eq!(node.block_hash(5), early);

    // We are killed: the old CometBFT is gone, or waited for, before the next start begins one.
    for _ in 0..3 {
        let height = node.height();
        node.kill();
        node.start();
        node.reach(height + 2);
        assert_eq!(node.block_hash(5), early);
    }

    // Status tells; a second process on this home is refused.
    let status = cloister()
        .args(["status", "--json", "--home"])
        .arg(&node.home)
        .output()
        .expect("our own program");
    assert!(
        status.status.success(),
        "{}",
        String::from_utf8_lossy(&status.stderr)
    );
    let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
    assert!(
        status["height"].as_u64().is_some_and(|height| height > 5),
        "{status}"
    );
    assert!(status["durableHeight"].is_u64(), "{status}");
    let second = cloister()
        .args(["start", "--home"])
        .arg(&node.home)
        .output()
        .expect("our own program");
    assert_eq!(second.status.code(), Some(78));
    assert!(String::from_utf8_lossy(&second.stderr).contains("in use by process"));

    let comet = node.comet_pid().expect("it runs");
    node.stop_cleanly();
    assert!(!is_cometbft(comet), "CometBFT outlived us");
    let status = cloister()
        .args(["status", "--home"])
        .arg(&node.home)
        .output()
        .expect("our own program");
    assert_eq!(status.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&status.stderr).contains("hint: start it"));
}

#[test]
fn four_validators_agree() {
    if cometbft_missing() {
        return;
    }
    let mut network = Network::new(4);
    for node in &mut network.nodes {
        node.start();
    }
    for node in &network.nodes {
        node.reach(10);
    }
    for height in 1..=10 {
        let hash = network.nodes[0].block_hash(height);
        for node in &network.nodes[1..] {
            assert_eq!(node.block_hash(height), hash, "height {height}");
        }
    }
    for node in &mut network.nodes {
        node.stop_cleanly();
    }
}

fn transfer(nonce: u64) -> String {
    let transaction = TxEip1559 {
        chain_id: 31_337,
        nonce,
        gas_limit: 21_000,
        max_fee_per_gas: 10_000_000_000,
        max_priority_fee_per_gas: 1_000_000_000,
        to: TxKind::Call(Address::repeat_byte(0x42)),
        value: U256::from(1),
        ..Default::default()
    };
    let signature = dev_signer(3)
        .sign_hash_sync(&transaction.signature_hash())
        .expect("a local key");
    format!(
        "0x{}",
        hex::encode(TxEnvelope::from(transaction.into_signed(signature)).encoded_2718())
    )
}

/// D15, and what the pool holds after CometBFT has lost its own.
#[test]
fn a_full_node_hands_promoted_transactions_to_the_validators() {
    if cometbft_missing() {
        return;
    }
    let mut network = Network::with_full_nodes(2, 1);
    for node in &mut network.nodes {
        node.start();
    }
    for node in &network.nodes {
        node.reach(2);
    }
    let full = &network.nodes[2];
    let send = |nonce| {
        let hash = full.call("eth_sendRawTransaction", json!([transfer(nonce)]));
        hash.unwrap_or_else(|| panic!("nonce {nonce} refused\n{}", full.log_tail()))
    };
    // The gapped one first: it waits until the one before it comes.
    let hashes = [send(1), send(0)];
    mined(&network.nodes[0], &hashes);

    // The full node's CometBFT restarts with an empty mempool and is given the pool's content again.
    let comet = full.comet_pid().expect("it runs");
    signal(comet, rustix::process::Signal::KILL);
    let hashes = [send(3), send(2)];
    mined(&network.nodes[0], &hashes);
}

fn mined(node: &Node, hashes: &[Value]) {
    let started = Instant::now();
    for hash in hashes {
        while node
            .call("eth_getTransactionReceipt", json!([hash]))
            .is_none_or(|receipt| receipt.is_null())
        {
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "{hash} not mined\n{}",
                node.log_tail()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn testnet_runs_under_one_process_and_stops_on_command() {
    if cometbft_missing() {
        return;
    }
    let network = Network::new(2);
    let home = network.folder.path().join("n");
    let mut running = cloister()
        .args(["testnet", "--start", "--home"])
        .arg(&home)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("our own program");
    for node in &network.nodes {
        node.reach(2);
    }
    let stopped = cloister()
        .args(["testnet", "stop", "--home"])
        .arg(&home)
        .output()
        .expect("our own program");
    assert!(
        stopped.status.success(),
        "{}",
        String::from_utf8_lossy(&stopped.stderr)
    );
    assert!(running.wait().expect("our own child").success());
    assert!(
        network.nodes.iter().all(|node| node.height() == 0),
        "a node still answers"
    );
}

#[test]
fn mistakes_of_the_operator_are_told_before_anything_starts() {
    let network = Network::new(1);
    let home = &network.nodes[0].home;
    let start = |environment: &[(&str, &str)]| {
        let output = cloister()
            .args(["start", "--home"])
            .arg(home)
            .envs(environment.iter().copied())
            .output()
            .expect("our own program");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, text) = start(&[
        ("CLOISTER__CONSENSUS__TIMEOUT_COMMIT_MS", "0"),
        ("CLOISTER__RPC__BATCH_MAX", "0"),
    ]);
    assert_eq!(code, Some(78));
    assert!(text.contains("2 errors") && text.contains("hint"), "{text}");

    let (code, text) = start(&[("CLOISTER_COMETBFT", "/nonexistent/cometbft")]);
    assert_eq!(code, Some(78));
    assert!(text.contains("/nonexistent/cometbft"), "{text}");

    let old = network.folder.path().join("old");
    fs::write(&old, "#!/bin/sh\necho 0.38.19\n").expect("the folder is ours");
    fs::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("our own file");
    let (code, text) = start(&[("CLOISTER_COMETBFT", old.to_str().expect("plain text"))]);
    assert_eq!(code, Some(78));
    assert!(
        text.contains("0.38.19") && text.contains("go install"),
        "{text}"
    );

    damaged(
        home,
        "cometbft/config/priv_validator_key.json",
        "{}",
        "missing field",
    );
    damaged(home, "genesis.json", "{", "genesis.json");
    damaged(home, "cloister.toml", "[node", "TOML");
}

/// Damages a file, expects a refusal naming it, and puts it back.
fn damaged(home: &Path, name: &str, content: &str, expected: &str) {
    let path = home.join(name);
    let sound = fs::read(&path).expect("just made");
    fs::write(&path, content).expect("the folder is ours");
    let output = cloister()
        .args(["start", "--home"])
        .arg(home)
        .output()
        .expect("our own program");
    let text = String::from_utf8_lossy(&output.stderr);
    // Without CometBFT the program is missed first.
    if !text.contains("CometBFT not found") {
        assert_eq!(output.status.code(), Some(78), "{name}: {text}");
        assert!(text.contains(expected), "{name}: {text}");
    }
    fs::write(&path, sound).expect("the folder is ours");
}
