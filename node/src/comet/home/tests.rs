use super::*;
use crate::config::Config;

#[test]
fn written_config_is_toml_with_the_settings_we_own() {
    let mut config = Config::default();
    config.node.name = "quote \" and backslash \\".to_owned();
    config.consensus.timeout_commit_ms = 200;
    config.consensus.persistent_peers = vec!["a@b:1".to_owned(), "c@d:2".to_owned()];
    let text = render_config(&config, "unix:///run/x/abci.sock");
    let table: toml::Table = text.parse().expect("CometBFT reads TOML");
    let at = |path: &str| {
        let mut value = &toml::Value::Table(table.clone());
        for key in path.split('/') {
            value = &value[key];
        }
        value.clone()
    };
    assert_eq!(at("proxy_app").as_str(), Some("unix:///run/x/abci.sock"));
    assert_eq!(at("moniker").as_str(), Some("quote \" and backslash \\"));
    assert_eq!(at("consensus/timeout_commit").as_str(), Some("200ms"));
    assert_eq!(
        at("consensus/double_sign_check_height").as_integer(),
        Some(0)
    );
    assert_eq!(at("p2p/flush_throttle_timeout").as_str(), Some("10ms"));
    assert_eq!(at("p2p/persistent_peers").as_str(), Some("a@b:1,c@d:2"));
    assert_eq!(at("p2p/addr_book_strict").as_bool(), Some(true));
    assert_eq!(at("tx_index/indexer").as_str(), Some("null"));
    assert_eq!(at("storage/discard_abci_responses").as_bool(), Some(true));
    assert_eq!(
        at("mempool/keep-invalid-txs-in-cache").as_bool(),
        Some(false)
    );
    assert_eq!(
        at("mempool/max_tx_bytes").as_integer(),
        Some(128 * 1024 + 1024)
    );
    assert_eq!(at("instrumentation/prometheus").as_bool(), Some(false));
}

#[test]
fn keys_and_signing_state_are_never_overwritten() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = CometHome::new(folder.path().join("cometbft"));
    let key = keys::KeyPair::generate(&mut rand::rng());
    let new = NewHome {
        node_key: &key,
        validator_key: &key,
        genesis_json: "{}",
    };
    home.create(&new).expect("an empty folder");
    home.check_keys(&Config::default()).expect("just written");
    assert!(home.create(&new).is_err());
}

#[test]
fn a_missing_signing_state_is_not_to_be_made_anew() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let error = check_validator_state(&folder.path().join("state.json")).expect_err("missing");
    assert!(matches!(error, CometError::KeyFile { .. }), "{error}");
    assert!(error.hint().contains("backup"), "{}", error.hint());
}

#[test]
fn damaged_signing_state_stops_the_start() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("state.json");
    for (text, field) in [
        ("", "not JSON"),
        (r#"{"height": 5, "round": 0, "step": 0}"#, "height"),
        (r#"{"height": "5", "step": 0}"#, "round"),
        (r#"{"height": "5", "round": 0, "step": "x"}"#, "step"),
    ] {
        fs::write(&path, text).expect("the folder is ours");
        let error = check_validator_state(&path)
            .expect_err("damaged")
            .to_string();
        assert!(error.contains(field), "{error}");
    }
}
