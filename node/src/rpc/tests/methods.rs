//! The list of methods, and each of them once.

use super::bench::{Bench, CHAIN_ID, LOGGER, NOBODY, READER, raw, sending, signer};
use crate::rpc::{
    gate::{SUBSCRIBE, UNSUBSCRIBE},
    methods::METHODS,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// One name a line, in order. A change here is a change of the public interface.
const GOLDEN: &str = include_str!("methods.txt");

#[test]
fn methods_are_those_of_the_checked_in_list() {
    let mut names: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
    assert!(names.is_sorted(), "the table is in order");
    names.extend([SUBSCRIBE, UNSUBSCRIBE]);
    names.sort_unstable();
    assert_eq!(names.join("\n"), GOLDEN.trim_end());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_answers() {
    let bench = Bench::with(|config| config.accounts = vec![signer(0).address()]).await;
    let mined = sending(0, 0, LOGGER).dynamic();
    bench.block(&[raw(&mined)]).await;
    let block = bench
        .result("eth_getBlockByNumber", json!(["latest", false]))
        .await;
    let (hash, sender, waiting) = (
        &block["hash"],
        signer(0).address(),
        sending(0, 1, NOBODY).dynamic(),
    );
    let filter = bench.result("eth_newFilter", json!([{}])).await;
    let nothing = json!([]);
    let cases: Vec<(&str, Value, Option<Value>)> = vec![
        ("cloister_status", nothing.clone(), None),
        ("eth_accounts", nothing.clone(), Some(json!([sender]))),
        ("eth_blobBaseFee", nothing.clone(), Some(json!("0x1"))),
        ("eth_blockNumber", nothing.clone(), Some(json!("0x1"))),
        (
            "eth_call",
            json!([{"to": READER}]),
            Some(json!(format!("{:#066x}", 77))),
        ),
        ("eth_chainId", nothing.clone(), Some(json!("0x7a69"))),
        ("eth_createAccessList", json!([{"to": READER}]), None),
        (
            "eth_estimateGas",
            json!([{"to": NOBODY}]),
            Some(json!("0x5208")),
        ),
        ("eth_feeHistory", json!(["0x1", "latest", []]), None),
        ("eth_gasPrice", nothing.clone(), None),
        (
            "eth_getBalance",
            json!([NOBODY, "latest"]),
            Some(json!("0x0")),
        ),
        (
            "eth_getBlockByHash",
            json!([hash, false]),
            Some(block.clone()),
        ),
        (
            "eth_getBlockByNumber",
            json!(["0x1", false]),
            Some(block.clone()),
        ),
        ("eth_getBlockReceipts", json!([hash]), None),
        (
            "eth_getBlockTransactionCountByHash",
            json!([hash]),
            Some(json!("0x1")),
        ),
        (
            "eth_getBlockTransactionCountByNumber",
            json!(["0x1"]),
            Some(json!("0x1")),
        ),
        (
            "eth_getCode",
            json!([READER, "latest"]),
            Some(json!("0x5f545f5260205ff3")),
        ),
        ("eth_getFilterChanges", json!([filter]), Some(json!([]))),
        ("eth_getFilterLogs", json!([filter]), None),
        ("eth_getLogs", json!([{"blockHash": hash}]), None),
        ("eth_getProof", json!([READER, ["0x0"], "latest"]), None),
        (
            "eth_getStorageAt",
            json!([READER, "0x0", "latest"]),
            Some(json!(format!("{:#066x}", 77))),
        ),
        (
            "eth_getTransactionByBlockHashAndIndex",
            json!([hash, "0x0"]),
            None,
        ),
        (
            "eth_getTransactionByBlockNumberAndIndex",
            json!(["0x1", "0x0"]),
            None,
        ),
        ("eth_getTransactionByHash", json!([mined.tx_hash()]), None),
        (
            "eth_getTransactionCount",
            json!([sender, "latest"]),
            Some(json!("0x1")),
        ),
        ("eth_getTransactionReceipt", json!([mined.tx_hash()]), None),
        (
            "eth_getUncleByBlockHashAndIndex",
            json!([hash, "0x0"]),
            Some(Value::Null),
        ),
        (
            "eth_getUncleByBlockNumberAndIndex",
            json!(["0x1", "0x0"]),
            Some(Value::Null),
        ),
        (
            "eth_getUncleCountByBlockHash",
            json!([hash]),
            Some(json!("0x0")),
        ),
        (
            "eth_getUncleCountByBlockNumber",
            json!(["0x1"]),
            Some(json!("0x0")),
        ),
        ("eth_maxPriorityFeePerGas", nothing.clone(), None),
        ("eth_newBlockFilter", nothing.clone(), None),
        ("eth_newFilter", json!([{}]), None),
        ("eth_newPendingTransactionFilter", nothing.clone(), None),
        (
            "eth_sendRawTransaction",
            json!([raw(&waiting)]),
            Some(json!(waiting.tx_hash())),
        ),
        ("eth_syncing", nothing.clone(), Some(json!(false))),
        ("eth_uninstallFilter", json!([filter]), Some(json!(true))),
        ("net_listening", nothing.clone(), Some(json!(true))),
        ("net_peerCount", nothing.clone(), Some(json!("0x0"))),
        (
            "net_version",
            nothing.clone(),
            Some(json!(CHAIN_ID.to_string())),
        ),
        ("rpc_modules", nothing.clone(), None),
        ("txpool_content", nothing.clone(), None),
        ("txpool_contentFrom", json!([sender]), None),
        ("txpool_inspect", nothing.clone(), None),
        (
            "txpool_status",
            nothing.clone(),
            Some(json!({"pending": "0x1", "queued": "0x0"})),
        ),
        ("web3_clientVersion", nothing.clone(), None),
        (
            "web3_sha3",
            json!(["0x68656c6c6f"]),
            Some(json!(
                "0x1c8aff950685c2ed4bc3174f3472287b56d9517b9c948127319a09a7a36deac8"
            )),
        ),
    ];
    let mut asked = BTreeSet::new();
    for (method, params, expected) in cases {
        let result = bench.result(method, params).await;
        if let Some(expected) = expected {
            assert_eq!(result, expected, "{method}");
        } else {
            assert_ne!(result, Value::Null, "{method}");
        }
        asked.insert(method);
    }
    assert_eq!(
        asked,
        METHODS.iter().map(|method| method.name).collect(),
        "each method is asked here"
    );
    let status = bench.result("cloister_status", json!([])).await;
    assert_eq!((&status["height"], &status["appHash"]), (&json!(1), hash));
    assert_eq!(
        (&status["poolPending"], &status["catchingUp"]),
        (&json!(1), &json!(false))
    );
    assert!(
        bench
            .result("web3_clientVersion", json!([]))
            .await
            .as_str()
            .expect("text")
            .starts_with("cloister/v")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn state_below_the_history_is_refused_with_the_oldest_height() {
    let bench = Bench::new().await;
    for _ in 0..70 {
        bench.block(&[]).await;
    }
    let (code, message) = bench.error("eth_getBalance", json!([NOBODY, "0x1"])).await;
    assert_eq!(code, -32000);
    assert!(message.contains("oldest height served: 6"), "{message}");
    let (code, message) = bench
        .error("eth_getProof", json!([NOBODY, [], "0x1"]))
        .await;
    assert_eq!(code, -32000);
    assert!(message.contains("oldest height served: 6"), "{message}");
    assert_eq!(
        bench.result("eth_getBalance", json!([NOBODY, "0x6"])).await,
        json!("0x0")
    );
}
