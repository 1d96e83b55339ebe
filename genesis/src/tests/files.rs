//! The two files, byte by byte.

use super::*;

fn fixed() -> Genesis {
    four_validators()
        .fund(Address::repeat_byte(0xaa), U256::from(1_000_000))
        .alloc_ethereum(
            br#"{"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb": {"balance": "0x10", "nonce": "0x1", "code": "0x6001", "storage": {"0x0": "0x1"}}}"#,
        )
        .build()
        .expect("sound")
}

#[track_caller]
fn assert_golden(name: &str, want: &[u8], got: &[u8]) {
    assert!(
        got == want,
        "{name} differs from its golden file; if the format was changed on purpose, it is now:\n{}",
        String::from_utf8_lossy(got)
    );
}

#[test]
fn genesis_json_is_as_it_was() {
    let json = fixed().to_json();
    assert_golden(
        "genesis.json",
        include_bytes!("../../tests/golden/genesis.json"),
        &json,
    );
    assert_eq!(Genesis::parse(&json), Ok(fixed()));
}

#[test]
fn cometbft_json_is_as_it_was() {
    let genesis = fixed();
    assert_golden(
        "cometbft-genesis.json",
        include_bytes!("../../tests/golden/cometbft-genesis.json"),
        &genesis.to_cometbft_json(&genesis.to_json()),
    );
}

#[test]
fn cometbft_json_holds_what_cometbft_reads() {
    let genesis = dev_genesis();
    let json = genesis.to_json();
    let comet: Value = serde_json::from_slice(&genesis.to_cometbft_json(&json)).expect("JSON");
    assert_eq!(comet["genesis_time"], "2026-01-01T00:00:00Z");
    assert_eq!(comet["chain_id"], "cloister-31337");
    assert_eq!(comet["initial_height"], "1");
    assert_eq!(comet["consensus_params"]["block"]["max_gas"], "-1");
    assert_eq!(
        comet["consensus_params"]["version"]["app"],
        APP_VERSION.to_string()
    );
    assert_eq!(
        comet["consensus_params"]["abci"]["vote_extensions_enable_height"],
        "0"
    );
    let address = consensus_address(&genesis.validators[0].public_key);
    assert_eq!(
        comet["validators"][0]["address"],
        hex::encode_upper(address)
    );
    assert_eq!(comet["validators"][0]["power"], "100");
    assert_eq!(comet["app_hash"], "");
}

#[test]
fn app_state_opens_its_own_genesis_and_no_other() {
    let genesis = dev_genesis();
    let json = genesis.to_json();
    let comet: Value = serde_json::from_slice(&genesis.to_cometbft_json(&json)).expect("JSON");
    let state = AppState::parse(comet["app_state"].to_string().as_bytes()).expect("ours");
    assert_eq!(state.genesis_sha256, file_hash(&json));
    assert_eq!(state.open(&json), Ok(genesis));

    let mut other = json.clone();
    other.push(b' ');
    let error = state.open(&other).expect_err("another file");
    let (expected, got) = (file_hash(&json), file_hash(&other));
    assert_eq!(error, GenesisError::HashMismatch { expected, got });

    let error = AppState {
        evm_chain_id: 1,
        ..state
    }
    .open(&json)
    .expect_err("another chain id");
    assert_eq!(error.faults()[0].field, "app_state.evm_chain_id");
}

#[test]
fn refuses_an_app_state_of_another_application() {
    for text in [
        "{}",
        "null",
        "",
        r#"{"genesis_sha256": "00", "evm_chain_id": 1}"#,
        r#"{"accounts": []}"#,
    ] {
        assert!(AppState::parse(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn the_chain_id_enters_nothing_but_its_own_field() {
    // Two networks of one name and different chain ids, and the other way round.
    let genesis = |id, name: &str| {
        GenesisBuilder::new(id)
            .network(name)
            .validators([validator(1)])
            .build()
            .expect("sound")
    };
    let (a, b) = (genesis(1, "one"), genesis(2, "one"));
    assert_eq!(a.network, b.network);
    assert_ne!(file_hash(&a.to_json()), file_hash(&b.to_json()));
    assert_eq!(genesis(1, "other").parameters, a.parameters);
}

#[test]
fn the_development_network_has_its_accounts() {
    let genesis = dev_genesis();
    assert_eq!(genesis.parameters.chain_id, 31_337);
    for account in DEV_ACCOUNTS {
        let coin = U256::from(10).pow(U256::from(18));
        assert_eq!(genesis.alloc[&account].balance, U256::from(10_000) * coin);
    }
}

#[test]
fn times_are_written_as_rfc_3339() {
    for (seconds, text) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_399, "2000-02-28T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (1_709_251_199, "2024-02-29T23:59:59Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
    ] {
        assert_eq!(crate::cometbft::rfc3339(seconds), text);
    }
}
