//! Requests hold what the lines say, as prost reads them.

#[path = "support/decoded.rs"]
mod decoded;

use std::sync::Arc;

use kubewake_log_lines::{
    BodyKind, ContainerLogDecoder, ContainerSettings, LinePosition, LineRecord, RecordEnvelope, RecordSettings,
    RecordSink, RequestBuilder, RequestLimits,
};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use prost::Message;

use decoded::{read_records, show, show_attributes};

const LIMITS: RequestLimits = RequestLimits { max_bytes: 1 << 20, max_records: 10_000 };

fn envelope() -> Arc<RecordEnvelope> {
    let mut envelope = RecordEnvelope::from_resource_attributes([("k8s.pod.name", "shop-1"), ("k8s.pod.uid", "u")]);
    envelope.add_record_attribute("log.file.name", "0.log");
    Arc::new(envelope)
}

#[test]
fn request_has_resource_times_streams_and_bodies() {
    let mut builder = RequestBuilder::new(envelope(), RecordSettings::default(), LIMITS);
    let mut decoder = ContainerLogDecoder::new(ContainerSettings::default());
    let log = "1970-01-01T00:00:02Z stdout F hello\n1970-01-01T00:00:01Z stderr F wörld\nplain\n";
    let start = LinePosition { generation: 4, offset: 10 };
    assert_eq!(decoder.push(log.as_bytes(), start, 9_000_000_000, &mut builder), log.len());
    let request = builder.finish(decoder.commit_position()).unwrap();
    assert_eq!((request.records, request.start, request.commit), (3, start, start.advanced_by(log.len())));
    assert_eq!((request.first_time, request.last_time), (1_000_000_000, 9_000_000_000));

    let decoded = ExportLogsServiceRequest::decode(request.body.clone()).unwrap();
    let resource = decoded.resource_logs[0].resource.as_ref().unwrap();
    assert_eq!(show_attributes(&resource.attributes), r#"k8s.pod.name="shop-1",k8s.pod.uid="u""#);
    // The bytes are those that prost would write, so that no reader meets an unusual encoding.
    assert_eq!(decoded.encoded_len(), request.body.len());

    let records = read_records(&request.body);
    let shown: Vec<_> = records
        .iter()
        .map(|record| {
            let attributes = show_attributes(&record.attributes);
            (record.time_unix_nano, record.observed_time_unix_nano, show(record.body.as_ref()), attributes)
        })
        .collect();
    let stdout = r#"log.iostream="stdout",log.file.name="0.log""#.to_owned();
    let stderr = r#"log.iostream="stderr",log.file.name="0.log""#.to_owned();
    assert_eq!(
        shown,
        [
            (2_000_000_000, 9_000_000_000, "\"hello\"".to_owned(), stdout),
            (1_000_000_000, 9_000_000_000, "\"wörld\"".to_owned(), stderr),
            (0, 9_000_000_000, "\"plain\"".to_owned(), r#"log.file.name="0.log""#.to_owned()),
        ]
    );
}

#[test]
fn builder_begins_anew_after_a_request() {
    let mut builder = RequestBuilder::new(envelope(), RecordSettings::default(), LIMITS);
    assert!(builder.finish(LinePosition::default()).is_none());
    for text in ["first", "second"] {
        builder.put(&record(text.as_bytes(), BodyKind::Text));
        assert!(!builder.set_envelope(envelope()));
        let request = builder.finish(LinePosition::default()).unwrap();
        assert_eq!(show(read_records(&request.body)[0].body.as_ref()), format!("{text:?}"));
        assert!(builder.is_empty() && builder.set_envelope(envelope()));
    }
}

#[test]
fn request_is_full_at_its_bounds() {
    for (limits, records) in [
        (RequestLimits { max_bytes: 1 << 20, max_records: 3 }, 3),
        (RequestLimits { max_bytes: 1000, max_records: 100 }, 2),
        (RequestLimits { max_bytes: 1, max_records: 100 }, 1),
    ] {
        let mut builder = RequestBuilder::new(envelope(), RecordSettings::default(), limits);
        let mut decoder = ContainerLogDecoder::new(ContainerSettings::default());
        let line = format!("1970-01-01T00:00:02Z stdout F {}\n", "x".repeat(500));
        let log = line.repeat(5);
        let consumed = decoder.push(log.as_bytes(), LinePosition::default(), 1, &mut builder);
        assert_eq!(consumed, records * line.len());
        assert!(builder.is_full());
        let request = builder.finish(decoder.commit_position()).unwrap();
        assert_eq!((request.records, read_records(&request.body).len()), (records, records));
    }
}

#[test]
fn bodies_that_are_no_utf8_are_replaced_kept_or_bytes() {
    for (kind, shown) in
        [(BodyKind::Text, "\"bad \u{fffd}\u{fffd} x\""), (BodyKind::Bytes, "[98, 97, 100, 32, 255, 254, 32, 120]")]
    {
        let mut builder = RequestBuilder::new(envelope(), RecordSettings::default(), LIMITS);
        builder.put(&record(b"bad \xff\xfe x", kind));
        let request = builder.finish(LinePosition::default()).unwrap();
        assert_eq!(show(read_records(&request.body)[0].body.as_ref()), shown);
    }
    let mut builder = RequestBuilder::new(envelope(), RecordSettings::default(), LIMITS);
    builder.put(&record(b"bad \xff\xfe x", BodyKind::RawText));
    let request = builder.finish(LinePosition::default()).unwrap();
    assert!(request.body.windows(8).any(|bytes| bytes == b"bad \xff\xfe x"));
}

#[test]
fn attributes_of_tags_and_places_are_added_on_request() {
    let settings = RecordSettings {
        adds_stream: false,
        adds_tags: true,
        adds_record_number: true,
        adds_record_offset: true,
        ..RecordSettings::default()
    };
    let mut builder = RequestBuilder::new(Arc::default(), settings, LIMITS);
    builder.put(&LineRecord { tags: b"F:x", number: 300, ..record(b"x", BodyKind::Text) });
    let request = builder.finish(LinePosition::default()).unwrap();
    assert_eq!(
        show_attributes(&read_records(&request.body)[0].attributes),
        r#"logtag="F:x",log.file.record_number=300,log.file.record_offset=5"#
    );
}

fn record(body: &[u8], body_kind: BodyKind) -> LineRecord<'_> {
    LineRecord {
        start: LinePosition { generation: 1, offset: 5 },
        number: 1,
        time: 0,
        observed: 1,
        stream: None,
        tags: &[],
        docker_attributes: &[],
        body,
        body_kind,
    }
}
