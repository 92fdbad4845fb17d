//! Logs of containers and of other programs, as lines and as JSON.

use std::sync::Arc;

use kubewake_log_lines::{
    BodyKind, BodyParsing, ContainerLogDecoder, ContainerSettings, DockerBodies, LineFraming, LinePattern,
    LinePosition, LineRecord, OversizeBehavior, PlainLogDecoder, PlainSettings, RecordSettings, RecordSink,
    RequestBuilder, RequestLimits, TextEncoding,
};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message as _;
use serde_json::Value;

use crate::{choice, memory::bounded};

/// Where a record begins, and its body.
type Found = Vec<(LinePosition, u64, Vec<u8>)>;

/// Keeps what a decoder finds.
#[derive(Default)]
struct Records(Found);

impl RecordSink for Records {
    fn has_room(&self) -> bool {
        true
    }

    fn put(&mut self, record: &LineRecord<'_>) {
        self.0.push((record.start, record.time, record.body.to_vec()));
    }
}

/// Chunks make no difference, every byte is counted, and the request is one that prost reads.
pub(super) fn container_log(data: &[u8]) {
    let (choice, log) = choice(data);
    let settings = ContainerSettings {
        docker: if choice & 1 == 0 { DockerBodies::Joined } else { DockerBodies::AsWritten },
        max_record_bytes: [20, 1 << 20][choice >> 1 & 1],
        oversize: if choice & 4 == 0 { OversizeBehavior::Split } else { OversizeBehavior::Truncate },
        joins_stack_traces: choice & 8 != 0,
        ..ContainerSettings::default()
    };
    let read = |step: usize| {
        let mut decoder = ContainerLogDecoder::new(settings);
        let mut records = Records::default();
        let (mut at, mut end) = (0, 0);
        while end < log.len() {
            end = (end + step).min(log.len());
            at += decoder.push(&log[at..end], position(at), 1, &mut records);
        }
        decoder.flush(&log[at..], position(at), 1, &mut records);
        assert_eq!(decoder.take_counts().bytes, log.len() as u64);
        assert!(decoder.commit_position() == position(log.len()) || log.is_empty());
        records.0
    };
    let whole = bounded("records", log.len(), 128, 1 << 20, || read(log.len().max(1)));
    assert_eq!(read(1 + (choice >> 4)), whole);

    let mut builder = builder(BodyParsing::ALL);
    let mut decoder = ContainerLogDecoder::new(settings);
    let consumed = decoder.push(log, position(0), 1, &mut builder);
    decoder.flush(&log[consumed..], position(consumed), 1, &mut builder);
    assert_eq!(finish(&mut builder).len(), whole.len());
}

/// Chunks make no difference, and nothing but line ends and what was cut is left out.
pub(super) fn plain_log(data: &[u8]) {
    let (choice, log) = choice(data);
    let framing = match choice & 3 {
        0 | 1 => LineFraming::LineFeed,
        2 => LineFraming::Start(LinePattern::new("^S", false).unwrap()),
        _ => LineFraming::End(LinePattern::new(";", false).unwrap()),
    };
    let settings = PlainSettings {
        encoding: if choice & 4 == 0 { TextEncoding::Utf8 } else { TextEncoding::Utf16Le },
        framing,
        max_record_bytes: [10, 1 << 20][choice >> 3 & 1],
        oversize: if choice & 16 == 0 { OversizeBehavior::Split } else { OversizeBehavior::Truncate },
        ..PlainSettings::default()
    };
    let read = |step: usize| {
        let mut decoder = PlainLogDecoder::new(settings.clone());
        let mut records = Records::default();
        let (mut at, mut end) = (0, 0);
        while end < log.len() {
            end = (end + step).min(log.len());
            at += decoder.push(&log[at..end], position(at), 1, &mut records);
        }
        at += decoder.flush(&log[at..], position(at), 1, &mut records);
        assert_eq!((at, decoder.take_counts().bytes), (log.len(), log.len() as u64));
        records.0
    };
    assert_eq!(read(1 + (choice >> 5)), read(log.len().max(1)));
}

/// What becomes attributes is what serde_json reads, and a line that it refuses stays as it is.
pub(super) fn json_line(data: &[u8]) {
    let line = data.trim_ascii();
    if line.contains(&b'\n') {
        return;
    }
    let record = LineRecord {
        start: position(0),
        number: 1,
        time: 1,
        observed: 1,
        stream: None,
        tags: &[],
        docker_attributes: &[],
        body: line,
        body_kind: BodyKind::Text,
    };
    let mut all = builder(BodyParsing::ALL);
    bounded("a record", line.len(), 24, 64 << 10, || all.put(&record));
    assert_eq!(finish(&mut all).len(), 1);
    let mut only_json = builder(BodyParsing { parses_json: true, ..BodyParsing::OFF });
    only_json.put(&record);
    let is_parsed = only_json.take_counts().parsed_bodies == 1;
    let record = finish(&mut only_json).pop().unwrap();
    let text = String::from_utf8_lossy(line);
    let expected = serde_json::from_str::<Value>(&text).ok();
    match expected.as_ref().and_then(Value::as_object) {
        // What is too deep or too large is not parsed.
        Some(members) if is_parsed => {
            assert_eq!(record.attributes.len(), members.len());
            assert!(record.attributes.iter().all(|attribute| members.contains_key(&attribute.key)));
        }
        // Half a pair of surrogates is replaced here, and refused there.
        None if is_parsed => assert!(text.contains("\\u"), "{text}"),
        _ => {}
    }
}

fn position(at: usize) -> LinePosition {
    LinePosition { generation: 1, offset: at as u64 }
}

fn builder(parsing: BodyParsing) -> RequestBuilder {
    let settings = RecordSettings { parsing, adds_stream: false, ..RecordSettings::default() };
    RequestBuilder::new(Arc::default(), settings, RequestLimits { max_bytes: usize::MAX, max_records: usize::MAX })
}

/// The records of the request, if there are any.
fn finish(builder: &mut RequestBuilder) -> Vec<LogRecord> {
    let Some(request) = builder.finish(LinePosition::default()) else { return Vec::new() };
    let decoded = ExportLogsServiceRequest::decode(request.body).unwrap();
    let scopes = decoded.resource_logs.into_iter().flat_map(|resource| resource.scope_logs);
    scopes.flat_map(|scope| scope.log_records).collect()
}
