//! Subscriptions over WebSocket.

use super::bench::{Bench, LOGGER, NOBODY, raw, sending};
use crate::rpc::ConsensusStatus;
use alloy_primitives::B256;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn new_heads_come_in_order_without_gaps() {
    let bench = Bench::new().await;
    let mut socket = bench.web_socket().await;
    let heads = socket.subscribe(json!(["newHeads"])).await;
    assert!(heads.starts_with("0x"));
    for _ in 0..5 {
        bench.block(&[]).await;
    }
    for height in 1..=5_u64 {
        let head = socket.next(&heads).await;
        let mut block = bench
            .result(
                "eth_getBlockByNumber",
                json!([format!("{height:#x}"), false]),
            )
            .await;
        for body in ["transactions", "uncles", "withdrawals"] {
            block.as_object_mut().expect("a block").remove(body);
        }
        assert_eq!(head, block);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn client_that_reads_late_misses_nothing() {
    // Enough subscriptions to fill every buffer on the way, so that each lags behind more blocks than events are kept.
    const SUBSCRIPTIONS: usize = 80;
    const BLOCKS: u64 = 200;
    let bench = Bench::with(|config| config.message_buffer_capacity = 4).await;
    let mut socket = bench.web_socket().await;
    let mut expected = std::collections::BTreeMap::new();
    for _ in 0..SUBSCRIPTIONS {
        expected.insert(socket.subscribe(json!(["newHeads"])).await, 1);
    }
    for _ in 0..BLOCKS {
        bench.block(&[]).await;
    }
    while expected.values().any(|next| *next <= BLOCKS) {
        let (subscription, head) = socket.next_any().await;
        let next = expected
            .get_mut(&subscription)
            .expect("a subscription of ours");
        assert_eq!(head["number"], json!(format!("{next:#x}")));
        *next += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d04_subscribed_logs_are_those_of_get_logs() {
    let bench = Bench::new().await;
    let mut socket = bench.web_socket().await;
    let all = socket.subscribe(json!(["logs", {}])).await;
    let bare = socket.subscribe(json!(["logs"])).await;
    let topic = B256::with_last_byte(0xa1);
    let some = socket
        .subscribe(json!(["logs", {"address": LOGGER, "topics": [topic]}]))
        .await;
    let none = socket.subscribe(json!(["logs", {"address": NOBODY}])).await;
    bench.block(&[raw(&sending(0, 0, NOBODY).dynamic())]).await;
    bench
        .block(&[
            raw(&sending(0, 1, NOBODY).dynamic()),
            raw(&sending(0, 2, LOGGER).dynamic()),
            raw(&sending(1, 0, LOGGER).dynamic()),
        ])
        .await;
    let block = bench
        .result("eth_getBlockByNumber", json!(["0x2", false]))
        .await;
    let logs = bench
        .result("eth_getLogs", json!([{"blockHash": block["hash"]}]))
        .await;
    let logs = logs.as_array().expect("logs");
    assert_eq!(logs.len(), 6);
    // Notifications of several subscriptions interleave; each has its own order.
    let mut received: std::collections::BTreeMap<String, Vec<Value>> = [&all, &bare, &some]
        .into_iter()
        .map(|subscription| (subscription.clone(), Vec::new()))
        .collect();
    while received[&all].len() < 6 || received[&bare].len() < 6 || received[&some].len() < 2 {
        let (subscription, log) = socket.next_any().await;
        assert_ne!(subscription, none);
        received
            .get_mut(&subscription)
            .expect("a subscription of ours")
            .push(log);
    }
    assert_eq!(&received[&all], logs);
    assert_eq!(&received[&bare], logs);
    let picked: Vec<Value> = logs
        .iter()
        .filter(|log| log["topics"][0] == json!(topic))
        .cloned()
        .collect();
    assert_eq!(received[&some], picked);
    assert!(socket.is_silent().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_transactions_come_as_hashes_or_whole() {
    let bench = Bench::new().await;
    let mut socket = bench.web_socket().await;
    let hashes = socket.subscribe(json!(["newPendingTransactions"])).await;
    let send = sending(0, 0, NOBODY).dynamic();
    bench
        .result("eth_sendRawTransaction", json!([raw(&send)]))
        .await;
    assert_eq!(socket.next(&hashes).await, json!(send.tx_hash()));
    let mut other = bench.web_socket().await;
    let whole = other
        .subscribe(json!(["newPendingTransactions", true]))
        .await;
    let send = sending(0, 1, NOBODY).dynamic();
    bench
        .result("eth_sendRawTransaction", json!([raw(&send)]))
        .await;
    let shown = other.next(&whole).await;
    assert_eq!(
        shown,
        bench
            .result("eth_getTransactionByHash", json!([send.tx_hash()]))
            .await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn syncing_tells_now_and_on_change() {
    let bench = Bench::new().await;
    let mut socket = bench.web_socket().await;
    let syncing = socket.subscribe(json!(["syncing"])).await;
    assert_eq!(socket.next(&syncing).await, json!(false));
    let behind = ConsensusStatus {
        peers: 3,
        catching_up: true,
        highest_height: 9,
    };
    bench.consensus.send(behind).expect("the server listens");
    let expected = json!({"startingBlock": "0x0", "currentBlock": "0x0", "highestBlock": "0x9"});
    assert_eq!(socket.next(&syncing).await, expected);
    assert_eq!(bench.result("eth_syncing", json!([])).await, expected);
    assert_eq!(bench.result("net_peerCount", json!([])).await, json!("0x3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn unsubscribed_client_hears_nothing_more() {
    let bench = Bench::new().await;
    let mut socket = bench.web_socket().await;
    let heads = socket.subscribe(json!(["newHeads"])).await;
    bench.block(&[]).await;
    socket.next(&heads).await;
    assert_eq!(
        socket.ask("eth_unsubscribe", json!([heads])).await["result"],
        json!(true)
    );
    bench.block(&[]).await;
    assert_eq!(
        socket.ask("eth_unsubscribe", json!([heads])).await["result"],
        json!(false)
    );
    assert!(socket.is_silent().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_subscriptions_are_refused() {
    let bench = Bench::with(|config| config.subscriptions_per_connection_max = 2).await;
    let mut socket = bench.web_socket().await;
    for params in [
        json!(["nothing"]),
        json!([]),
        json!([7]),
        json!(["logs", {"address": 7}]),
        json!({"a": 1}),
    ] {
        let response = socket.ask("eth_subscribe", params.clone()).await;
        assert_eq!(response["error"]["code"], -32602, "{params}: {response}");
    }
    // A refused subscription counts until its refusal is sent: count on a connection without any.
    let mut socket = bench.web_socket().await;
    socket.subscribe(json!(["newHeads"])).await;
    socket.subscribe(json!(["newHeads"])).await;
    let third = socket.ask("eth_subscribe", json!(["newHeads"])).await;
    assert!(third.get("error").is_some(), "{third}");
    let over_http = bench.error("eth_subscribe", json!(["newHeads"])).await;
    assert_eq!(over_http, (-32601, "notifications not supported".into()));
    assert_eq!(
        socket.ask("eth_blockNumber", json!([])).await["result"],
        "0x0",
        "methods answer on a WebSocket too"
    );
}
