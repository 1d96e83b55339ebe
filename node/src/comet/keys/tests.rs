use super::*;

// Written by `cometbft init` v0.38.26.
const VALIDATOR_KEY: &str = r#"{
  "address": "345588C2F4B2C2CA7CCB000BF0E450EA27D254FE",
  "pub_key": {
    "type": "tendermint/PubKeyEd25519",
    "value": "onu+TEc8JBFmsQSis5Sa9Ft+sP3c+YR6DqPwQVAo7hw="
  },
  "priv_key": {
    "type": "tendermint/PrivKeyEd25519",
    "value": "N46/cDf+vUDwRLA5FB9pWkwQJ10+8WpJn8dhvLgMBNiie75MRzwkEWaxBKKzlJr0W36w/dz5hHoOo/BBUCjuHA=="
  }
}"#;
const NODE_KEY: &str = r#"{"priv_key":{"type":"tendermint/PrivKeyEd25519","value":"Nif5tKebnZweklJzofBMMWYROUjmoO7NmF8naxo6QQ2yVXwF5dootItYLV2DsOKNiu7mqNByKJF0aA9Nh1/TeA=="}}"#;

fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("key.json");
    fs::write(&path, text).expect("the folder is ours");
    (folder, path)
}

#[test]
fn reads_and_rewrites_cometbfts_own_files_byte_for_byte() {
    let (folder, path) = file(VALIDATOR_KEY);
    let key = KeyPair::read_validator_key(&path).expect("a file of CometBFT's");
    let copy = folder.path().join("copy.json");
    key.write_validator_key(&copy).expect("a new file");
    assert_eq!(
        fs::read_to_string(&copy).expect("just written"),
        VALIDATOR_KEY
    );

    let (folder, path) = file(NODE_KEY);
    let key = KeyPair::read_node_key(&path).expect("a file of CometBFT's");
    let copy = folder.path().join("copy.json");
    key.write_node_key(&copy).expect("a new file");
    assert_eq!(fs::read_to_string(&copy).expect("just written"), NODE_KEY);
}

#[test]
fn key_files_are_for_this_user_alone_and_never_overwritten() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("key.json");
    let key = KeyPair::generate(&mut rand::rng());
    key.write_validator_key(&path).expect("a new file");
    let mode = fs::metadata(&path)
        .expect("just written")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(key.write_validator_key(&path).is_err());
}

#[test]
fn malformed_key_files_are_refused_with_the_field_and_without_the_secret() {
    let secret = "N46/cDf+vUDwRLA5FB9pWkwQJ10+8WpJn8dhvLgMBN";
    for (text, expected) in [
        (
            VALIDATOR_KEY.replace("\"address\"", "\"adress\""),
            "missing field `address`",
        ),
        (
            VALIDATOR_KEY.replace("345588C2", "045588C2"),
            "address 045588C2",
        ),
        (
            VALIDATOR_KEY.replace("onu+", "onv+"),
            "pub_key is not that of priv_key",
        ),
        (
            VALIDATOR_KEY.replace("PrivKeyEd25519", "PrivKeySecp256k1"),
            "priv_key.type",
        ),
        (
            VALIDATOR_KEY.replace("CjuHA==", "C"),
            "priv_key.value is not base64",
        ),
        (
            VALIDATOR_KEY.replace("UCjuHA==", ""),
            "priv_key.value is 60 bytes",
        ),
        (VALIDATOR_KEY.replace("N46/", "O46/"), "public half"),
        (VALIDATOR_KEY.replace('{', "["), "not as CometBFT writes it"),
        (String::new(), "not as CometBFT writes it"),
    ] {
        let (_folder, path) = file(&text);
        let error = KeyPair::read_validator_key(&path)
            .expect_err("malformed")
            .to_string();
        assert!(error.contains(expected), "{error} does not say {expected}");
        assert!(!error.contains(secret), "{error}");
        assert!(!error.contains(&secret[8..24]), "{error}");
    }
}

#[test]
fn debug_output_hides_the_secret() {
    let (_folder, path) = file(VALIDATOR_KEY);
    let key = KeyPair::read_validator_key(&path).expect("a file of CometBFT's");
    let seed = hex::encode(key.0.as_bytes());
    assert!(!format!("{key:?}").contains(&seed));
}
