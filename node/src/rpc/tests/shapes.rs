//! Field sets of answers, against those of the execution-apis suite (files read in place, where they are there).

use super::bench::{Bench, LOGGER, NOBODY, raw, sending};
use serde_json::{Value, json};
use std::{collections::BTreeSet, path::PathBuf};

fn vectors() -> Option<PathBuf> {
    let folder = std::env::var_os("CLOISTER_VECTORS").map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../shared/vectors/public"
            ))
        },
        PathBuf::from,
    );
    let folder = folder.join("ethereum/execution-apis");
    folder.is_dir().then_some(folder)
}

/// The last result in a file of requests (`>>`) and responses (`<<`).
fn expected(file: &str) -> Option<Value> {
    let Some(folder) = vectors() else {
        println!("not run: {file}: no execution-apis vectors (set CLOISTER_VECTORS)");
        return None;
    };
    let text = std::fs::read_to_string(folder.join(file)).expect("a vector file");
    let line = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("<<"))
        .expect("a response");
    let response: Value = serde_json::from_str(line).expect("JSON");
    Some(response["result"].clone())
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value
        .as_object()
        .unwrap_or_else(|| panic!("an object: {value}"))
        .keys()
        .map(String::as_str)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_have_the_fields_of_the_execution_apis() {
    let bench = Bench::new().await;
    let (legacy, listed, dynamic, delegating) = (
        sending(0, 0, LOGGER).legacy(),
        sending(0, 1, LOGGER).with_access_list(),
        sending(0, 2, LOGGER).dynamic(),
        sending(0, 3, NOBODY).set_code(5, 0),
    );
    bench
        .block(&[raw(&legacy), raw(&listed), raw(&dynamic), raw(&delegating)])
        .await;
    let block = bench
        .result("eth_getBlockByNumber", json!(["latest", true]))
        .await;
    let receipts = bench
        .result("eth_getBlockReceipts", json!(["latest"]))
        .await;
    let logs = bench
        .result("eth_getLogs", json!([{"blockHash": block["hash"]}]))
        .await;
    if let Some(theirs) = expected("eth_getBlockByNumber/get-block-prague-fork.io") {
        assert_eq!(keys(&block), keys(&theirs));
    }
    if let Some(theirs) = expected("eth_getBlockByNumber/get-finalized.io") {
        assert_eq!(
            keys(&block["transactions"][0]),
            keys(&theirs["transactions"][0]),
            "legacy"
        );
    }
    for (index, file) in [(1, "get-access-list.io"), (3, "get-setcode-tx.io")] {
        if let Some(theirs) = expected(&format!("eth_getTransactionByHash/{file}")) {
            assert_eq!(keys(&block["transactions"][index]), keys(&theirs), "{file}");
        }
    }
    if let Some(theirs) = expected("eth_getTransactionByHash/get-setcode-tx.io") {
        let authorization = &block["transactions"][3]["authorizationList"][0];
        assert_eq!(keys(authorization), keys(&theirs["authorizationList"][0]));
    }
    for (index, file) in [(1, "get-access-list.io"), (2, "get-dynamic-fee.io")] {
        if let Some(theirs) = expected(&format!("eth_getTransactionReceipt/{file}")) {
            assert_eq!(keys(&receipts[index]), keys(&theirs), "{file}");
            assert_eq!(
                keys(&receipts[index]["logs"][0]),
                keys(&theirs["logs"][0]),
                "{file}"
            );
            assert_eq!(
                receipts[index]["contractAddress"], theirs["contractAddress"],
                "{file}: null, not absent"
            );
        }
    }
    if let Some(theirs) = expected("eth_getLogs/filter-with-blockHash.io") {
        assert_eq!(keys(&logs[0]), keys(&theirs[0]));
    }
    if let Some(theirs) = expected("eth_getProof/get-account-proof-latest.io") {
        let proof = bench
            .result("eth_getProof", json!([LOGGER, [], "latest"]))
            .await;
        assert_eq!(keys(&proof), keys(&theirs));
    }
    if let Some(theirs) = expected("eth_createAccessList/create-al-contract-eip1559.io") {
        let answer = bench
            .result("eth_createAccessList", json!([{"to": LOGGER}]))
            .await;
        assert_eq!(keys(&answer), keys(&theirs));
    }
}

/// Errors whose code the suite fixes, asked of our chain in its own words.
#[tokio::test(flavor = "multi_thread")]
async fn errors_have_the_codes_of_the_execution_apis() {
    let bench = Bench::new().await;
    let Some(folder) = vectors() else {
        println!("not run: error codes: no execution-apis vectors (set CLOISTER_VECTORS)");
        return;
    };
    for file in [
        "eth_getLogs/filter-error-future-block-range.io",
        "eth_getLogs/filter-error-reversed-block-range.io",
        "eth_getStorageAt/get-storage-invalid-key-too-large.io",
        "eth_getBlockReceipts/get-block-receipts-not-found.io",
        "eth_getTransactionReceipt/get-empty-tx.io",
        "eth_getBlockByHash/get-block-by-notfound-hash.io",
    ] {
        let text = std::fs::read_to_string(folder.join(file)).expect("a vector file");
        let line = |mark| {
            text.lines()
                .find_map(|line| line.strip_prefix(mark))
                .expect("a line")
                .trim()
                .to_owned()
        };
        let (_, ours) = bench.post(line(">>")).await;
        let (ours, theirs): (Value, Value) = (
            serde_json::from_str(&ours).expect("JSON"),
            serde_json::from_str(&line("<<")).expect("JSON"),
        );
        assert_eq!(ours, theirs, "{file}");
    }
}
