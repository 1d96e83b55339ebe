use super::*;
use cloister_genesis::{GenesisBuilder, GenesisValidator};
use serde_json::{Value, json};

/// A home of CometBFT with the genesis that `change` makes of the right one.
fn refusal(change: impl FnOnce(&mut Value)) -> Option<String> {
    let validator = GenesisValidator {
        member: Address::repeat_byte(1),
        public_key: KeyPair::generate(&mut rand::rng()).public_key(),
        power: 100,
        payout: Address::repeat_byte(1),
        name: "one".to_owned(),
    };
    let genesis = GenesisBuilder::new(4242)
        .timestamp(1_800_000_000)
        .validators([validator])
        .build()
        .expect("a valid genesis");
    let bytes = genesis.to_json();
    let mut file: Value =
        serde_json::from_slice(&genesis.to_cometbft_json(&bytes)).expect("our own text");
    change(&mut file);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let comet = CometHome::new(folder.path().to_owned());
    fs::create_dir(folder.path().join("config")).expect("the folder is ours");
    fs::write(comet.genesis_file(), file.to_string()).expect("the folder is ours");
    check_comet_genesis(&comet, &genesis, B256::from(file_hash(&bytes)))
        .err()
        .map(|failure| failure.message)
}

#[test]
fn each_field_of_cometbfts_genesis_is_that_of_ours() {
    assert_eq!(refusal(|_| {}), None);
    // What later versions of CometBFT add.
    assert_eq!(refusal(|file| file["later"] = json!({"a": 1})), None);
    let cases: [(&str, Value); 9] = [
        ("/chain_id", json!("other")),
        ("/genesis_time", json!("x")),
        ("/initial_height", json!("10")),
        ("/app_hash", json!("AA")),
        ("/consensus_params/block/max_bytes", json!("1")),
        ("/consensus_params/evidence/max_age_num_blocks", json!("1")),
        (
            "/consensus_params/abci/vote_extensions_enable_height",
            json!("1"),
        ),
        ("/validators/0/power", json!("99")),
        ("/validators", json!([])),
    ];
    for (pointer, value) in cases {
        let message = refusal(|file| *file.pointer_mut(pointer).expect("a field of ours") = value)
            .unwrap_or_else(|| panic!("{pointer} went unnoticed"));
        let name = pointer.trim_start_matches('/').replace('/', ".");
        let name = name.replace("validators.0", "validators[0]");
        assert!(message.contains(&format!("{name} ")), "{message}");
    }
    let message = refusal(|file| {
        file["consensus_params"]["version"]
            .as_object_mut()
            .expect("an object")
            .remove("app");
    });
    assert!(
        message.is_some_and(|message| message.contains("version.app is missing")),
        "a missing field"
    );
}

#[test]
fn lost_data_of_cometbft_is_told_before_it_starts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let comet = CometHome::new(folder.path().to_owned());
    let store = Path::new("the-store");
    assert!(check_comet_data(&comet, store, 0).is_ok());
    for database in comet.databases() {
        let failure = check_comet_data(&comet, store, 7).expect_err("nothing is there");
        assert!(failure.message.contains("block 7"), "{}", failure.message);
        assert!(failure.message.contains("the-store"), "{}", failure.message);
        fs::create_dir_all(database).expect("the folder is ours");
    }
    assert!(check_comet_data(&comet, store, 7).is_ok());
}
