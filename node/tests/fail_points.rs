//! A fault in any call ends the process within a second, with a code that is not zero; a start after it goes on.
//! Needs the `fail-points` feature: `cargo test -p cloister --features fail-points`.

mod common;

use cloister_genesis::Genesis;
use common::{Ask, Block, Connection};
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

struct Home {
    folder: tempfile::TempDir,
    genesis: Genesis,
    genesis_json: Vec<u8>,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("cl-fail-")
            .tempdir()
            .expect("a temporary folder");
        let home = folder.path().join("h");
        let made = Command::new(env!("CARGO_BIN_EXE_cloister"))
            .args(["init", "--chain-id", "77", "--home"])
            .arg(&home)
            .output()
            .expect("our own program");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let genesis_json = std::fs::read(home.join("genesis.json")).expect("just made");
        Self {
            folder,
            genesis: Genesis::parse(&genesis_json).expect("just made"),
            genesis_json,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("h")
    }

    fn start(&self, fail_point: &str) -> Child {
        Command::new(env!("CARGO_BIN_EXE_cloister"))
            .args(["start", "--consensus", "external", "--home"])
            .arg(self.path())
            .env("CLOISTER_FAIL_POINT", fail_point)
            .env("CLOISTER__RPC__HTTP_ADDRESS", "127.0.0.1:0")
            .env("CLOISTER__RPC__WS_ADDRESS", "127.0.0.1:0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("our own program")
    }
}

fn socket(home: &Path) -> PathBuf {
    home.join("run/abci.sock")
}

/// The calls that lead to the one under test, and it.
fn road(home: &Home, call: &str) -> (Vec<Ask>, Ask) {
    let block = Block::new(&home.genesis, 1, Vec::new());
    let init = common::init_chain(&home.genesis, &home.genesis_json);
    match call {
        "echo" => (vec![], Ask::Echo(Default::default())),
        "info" => (vec![], common::info()),
        "query" => (vec![], common::query("/head", b"")),
        "check_tx" => (vec![init], common::check_tx(b"x", false)),
        "init_chain" => (vec![], init),
        "prepare_proposal" => (vec![init], block.prepare()),
        "process_proposal" => (vec![init], block.process()),
        "finalize_block" => (vec![init], block.finalize()),
        "commit" => (vec![init, block.finalize()], common::commit()),
        "extend_vote" => (vec![init], common::extend_vote()),
        "verify_vote_extension" => (vec![init], common::verify_vote_extension()),
        "list_snapshots" => (vec![], common::list_snapshots()),
        "offer_snapshot" => (vec![], common::offer_snapshot()),
        "load_snapshot_chunk" => (vec![], common::load_snapshot_chunk()),
        "apply_snapshot_chunk" => (vec![], common::apply_snapshot_chunk()),
        other => panic!("no such call: {other}"),
    }
}

fn ends_within_a_second(mut child: Child, what: &str) {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("our own child") {
            assert_eq!(status.code(), Some(70), "{what}: {status}");
            return;
        }
        if started.elapsed() > Duration::from_secs(1) {
            child.kill().expect("our own child");
            panic!("{what}: still alive after a second");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn fails_in(call: &str) {
    let home = Home::new();
    for kind in ["error", "panic"] {
        let fail_point = format!("{call}={kind}");
        let child = home.start(&fail_point);
        let mut connection = Connection::open(&socket(&home.path()));
        let (road, last) = road(&home, call);
        for ask in road {
            connection.call(ask);
        }
        connection.send(last).expect("it listens");
        ends_within_a_second(child, &fail_point);
    }
    // The restart heals: a clean handshake and a block.
    let mut child = home.start("");
    let mut connection = Connection::open(&socket(&home.path()));
    connection.call(common::init_chain(&home.genesis, &home.genesis_json));
    let block = Block::new(&home.genesis, 1, Vec::new());
    connection.call(block.finalize());
    connection.call(common::commit());
    let info = expect_answer!(connection.call(common::info()), Info);
    assert_eq!(info.last_block_height, 1);
    child.kill().expect("our own child");
    child.wait().expect("our own child");
}

macro_rules! calls {
    ($($test:ident: $call:literal,)*) => {
        $( #[test] fn $test() { fails_in($call); } )*
    };
}

calls! {
    fault_in_echo: "echo",
    fault_in_info: "info",
    fault_in_query: "query",
    fault_in_check_tx: "check_tx",
    fault_in_init_chain: "init_chain",
    fault_in_prepare_proposal: "prepare_proposal",
    fault_in_process_proposal: "process_proposal",
    fault_in_finalize_block: "finalize_block",
    fault_in_commit: "commit",
    fault_in_extend_vote: "extend_vote",
    fault_in_verify_vote_extension: "verify_vote_extension",
    fault_in_list_snapshots: "list_snapshots",
    fault_in_offer_snapshot: "offer_snapshot",
    fault_in_load_snapshot_chunk: "load_snapshot_chunk",
    fault_in_apply_snapshot_chunk: "apply_snapshot_chunk",
}
