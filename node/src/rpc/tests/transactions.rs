//! Sending, the pool's view, fees.

use super::bench::{Bench, LOGGER, NOBODY, raw, sending, signer};
use alloy_consensus::{SignableTransaction, TxEnvelope};
use alloy_primitives::{Bytes, Signature, U256, uint};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn sent_transaction_is_pending_then_in_a_block() {
    let bench = Bench::new().await;
    let send = sending(0, 0, LOGGER).dynamic();
    let hash = bench
        .result("eth_sendRawTransaction", json!([raw(&send)]))
        .await;
    assert_eq!(hash, json!(send.tx_hash()));
    let pending = bench
        .result("eth_getTransactionByHash", json!([hash]))
        .await;
    let decoded: alloy_rpc_types_eth::Transaction =
        serde_json::from_value(pending.clone()).expect("a transaction");
    assert_eq!(
        (
            decoded.block_hash,
            decoded.block_number,
            decoded.transaction_index
        ),
        (None, None, None)
    );
    for key in ["blockHash", "blockNumber", "transactionIndex"] {
        assert_eq!(
            pending.get(key),
            Some(&Value::Null),
            "{key} is null, not absent"
        );
    }
    assert_eq!(
        bench
            .result("eth_getTransactionReceipt", json!([hash]))
            .await,
        Value::Null
    );
    assert_eq!(
        bench.result("txpool_status", json!([])).await,
        json!({"pending": "0x1", "queued": "0x0"})
    );
    let sender = signer(0).address().to_string();
    let content = bench.result("txpool_content", json!([])).await;
    assert_eq!(
        content["pending"][&sender.to_lowercase()]["0"]["hash"],
        hash,
        "{content}"
    );
    let from = bench.result("txpool_contentFrom", json!([sender])).await;
    assert_eq!(from["pending"]["0"]["hash"], hash);
    bench.block(&[raw(&send)]).await;
    let mined = bench
        .result("eth_getTransactionByHash", json!([hash]))
        .await;
    assert_eq!(mined["blockNumber"], "0x1");
    let by_index = bench
        .result(
            "eth_getTransactionByBlockNumberAndIndex",
            json!(["0x1", "0x0"]),
        )
        .await;
    assert_eq!(by_index, mined);
    let by_hash = json!([mined["blockHash"], "0x0"]);
    assert_eq!(
        bench
            .result("eth_getTransactionByBlockHashAndIndex", by_hash)
            .await,
        mined
    );
    let past = bench
        .result(
            "eth_getTransactionByBlockNumberAndIndex",
            json!(["0x1", "0xffffffffffffffff"]),
        )
        .await;
    assert_eq!(past, Value::Null);
}

const SECP256K1_ORDER: U256 =
    uint!(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256);

#[tokio::test(flavor = "multi_thread")]
async fn d14_malleated_signature_and_trailing_bytes_are_refused() {
    let bench = Bench::new().await;
    let TxEnvelope::Eip1559(signed) = sending(0, 0, NOBODY).dynamic() else {
        panic!("type 2")
    };
    let signature = *signed.signature();
    let other = Signature::new(
        signature.r(),
        SECP256K1_ORDER - signature.s(),
        !signature.v(),
    );
    let malleated: TxEnvelope = signed.tx().clone().into_signed(other).into();
    let (code, message) = bench
        .error("eth_sendRawTransaction", json!([raw(&malleated)]))
        .await;
    assert_eq!(code, -32000);
    assert!(message.contains("invalid"), "{message}");
    for envelope in [
        sending(0, 0, NOBODY).dynamic(),
        sending(0, 0, NOBODY).legacy(),
    ] {
        let mut trailing = raw(&envelope).to_vec();
        trailing.push(0);
        let (code, _) = bench
            .error("eth_sendRawTransaction", json!([Bytes::from(trailing)]))
            .await;
        assert_eq!(code, -32000);
        bench
            .error("eth_getTransactionByHash", json!(["0x00"]))
            .await;
    }
    assert_eq!(
        bench.result("txpool_status", json!([])).await["pending"],
        "0x0"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn d20_pending_count_is_the_next_usable_nonce() {
    let bench = Bench::new().await;
    let sender = signer(0).address();
    let pending = json!([sender, "pending"]);
    for nonce in 0..4 {
        let count = bench
            .result("eth_getTransactionCount", pending.clone())
            .await;
        assert_eq!(count, json!(format!("{nonce:#x}")));
        bench
            .result(
                "eth_sendRawTransaction",
                json!([raw(&sending(0, nonce, NOBODY).dynamic())]),
            )
            .await;
    }
    bench
        .result(
            "eth_sendRawTransaction",
            json!([raw(&sending(0, 9, NOBODY).dynamic())]),
        )
        .await;
    assert_eq!(
        bench
            .result("eth_getTransactionCount", pending.clone())
            .await,
        json!("0x4"),
        "not over the gap"
    );
    assert_eq!(
        bench
            .result("eth_getTransactionCount", json!([sender, "latest"]))
            .await,
        json!("0x0")
    );
    let idle = bench
        .result("eth_getTransactionCount", json!([NOBODY, "pending"]))
        .await;
    assert_eq!(idle, json!("0x0"));
    assert_eq!(
        bench.result("txpool_status", json!([])).await,
        json!({"pending": "0x4", "queued": "0x1"})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_have_the_texts_that_clients_know() {
    let bench = Bench::new().await;
    bench.block(&[raw(&sending(0, 0, NOBODY).dynamic())]).await;
    let kept = sending(0, 1, NOBODY);
    bench
        .result("eth_sendRawTransaction", json!([raw(&kept.dynamic())]))
        .await;
    let mut underpriced = kept.clone();
    underpriced.value = U256::ONE;
    let mut poor = sending(1, 0, NOBODY);
    poor.value = U256::MAX >> 1;
    let mut thin = sending(1, 0, NOBODY);
    thin.gas_limit = 20_000;
    let mut greedy = sending(1, 0, NOBODY);
    greedy.gas_limit = (1 << 24) + 1;
    let mut blob = raw(&sending(1, 0, NOBODY).dynamic()).to_vec();
    blob[0] = 3;
    for (transaction, text) in [
        (
            raw(&sending(0, 0, NOBODY).dynamic()),
            "nonce too low: next nonce 1, tx nonce 0",
        ),
        (raw(&kept.dynamic()), "already known"),
        (
            raw(&underpriced.dynamic()),
            "replacement transaction underpriced",
        ),
        (
            raw(&poor.dynamic()),
            "insufficient funds for gas * price + value",
        ),
        (raw(&thin.dynamic()), "intrinsic gas too low"),
        (raw(&greedy.dynamic()), "transaction gas limit too high"),
        (blob.into(), "transaction type not supported"),
        (Bytes::new(), ""),
        (vec![0xc0].into(), ""),
    ] {
        let (code, message) = bench
            .error("eth_sendRawTransaction", json!([transaction]))
            .await;
        assert_eq!(code, -32000, "{message}");
        assert!(message.starts_with(text), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fee_history_has_geths_shape() {
    let bench = Bench::new().await;
    let mut cheap = sending(0, 0, NOBODY);
    cheap.tip_wei = 5;
    let mut dear = sending(1, 0, NOBODY);
    dear.tip_wei = 70;
    bench
        .block(&[raw(&dear.dynamic()), raw(&cheap.dynamic())])
        .await;
    bench.block(&[]).await;
    let history = bench
        .result("eth_feeHistory", json!(["0x2", "latest", [0, 50, 100]]))
        .await;
    assert_eq!(history["oldestBlock"], "0x1");
    assert_eq!(
        history["reward"],
        json!([["0x5", "0x5", "0x46"], ["0x0", "0x0", "0x0"]])
    );
    for (key, length) in [
        ("baseFeePerGas", 3),
        ("gasUsedRatio", 2),
        ("baseFeePerBlobGas", 3),
        ("blobGasUsedRatio", 2),
    ] {
        assert_eq!(
            history[key].as_array().expect("a list").len(),
            length,
            "{key}"
        );
    }
    let block = bench
        .result("eth_getBlockByNumber", json!(["0x1", false]))
        .await;
    assert_eq!(history["baseFeePerGas"][0], block["baseFeePerGas"]);
    let _: alloy_rpc_types_eth::FeeHistory =
        serde_json::from_value(history).expect("a fee history");
    // More blocks than there are; a decimal count; no percentiles.
    let history = bench
        .result("eth_feeHistory", json!([5000, "latest"]))
        .await;
    assert_eq!(history["oldestBlock"], "0x0");
    assert!(history.get("reward").is_none());
    let beyond = bench
        .error("eth_feeHistory", json!(["0x1", "0x9", []]))
        .await;
    assert_eq!(
        beyond,
        (
            -32000,
            "request beyond head block: requested 9, head 2".into()
        )
    );
    for percentiles in [json!([101]), json!([-1]), json!([50, 10])] {
        let (code, message) = bench
            .error("eth_feeHistory", json!(["0x1", "latest", percentiles]))
            .await;
        assert_eq!(code, -32000);
        assert!(
            message.starts_with("invalid reward percentile"),
            "{message}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn suggested_fees_get_a_transaction_in() {
    let bench = Bench::new().await;
    let fee = |value: Value| {
        serde_json::from_value::<U256>(value)
            .expect("a quantity")
            .to::<u128>()
    };
    let mut send = sending(0, 0, NOBODY);
    send.fee_cap_wei = fee(bench.result("eth_gasPrice", json!([])).await);
    send.tip_wei = fee(bench.result("eth_maxPriorityFeePerGas", json!([])).await);
    assert!(send.tip_wei <= send.fee_cap_wei);
    let results = bench.block(&[raw(&send.dynamic())]).await;
    assert_eq!(results[0].code, 0);
}
