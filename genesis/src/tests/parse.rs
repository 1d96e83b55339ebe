use super::*;
use alloy_primitives::address;

fn too_small(got: u64, min: u64) -> Rule {
    Rule::TooSmall {
        got: got.to_string(),
        min,
    }
}

fn too_large(got: u64, max: u64) -> Rule {
    Rule::TooLarge {
        got: got.to_string(),
        max: U256::from(max),
    }
}

#[test]
fn reads_back_what_it_writes() {
    let genesis = dev_genesis();
    assert_eq!(Genesis::parse(&genesis.to_json()), Ok(genesis));
    let genesis = four_validators()
        .parameters(|parameters| {
            parameters.fork = Fork::Prague;
            parameters.block_reward_wei = U256::from(u128::MAX);
            parameters.base_fee.elasticity = 2;
            parameters.base_fee.floor_wei = 0;
        })
        .build()
        .expect("sound");
    assert_eq!(Genesis::parse(&genesis.to_json()), Ok(genesis));
}

#[test]
fn refuses_what_is_not_json() {
    let error = Genesis::parse(b"{\n  \"network\": \"x\",\n}").expect_err("trailing comma");
    assert!(
        matches!(error, GenesisError::Syntax { line: 3, .. }),
        "{error}"
    );
    assert!(error.hint().contains("strict JSON"));
    for bytes in [&b""[..], b"\xff", b"{", b"{} {}", b"nul"] {
        let error = Genesis::parse(bytes).expect_err("not JSON");
        assert!(matches!(error, GenesisError::Syntax { .. }), "{error}");
    }
}

#[test]
fn refuses_what_is_no_object() {
    for json in ["1", "[]", "null", "\"x\"", "1.5", "-1", "true"] {
        let error = Genesis::parse(json.as_bytes()).expect_err("no object");
        assert!(
            matches!(error.faults()[0].rule, Rule::WrongType { .. }),
            "{error}"
        );
    }
}

#[test]
fn refuses_a_deep_tree_without_a_panic() {
    let deep = "[".repeat(100_000);
    assert!(matches!(
        Genesis::parse(deep.as_bytes()),
        Err(GenesisError::Syntax { .. })
    ));
}

#[test]
fn refuses_each_missing_field() {
    for path in [
        "/network",
        "/development",
        "/timestamp",
        "/parameters",
        "/validators",
        "/verifying_keys",
        "/alloc",
        "/parameters/chain_id",
        "/parameters/fork",
        "/parameters/gas_limit",
        "/parameters/base_fee",
        "/parameters/base_fee/elasticity",
        "/parameters/base_fee/floor_wei",
        "/parameters/base_fee/initial_wei",
        "/parameters/base_fee/change_denominator",
        "/parameters/block_reward_wei",
        "/parameters/max_block_bytes",
        "/parameters/snapshot_interval_blocks",
        "/parameters/snapshot_format",
        "/parameters/epoch_length_blocks",
        "/parameters/stamp_difficulty_bits",
        "/parameters/downtime_window_blocks",
        "/parameters/jail_blocks",
        "/validators/0/member",
        "/validators/0/public_key",
        "/validators/0/power",
        "/validators/0/payout",
        "/validators/0/name",
    ] {
        let (parent, key) = path.rsplit_once('/').expect("pointers have a slash");
        let got = faults(|json| {
            let parent = json.pointer_mut(parent).and_then(Value::as_object_mut);
            parent.expect("an object").remove(key).expect("was there");
        });
        let field = path[1..].replace("/0/", "[0].").replace('/', ".");
        let rule = Rule::Missing;
        assert_eq!(got, [Fault { field, rule }]);
    }
}

#[test]
fn refuses_unknown_keys() {
    let got = faults(|json| {
        json["gas_limit"] = json!(1);
        json["parameters"]["gaslimit"] = json!(1);
        json["parameters"]["base_fee"]["max"] = json!(1);
        json["validators"][0]["pub_key"] = json!(1);
        json["alloc"]["f39fd6e51aad88f6f4ce6ab8827279cfffb92267"] = json!({"blance": "1"});
    });
    let mut fields: Vec<&str> = got.iter().map(|fault| fault.field.as_str()).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "alloc.f39fd6e51aad88f6f4ce6ab8827279cfffb92267.blance",
            "gas_limit",
            "parameters.base_fee.max",
            "parameters.gaslimit",
            "validators[0].pub_key",
        ]
    );
    assert!(
        got.iter()
            .all(|fault| matches!(fault.rule, Rule::UnknownKey { .. }))
    );
    assert!(got[0].rule.hint().contains("known here"));
}

#[test]
fn refuses_a_key_given_twice() {
    let text = String::from_utf8(dev_genesis().to_json()).expect("UTF-8");
    let text = text.replacen("\"timestamp\"", "\"timestamp\": 1,\n  \"timestamp\"", 1);
    let error = Genesis::parse(text.as_bytes()).expect_err("timestamp twice");
    assert_eq!(
        error.faults(),
        [Fault {
            field: "timestamp".into(),
            rule: Rule::DuplicateKey
        }]
    );
}

#[test]
fn refuses_wrong_types() {
    let got = faults(|json| {
        json["network"] = json!(7);
        json["development"] = json!("yes");
        json["timestamp"] = json!(-1);
        json["parameters"]["gas_limit"] = json!("100000000");
        json["parameters"]["jail_blocks"] = json!(1.5);
        json["parameters"]["block_reward_wei"] = json!(1e30);
        json["validators"][0]["member"] = json!("0x1234");
        json["validators"][0]["public_key"] = json!(format!("0x{}", "zz".repeat(32)));
        json["alloc"] = json!([]);
    });
    let fields: Vec<&str> = got.iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "network",
            "development",
            "timestamp",
            "parameters.gas_limit",
            "parameters.block_reward_wei",
            "parameters.jail_blocks",
            "validators[0].member",
            "validators[0].public_key",
            "alloc",
        ]
    );
    assert!(
        got.iter()
            .all(|fault| matches!(fault.rule, Rule::WrongType { .. }))
    );
    assert_eq!(
        got[3].to_string(),
        "parameters.gas_limit: got \"100000000\", want a whole number"
    );
}

#[test]
fn refuses_parameters_out_of_range() {
    for (name, min, max) in [
        ("chain_id", 1, CHAIN_ID_MAX),
        ("gas_limit", GAS_LIMIT_MIN, GAS_LIMIT_MAX),
        ("max_block_bytes", 262_144, 10_485_760),
        ("snapshot_interval_blocks", 2, 1_000_000_000),
        ("snapshot_format", 1, 1),
        ("epoch_length_blocks", 1, 1_000_000_000),
        ("downtime_window_blocks", 2, 65_536),
        ("jail_blocks", 1, 1_000_000_000),
    ] {
        let (pointer, field) = (format!("/parameters/{name}"), format!("parameters.{name}"));
        refuses(&pointer, json!(min - 1), &field, too_small(min - 1, min));
        refuses(&pointer, json!(max + 1), &field, too_large(max + 1, max));
        for bound in [min, max] {
            let got = faults(|json| json["parameters"][name] = json!(bound));
            assert_eq!(got, [], "{name} = {bound}");
        }
    }
    let bits = "parameters.stamp_difficulty_bits";
    refuses(
        "/parameters/stamp_difficulty_bits",
        json!(65),
        bits,
        too_large(65, 64),
    );
    refuses(
        "/parameters/stamp_difficulty_bits",
        json!(256),
        bits,
        too_large(256, 255),
    );
    let elasticity = "parameters.base_fee.elasticity";
    refuses(
        "/parameters/base_fee/elasticity",
        json!(0),
        elasticity,
        too_small(0, 1),
    );
    let denominator = "parameters.base_fee.change_denominator";
    refuses(
        "/parameters/base_fee/change_denominator",
        json!(0),
        denominator,
        too_small(0, 1),
    );
}

#[test]
fn refuses_an_unknown_fork() {
    let rule = Rule::UnknownFork {
        got: "london".into(),
    };
    refuses("/parameters/fork", json!("london"), "parameters.fork", rule);
}

#[test]
fn refuses_an_initial_base_fee_below_the_floor() {
    let rule = Rule::InitialBelowFloor {
        initial_wei: 1,
        floor_wei: 1_000_000_000,
    };
    let field = "parameters.base_fee.initial_wei";
    refuses("/parameters/base_fee/initial_wei", json!(1), field, rule);
}

#[test]
fn refuses_a_block_reward_above_128_bits() {
    let got = U256::from(u128::MAX) + U256::from(1);
    let rule = Rule::TooLarge {
        got: got.to_string(),
        max: U256::from(u128::MAX),
    };
    let field = "parameters.block_reward_wei";
    refuses(
        "/parameters/block_reward_wei",
        json!(got.to_string()),
        field,
        rule,
    );
}

#[test]
fn refuses_a_network_name_that_cometbft_would_not_take() {
    for name in ["", "two words", "na\u{ef}ve", &"x".repeat(51)] {
        let rule = Rule::NetworkName { got: name.into() };
        refuses("/network", json!(name), "network", rule);
    }
    assert_eq!(faults(|json| json["network"] = json!("x".repeat(50))), []);
}

#[test]
fn refuses_public_keys_that_are_not_canonical_or_of_small_order() {
    for key in [
        // 0, 1, -1, and a point of order 8 with its sign set.
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        // y = p + 3: a second encoding of y = 3.
        "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        // y = 2 is on no point.
        "0200000000000000000000000000000000000000000000000000000000000000",
    ] {
        let public_key = json::parse_fixed(key).expect("32 bytes");
        let edit = json!(format!("0x{key}"));
        let got = faults(|json| json["validators"][0]["public_key"] = edit);
        let rule = Rule::PublicKey { public_key };
        let field = "validators[0].public_key".into();
        assert_eq!(got, [Fault { field, rule }]);
    }
}

#[test]
fn refuses_a_balance_above_256_bits() {
    let account = "f39fd6e51aad88f6f4ce6ab8827279cfffb92266";
    for balance in [
        format!("0x1{}", "0".repeat(64)),
        "-1".into(),
        "".into(),
        "0x".into(),
        "1_0".into(),
    ] {
        let got = faults(|json| json["alloc"][format!("0x{account}")]["balance"] = json!(balance));
        assert_eq!(got.len(), 1, "{balance}");
        assert_eq!(got[0].field, format!("alloc.0x{account}.balance"));
        assert!(matches!(got[0].rule, Rule::WrongType { .. }));
    }
}

#[test]
fn refuses_balances_that_do_not_add_up() {
    let got = faults(|json| {
        let account = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
        json["alloc"][account]["balance"] = json!(format!("0x{}", "f".repeat(64)));
    });
    let rule = Rule::TotalBalance;
    assert_eq!(
        got,
        [Fault {
            field: "alloc".into(),
            rule
        }]
    );
}

#[test]
fn refuses_an_account_given_twice() {
    let got = faults(|json| {
        json["alloc"]["F39FD6E51AAD88F6F4CE6AB8827279CFFFB92266"] = json!({"balance": "1"});
    });
    let address = DEV_ACCOUNTS[0];
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].rule, Rule::DuplicateAccount { address });
}

#[test]
fn refuses_code_at_a_precompile() {
    for address in [
        address!("0000000000000000000000000000000000000001"),
        address!("0000000000000000000000000000000000000011"),
        address!("0000000000000000000000000000000000000100"),
        address!("0000000000000000000000000000000000000c01"),
        address!("0000000000000000000000000000000000000cff"),
    ] {
        let key = format!("{address:#x}");
        let got = faults(|json| json["alloc"][&key] = json!({"balance": "1", "code": "0x00"}));
        let rule = Rule::PrecompileAddress { address };
        let field = format!("alloc.{key}");
        assert_eq!(got, [Fault { field, rule }]);
        // Ethereum's test networks give precompiles a wei.
        assert_eq!(
            faults(|json| json["alloc"][&key] = json!({"balance": "1"})),
            []
        );
    }
}

#[test]
fn refuses_altered_or_missing_system_contracts() {
    for contract in contracts::required(&dev_genesis().validators) {
        let key = format!("{:#x}", contract.address);
        let rule = Rule::SystemContract {
            address: contract.address,
            contract: contract.name,
        };
        let fault = Fault {
            field: format!("alloc.{key}"),
            rule,
        };
        let missing = faults(|json| {
            json["alloc"].as_object_mut().expect("object").remove(&key);
        });
        assert_eq!(missing, std::slice::from_ref(&fault));
        let altered = faults(|json| json["alloc"][&key]["code"] = json!("0x00"));
        assert_eq!(altered, [fault]);
    }
}

#[test]
fn refuses_validators_changed_behind_the_registrys_back() {
    let got = faults(|json| json["validators"][0]["power"] = json!(101));
    assert!(
        matches!(got[0].rule, Rule::SystemContract { .. }),
        "{got:?}"
    );
    assert_eq!(got.len(), 1);
}

#[test]
fn reports_everything_at_once() {
    let got = faults(|json| {
        json["network"] = json!("");
        json["parameters"]["chain_id"] = json!(0);
        json["parameters"]["gas_limit"] = json!(true);
        json["parameters"]["max_block_bytes"] = json!(11 * 1024 * 1024);
        json["validators"] = json!([]);
    });
    let mut fields: Vec<&str> = got.iter().map(|fault| fault.field.as_str()).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "network",
            "parameters.chain_id",
            "parameters.gas_limit",
            "parameters.max_block_bytes",
            "validators",
        ]
    );
}

#[test]
fn shows_the_first_faults_of_very_many() {
    let error = Genesis::parse(
        format!(
            "{{{}}}",
            (0..100)
                .map(|n| format!("\"k{n}\": 1"))
                .collect::<Vec<_>>()
                .join(",")
        )
        .as_bytes(),
    )
    .expect_err("unknown keys");
    assert_eq!(error.faults().len(), 107);
    assert!(error.to_string().ends_with("and 87 more"), "{error}");
}

proptest::proptest! {
    #[test]
    fn never_panics_on_any_bytes(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        drop(Genesis::parse(&bytes));
        drop(AppState::parse(&bytes));
        drop(crate::parse::ethereum_alloc(&bytes));
    }

    #[test]
    fn never_panics_on_a_damaged_file(at in 0usize..4_000, byte: u8) {
        let mut bytes = dev_genesis().to_json();
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        drop(Genesis::parse(&bytes));
    }
}
