//! Logs of containers for property tests: lines of every kind, with what they say.
#![allow(dead_code, clippy::unwrap_used)]

use kubewake_log_lines::{LinePosition, LineRecord, OutputStream, RecordSink};
use proptest::prelude::*;

/// A record as an owned value.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedRecord {
    pub start: LinePosition,
    pub number: u64,
    pub time: u64,
    pub stream: Option<OutputStream>,
    pub tags: Vec<u8>,
    pub body: Vec<u8>,
}

/// Keeps records, a bounded number at a time.
pub struct Records {
    pub all: Vec<OwnedRecord>,
    pub room: usize,
}

impl Records {
    pub fn with_room(room: usize) -> Self {
        Self { all: Vec::new(), room }
    }
}

impl RecordSink for Records {
    fn has_room(&self) -> bool {
        self.room > 0
    }

    fn put(&mut self, record: &LineRecord<'_>) {
        self.room = self.room.saturating_sub(1);
        self.all.push(OwnedRecord {
            start: record.start,
            number: record.number,
            time: record.time,
            stream: record.stream,
            tags: record.tags.to_vec(),
            body: record.body.to_vec(),
        });
    }
}

/// A line of a log, and the content that it gives to its stream.
#[derive(Clone, Debug)]
pub struct LogLine {
    pub text: Vec<u8>,
    pub stream: Option<OutputStream>,
    pub content: Vec<u8>,
}

/// Bytes of a content: text, text that stack traces and JSON have, and anything else but a line feed.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "",
        " ",
        "é",
        "世界",
        "panic: x",
        "goroutine 1 [running]:",
        "main.f()",
        "\t/a.go:1",
        "Error: x",
        "    at a (b:1)",
        "Traceback (most recent call last):",
        "  File",
        "ValueError: x",
        "{\"msg\":\"m\"}",
        "{\"a\":[1,{}]}",
        "{x}",
        "plain",
    ]);
    prop_oneof![
        4 => words.prop_map(|word| word.as_bytes().to_vec()),
        2 => prop::collection::vec(any::<u8>().prop_filter("a line feed ends the line", |byte| *byte != b'\n'), 0..40),
        1 => (1usize..300).prop_map(|length| vec![b'x'; length]),
    ]
}

fn time() -> impl Strategy<Value = String> {
    (0u32..60, 0u32..1_000_000_000, prop::sample::select(vec!["Z", "+07:00", "-03:30"]))
        .prop_map(|(second, nanos, offset)| format!("2026-11-18T03:46:{second:02}.{nanos:09}{offset}"))
}

pub fn stream() -> impl Strategy<Value = OutputStream> {
    prop::sample::select(vec![OutputStream::Stdout, OutputStream::Stderr])
}

/// A line as containerd and CRI-O write it.
pub fn cri_line() -> impl Strategy<Value = LogLine> {
    let tags = prop::sample::select(vec!["F", "F", "F", "P", "P:x", "F:a:b"]);
    (time(), stream(), tags, content()).prop_map(|(time, stream, tags, content)| LogLine {
        text: [format!("{time} {} {tags} ", stream.as_str()).as_bytes(), &content, b"\n"].concat(),
        stream: Some(stream),
        content,
    })
}

/// A line of any kind: mostly CRI, some of Docker, and some of no format.
pub fn any_line() -> impl Strategy<Value = LogLine> {
    let docker = (time(), stream(), "[a-z\\PC]{0,20}", any::<bool>()).prop_map(|(time, stream, text, is_final)| {
        let end = if is_final { "\n" } else { "" };
        let log = serde_json::to_string(&format!("{text}{end}")).unwrap();
        LogLine {
            text: format!("{{\"log\":{log},\"stream\":\"{}\",\"time\":\"{time}\"}}\n", stream.as_str()).into_bytes(),
            stream: Some(stream),
            content: text.into_bytes(),
        }
    });
    let junk = content().prop_map(|content| LogLine {
        text: [&content[..], b"\n"].concat(),
        stream: None,
        content: content.strip_suffix(b"\r").unwrap_or(&content).to_vec(),
    });
    prop_oneof![6 => cri_line(), 2 => docker, 1 => junk]
}

/// Where a log of this length is cut into chunks.
pub fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1usize..200, 1..20)
}
