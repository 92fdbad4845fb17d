use super::{
    duration::{DurationError, parse},
    id::{self, IdError},
    suggest,
};

#[test]
fn durations_are_gos() {
    const SECOND: i64 = 1_000_000_000;
    let cases = [
        ("0", Ok(0)),
        ("-0", Ok(0)),
        ("5s", Ok(5 * SECOND)),
        ("1m30s", Ok(90 * SECOND)),
        ("1.5h", Ok(5400 * SECOND)),
        (".5s", Ok(SECOND / 2)),
        ("1.s", Ok(SECOND)),
        ("500ms", Ok(SECOND / 2)),
        ("3us", Ok(3000)),
        ("3\u{b5}s", Ok(3000)),
        ("3\u{3bc}s", Ok(3000)),
        ("7ns", Ok(7)),
        ("-1s", Ok(-SECOND)),
        ("+1s", Ok(SECOND)),
        ("0.1234567891234567891s", Ok(123_456_789)),
        ("2562047h47m16.854775807s", Ok(i64::MAX)),
        ("2562047h47m16.854775808s", Err(DurationError::Overflow)),
        ("-2562047h47m16.854775808s", Ok(i64::MIN)),
        ("99999999999999999999h", Err(DurationError::Overflow)),
        ("", Err(DurationError::Invalid)),
        ("-", Err(DurationError::Invalid)),
        (".", Err(DurationError::Invalid)),
        ("soon", Err(DurationError::Invalid)),
        ("s", Err(DurationError::Invalid)),
        ("10", Err(DurationError::MissingUnit)),
        ("1m30", Err(DurationError::MissingUnit)),
        ("5d", Err(DurationError::UnknownUnit)),
        ("5 s", Err(DurationError::UnknownUnit)),
        ("5S", Err(DurationError::UnknownUnit)),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text), expected, "{text:?}");
    }
}

#[test]
fn ids_are_the_collectors() {
    let long = format!("otlp/{}", "x".repeat(1025));
    let cases = [
        ("otlp", Ok("otlp")),
        ("otlp/backend", Ok("otlp/backend")),
        (" otlp / backend ", Ok("otlp/backend")),
        ("otlp/a/b.c-d", Ok("otlp/a/b.c-d")),
        ("otlp/ä", Ok("otlp/ä")),
        ("", Err(IdError::Empty)),
        ("/x", Err(IdError::NoType)),
        ("otlp/", Err(IdError::NoName)),
        ("2otlp", Err(IdError::BadType)),
        ("ot lp", Err(IdError::BadType)),
        ("otlp-x", Err(IdError::BadType)),
        ("otlp/a b", Err(IdError::BadName)),
        ("otlp/a=b", Err(IdError::BadName)),
        (long.as_str(), Err(IdError::TooLong)),
    ];
    for (text, expected) in cases {
        let found = id::component(text);
        assert_eq!(found.as_ref().map(|id| id.as_str()).map_err(|error| *error), expected, "{text:?}");
    }
}

#[test]
fn pipelines_are_named_after_signals() {
    assert_eq!(id::pipeline("traces/a").unwrap().to_string(), "traces/a");
    assert_eq!(id::pipeline(" logs ").unwrap().to_string(), "logs");
    assert_eq!(id::pipeline("spans"), Err(IdError::UnknownSignal));
    assert_eq!(id::pipeline("traces/"), Err(IdError::NoName));
}

#[test]
fn the_closest_word_is_suggested_if_it_is_close() {
    let known = ["endpoint", "timeout", "headers", "tls"];
    let cases = [
        ("endpoin", Some("endpoint")),
        ("endpiont", Some("endpoint")),
        ("Timeout", Some("timeout")),
        ("header", Some("headers")),
        ("tsl", Some("tls")),
        ("x", None),
        ("colour", None),
        ("", None),
    ];
    for (word, expected) in cases {
        assert_eq!(suggest::closest(word, known), expected, "{word}");
    }
    assert_eq!(suggest::closest(&"endpoint".repeat(1000), known), None);
}
