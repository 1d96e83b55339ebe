use super::*;
use alloy_primitives::{address, bytes};

fn rules(builder: GenesisBuilder) -> Vec<(String, Rule)> {
    let error = builder.build().expect_err("faulty");
    let pair = |fault: &Fault| (fault.field.clone(), fault.rule.clone());
    error.faults().iter().map(pair).collect()
}

#[test]
fn refuses_no_validators() {
    let got = rules(GenesisBuilder::new(1));
    assert_eq!(got, [("validators".into(), Rule::NoValidators)]);
}

#[test]
fn refuses_too_many_validators() {
    let many = (1..=129).map(validator);
    let got = rules(GenesisBuilder::new(1).validators(many));
    let rule = Rule::TooManyValidators { got: 129, max: 128 };
    assert_eq!(got, [("validators".into(), rule)]);
    let most = (1..=128).map(validator);
    assert!(GenesisBuilder::new(1).validators(most).build().is_ok());
}

#[test]
fn refuses_duplicate_members_and_keys() {
    let mut twin = validator(1);
    twin.public_key = validator(9).public_key;
    let member = twin.member;
    let got = rules(four_validators().validators([twin]));
    let rule = Rule::DuplicateMember { member };
    assert_eq!(got, [("validators[4].member".into(), rule)]);

    let mut twin = validator(1);
    twin.member = Address::repeat_byte(9);
    let public_key = twin.public_key;
    let got = rules(four_validators().validators([twin]));
    let rule = Rule::DuplicatePublicKey { public_key };
    assert_eq!(got, [("validators[4].public_key".into(), rule)]);
}

#[test]
fn refuses_the_zero_address_as_member() {
    let nobody = GenesisValidator {
        member: Address::ZERO,
        ..validator(9)
    };
    let rule = Rule::ZeroAddress { got: Address::ZERO };
    let got = rules(four_validators().validators([nobody]));
    assert_eq!(got, [("validators[4].member".into(), rule)]);
}

#[test]
fn refuses_powers_out_of_range() {
    let with_power = |n, power| GenesisValidator {
        power,
        ..validator(n)
    };
    let got = rules(GenesisBuilder::new(1).validators([with_power(1, 3)]));
    let rule = Rule::TooSmall {
        got: "3".into(),
        min: 4,
    };
    assert_eq!(got, [("validators[0].power".into(), rule)]);

    let half = TOTAL_POWER_MAX / 2 + 1;
    let got = rules(GenesisBuilder::new(1).validators([with_power(1, half), with_power(2, half)]));
    let rule = Rule::TotalPower {
        got: u128::from(half) * 2,
        max: TOTAL_POWER_MAX,
    };
    assert_eq!(got, [("validators".into(), rule)]);
    let most = GenesisBuilder::new(1).validators([with_power(1, TOTAL_POWER_MAX)]);
    assert!(most.build().is_ok());
}

#[test]
fn refuses_development_keys_outside_development() {
    let key = GenesisVerifyingKey {
        development: true,
        ..sound_key()
    };
    let name = key.name.clone();
    let got = rules(four_validators().verifying_keys([key.clone()]));
    let rule = Rule::DevelopmentKey { name };
    assert_eq!(got, [("verifying_keys[0].development".into(), rule)]);
    assert!(
        four_validators()
            .development(true)
            .verifying_keys([key])
            .build()
            .is_ok()
    );
}

#[test]
fn refuses_a_verifying_key_name_given_twice() {
    let key = sound_key();
    let name = key.name.clone();
    let twin = GenesisVerifyingKey {
        key: development_keys().remove(1).key,
        ..key.clone()
    };
    let got = rules(four_validators().verifying_keys([key, twin]));
    let rule = Rule::DuplicateKeyName { name };
    assert_eq!(got, [("verifying_keys[1].name".into(), rule)]);
}

#[test]
fn refuses_a_verifying_key_that_may_not_be_used() {
    let degenerate = |change: fn(&mut Vec<u8>)| {
        let mut key = sound_key();
        let mut bytes = key.key.to_vec();
        change(&mut bytes);
        key.key = bytes.into();
        rules(four_validators().verifying_keys([key]))
    };
    // Layout: alpha 64, beta 128, gamma 128, delta 128, then the points of the inputs.
    let cases: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes.copy_within(192..320, 320),
        |bytes| bytes[448..512].fill(0),
        |bytes| bytes.truncate(bytes.len() - 1),
        |bytes| bytes[0] ^= 1,
    ];
    for change in cases {
        let got = degenerate(change);
        assert_eq!(got.len(), 1);
        assert_eq!(got[0].0, "verifying_keys[0].key");
        assert!(matches!(got[0].1, Rule::VerifyingKey { .. }), "{got:?}");
    }
}

#[test]
fn refuses_an_account_at_a_system_contract() {
    for contract in contracts::predeployed(&[]) {
        let address = contract.address;
        let got = rules(four_validators().fund(address, U256::from(1)));
        let rule = Rule::SystemAddress {
            address,
            contract: contract.name,
        };
        assert!(
            got.contains(&(format!("alloc.{address:#x}"), rule)),
            "{got:?}"
        );
    }
}

#[test]
fn keeps_ethereums_system_contracts_of_an_ethereum_alloc() {
    let contract = &contracts::required(&[])[0];
    let code = contract.account.code.clone().expect("a contract");
    let alloc =
        json!({ contract.address.to_string(): { "balance": "42", "nonce": "1", "code": code } });
    let genesis = four_validators()
        .alloc_ethereum(alloc.to_string().as_bytes())
        .build()
        .expect("the same code");
    assert_eq!(genesis.alloc[&contract.address].balance, U256::from(42));
}

#[test]
fn takes_an_ethereum_genesis_whole_or_its_alloc_alone() {
    let alloc = json!({
        "1111111111111111111111111111111111111111": { "balance": "1000000000000000000000" },
        "0x2222222222222222222222222222222222222222": { "balance": "0xde0b6b3a7640000", "nonce": "0x2" },
        "0X3333333333333333333333333333333333333333": {
            "code": "0x6001",
            "nonce": 1,
            "storage": { "0x01": "0x2a", "0x02": "0x00" },
            "secretKey": "0x1111111111111111111111111111111111111111111111111111111111111111"
        },
        "4444444444444444444444444444444444444444": { "balance": 7 }
    });
    let whole = json!({ "config": { "chainId": 1 }, "gasLimit": "0x1", "alloc": alloc });
    let build = |json: &Value| {
        four_validators()
            .alloc_ethereum(json.to_string().as_bytes())
            .build()
            .expect("sound")
    };
    let genesis = build(&alloc);
    assert_eq!(genesis, build(&whole));
    let account = |byte| &genesis.alloc[&Address::repeat_byte(byte)];
    assert_eq!(
        account(0x11).balance,
        U256::from(1000) * U256::from(10).pow(U256::from(18))
    );
    assert_eq!(account(0x22).balance, U256::from(10).pow(U256::from(18)));
    assert_eq!(account(0x22).nonce, Some(2));
    assert_eq!(account(0x33).code, Some(bytes!("6001")));
    let storage = account(0x33).storage.as_ref().expect("one slot");
    let entry = (U256::from(1).into(), U256::from(42).into());
    assert_eq!(
        storage.iter().map(|(k, v)| (*k, *v)).collect::<Vec<_>>(),
        [entry]
    );
    assert_eq!(account(0x33).private_key, None);
    assert_eq!(account(0x44).balance, U256::from(7));
    assert_eq!(Genesis::parse(&genesis.to_json()), Ok(genesis));
}

#[test]
fn names_the_fault_in_an_ethereum_alloc() {
    let bad = br#"{"alloc": {"0x12": {}, "1111111111111111111111111111111111111111": {"balance": "ten"}}}"#;
    let fields: Vec<String> = rules(four_validators().alloc_ethereum(bad))
        .into_iter()
        .map(|(field, _)| field)
        .collect();
    assert_eq!(
        fields,
        [
            "alloc.0x12",
            "alloc.1111111111111111111111111111111111111111.balance"
        ]
    );
    assert_eq!(rules(four_validators().alloc_ethereum(b"{"))[0].0, "alloc");
}

#[test]
fn refuses_an_account_funded_twice() {
    let address = address!("1111111111111111111111111111111111111111");
    let twice = four_validators()
        .fund(address, U256::from(1))
        .fund(address, U256::from(2));
    assert_eq!(rules(twice)[0].1, Rule::DuplicateAccount { address });
}

#[test]
fn builds_writes_and_reads_200_000_accounts() {
    const ACCOUNTS: u64 = 200_000;
    let mut alloc = String::from("{");
    for n in 1..=ACCOUNTS {
        let comma = if n == 1 { "" } else { "," };
        alloc.push_str(&format!(
            "{comma}\"0x{:040x}\":{{\"balance\":\"{n}\"}}",
            n << 32
        ));
    }
    alloc.push('}');
    let genesis = four_validators()
        .alloc_ethereum(alloc.as_bytes())
        .build()
        .expect("sound");
    assert_eq!(genesis.alloc.len() as u64, ACCOUNTS + 4);
    let json = genesis.to_json();
    let comet = genesis.to_cometbft_json(&json);
    assert!(
        comet.len() < 4_000,
        "the alloc stays out: {} bytes",
        comet.len()
    );
    assert_eq!(Genesis::parse(&json), Ok(genesis));
}

fn sound_key() -> GenesisVerifyingKey {
    let mut key = development_keys().remove(0);
    key.development = false;
    key
}
