//! Blocks and receipts: one road for each value, and a block never changes once it is visible.

use super::bench::{Bench, LOGGER, NOBODY, raw, sending};
use alloy_primitives::{B256, U256, keccak256};
use serde_json::{Value, json};

fn number(value: &Value) -> u64 {
    let text = value.as_str().expect("a quantity");
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("hexadecimal")
}

/// A block with a plain transfer and a call that emits three logs, then one with two such calls.
async fn two_blocks(bench: &Bench) {
    let mut transfer = sending(0, 0, NOBODY);
    transfer.gas_limit = 21_000;
    let transfer = transfer.dynamic();
    bench
        .block(&[raw(&transfer), raw(&sending(1, 0, LOGGER).legacy())])
        .await;
    bench
        .block(&[
            raw(&sending(0, 1, LOGGER).dynamic()),
            raw(&sending(1, 1, LOGGER).with_access_list()),
        ])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d01_cumulative_gas_is_the_running_sum_in_both_receipt_methods() {
    let bench = Bench::new().await;
    two_blocks(&bench).await;
    let block = bench
        .result("eth_getBlockByNumber", json!(["0x1", false]))
        .await;
    let all = bench.result("eth_getBlockReceipts", json!(["0x1"])).await;
    let mut sum = 0;
    for (index, hash) in block["transactions"]
        .as_array()
        .expect("hashes")
        .iter()
        .enumerate()
    {
        let single = bench
            .result("eth_getTransactionReceipt", json!([hash]))
            .await;
        assert_eq!(single, all[index]);
        sum += number(&single["gasUsed"]);
        assert_eq!(number(&single["cumulativeGasUsed"]), sum);
    }
    assert_eq!(number(&all[0]["gasUsed"]), 21_000);
    assert_eq!(number(&block["gasUsed"]), sum);
}

#[tokio::test(flavor = "multi_thread")]
async fn d02_every_answer_decodes_as_strict_types() {
    let bench = Bench::new().await;
    two_blocks(&bench).await;
    bench
        .block(&[raw(&sending(0, 2, NOBODY).set_code(3, 0))])
        .await;
    for height in 0..=3_u64 {
        let full = bench
            .result(
                "eth_getBlockByNumber",
                json!([format!("{height:#x}"), true]),
            )
            .await;
        let block: alloy_rpc_types_eth::Block =
            serde_json::from_value(full.clone()).expect("a block");
        assert_eq!(
            block.header.inner.hash_slow(),
            block.header.hash,
            "the fields make the hash"
        );
        assert!(block.header.size.is_some());
        for key in [
            "size",
            "withdrawals",
            "withdrawalsRoot",
            "uncles",
            "parentBeaconBlockRoot",
            "requestsHash",
        ] {
            assert!(full.get(key).is_some(), "{key}");
        }
        for transaction in full["transactions"].as_array().expect("full transactions") {
            let decoded: alloy_rpc_types_eth::Transaction =
                serde_json::from_value(transaction.clone()).expect("a transaction");
            assert_eq!(decoded.block_timestamp, Some(block.header.timestamp));
            let hash = &transaction["hash"];
            assert_eq!(
                &bench
                    .result("eth_getTransactionByHash", json!([hash]))
                    .await,
                transaction
            );
            let receipt = bench
                .result("eth_getTransactionReceipt", json!([hash]))
                .await;
            let decoded: alloy_rpc_types_eth::TransactionReceipt =
                serde_json::from_value(receipt.clone()).expect("a receipt");
            assert!(decoded.status());
            for key in [
                "gasUsed",
                "effectiveGasPrice",
                "contractAddress",
                "to",
                "type",
                "logsBloom",
                "logs",
            ] {
                assert!(receipt.get(key).is_some(), "{key}");
            }
            assert_eq!(receipt["type"], transaction["type"]);
            assert_eq!(receipt["effectiveGasPrice"], transaction["gasPrice"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn created_contract_is_named_in_the_receipt() {
    let bench = Bench::new().await;
    let mut create = sending(0, 0, NOBODY);
    create.to = alloy_primitives::TxKind::Create;
    create.input = alloy_primitives::hex!("60015ff3").into();
    let create = create.dynamic();
    bench.block(&[raw(&create)]).await;
    let receipt = bench
        .result("eth_getTransactionReceipt", json!([create.tx_hash()]))
        .await;
    assert_eq!(receipt["to"], Value::Null);
    let address = receipt["contractAddress"].as_str().expect("an address");
    assert_eq!(
        bench
            .result("eth_getCode", json!([address, "latest"]))
            .await,
        json!("0x00")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn d03_log_index_counts_over_the_whole_block() {
    let bench = Bench::new().await;
    two_blocks(&bench).await;
    let expected: Vec<Value> = (0..6).map(|index| json!(format!("{index:#x}"))).collect();
    let receipts = bench.result("eth_getBlockReceipts", json!(["0x2"])).await;
    let of_receipts: Vec<Value> = receipts
        .as_array()
        .expect("receipts")
        .iter()
        .flat_map(|receipt| receipt["logs"].as_array().expect("logs").clone())
        .collect();
    assert_eq!(
        of_receipts
            .iter()
            .map(|log| log["logIndex"].clone())
            .collect::<Vec<_>>(),
        expected
    );
    let logs = bench
        .result(
            "eth_getLogs",
            json!([{"fromBlock": "0x2", "toBlock": "0x2"}]),
        )
        .await;
    assert_eq!(logs, json!(of_receipts));
    let second = bench
        .result(
            "eth_getTransactionReceipt",
            json!([receipts[1]["transactionHash"]]),
        )
        .await;
    assert_eq!(second["logs"][0]["logIndex"], "0x3");
}

#[tokio::test(flavor = "multi_thread")]
async fn d05_transaction_that_is_invalid_at_execution_leaves_the_block_readable() {
    let bench = Bench::new().await;
    let good = sending(0, 0, LOGGER).dynamic();
    let nonce_used = sending(0, 0, NOBODY).dynamic();
    let mut poor = sending(1, 0, NOBODY);
    poor.value = U256::MAX >> 8;
    let poor = poor.dynamic();
    let last = sending(2, 0, LOGGER).dynamic();
    let results = bench
        .block(&[raw(&good), raw(&nonce_used), raw(&poor), raw(&last)])
        .await;
    assert_eq!(
        results.iter().map(|result| result.code).collect::<Vec<_>>(),
        [0, 100, 102, 0]
    );
    let block = bench
        .result("eth_getBlockByNumber", json!(["latest", true]))
        .await;
    assert_eq!(
        block["transactions"]
            .as_array()
            .expect("transactions")
            .len(),
        2
    );
    assert_eq!(block["transactions"][1]["hash"], json!(last.tx_hash()));
    assert_eq!(block["transactions"][1]["transactionIndex"], "0x1");
    let receipts = bench
        .result("eth_getBlockReceipts", json!(["latest"]))
        .await;
    assert_eq!(receipts.as_array().expect("receipts").len(), 2);
    assert_eq!(
        bench
            .result("eth_getTransactionReceipt", json!([poor.tx_hash()]))
            .await,
        Value::Null
    );
    assert_eq!(
        bench
            .result("eth_getTransactionByHash", json!([poor.tx_hash()]))
            .await,
        Value::Null
    );
    assert_eq!(
        bench
            .result("eth_getBlockTransactionCountByNumber", json!(["latest"]))
            .await,
        json!("0x2")
    );
    assert_eq!(
        bench
            .result("eth_getLogs", json!([{}]))
            .await
            .as_array()
            .expect("logs")
            .len(),
        6
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn d06_visible_block_never_changes() {
    let bench = std::sync::Arc::new(Bench::new().await);
    let polling = std::sync::Arc::clone(&bench);
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let poll = tokio::spawn(async move {
        let mut seen = std::collections::BTreeMap::new();
        while !*stopped.borrow() {
            let block = polling
                .result("eth_getBlockByNumber", json!(["latest", true]))
                .await;
            let known = seen
                .entry(number(&block["number"]))
                .or_insert_with(|| block.clone());
            assert_eq!(*known, block);
        }
        seen
    });
    for nonce in 0..20 {
        bench
            .block(&[
                raw(&sending(0, nonce, LOGGER).dynamic()),
                raw(&sending(1, nonce, NOBODY).legacy()),
            ])
            .await;
    }
    stop.send(true).expect("the poller listens");
    let seen = poll.await.expect("the poller ends well");
    assert!(seen.len() > 1, "the poller saw blocks");
    for (height, block) in seen {
        let again = bench
            .result(
                "eth_getBlockByNumber",
                json!([format!("{height:#x}"), true]),
            )
            .await;
        assert_eq!(again, block);
        let by_hash = bench
            .result("eth_getBlockByHash", json!([block["hash"], true]))
            .await;
        assert_eq!(by_hash, block);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_and_references_name_blocks() {
    let bench = Bench::new().await;
    two_blocks(&bench).await;
    let latest = bench
        .result("eth_getBlockByNumber", json!(["latest", false]))
        .await;
    assert_eq!(latest["number"], "0x2");
    for tag in ["safe", "finalized", "pending", "0x2"] {
        assert_eq!(
            bench
                .result("eth_getBlockByNumber", json!([tag, false]))
                .await,
            latest,
            "{tag}"
        );
    }
    let earliest = bench
        .result("eth_getBlockByNumber", json!(["earliest", false]))
        .await;
    assert_eq!(earliest["number"], "0x0");
    assert_eq!(
        bench
            .result("eth_getBlockByNumber", json!(["0x3", false]))
            .await,
        Value::Null
    );
    let hash = &latest["hash"];
    let sender = json!(super::bench::signer(0).address());
    let now = bench
        .result("eth_getTransactionCount", json!([sender, "latest"]))
        .await;
    assert_eq!(now, json!("0x2"));
    for reference in [
        json!(hash),
        json!({"blockHash": hash}),
        json!({"blockHash": hash, "requireCanonical": true}),
        json!({"blockNumber": "0x2"}),
        json!({"blockNumber": "latest"}),
    ] {
        assert_eq!(
            bench
                .result("eth_getTransactionCount", json!([sender, reference]))
                .await,
            now,
            "{reference}"
        );
    }
    let before = bench
        .result(
            "eth_getTransactionCount",
            json!([sender, {"blockNumber": "0x1"}]),
        )
        .await;
    assert_eq!(before, json!("0x1"));
    let both = json!([sender, {"blockHash": hash, "blockNumber": "0x2"}]);
    assert_eq!(bench.error("eth_getTransactionCount", both).await.0, -32602);
    let unknown = json!([sender, {"blockHash": B256::repeat_byte(1), "requireCanonical": true}]);
    assert_eq!(
        bench.error("eth_getTransactionCount", unknown).await,
        (-32000, "header for hash not found".into())
    );
    assert_eq!(
        bench.error("eth_getBalance", json!([sender, "0x3"])).await,
        (-32000, "header not found".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn proof_verifies_against_the_state_root_of_its_block() {
    let bench = Bench::new().await;
    two_blocks(&bench).await;
    for (height, address, slots) in [
        (1_u64, LOGGER, json!([])),
        (2, super::bench::READER, json!(["0x0", B256::ZERO])),
    ] {
        let tag = format!("{height:#x}");
        let header = bench
            .result("eth_getBlockByNumber", json!([tag, false]))
            .await;
        let root: B256 = serde_json::from_value(header["stateRoot"].clone()).expect("a root");
        let proof = bench
            .result("eth_getProof", json!([address, slots, tag]))
            .await;
        let decoded: alloy_rpc_types_eth::EIP1186AccountProofResponse =
            serde_json::from_value(proof.clone()).expect("a proof");
        let account = alloy_trie::TrieAccount {
            nonce: decoded.nonce,
            balance: decoded.balance,
            storage_root: decoded.storage_hash,
            code_hash: decoded.code_hash,
        };
        let path = alloy_trie::Nibbles::unpack(keccak256(address));
        alloy_trie::proof::verify_proof(
            root,
            path,
            Some(alloy_rlp::encode(account)),
            &decoded.account_proof,
        )
        .expect("the account proof verifies");
        for slot in &decoded.storage_proof {
            assert_eq!(slot.value, U256::from(77));
            let path = alloy_trie::Nibbles::unpack(keccak256(B256::ZERO));
            let leaf = Some(alloy_rlp::encode(slot.value));
            alloy_trie::proof::verify_proof(decoded.storage_hash, path, leaf, &slot.proof)
                .expect("the storage proof verifies");
        }
        if height == 2 {
            assert_eq!(
                proof["storageProof"][0]["key"], "0x0",
                "as the caller wrote it"
            );
            assert_eq!(proof["storageProof"][1]["key"], json!(B256::ZERO));
        }
    }
}
