//! `eth_call`, `eth_estimateGas`, `eth_createAccessList` and what they answer when the call fails.

use super::bench::{
    Bench, CLEARER, LOOPER, NOBODY, READER, RECURSIVE, REVERTER, raw, sending, signer,
};
use alloy_primitives::{Bytes, U256, address, hex};
use alloy_sol_types::{Panic, PanicKind, Revert, SolError};
use serde_json::json;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn d10_code_override_runs_at_latest_and_at_an_old_block() {
    let bench = Bench::new().await;
    bench.block(&[]).await;
    bench.block(&[]).await;
    let call = json!({"to": NOBODY});
    // NUMBER MSTORE(0) RETURN(0, 32)
    let overrides = json!({ NOBODY.to_string(): {"code": "0x435f5260205ff3"} });
    for (tag, height) in [("latest", 2), ("0x1", 1)] {
        let number = bench
            .result("eth_call", json!([call, tag, overrides]))
            .await;
        assert_eq!(number, json!(format!("{height:#066x}")));
    }
    assert_eq!(
        bench.result("eth_call", json!([call, "latest"])).await,
        json!("0x")
    );
    let elsewhere = json!([call, "latest", overrides, {"number": "0x63"}]);
    assert_eq!(
        bench.result("eth_call", elsewhere).await,
        json!(format!("{:#066x}", 99))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_transaction_with_exactly_the_estimate_succeeds() {
    let bench = Bench::new().await;
    for (nonce, (to, input)) in [(CLEARER, Bytes::new()), (RECURSIVE, vec![1; 12].into())]
        .into_iter()
        .enumerate()
    {
        let call = json!({"from": signer(0).address(), "to": to, "input": input});
        let estimate = bench.result("eth_estimateGas", json!([call])).await;
        let mut send = sending(0, nonce as u64, to);
        send.gas_limit = serde_json::from_value::<alloy_primitives::U64>(estimate)
            .expect("a quantity")
            .to();
        send.input = input;
        let send = send.dynamic();
        bench.block(&[raw(&send)]).await;
        let receipt = bench
            .result("eth_getTransactionReceipt", json!([send.tx_hash()]))
            .await;
        assert_eq!(receipt["status"], "0x1", "{to}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_call_without_fee_works_from_an_empty_account() {
    let bench = Bench::new().await;
    bench.block(&[]).await;
    // GASPRICE BASEFEE
    let overrides = json!({ READER.to_string(): {"code": "0x3a5f524860205260405ff3"} });
    let call = json!({"from": NOBODY, "to": READER, "gas": "0x17d7840"});
    let fees = bench
        .result("eth_call", json!([call, "latest", overrides]))
        .await;
    assert_eq!(fees, json!(Bytes::from(vec![0; 64])));
    let named = json!({"from": NOBODY, "to": READER, "gas": "0x17d7840", "gasPrice": "0x77359400"});
    let (code, message) = bench.error("eth_call", json!([named, "latest"])).await;
    assert_eq!(code, -32000);
    assert!(
        message.starts_with("insufficient funds for gas * price + value"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_estimate_of_value_to_a_precompile_is_enough() {
    let bench = Bench::new().await;
    let identity = address!("0000000000000000000000000000000000000004");
    let call = json!({"from": signer(0).address(), "to": identity, "value": "0x1"});
    let estimate = bench.result("eth_estimateGas", json!([call])).await;
    let mut send = sending(0, 0, identity);
    send.value = U256::ONE;
    send.gas_limit = serde_json::from_value::<alloy_primitives::U64>(estimate)
        .expect("a quantity")
        .to();
    assert!(send.gas_limit > 21_000);
    let send = send.dynamic();
    bench.block(&[raw(&send)]).await;
    let receipt = bench
        .result("eth_getTransactionReceipt", json!([send.tx_hash()]))
        .await;
    assert_eq!(receipt["status"], "0x1");
}

async fn revert_of(bench: &Bench, method: &str, data: &[u8]) -> serde_json::Value {
    let call =
        json!({"from": signer(0).address(), "to": REVERTER, "input": Bytes::copy_from_slice(data)});
    bench.ask(method, json!([call])).await["error"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn revert_has_code_3_its_data_and_its_reason() {
    let bench = Bench::new().await;
    let text = Revert::from("user error").abi_encode();
    let panic = Panic::from(PanicKind::Assert).abi_encode();
    let cases: [(&[u8], &str); 4] = [
        (&text, "execution reverted: user error"),
        (&panic, "execution reverted: assert(false)"),
        (&hex!("deadbeef"), "execution reverted"),
        (&[], "execution reverted"),
    ];
    for (data, message) in cases {
        for method in ["eth_call", "eth_estimateGas"] {
            let expected =
                json!({"code": 3, "message": message, "data": Bytes::copy_from_slice(data)});
            assert_eq!(revert_of(&bench, method, data).await, expected);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_call_ends_by_gas_or_by_time() {
    let bench = Bench::new().await;
    let call = json!([{"to": LOOPER}, "latest"]);
    assert_eq!(
        bench.error("eth_call", call.clone()).await,
        (-32000, "out of gas".into())
    );
    let estimate = bench.error("eth_estimateGas", call.clone()).await;
    assert_eq!(
        estimate,
        (-32000, "gas required exceeds allowance (16777216)".into())
    );
    let bench = Bench::with(|config| {
        config.call_gas_max = u64::MAX / 4;
        config.evm_timeout = Duration::from_millis(300);
    })
    .await;
    let started = std::time::Instant::now();
    let (code, message) = bench.error("eth_call", call).await;
    assert_eq!(
        (code, message.as_str()),
        (-32000, "execution aborted (timeout = 300ms)")
    );
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_calls_leave_reads_and_blocks_alone() {
    let bench = std::sync::Arc::new(
        Bench::with(|config| {
            config.call_gas_max = u64::MAX / 4;
            config.evm_timeout = Duration::from_millis(800);
        })
        .await,
    );
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let bench = std::sync::Arc::clone(&bench);
            tokio::spawn(async move { bench.ask("eth_call", json!([{"to": LOOPER}])).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let started = std::time::Instant::now();
    bench.block(&[]).await;
    assert_eq!(
        bench.result("eth_blockNumber", json!([])).await,
        json!("0x1")
    );
    assert!(
        started.elapsed() < Duration::from_millis(600),
        "{:?}",
        started.elapsed()
    );
    for call in calls {
        let response = call.await.expect("answered");
        assert!(response.get("error").is_some(), "{response}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn access_list_names_what_the_call_touches() {
    let bench = Bench::new().await;
    let call = json!({"from": signer(0).address(), "to": READER});
    let answer = bench
        .result("eth_createAccessList", json!([call, "latest"]))
        .await;
    let slot = alloy_primitives::B256::ZERO;
    assert_eq!(
        answer["accessList"],
        json!([{"address": READER, "storageKeys": [slot]}])
    );
    assert!(answer.get("error").is_none());
    let reverting = json!({"from": signer(0).address(), "to": REVERTER, "input": "0x00"});
    let answer = bench
        .result("eth_createAccessList", json!([reverting]))
        .await;
    assert_eq!(answer["error"], "execution reverted");
}

#[tokio::test(flavor = "multi_thread")]
async fn state_overrides_are_read_in_all_their_forms() {
    let bench = Bench::new().await;
    let word = |byte: u8| alloy_primitives::B256::with_last_byte(byte);
    let read = |account: serde_json::Value| {
        let bench = &bench;
        async move {
            let overrides = json!({ READER.to_string(): account });
            bench
                .ask("eth_call", json!([{"to": READER}, "latest", overrides]))
                .await
        }
    };
    assert_eq!(read(json!({})).await["result"], json!(word(77)));
    assert_eq!(
        read(json!({"stateDiff": {word(0).to_string(): word(5)}})).await["result"],
        json!(word(5))
    );
    assert_eq!(
        read(json!({"state": {word(1).to_string(): word(5)}})).await["result"],
        json!(word(0))
    );
    let both = read(json!({"state": {}, "stateDiff": {}})).await;
    assert_eq!(both["error"]["code"], -32602);
    let moved = read(json!({"movePrecompileToAddress": NOBODY})).await;
    assert_eq!(moved["error"]["code"], -32000, "{moved}");
}

#[tokio::test(flavor = "multi_thread")]
async fn contradictory_calls_are_refused() {
    let bench = Bench::new().await;
    for (call, expected) in [
        (
            json!({"to": READER, "data": "0x01", "input": "0x02"}),
            "both \"data\" and \"input\" are set",
        ),
        (
            json!({"to": READER, "gasPrice": "0x1", "maxFeePerGas": "0x1"}),
            "both gasPrice and",
        ),
        (
            json!({"to": READER, "chainId": "0x1"}),
            "chainId does not match node's",
        ),
        (
            json!({"to": READER, "maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x2"}),
            "max priority fee per gas higher",
        ),
    ] {
        let (_, message) = bench.error("eth_call", json!([call, "latest"])).await;
        assert!(message.contains(expected), "{message}");
    }
    assert_eq!(
        bench
            .error("eth_call", json!([{"to": READER}, "0x99"]))
            .await,
        (-32000, "header not found".into())
    );
}
