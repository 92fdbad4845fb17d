use super::*;

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

#[test]
fn retry_after_takes_seconds_and_dates() {
    let seconds = |value| parse_retry_after(value, now()).map(|wait| wait.as_secs());
    assert_eq!(seconds("7"), Some(7));
    assert_eq!(seconds(" 7 "), Some(7));
    assert_eq!(seconds("Thu, 01 Jan 2026 00:01:30 GMT"), Some(90));
    assert_eq!(seconds("Wed, 31 Dec 2025 23:59:59 GMT"), None);
    for nonsense in ["", "0", "-5", "soon", "1.5", "Thu, 99 Jan 2026"] {
        assert_eq!(seconds(nonsense), None, "{nonsense}");
    }
}

#[test]
fn no_hint_is_longer_than_the_limit() {
    assert_eq!(parse_retry_after("99999999999", now()), Some(MAX_RETRY_DELAY));
    assert_eq!(parse_retry_after(&u64::MAX.to_string(), now()), Some(MAX_RETRY_DELAY));
    // Any { RetryInfo { retry_delay { seconds: i64::MAX, nanos: i64::MAX } } }
    let number = [255, 255, 255, 255, 255, 255, 255, 255, 127];
    let delay: Vec<u8> = [&[8][..], &number, &[16], &number].concat();
    let info = [&[10, delay.len() as u8][..], &delay].concat();
    let kind = b"x/google.rpc.RetryInfo";
    let any = [&[10, kind.len() as u8][..], kind, &[18, info.len() as u8], &info].concat();
    let status = [&[26, any.len() as u8][..], &any].concat();
    assert_eq!(RpcStatus::from_protobuf(&status).unwrap().retry_delay, Some(MAX_RETRY_DELAY));
}

#[test]
fn a_retry_info_without_a_delay_is_a_hint_of_zero() {
    let kind = b"type.googleapis.com/google.rpc.RetryInfo";
    let any = [&[10, kind.len() as u8][..], kind].concat();
    let status = [&[26, any.len() as u8][..], &any].concat();
    assert_eq!(RpcStatus::from_protobuf(&status).unwrap().retry_delay, Some(Duration::ZERO));
}

#[test]
fn other_details_and_negative_delays_are_no_hints() {
    let kind = b"type.googleapis.com/google.rpc.DebugInfo";
    let any = [&[10, kind.len() as u8][..], kind].concat();
    let status = [&[26, any.len() as u8][..], &any].concat();
    assert_eq!(RpcStatus::from_protobuf(&status).unwrap().retry_delay, None);
    assert_eq!(non_negative(u64::MAX), 0);
}

#[test]
fn garbage_is_told_from_an_empty_answer() {
    assert_eq!(parse_export_response(b""), Some(SendSuccess::default()));
    assert_eq!(parse_export_response(b"hello"), None);
    assert_eq!(parse_export_response(&[10, 2, 255, 255]), None);
    assert_eq!(parse_export_response(&[10, 0]), Some(SendSuccess::default()));
    assert_eq!(parse_export_response_json(b"{}"), Some(SendSuccess::default()));
    assert_eq!(parse_export_response_json(b"[]"), None);
    assert_eq!(parse_export_response_json(br#"{"partialSuccess":{}}"#), Some(SendSuccess::default()));
    let negative = [10, 11, 8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
    assert_eq!(parse_export_response(&negative), Some(SendSuccess::default()));
}

#[test]
fn a_bad_escape_stands_for_itself() {
    assert_eq!(percent_decoded(b"a%20b%zz%4"), "a b%zz%4");
    assert_eq!(percent_decoded(b"%F0%9F%9A%A2"), "🚢");
}

#[test]
fn texts_fit_a_log_line() {
    assert_eq!(clip_message(" two\nlines\u{7f}\u{1b}[31m "), "two lines  [31m");
    assert_eq!(clip_message(&"é".repeat(5000)).chars().count(), MAX_MESSAGE_CHARS);
}
