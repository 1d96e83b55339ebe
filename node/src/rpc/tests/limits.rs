//! What the server refuses, and what it is set to when nobody says otherwise.

use super::bench::{Bench, WebSocket};
use crate::rpc::RpcConfig;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

#[test]
fn defaults_listen_on_loopback_and_trust_no_page() {
    let config = RpcConfig::default();
    assert!(config.http.expect("HTTP is on").ip().is_loopback());
    assert!(config.ws.expect("WebSocket is on").ip().is_loopback());
    assert!(
        config.cors_origins.is_empty()
            && config.allowed_hosts.is_empty()
            && config.accounts.is_empty()
    );
    assert_eq!(config.call_gas_max, 50_000_000);
}

/// The configuration file and the server must not drift apart.
#[test]
fn defaults_are_those_of_the_configuration_file() {
    let of_file = crate::config::Config::default().rpc_options();
    assert_eq!(
        format!("{of_file:?}"),
        format!("{:?}", RpcConfig::default())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_port_serves_http_and_web_socket() {
    let free =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    let address: SocketAddr = free.expect("a free port");
    let bench =
        Bench::with(|config| (config.http, config.ws) = (Some(address), Some(address))).await;
    assert_eq!(bench.server.addresses.http, bench.server.addresses.ws);
    assert_eq!(
        bench.result("eth_chainId", json!([])).await,
        json!("0x7a69")
    );
    let mut socket = bench.web_socket().await;
    assert_eq!(
        socket.ask("eth_chainId", json!([])).await["result"],
        "0x7a69"
    );
    let heads = socket.subscribe(json!(["newHeads"])).await;
    bench.block(&[]).await;
    assert_eq!(socket.next(&heads).await["number"], "0x1");
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_port_is_an_error_that_names_it() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = taken.local_addr().expect("an address");
    let bench = Bench::new().await;
    let config = RpcConfig {
        http: Some(address),
        ws: None,
        ..RpcConfig::default()
    };
    let (_status, status) = tokio::sync::watch::channel(Default::default());
    let refused = crate::rpc::serve(bench.chain.clone(), config, status)
        .await
        .expect_err("the port is taken");
    assert!(
        refused.to_string().contains(&address.to_string()),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_server_frees_its_port() {
    let Bench { server, chain, .. } = Bench::new().await;
    let address = server.addresses.http.expect("HTTP is served");
    server.stop().await;
    let config = RpcConfig {
        http: Some(address),
        ws: None,
        ..RpcConfig::default()
    };
    let (_status, status) = tokio::sync::watch::channel(Default::default());
    crate::rpc::serve(chain, config, status)
        .await
        .expect("the port is free")
        .stop()
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_batches_and_answers_are_refused() {
    let bench = Bench::with(|config| {
        config.request_bytes_max = 10_000;
        config.response_bytes_max = 2_000;
        config.batch_calls_max = 3;
    })
    .await;
    let large = json!({"jsonrpc": "2.0", "id": 1, "method": "web3_sha3", "params": [format!("0x{}", "00".repeat(6000))]});
    let (status, _) = bench.post(large.to_string()).await;
    assert_eq!(status, 413);
    let one = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"});
    let (_, text) = bench.post(json!([one, one, one]).to_string()).await;
    assert_eq!(
        serde_json::from_str::<Value>(&text)
            .expect("JSON")
            .as_array()
            .expect("a batch")
            .len(),
        3
    );
    let (_, text) = bench.post(json!([one, one, one, one]).to_string()).await;
    assert_eq!(
        serde_json::from_str::<Value>(&text).expect("JSON")["error"]["code"],
        -32010,
        "{text}"
    );
    bench
        .block(&[super::bench::raw(
            &super::bench::sending(0, 0, super::bench::LOGGER).dynamic(),
        )])
        .await;
    let (code, _) = bench.error("eth_getBlockReceipts", json!(["0x1"])).await;
    assert_eq!(code, -32008);
}

async fn status_of(bench: &Bench, headers: &[(&str, &str)]) -> (u16, Option<String>) {
    let address = bench.server.addresses.http.expect("HTTP is served");
    let mut request = reqwest::Client::new()
        .post(format!("http://{address}"))
        .header("content-type", "application/json")
        .body(r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.expect("answered");
    let origin = response.headers().get("access-control-allow-origin");
    (
        response.status().as_u16(),
        origin
            .and_then(|origin| origin.to_str().ok())
            .map(str::to_owned),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_hosts_are_refused_unless_listed() {
    let bench = Bench::with(|config| config.allowed_hosts = vec!["node.example".into()]).await;
    for (host, status) in [
        ("localhost:1", 200),
        ("127.0.0.1", 200),
        ("[::1]:8545", 200),
        ("NODE.example:8545", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
    ] {
        assert_eq!(
            status_of(&bench, &[("host", host)]).await.0,
            status,
            "{host}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_get_cors_headers_and_sockets_only_if_listed() {
    let page = "https://wallet.example";
    let bench = Bench::with(|config| config.cors_origins = vec![page.into()]).await;
    assert_eq!(
        status_of(&bench, &[("origin", page)]).await,
        (200, Some(page.into()))
    );
    assert_eq!(
        status_of(&bench, &[("origin", "https://evil.example")]).await,
        (200, None)
    );
    let preflight = async |origin: &str| {
        let address = bench.server.addresses.http.expect("HTTP is served");
        let request =
            reqwest::Client::new().request(reqwest::Method::OPTIONS, format!("http://{address}"));
        let response = request
            .header("origin", origin)
            .send()
            .await
            .expect("answered");
        response
            .headers()
            .contains_key("access-control-allow-origin")
    };
    assert!(preflight(page).await);
    assert!(!preflight("https://evil.example").await);
    let upgrade = async |origin: &str| {
        let address = bench.server.addresses.ws.expect("WebSocket is served");
        let request = reqwest::Client::new()
            .get(format!("http://{address}"))
            .header("origin", origin)
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        request.send().await.expect("answered").status().as_u16()
    };
    assert_eq!(upgrade(page).await, 101);
    assert_eq!(upgrade("https://evil.example").await, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_capped() {
    let bench = Bench::with(|config| config.connections_max = 2).await;
    let address = bench.server.addresses.ws.expect("WebSocket is served");
    let mut first = WebSocket::open(address).await;
    let mut second = WebSocket::open(address).await;
    for socket in [&mut first, &mut second] {
        assert_eq!(
            socket.ask("eth_chainId", json!([])).await["result"],
            "0x7a69"
        );
    }
    let third = reqwest::Client::new()
        .get(format!("http://{address}"))
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .send()
        .await;
    assert!(
        third.map_or(true, |response| response.status().as_u16() == 429),
        "a third connection was served"
    );
}

/// Sends `text`, then nothing; returns what the server says before it closes.
async fn trickle(address: SocketAddr, text: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut socket = tokio::net::TcpStream::connect(address)
        .await
        .expect("the server accepts");
    socket.write_all(text.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    tokio::time::timeout(
        std::time::Duration::from_secs(5),
        socket.read_to_string(&mut answer),
    )
    .await
    .expect("the server closes in time")
    .expect("text");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_trickle_are_cut_off() {
    let bench = Bench::with(|config| {
        config.header_timeout = std::time::Duration::from_millis(300);
        config.request_timeout = std::time::Duration::from_millis(300);
    })
    .await;
    for address in [bench.server.addresses.http, bench.server.addresses.ws] {
        let address = address.expect("both are served");
        trickle(address, "").await;
        trickle(address, "POST / HTTP/1.1\r\nhost: localhost\r\n").await;
    }
    let http = bench.server.addresses.http.expect("HTTP is served");
    let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 90\r\n\r\n{";
    assert!(trickle(http, head).await.starts_with("HTTP/1.1 408"));
    // A WebSocket may stay silent for longer.
    let mut socket = bench.web_socket().await;
    tokio::time::sleep(std::time::Duration::from_millis(900)).await;
    assert_eq!(
        socket.ask("eth_chainId", json!([])).await["result"],
        "0x7a69"
    );
}
