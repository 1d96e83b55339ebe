use super::*;

fn parse(text: &str) -> Result<Config, ConfigErrors> {
    Config::parse(text, [])
}

fn errors(text: &str) -> Vec<ConfigError> {
    parse(text).expect_err("this file holds a mistake").0
}

#[test]
fn written_file_parses_to_the_defaults() {
    let text = document::render(&Config::default());
    assert_eq!(parse(&text), Ok(Config::default()));
}

#[test]
fn written_file_documents_every_key() {
    let text = document::render(&Config::default());
    let lines: Vec<&str> = text.lines().collect();
    let mut keys = 0;
    for (index, line) in lines.iter().enumerate() {
        let key = line.trim_start_matches("# ");
        if key
            .split_once(" =")
            .is_some_and(|(name, _)| !name.contains(' '))
        {
            keys += 1;
            assert!(
                lines[index - 1].starts_with("# "),
                "no comment above {line}"
            );
        }
    }
    let known = NodeConfig::KEYS.len()
        + ConsensusConfig::KEYS.len()
        + StorageConfig::KEYS.len()
        + PoolConfig::KEYS.len()
        + RpcConfig::KEYS.len()
        + LogConfig::KEYS.len();
    assert_eq!(keys, known);
}

#[test]
fn written_file_keeps_changed_values() {
    let mut config = Config::default();
    config.node.name = "a \"quoted\" name".to_owned();
    config.consensus.cometbft_binary = Some("/opt/comet bft".into());
    config.consensus.persistent_peers = vec![format!("{}@node1.example:26656", "ab".repeat(20))];
    config.storage.durability = DurabilityMode::Interval;
    config.rpc.ws_address = config.rpc.http_address;
    assert_eq!(parse(&document::render(&config)), Ok(config));
}

#[test]
fn reports_all_errors_at_once() {
    let found = errors(
        "[node]\nnam = \"x\"\n[consensus]\nmode = \"sometimes\"\ntimeout_commit_ms = 0\n[rpc]\nbatch_max = \"many\"\n[extra]\na = 1\n",
    );
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 5, "{shown:#?}");
    assert_eq!(
        found[0],
        ConfigError::UnknownKey {
            key: "node.nam".to_owned(),
            suggestion: Some("name".to_owned())
        }
    );
    assert!(matches!(&found[1], ConfigError::WrongType { key, .. } if key == "consensus.mode"));
    assert!(matches!(&found[2], ConfigError::WrongType { key, .. } if key == "rpc.batch_max"));
    assert!(matches!(&found[3], ConfigError::UnknownSection { section, .. } if section == "extra"));
    assert!(
        matches!(&found[4], ConfigError::Invalid { key, .. } if *key == "consensus.timeout_commit_ms")
    );
    assert!(found.iter().all(|error| !error.hint().is_empty()));
}

#[test]
fn environment_overrides_a_key() {
    let config = Config::parse(
        "[consensus]\ntimeout_commit_ms = 700\n",
        [
            ("CLOISTER__CONSENSUS__TIMEOUT_COMMIT_MS", "200"),
            ("CLOISTER__NODE__NAME", "42"),
            ("CLOISTER__RPC__HTTP_ADDRESS", "127.0.0.1:9000"),
            ("CLOISTER__RPC__CORS_ORIGINS", "[\"*\"]"),
            ("CLOISTER_COMETBFT", "/elsewhere"),
            ("PATH", "/bin"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    )
    .expect("all overrides are sound");
    assert_eq!(config.consensus.timeout_commit_ms, 200);
    assert_eq!(config.node.name, "42");
    assert_eq!(config.rpc.http_address, "127.0.0.1:9000".parse().ok());
    assert_eq!(config.rpc.cors_origins, ["*"]);
}

#[test]
fn refuses_an_override_of_no_key() {
    for name in [
        "CLOISTER__NODE",
        "CLOISTER__NODES__NAME",
        "CLOISTER__NODE__NAMES",
    ] {
        let refused = Config::parse("", [(name.to_owned(), "x".to_owned())]);
        assert!(refused.is_err(), "{name}");
    }
}

#[test]
fn refuses_text_that_is_not_toml() {
    assert!(matches!(
        errors("[node\n")[..],
        [ConfigError::Syntax { .. }]
    ));
}

#[test]
fn refuses_an_abci_address_that_others_can_reach() {
    for address in [
        "tcp://0.0.0.0:26658",
        "tcp://10.0.0.1:26658",
        "tcp://localhost",
        "/tmp/x",
    ] {
        let found = errors(&format!(
            "[consensus]\nmode = \"external\"\nabci_address = \"{address}\"\n"
        ));
        assert!(
            matches!(&found[..], [ConfigError::Invalid { key, .. }] if *key == "consensus.abci_address")
        );
    }
    assert!(
        parse("[consensus]\nmode = \"external\"\nabci_address = \"tcp://127.0.0.1:26658\"\n")
            .is_ok()
    );
}

#[test]
fn refuses_two_services_on_one_address() {
    let found = errors("[rpc]\nhttp_address = \"127.0.0.1:26657\"\n");
    assert!(matches!(&found[..], [ConfigError::Invalid { key, .. }] if *key == "rpc.http_address"));
    assert!(parse("[rpc]\nws_address = \"127.0.0.1:8545\"\n").is_ok());
}

#[test]
fn refuses_a_peer_without_a_node_id() {
    for peer in ["node1:26656", "abcd@node1:26656", "@node1:26656"] {
        assert_eq!(
            errors(&format!("[consensus]\npersistent_peers = [\"{peer}\"]\n")).len(),
            1
        );
    }
}

#[test]
fn missing_file_names_the_remedy() {
    let folder = std::path::Path::new("/nonexistent/home");
    let found = Config::load(folder, []).expect_err("no such folder").0;
    assert!(
        found[0]
            .hint()
            .contains("cloister init --home /nonexistent/home")
    );
}
