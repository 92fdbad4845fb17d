//! Fuzz targets of the cluster side: webhook, annotations, output and probes of pods, and collector reports.

use http::Uri;
use jiff::Timestamp;
use kubewake_node::fuzzing::{health_state, http_answer, log_entries, log_entry, redirected};
use kubewake_operator::{
    CollectorTier,
    fuzzing::{CollectorAnswer, DocumentHistory, assess_delivery, last_valid},
};
use kubewake_status::CollectorStatus;
use kubewake_trail::{
    carrier::{AnnotationKeys, Annotations},
    context,
};
use kubewake_webhook::{
    review::ReviewRequest,
    stamping::{
        decision::{StampInput, decide},
        patch::patch_operations,
    },
};
use serde_json::Value;

use crate::{Target, choice, memory::bounded, two_texts};

pub const TARGETS: [Target; 8] = [
    Target { name: "review", body: review },
    Target { name: "stamp", body: stamp },
    Target { name: "carrier", body: carrier },
    Target { name: "log-lines", body: log_lines },
    Target { name: "health-answer", body: health_answer },
    Target { name: "probe-answer", body: probe_answer },
    Target { name: "collector-report", body: collector_report },
    Target { name: "kept-record", body: kept_record },
];

/// An AdmissionReview is parsed or refused, within a multiple of its length.
fn review(data: &[u8]) {
    if let Ok(review) = bounded("a review", data.len(), 256, 64 << 10, || ReviewRequest::parse(data)) {
        assert!(!review.uid.is_empty() && review.uid.len() <= 128);
        let _ = review.display_name();
    }
}

/// The patch of the webhook applies, and changes nothing but the annotations.
fn stamp(data: &[u8]) {
    let (choice, text) = choice(data);
    let Some((new, old)) = two_texts(text) else { return };
    let (Ok(new), old) = (serde_json::from_str::<Value>(new), serde_json::from_str::<Value>(old).ok()) else { return };
    if !new.is_object() {
        return;
    }
    let keys = AnnotationKeys::default();
    let own = context::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None).expect("a context");
    let question = StampInput { new: &new, old: old.as_ref(), is_trusted: choice.is_multiple_of(2) };
    let Ok(decision) = decide(question, &keys) else { return };
    let wanted = {
        let annotations = new["metadata"]["annotations"].clone();
        let annotations: Annotations = serde_json::from_value(annotations).unwrap_or_default();
        decision.entries(&keys, Some(&own), Timestamp::UNIX_EPOCH, &annotations)
    };
    let now: Option<Annotations> = serde_json::from_value(new["metadata"]["annotations"].clone()).ok();
    let Ok(operations) = patch_operations(now.as_ref(), &wanted, &keys) else { return };
    let patch: json_patch::Patch = serde_json::from_value(Value::Array(operations)).expect("a patch is one");
    let mut patched = new.clone();
    if new["metadata"].is_object() {
        json_patch::patch(&mut patched, &patch).expect("the patch applies");
        for (key, value) in &wanted {
            assert_eq!(patched["metadata"]["annotations"][key], Value::from(value.as_str()));
        }
        let without = |mut object: Value| {
            object["metadata"].as_object_mut().map(|metadata| metadata.remove("annotations"));
            object
        };
        assert_eq!(without(patched), without(new));
    }
}

/// Annotations are parsed or ignored; a parsed context is written unchanged.
fn carrier(data: &[u8]) {
    let Ok(annotations) = serde_json::from_slice::<Annotations>(data) else { return };
    let keys = AnnotationKeys::default();
    let Some(found) = keys.read(Some(&annotations)).found else { return };
    let text = context::traceparent(&found.context);
    let state = context::tracestate(&found.context);
    assert!(text.len() == 55 && state.as_ref().is_none_or(|state| state.len() <= 512));
    let again = context::parse(&text, state.as_deref()).expect("what was written can be read");
    assert_eq!((again.trace_id(), again.span_id()), (found.context.trace_id(), found.context.span_id()));
}

/// The concatenated entries equal the container's output, and no entry is longer than allowed.
fn log_lines(data: &[u8]) {
    let (choice, output) = choice(data);
    let entries = log_entries(output, 1 + choice * 7);
    let mut back = Vec::new();
    for line in entries.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let (text, full) = log_entry(line).expect("an entry can be read");
        assert!(text.len() <= 16 << 10);
        back.extend_from_slice(text);
        back.extend(full.then_some(b'\n'));
    }
    assert_eq!(back, output);
}

/// Any response maps to a state.
fn health_answer(data: &[u8]) {
    assert!(health_state(data) <= 255);
}

/// The result of an HTTP probe follows from the status line, within the bytes that the kubelet reads. A
/// redirect without a host stays on the probed one.
fn probe_answer(data: &[u8]) {
    // The head and the part of the body that are read, and the pipe between the two.
    let answer = bounded("a probe", data.len(), 8, 2 << 20, || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be made");
        runtime.block_on(http_answer(data))
    });
    let Ok((status, location)) = answer else { return };
    let is_line = |line: &[u8]| line.starts_with(b"HTTP/1.") && line.get(9..12) == Some(status.as_str().as_bytes());
    assert!(data.split(|byte| *byte == b'\n').any(is_line), "no line of the answer says {status}");
    let Some(location) = location else { return };
    let from = Uri::from_static("http://10.0.0.1:8080/health/now?q=1");
    let Some(next) = redirected(&from, &location) else { return };
    let names_host = location.contains("://") || location.starts_with("//");
    assert!(next.host().is_some_and(|host| !host.is_empty()), "{location:?} leads to {next}");
    assert!(names_host || next.authority() == from.authority(), "{location:?} leads to {next}");
}

/// Whatever collectors report, each pipeline of the document gets a health state, and no other pipeline does.
fn collector_report(data: &[u8]) {
    let reports: Vec<CollectorStatus> =
        data.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let document = "receivers: {otlp: {protocols: {grpc: }}}\nexporters: {nop: }\n\
                    service: {pipelines: {traces/backend: {receivers: [otlp], exporters: [nop]}}}";
    let mut documents = DocumentHistory::default();
    documents.set_desired(CollectorTier::Gateway, Some(document));
    let answers: Vec<CollectorAnswer> = reports
        .into_iter()
        .map(|report| CollectorAnswer { tier: CollectorTier::Gateway, node: None, report: Some(report) })
        .chain([CollectorAnswer { tier: CollectorTier::Sticky, node: None, report: None }])
        .collect();
    assert!(assess_delivery(&answers, &documents).len() <= 1);
}

/// A record of an earlier operator, or of a stranger, is parsed or ignored.
fn kept_record(data: &[u8]) {
    let secret = serde_json::json!({"data": {"record": k8s_openapi::ByteString(data.to_vec())}});
    if let Some(owner) = bounded("a record", data.len(), 64, 64 << 10, || last_valid::recorded_owner(&secret)) {
        assert!(owner.kind.len() + owner.name.len() + owner.uid.len() <= data.len());
    }
}
