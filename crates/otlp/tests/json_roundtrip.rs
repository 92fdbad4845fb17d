//! Any request survives a round trip through JSON, and no input makes either direction panic.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

#[path = "json_roundtrip/requests.rs"]
mod requests;

use std::fmt::Debug;

use kubewake_otlp::Signal;
use kubewake_otlp::json::{self, RecordKind};
use proptest::prelude::*;
use prost::Message;

fn there_and_back<M: Message + Default + PartialEq + Debug>(signal: Signal, message: &M) -> Result<(), TestCaseError> {
    let protobuf = message.encode_to_vec();
    let mut text = Vec::new();
    json::encode(signal, &protobuf, &mut text).unwrap();
    prop_assert!(serde_json::from_slice::<serde_json::Value>(&text).is_ok());
    let back = json::decode(signal, &text).unwrap();
    prop_assert_eq!(&M::decode(back.as_slice()).unwrap(), message);
    // The output equals prost's, but for the order of the fields and a minus before a zero.
    prop_assert!(back.len() >= protobuf.len());
    // Two requests joined on the wire are one request in JSON.
    let joined = [protobuf.as_slice(), &protobuf].concat();
    text.clear();
    json::encode(signal, &joined, &mut text).unwrap();
    let back = json::decode(signal, &text).unwrap();
    prop_assert_eq!(M::decode(back.as_slice()).unwrap(), M::decode(joined.as_slice()).unwrap());
    Ok(())
}

fn signal() -> impl Strategy<Value = Signal> {
    prop::sample::select(Signal::ALL.to_vec())
}

/// Text that consists of OTLP's tokens and names, so that it reaches deep into the decoder.
fn nearly_json() -> impl Strategy<Value = String> {
    let tokens = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "null",
        "true",
        "1",
        "-1.5e3",
        "\"1\"",
        "\\ud83d",
        "\\u0041",
        " ",
        "\n",
        "\"a\"",
        "\"resourceSpans\":[{",
        "\"scopeSpans\":[{",
        "\"spans\":[{",
        "\"resourceLogs\":[{",
        "\"scopeLogs\":[{",
        "\"logRecords\":[{",
        "\"resourceMetrics\":[{",
        "\"scopeMetrics\":[{",
        "\"metrics\":[{",
        "\"gauge\":{",
        "\"sum\":{",
        "\"data_points\":[{",
        "\"body\":{",
        "\"stringValue\":",
        "\"bytesValue\":",
        "\"arrayValue\":{",
        "\"values\":[{",
        "\"attributes\":[{",
        "\"value\":{",
        "\"traceId\":\"\"",
        "\"kind\":",
        "\"bucketCounts\":[",
        "}]",
        "}]}]}]}",
    ];
    prop::collection::vec(prop::sample::select(tokens.to_vec()), 0..40).prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn traces_come_back(request in requests::traces()) {
        there_and_back(Signal::Traces, &request)?;
    }

    #[test]
    fn logs_come_back(request in requests::logs()) {
        there_and_back(Signal::Logs, &request)?;
    }

    #[test]
    fn metrics_come_back(request in requests::metrics()) {
        there_and_back(Signal::Metrics, &request)?;
    }

    /// A broken request is an error, or JSON all the same.
    #[test]
    fn a_request_with_a_wrong_byte_never_panics(
        request in requests::metrics(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut protobuf = request.encode_to_vec();
        if !protobuf.is_empty() {
            let at = at.index(protobuf.len());
            protobuf[at] = byte;
        }
        let mut text = Vec::new();
        if json::encode(Signal::Metrics, &protobuf, &mut text).is_ok() {
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&text).is_ok());
        } else {
            prop_assert!(text.is_empty());
        }
    }

    #[test]
    fn a_document_cut_short_is_refused(request in requests::logs(), at in any::<prop::sample::Index>()) {
        let mut text = Vec::new();
        json::encode(Signal::Logs, &request.encode_to_vec(), &mut text).unwrap();
        prop_assert!(json::decode(Signal::Logs, &text[..at.index(text.len())]).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_never_panic(signal in signal(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut out = Vec::new();
        let _ = json::encode(signal, &bytes, &mut out);
        for record in [RecordKind::Resource, RecordKind::Scope, RecordKind::Span, RecordKind::LogRecord, RecordKind::Metric] {
            let _ = json::encode_record(record, &bytes, &mut out);
        }
        let _ = json::decode(signal, &bytes);
    }

    #[test]
    fn text_never_panics(signal in signal(), text in any::<String>(), nearly in nearly_json()) {
        let _ = json::decode(signal, text.as_bytes());
        let _ = json::decode(signal, nearly.as_bytes());
        let _ = json::decode(signal, format!("{{{nearly}").as_bytes());
    }

    /// A document is accepted only if JSON accepts its first value.
    #[test]
    fn what_is_accepted_is_json(signal in signal(), nearly in nearly_json()) {
        let document = format!("{{{nearly}");
        if json::decode(signal, document.as_bytes()).is_ok() {
            let mut values = serde_json::Deserializer::from_str(&document).into_iter::<serde::de::IgnoredAny>();
            prop_assert!(values.next().is_some_and(|first| first.is_ok()), "{document}");
        }
    }
}
