mod container;
mod interpret;
mod parse;
mod recombine;
mod transform;

use kubewake_config::file_log::OperatorGraph;
use kubewake_log_lines::LinePosition;
use proptest::prelude::*;

use crate::{LogEntry, LogMap, LogValue, OperatorChain};

const SECOND: u64 = 1_000_000_000;

fn chain(operators: &str) -> OperatorChain {
    OperatorChain::new(&OperatorGraph::from_yaml(operators).unwrap_or_else(|error| panic!("{operators}: {error}")))
}

/// A record with this body, which is the line at this place.
fn line(text: &str, place: u64) -> LogEntry {
    let mut entry = LogEntry::new(text.into());
    entry.start = LinePosition { generation: 1, offset: place };
    entry.observed = 1_700_000_000 * SECOND + place;
    entry
}

/// What comes out of operators for lines, the held ones last.
fn run(operators: &str, lines: &[&str]) -> Vec<LogEntry> {
    let mut chain = chain(operators);
    let mut out = Vec::new();
    for (place, text) in lines.iter().enumerate() {
        chain.process(line(text, place as u64), &mut out);
    }
    chain.flush_all(&mut out);
    assert_eq!((chain.held_bytes(), chain.held_since()), (0, None));
    out
}

/// The one record that comes out for a line.
#[track_caller]
fn one(operators: &str, text: &str) -> LogEntry {
    let mut out = run(operators, &[text]);
    assert_eq!(out.len(), 1, "{out:?}");
    out.remove(0)
}

fn bodies(entries: &[LogEntry]) -> Vec<String> {
    entries.iter().map(|entry| shown(&entry.body)).collect()
}

/// A value as text: like JSON, with texts in single quotes if they are within something.
fn shown(value: &LogValue) -> String {
    match value {
        LogValue::Text(text) => String::from_utf8_lossy(text).into_owned(),
        other => inner(other),
    }
}

fn inner(value: &LogValue) -> String {
    match value {
        LogValue::Null => "null".into(),
        LogValue::Bool(value) => value.to_string(),
        LogValue::Int(value) => value.to_string(),
        LogValue::Double(value) => format!("{value:?}"),
        LogValue::Text(text) => format!("'{}'", String::from_utf8_lossy(text)),
        LogValue::Bytes(bytes) => format!("{bytes:?}"),
        LogValue::List(items) => format!("[{}]", items.iter().map(inner).collect::<Vec<_>>().join(", ")),
        LogValue::Map(map) => map_text(map),
    }
}

fn map_text(map: &LogMap) -> String {
    let pairs: Vec<String> = map.iter().map(|(key, value)| format!("{key}: {}", inner(value))).collect();
    format!("{{{}}}", pairs.join(", "))
}

#[track_caller]
fn attributes(operators: &str, text: &str, expected: &str) {
    assert_eq!(map_text(&one(operators, text).attributes), expected, "{operators}");
}

/// Parsers that send what they cannot read.
const PARSERS: [&str; 12] = [
    "{type: json_parser}",
    "{type: json_array_parser, parse_to: attributes.l}",
    "{type: regex_parser, regex: '(?P<a>.)(?P<b>.*)'}",
    "{type: key_value_parser}",
    "{type: csv_parser, header: 'a,b', lazy_quotes: true}",
    "{type: uri_parser}",
    "{type: syslog_parser, protocol: rfc5424}",
    "{type: syslog_parser, protocol: rfc3164, enable_octet_counting: true}",
    "{type: container}",
    "{type: unquote, field: body}",
    "{type: time_parser, parse_from: body, layout: '%Y-%m-%d %H:%M:%S%z'}",
    "{type: severity_parser, parse_from: body}",
];

proptest! {
    #[test]
    fn any_line_leaves_a_parser_as_one_record(
        parser in prop::sample::select(&PARSERS[..]),
        line in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..60),
            r#"[ -~é]{0,60}"#.prop_map(String::into_bytes),
            r#"(<[0-9]{1,3}>1? ?)?[0-9T:Z.-]{0,25} (stdout|stderr|-) [FP-] [\[\]{}a-z="' ,:\\]{0,20}"#
                .prop_map(String::into_bytes),
        ],
    ) {
        let mut chain = chain(&format!("[{parser}]"));
        let mut out = Vec::new();
        chain.process(LogEntry::new(LogValue::Text(line)), &mut out);
        chain.flush_all(&mut out);
        prop_assert_eq!(out.len(), 1);
    }
}
