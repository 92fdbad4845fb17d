//! Fuzz targets of OTLP, in protobuf and JSON.

#[path = "../../crates/otlp/tests/support/fuzz_bodies.rs"]
mod requests;

use bytes::Bytes;
use kubewake_otlp::{
    PartitionGrain, Signal, TraceState, json, partition,
    probability::{Randomness, Threshold},
    view::AnyValue,
};
use opentelemetry_proto::tonic::collector::{
    logs::v1::ExportLogsServiceRequest, metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest,
};
use prost::Message;

use crate::{Target, choice, memory::bounded};

pub const TARGETS: [Target; 11] = [
    Target { name: "scan", body: |data| requests::scan(data) },
    Target { name: "split", body: |data| requests::split(data) },
    Target { name: "retain", body: |data| requests::retain(data) },
    Target { name: "rewrite", body: |data| requests::rewrite(data) },
    Target { name: "opencensus", body: |data| requests::opencensus(data) },
    Target { name: "otlp-json", body: json_to_protobuf },
    Target { name: "otlp-json-encode", body: protobuf_to_json },
    Target { name: "partition", body: partition_by_content },
    Target { name: "trace-state", body: trace_state },
    Target { name: "probability", body: probability },
    Target { name: "value-text", body: value_text },
];

pub(crate) fn signal_and_request(data: &[u8]) -> (Signal, &[u8]) {
    let (choice, request) = choice(data);
    (Signal::ALL[choice % 3], request)
}

/// Decodes with prost and encodes again. `None` if prost refuses the bytes.
pub(crate) fn read_by_prost(signal: Signal, protobuf: &[u8]) -> Option<Vec<u8>> {
    match signal {
        Signal::Traces => ExportTraceServiceRequest::decode(protobuf).ok().map(|request| request.encode_to_vec()),
        Signal::Metrics => ExportMetricsServiceRequest::decode(protobuf).ok().map(|request| request.encode_to_vec()),
        Signal::Logs => ExportLogsServiceRequest::decode(protobuf).ok().map(|request| request.encode_to_vec()),
    }
}

/// JSON becomes a request of at most four times its length that prost reads, and survives a round trip.
fn json_to_protobuf(data: &[u8]) {
    let (signal, text) = signal_and_request(data);
    let decoded = bounded("json::decode", text.len(), 32, 16 << 10, || json::decode(signal, text));
    let Ok(protobuf) = decoded else { return };
    assert!(protobuf.len() <= 4 * text.len(), "{} bytes of JSON became {}", text.len(), protobuf.len());
    kubewake_otlp::scan(signal, &protobuf).expect("what was decoded is a request");
    let Some(message) = read_by_prost(signal, &protobuf) else {
        // Invalid UTF-8 passes unchanged, and prost has a lower depth limit.
        assert!(std::str::from_utf8(text).is_err() || is_deep(text), "prost refuses what was decoded");
        return;
    };
    let again = encode(signal, &protobuf).expect("what was decoded can be encoded");
    let back = json::decode(signal, &again).expect("what was encoded can be decoded");
    assert_eq!(read_by_prost(signal, &back), Some(message));
}

fn is_deep(text: &[u8]) -> bool {
    text.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() > 60
}

fn encode(signal: Signal, protobuf: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let encoded = bounded("json::encode", protobuf.len(), 64, 16 << 10, || json::encode(signal, protobuf, &mut text));
    match encoded {
        Ok(()) => {
            assert!(text.len() <= 15 * protobuf.len() + 64, "{} bytes became {}", protobuf.len(), text.len());
            if !is_deep(&text) {
                serde_json::from_slice::<serde::de::IgnoredAny>(&text).expect("what is written is JSON");
            }
            Some(text)
        }
        Err(_) => {
            assert!(text.is_empty(), "a request that is refused leaves nothing behind");
            None
        }
    }
}

/// A request survives a round trip through JSON, by prost.
fn protobuf_to_json(data: &[u8]) {
    let (signal, request) = signal_and_request(data);
    let Some(text) = encode(signal, request) else { return };
    let Some(message) = read_by_prost(signal, request) else { return };
    // JSON cannot represent an id of another length.
    if let Ok(back) = json::decode(signal, &text) {
        assert_eq!(read_by_prost(signal, &back), Some(message));
    }
}

/// The shares of a request are valid requests, and have every item once.
fn partition_by_content(data: &[u8]) {
    let (choice, request) = choice(data);
    let signal = Signal::ALL[choice % 3];
    let Ok(summary) = kubewake_otlp::scan(signal, request) else { return };
    let request = Bytes::copy_from_slice(request);
    let grain = [PartitionGrain::Records, PartitionGrain::Items][choice / 3 % 2];
    let destinations = 1 + choice / 6;
    let shares = partition(signal, &request, grain, |record, point| {
        let of_point = point.map_or(0, |point| point.time());
        let sum: u64 = record.as_bytes().iter().map(|byte| u64::from(*byte)).sum();
        (sum.wrapping_add(of_point) % destinations as u64) as usize
    });
    let mut found = 0;
    for share in shares {
        assert!(share.to < destinations);
        let part = kubewake_otlp::scan(signal, &share.bytes).expect("a share is a request");
        assert_eq!(part.items, share.items);
        // The messages around a record are repeated in each share.
        assert!(share.bytes.len() <= request.len() + 16 * summary.records);
        found += part.items;
    }
    assert_eq!(found, summary.items);
}

/// A trace state that a sampler writes can be parsed, has the written values, and is stable. Other members stay
/// unchanged and in their order; the last of them are dropped only where there is no room.
fn trace_state(data: &[u8]) {
    let Ok(state) = TraceState::parse(data) else { return };
    let own = state.threshold();
    let randomness = state.randomness();
    for threshold in [own, None, Threshold::parse(b"8"), Threshold::parse(b"fffffffffffff1")] {
        for given in [randomness, Some(Randomness::MAX)] {
            let write = |state: &TraceState<'_>| {
                let mut written = Vec::new();
                state.write(threshold, given, &mut written);
                written
            };
            let written = write(&state);
            let again = TraceState::parse(&written).expect("what was written can be read");
            assert_eq!((again.threshold(), again.randomness()), (threshold, randomness.or(given)));
            assert_eq!(write(&again), written);
            let before = members_of_others(data);
            let after = members_of_others(&written);
            assert!(before.starts_with(&after), "{after:?} are not the first of {before:?}");
            if let Some(gone) = before.get(after.len()) {
                let members = after.len() + usize::from(written.starts_with(b"ot="));
                assert!(members == 32 || written.len() + 1 + gone.len() > 1024, "there was room for {gone:?}");
            }
        }
    }
}

fn members_of_others(text: &[u8]) -> Vec<&[u8]> {
    let members = text.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    members.filter(|member| !member.is_empty() && !member.starts_with(b"ot=")).collect()
}

/// Thresholds and randomness survive a round trip in hexadecimal, and a threshold keeps exactly values not
/// below it.
fn probability(data: &[u8]) {
    if let Some(threshold) = Threshold::parse(data) {
        assert_eq!(Threshold::parse(threshold.hex().as_bytes()), Some(threshold));
        assert!((0.0..=1.0).contains(&threshold.probability()));
        if let Some(randomness) = Randomness::from_trace_id(&[data, &[0; 16]].concat()[..16]) {
            assert_eq!(threshold.keeps(randomness), randomness.bits() >= threshold.rejected());
        }
    }
    if let Some(randomness) = Randomness::parse(data) {
        assert_eq!(Randomness::parse(randomness.hex().as_bytes()), Some(randomness));
    }
}

/// The text of a value takes a multiple of its bytes.
fn value_text(data: &[u8]) {
    let value = AnyValue::new(data);
    let text = bounded("to_text", data.len(), 64, 16 << 10, || value.to_text());
    assert!(text.len() <= 16 * data.len() + 64, "{} bytes became {}", data.len(), text.len());
}
