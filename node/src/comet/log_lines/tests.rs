use super::*;

#[test]
fn keeps_level_module_message_and_fields() {
    // As v0.38.26 writes it.
    let line = Line::parse(
        r#"{"_msg":"Added peer","impl":"Peer","level":"info","module":"p2p","peer":7,"ts":"2026-01-01T00:00:00Z"}"#,
    );
    assert_eq!(
        line,
        Some(Line {
            level: Level::Info,
            module: "p2p".to_owned(),
            message: "Added peer".to_owned(),
            fields: "impl=Peer peer=7".to_owned(),
        })
    );
}

#[test]
fn lines_of_every_block_become_detail_but_errors_stay_errors() {
    let level = |level: &str| {
        Line::parse(&format!(
            r#"{{"_msg":"m","level":"{level}","module":"consensus"}}"#
        ))
        .map(|line| line.level)
    };
    assert_eq!(level("info"), Some(Level::Detail));
    assert_eq!(level("error"), Some(Level::Error));
}

#[test]
fn starts_of_services_are_detail_with_their_own_text() {
    let line = Line::parse(
        r#"{"_msg":"service start","impl":"Peer","level":"info","module":"p2p","msg":"Starting Peer service"}"#,
    )
    .expect("as v0.38.26 writes it");
    assert_eq!(
        (line.level, line.message.as_str()),
        (Level::Detail, "Starting Peer service")
    );
}

#[test]
fn a_go_panic_is_not_taken_for_a_log_line() {
    assert_eq!(
        Line::parse("panic: runtime error: index out of range"),
        None
    );
    assert_eq!(Line::parse("{\"_msg\": 1}"), None);
}
