//! Tests of the command's arguments.

use super::*;

#[test]
fn block_times_are_read_with_their_units() {
    for (text, ms) in [
        ("0", 0),
        ("1s", 1_000),
        ("200ms", 200),
        ("1.5s", 1_500),
        ("2", 2_000),
        ("1m", 60_000),
    ] {
        assert_eq!(
            parse_block_time(text),
            Ok(Duration::from_millis(ms)),
            "{text}"
        );
    }
}

#[test]
fn refuses_what_is_no_block_time() {
    for text in [
        "",
        "s",
        "1h",
        "-1s",
        "1.2.3s",
        "2e3",
        "61m",
        "99999999999999999999s",
    ] {
        assert!(parse_block_time(text).is_err(), "{text}");
    }
}

#[test]
fn the_listed_accounts_are_those_of_the_mnemonic() {
    for (index, account) in (0u32..).zip(DEV_ACCOUNTS) {
        assert_eq!(dev_signer(index).address(), account);
    }
}
