//! Requests that are wrong: each gets a JSON-RPC error, none brings the server down.

use super::bench::{Bench, NOBODY};
use crate::rpc::methods::METHODS;
use proptest::prelude::*;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_are_named() {
    let bench = Bench::new().await;
    for (method, params, message) in [
        (
            "eth_getBalance",
            json!(["0x12", "latest"]),
            "invalid argument 0: hex string has length 2, want 40 for an address",
        ),
        (
            "eth_getBalance",
            json!([7, "latest"]),
            "invalid argument 0: expected a hex string, found a number",
        ),
        (
            "eth_getBalance",
            json!([]),
            "missing value for required argument 0",
        ),
        (
            "eth_getBalance",
            json!([null]),
            "missing value for required argument 0",
        ),
        (
            "eth_getBalance",
            json!([NOBODY, "latest", 1]),
            "too many arguments, want at most 2",
        ),
        (
            "eth_getBalance",
            json!({"address": NOBODY}),
            "non-array args",
        ),
        (
            "eth_getBalance",
            json!([NOBODY, "2"]),
            "invalid argument 1: hex string without 0x prefix",
        ),
        (
            "eth_getBalance",
            json!([NOBODY, "0x02"]),
            "invalid argument 1: hex number with leading zero digits",
        ),
        (
            "eth_getBalance",
            json!([NOBODY, "0x"]),
            "invalid argument 1: hex string \"0x\"",
        ),
        (
            "eth_getBalance",
            json!([NOBODY, ""]),
            "invalid argument 1: empty hex string",
        ),
        (
            "eth_getBalance",
            json!([NOBODY, "0x10000000000000000"]),
            "invalid argument 1: hex number > 64 bits",
        ),
        (
            "eth_getBalance",
            json!([NOBODY, "LATEST"]),
            "invalid argument 1: hex string without 0x prefix",
        ),
        (
            "eth_getBalance",
            json!([NOBODY, {}]),
            "invalid argument 1: block reference needs blockHash or blockNumber",
        ),
        (
            "eth_getBalance",
            json!([NOBODY, []]),
            "invalid argument 1: expected an object, found an array",
        ),
        (
            "web3_sha3",
            json!(["0x123"]),
            "invalid argument 0: hex string of odd length",
        ),
        (
            "web3_sha3",
            json!(["0xzz"]),
            "invalid argument 0: invalid hex string",
        ),
        (
            "web3_sha3",
            json!(["0xéé"]),
            "invalid argument 0: invalid hex string",
        ),
        (
            "eth_getBlockByNumber",
            json!(["0x1"]),
            "missing value for required argument 1",
        ),
        (
            "eth_getBlockByNumber",
            json!(["0x1", "true"]),
            "invalid argument 1: expected a boolean, found a string",
        ),
        (
            "eth_getTransactionByHash",
            json!(["0x1234"]),
            "invalid argument 0: hex string has length 4, want 64 for a hash",
        ),
        (
            "eth_call",
            json!(["0x"]),
            "invalid argument 0: expected an object, found a string",
        ),
        (
            "eth_call",
            json!([{"to": 1}]),
            "invalid argument 0: to: expected a hex string, found a number",
        ),
        (
            "eth_call",
            json!([{"value": "0x00"}]),
            "invalid argument 0: value: hex number with leading zero digits",
        ),
        (
            "eth_call",
            json!([{"gas": "21000"}]),
            "invalid argument 0: gas: hex string without 0x prefix",
        ),
        (
            "eth_call",
            json!([{"accessList": [{"address": NOBODY, "storageKeys": ["0x1"]}]}]),
            "invalid argument 0: accessList: index 0: storageKeys: index 0: hex string has length 1, want 64 for a hash",
        ),
        (
            "eth_call",
            json!([{}, "latest", {"0x1": {}}]),
            "invalid argument 2: hex string has length 1, want 40 for an address",
        ),
        (
            "eth_call",
            json!([{}, "latest", {}, {"number": 5}]),
            "invalid argument 3: number: expected a hex string, found a number",
        ),
        (
            "eth_getLogs",
            json!([{"address": "0x1"}]),
            "invalid argument 0: address: hex string has length 1, want 40 for an address",
        ),
        (
            "eth_getLogs",
            json!([{"topics": "0x1"}]),
            "invalid argument 0: topics: expected an array, found a string",
        ),
        (
            "eth_getProof",
            json!([NOBODY, "0x0"]),
            "invalid argument 1: expected an array, found a string",
        ),
        (
            "eth_feeHistory",
            json!(["0x1", "latest", ["a"]]),
            "invalid argument 2: index 0: expected a number, found a string",
        ),
    ] {
        assert_eq!(
            bench.error(method, params.clone()).await,
            (-32602, message.into()),
            "{method} {params}"
        );
    }
    let long = format!("0x{}", "0".repeat(65));
    let (code, message) = bench
        .error("eth_getStorageAt", json!([NOBODY, long, "latest"]))
        .await;
    assert_eq!(
        (
            code,
            message.contains("storage key too long (want at most 32 bytes)")
        ),
        (-32602, true),
        "{message}"
    );
    let many: Vec<&str> = vec!["0x0"; 1025];
    assert_eq!(
        bench.error("eth_getProof", json!([NOBODY, many])).await.0,
        -32602
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_bodies_get_json_rpc_errors() {
    let bench = Bench::new().await;
    for body in [
        "",
        "{",
        "null",
        "7",
        "\"text\"",
        "[]",
        "{}",
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"eth_chainId"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
    ] {
        let (_, text) = bench.post(body).await;
        let response: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{body}: {error}: {text}"));
        let code = response["error"]["code"].as_i64();
        assert!(matches!(code, Some(-32700 | -32600)), "{body}: {response}");
    }
    for params in [json!(7), json!("text"), json!(true), json!({})] {
        assert_eq!(
            bench.error("eth_chainId", params).await,
            (-32602, "non-array args".into())
        );
    }
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{}{}]}}"#,
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    let (_, text) = bench.post(deep).await;
    assert!(text.contains("error"), "{text}");
    let (_, text) = bench
        .post(r#"{"jsonrpc":"2.0","id":"a","method":"eth_chainId","params":null}"#)
        .await;
    assert_eq!(text, r#"{"jsonrpc":"2.0","id":"a","result":"0x7a69"}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_method_is_said_as_geth_says_it() {
    let bench = Bench::new().await;
    let expected = (
        -32601,
        "the method eth_nothing does not exist/is not available".to_owned(),
    );
    assert_eq!(bench.error("eth_nothing", json!([])).await, expected);
    for name in [
        "admin_peers",
        "debug_traceTransaction",
        "personal_sign",
        "eth_sign",
        "miner_start",
    ] {
        assert_eq!(
            bench.error(name, json!([])).await.0,
            -32601,
            "{name} is not served"
        );
    }
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_nothing"});
    let known = json!({"jsonrpc": "2.0", "id": 2, "method": "eth_chainId"});
    let (_, text) = bench.post(json!([call, known]).to_string()).await;
    let responses: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(responses[0]["error"]["message"], expected.1);
    assert_eq!(responses[1]["result"], "0x7a69");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
        "0x[0-9a-f]{0,70}".prop_map(Value::from),
        prop_oneof![
            Just("latest"),
            Just("pending"),
            Just("earliest"),
            Just("0x0"),
            Just("0x1")
        ]
        .prop_map(Value::from),
        Just(json!(NOBODY)),
        Just(json!(super::bench::LOGGER)),
        Just(json!(alloy_primitives::B256::ZERO)),
    ];
    let key = prop_oneof![
        "[a-z]{1,6}",
        Just("to".to_owned()),
        Just("from".to_owned()),
        Just("input".to_owned()),
        Just("gas".to_owned()),
        Just("value".to_owned()),
        Just("address".to_owned()),
        Just("topics".to_owned()),
        Just("fromBlock".to_owned()),
        Just("blockHash".to_owned()),
        Just("accessList".to_owned()),
        Just("authorizationList".to_owned()),
        Just("stateDiff".to_owned()),
        Just(NOBODY.to_string()),
    ];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..6).prop_map(Value::from_iter),
        ]
    })
}

/// Any arguments to any method: an answer, never a crash.
#[test]
fn any_arguments_get_an_answer() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let bench = runtime.block_on(Bench::with(|config| {
        config.evm_timeout = std::time::Duration::from_millis(500)
    }));
    let names: Vec<&str> = METHODS
        .iter()
        .map(|method| method.name)
        .chain(["eth_subscribe", "eth_unsubscribe"])
        .collect();
    let arguments = (
        prop::sample::select(names),
        prop::collection::vec(any_json(), 0..5),
    );
    proptest!(ProptestConfig::with_cases(2_000), |((method, params) in arguments)| {
        let response = runtime.block_on(bench.ask(method, json!(params)));
        prop_assert!(response.get("result").is_some() != response.get("error").is_some(), "{}", response);
        prop_assert_ne!(&response["error"]["code"], &json!(-32603), "{} {}: {}", method, json!(params), response);
    });
}

/// Any bytes as a body: a JSON answer, or none to a notification.
#[test]
fn any_body_gets_an_answer() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let bench = runtime.block_on(Bench::new());
    let body = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        "[\\[\\]{}\",:a-z0-9\\\\]{0,80}".prop_map(String::into_bytes),
        any_json().prop_map(|json| json.to_string().into_bytes()),
    ];
    proptest!(ProptestConfig::with_cases(500), |(body in body)| {
        let (status, text) = runtime.block_on(bench.post(body));
        let answered = serde_json::from_str::<Value>(&text).is_ok() || text.is_empty();
        prop_assert!(answered, "{}: {}", status, text);
    });
    assert_eq!(
        runtime.block_on(bench.result("eth_chainId", json!([]))),
        json!("0x7a69")
    );
}
