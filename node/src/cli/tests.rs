use super::*;
use clap::CommandFactory;

#[test]
fn command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn times_need_a_unit_and_bounds() {
    assert_eq!(parse_duration_ms("200ms"), Ok(200));
    assert_eq!(parse_duration_ms("1.5s"), Ok(1_500));
    assert_eq!(parse_duration_ms("2m"), Ok(120_000));
    for text in ["", "1", "s", "-1s", "0ms", "11m", "1h", "1.2.3s", "NaNs"] {
        assert!(parse_duration_ms(text).is_err(), "{text}");
    }
}
