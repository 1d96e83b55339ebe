//! `genesis.json` as text: fixed order, one account to a line, so that two builds of one network are equal byte by byte.

use crate::{Genesis, Parameters, json::quote};
use alloy_genesis::GenesisAccount;
use std::fmt::Write as _;

impl Genesis {
    /// The bytes of `genesis.json`. [`Genesis::parse`] reads them back to an equal value.
    pub fn to_json(&self) -> Vec<u8> {
        let mut text = String::with_capacity(self.alloc.len().saturating_mul(96));
        text.push_str("{\n");
        line(&mut text, 2, "network", &quote(&self.network));
        line(&mut text, 2, "development", &self.development.to_string());
        line(&mut text, 2, "timestamp", &self.timestamp.to_string());
        parameters(&mut text, &self.parameters);
        text.push_str("  \"validators\": [");
        items(&mut text, self.validators.iter().map(|validator| {
            format!(
                r#"{{"member": "{:#x}", "public_key": "0x{}", "power": {}, "payout": "{:#x}", "name": {}}}"#,
                validator.member,
                hex::encode(validator.public_key),
                validator.power,
                validator.payout,
                quote(&validator.name),
            )
        }));
        text.push_str("],\n  \"verifying_keys\": [");
        items(
            &mut text,
            self.verifying_keys.iter().map(|key| {
                format!(
                    r#"{{"name": {}, "development": {}, "key": "{}"}}"#,
                    quote(&key.name),
                    key.development,
                    key.key,
                )
            }),
        );
        text.push_str("],\n  \"alloc\": {");
        items(
            &mut text,
            self.alloc
                .iter()
                .map(|(address, account)| format!(r#""{address:#x}": {}"#, self::account(account))),
        );
        text.push_str("}\n}\n");
        text.into_bytes()
    }
}

fn parameters(text: &mut String, parameters: &Parameters) {
    // Taken apart by name, so that a new parameter does not compile until it is written.
    let Parameters {
        chain_id,
        fork,
        gas_limit,
        base_fee,
        block_reward_wei,
        max_block_bytes,
        snapshot_interval_blocks,
        snapshot_format,
        epoch_length_blocks,
        stamp_difficulty_bits,
        downtime_window_blocks,
        jail_blocks,
    } = parameters;
    text.push_str("  \"parameters\": {\n");
    line(text, 4, "chain_id", &chain_id.to_string());
    line(text, 4, "fork", &quote(fork.name()));
    line(text, 4, "gas_limit", &gas_limit.to_string());
    text.push_str("    \"base_fee\": {\n");
    line(text, 6, "elasticity", &base_fee.elasticity.to_string());
    line(text, 6, "floor_wei", &base_fee.floor_wei.to_string());
    line(text, 6, "initial_wei", &base_fee.initial_wei.to_string());
    last_line(
        text,
        6,
        "change_denominator",
        &base_fee.change_denominator.to_string(),
    );
    text.push_str("    },\n");
    line(
        text,
        4,
        "block_reward_wei",
        &quote(&block_reward_wei.to_string()),
    );
    line(text, 4, "max_block_bytes", &max_block_bytes.to_string());
    line(
        text,
        4,
        "snapshot_interval_blocks",
        &snapshot_interval_blocks.to_string(),
    );
    line(text, 4, "snapshot_format", &snapshot_format.to_string());
    line(
        text,
        4,
        "epoch_length_blocks",
        &epoch_length_blocks.to_string(),
    );
    line(
        text,
        4,
        "stamp_difficulty_bits",
        &stamp_difficulty_bits.to_string(),
    );
    line(
        text,
        4,
        "downtime_window_blocks",
        &downtime_window_blocks.to_string(),
    );
    last_line(text, 4, "jail_blocks", &jail_blocks.to_string());
    text.push_str("  },\n");
}

fn account(account: &GenesisAccount) -> String {
    let mut text = format!(r#"{{"balance": "{:#x}""#, account.balance);
    if let Some(nonce) = account.nonce.filter(|nonce| *nonce > 0) {
        push(&mut text, format_args!(r#", "nonce": "{nonce:#x}""#));
    }
    if let Some(code) = account.non_empty_code() {
        push(&mut text, format_args!(r#", "code": "{code}""#));
    }
    if let Some(storage) = account
        .storage
        .as_ref()
        .filter(|storage| !storage.is_empty())
    {
        text.push_str(r#", "storage": {"#);
        for (index, (slot, value)) in storage.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            push(&mut text, format_args!(r#"{comma}"{slot}": "{value}""#));
        }
        text.push('}');
    }
    text.push('}');
    text
}

fn items(text: &mut String, items: impl Iterator<Item = String>) {
    let mut any = false;
    for item in items {
        text.push_str(if any { ",\n    " } else { "\n    " });
        text.push_str(&item);
        any = true;
    }
    if any {
        text.push_str("\n  ");
    }
}

fn line(text: &mut String, indent: usize, key: &str, value: &str) {
    push(text, format_args!("{:indent$}\"{key}\": {value},\n", ""));
}

fn last_line(text: &mut String, indent: usize, key: &str, value: &str) {
    push(text, format_args!("{:indent$}\"{key}\": {value}\n", ""));
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments)
        .expect("writing to a String cannot fail");
}
