//! Log queries and polled filters.

use super::bench::{Bench, LOGGER, NOBODY, raw, sending};
use alloy_primitives::B256;
use serde_json::{Value, json};

fn topic(byte: u8) -> B256 {
    B256::with_last_byte(byte)
}

async fn count(bench: &Bench, filter: Value) -> usize {
    bench
        .result("eth_getLogs", json!([filter]))
        .await
        .as_array()
        .expect("logs")
        .len()
}

/// Blocks 1 and 3 with logs, 2 and 4 without.
async fn four_blocks() -> Bench {
    let bench = Bench::new().await;
    bench
        .block(&[
            raw(&sending(0, 0, LOGGER).dynamic()),
            raw(&sending(1, 0, LOGGER).dynamic()),
        ])
        .await;
    bench.block(&[raw(&sending(0, 1, NOBODY).dynamic())]).await;
    bench.block(&[raw(&sending(0, 2, LOGGER).dynamic())]).await;
    bench.block(&[]).await;
    bench
}

#[tokio::test(flavor = "multi_thread")]
async fn d08_ranges_that_make_no_sense_are_refused_and_empty_blocks_have_no_logs() {
    let bench = four_blocks().await;
    let reversed = bench
        .error(
            "eth_getLogs",
            json!([{"fromBlock": "0xb", "toBlock": "0x9"}]),
        )
        .await;
    assert_eq!(reversed, (-32602, "invalid block range params".into()));
    let beyond = bench
        .error(
            "eth_getLogs",
            json!([{"fromBlock": "0x1", "toBlock": "0x9"}]),
        )
        .await;
    assert_eq!(
        beyond,
        (
            -32602,
            "block range extends beyond current head block".into()
        )
    );
    let empty = bench
        .result(
            "eth_getLogs",
            json!([{"fromBlock": "0x4", "toBlock": "0x4"}]),
        )
        .await;
    assert_eq!(empty, json!([]));
    assert_eq!(
        count(
            &bench,
            json!({"fromBlock": "earliest", "toBlock": "latest"})
        )
        .await,
        9
    );
    assert_eq!(count(&bench, json!({"fromBlock": "0x0"})).await, 9);
    assert_eq!(
        count(&bench, json!({})).await,
        0,
        "the default is the head alone"
    );
    let unknown = bench
        .error("eth_getLogs", json!([{"blockHash": B256::repeat_byte(9)}]))
        .await;
    assert_eq!(unknown, (-32000, "unknown block".into()));
    let both = json!([{"blockHash": B256::ZERO, "fromBlock": "0x1"}]);
    assert_eq!(bench.error("eth_getLogs", both).await.0, -32602);
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_and_topics_select_logs() {
    let bench = four_blocks().await;
    let all = |mut filter: Value| {
        filter["fromBlock"] = json!("0x0");
        filter
    };
    for (filter, expected) in [
        (json!({"address": LOGGER}), 9),
        (json!({"address": NOBODY}), 0),
        (json!({"address": [NOBODY, LOGGER]}), 9),
        (json!({"address": []}), 9),
        (json!({"topics": [topic(0xa1)]}), 3),
        (json!({"topics": [[topic(0xa1), topic(0xa2)]]}), 6),
        (json!({"topics": [null]}), 9),
        (json!({"topics": []}), 9),
        (json!({"topics": [[]]}), 9),
        (json!({"topics": [[null, topic(0xa1)]]}), 9),
        (json!({"topics": [null, topic(0xa1)]}), 0),
        (json!({"topics": [null, null]}), 0),
        (json!({"topics": [topic(1)]}), 0),
        (json!({"address": LOGGER, "topics": [topic(0xa0)]}), 3),
    ] {
        assert_eq!(
            count(&bench, all(filter.clone())).await,
            expected,
            "{filter}"
        );
    }
    let too_many = json!([{"topics": [null, null, null, null, null]}]);
    assert_eq!(bench.error("eth_getLogs", too_many).await.0, -32602);
}

#[tokio::test(flavor = "multi_thread")]
async fn d09_filter_by_block_hash_gives_logs_never_null() {
    let bench = four_blocks().await;
    let block = bench
        .result("eth_getBlockByNumber", json!(["0x1", false]))
        .await;
    let by_hash = json!({"blockHash": block["hash"], "address": LOGGER});
    let filter = bench.result("eth_newFilter", json!([by_hash])).await;
    let logs = bench.result("eth_getFilterLogs", json!([filter])).await;
    assert_eq!(logs, bench.result("eth_getLogs", json!([by_hash])).await);
    assert_eq!(logs.as_array().expect("logs").len(), 6);
    assert_eq!(
        bench.result("eth_getFilterChanges", json!([filter])).await,
        json!([])
    );
    let none = json!({"blockHash": block["hash"], "address": NOBODY});
    let filter = bench.result("eth_newFilter", json!([none])).await;
    assert_eq!(
        bench.result("eth_getFilterLogs", json!([filter])).await,
        json!([])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_report_what_is_new_once() {
    let bench = four_blocks().await;
    let logs = bench
        .result("eth_newFilter", json!([{"address": LOGGER}]))
        .await;
    let blocks = bench.result("eth_newBlockFilter", json!([])).await;
    let pending = bench
        .result("eth_newPendingTransactionFilter", json!([]))
        .await;
    for filter in [&logs, &blocks, &pending] {
        assert_eq!(
            bench.result("eth_getFilterChanges", json!([filter])).await,
            json!([])
        );
    }
    let send = sending(1, 1, LOGGER).dynamic();
    let hash = bench
        .result("eth_sendRawTransaction", json!([raw(&send)]))
        .await;
    let mut announced = json!([]);
    for _ in 0..100 {
        announced = bench.result("eth_getFilterChanges", json!([pending])).await;
        if announced != json!([]) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(announced, json!([hash]));
    bench.block(&[raw(&send)]).await;
    bench.block(&[]).await;
    let new = bench.result("eth_getFilterChanges", json!([logs])).await;
    assert_eq!(
        new,
        bench
            .result(
                "eth_getLogs",
                json!([{"fromBlock": "0x5", "toBlock": "0x6"}])
            )
            .await
    );
    assert_eq!(new.as_array().expect("logs").len(), 3);
    let mut hashes = Vec::new();
    for height in ["0x5", "0x6"] {
        hashes.push(
            bench
                .result("eth_getBlockByNumber", json!([height, false]))
                .await["hash"]
                .clone(),
        );
    }
    assert_eq!(
        bench.result("eth_getFilterChanges", json!([blocks])).await,
        json!(hashes)
    );
    for filter in [&logs, &blocks, &pending] {
        assert_eq!(
            bench.result("eth_getFilterChanges", json!([filter])).await,
            json!([])
        );
        assert_eq!(
            bench.result("eth_uninstallFilter", json!([filter])).await,
            json!(true)
        );
        assert_eq!(
            bench.result("eth_uninstallFilter", json!([filter])).await,
            json!(false)
        );
        let gone = bench.error("eth_getFilterChanges", json!([filter])).await;
        assert_eq!(gone, (-32000, "filter not found".into()));
    }
    assert_eq!(
        bench.error("eth_getFilterLogs", json!(["0x1"])).await,
        (-32000, "filter not found".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn log_caps_advise_a_narrower_range() {
    let bench = Bench::with(|config| {
        config.log_range_blocks_max = 3;
        config.log_results_max = 4;
    })
    .await;
    for nonce in 0..4 {
        bench
            .block(&[raw(&sending(0, nonce, LOGGER).dynamic())])
            .await;
    }
    let (code, message) = bench
        .error("eth_getLogs", json!([{"fromBlock": "0x0"}]))
        .await;
    assert_eq!(code, -32005);
    assert!(
        message.contains("5 blocks") && message.contains("0 to 2"),
        "{message}"
    );
    let (code, message) = bench
        .error(
            "eth_getLogs",
            json!([{"fromBlock": "0x1", "toBlock": "0x3"}]),
        )
        .await;
    assert_eq!(code, -32005);
    assert!(
        message.contains("more than 4 logs") && message.contains("1 to 1"),
        "{message}"
    );
    assert_eq!(
        count(&bench, json!({"fromBlock": "0x1", "toBlock": "0x1"})).await,
        3
    );
    // A filter delivers the same in parts instead of failing.
    let filter = bench.result("eth_newFilter", json!([{}])).await;
    for nonce in 4..8 {
        bench
            .block(&[raw(&sending(0, nonce, LOGGER).dynamic())])
            .await;
    }
    let mut delivered = 0;
    for _ in 0..4 {
        let part = bench.result("eth_getFilterChanges", json!([filter])).await;
        delivered += part.as_array().expect("logs").len();
    }
    assert_eq!(delivered, 12);
}
