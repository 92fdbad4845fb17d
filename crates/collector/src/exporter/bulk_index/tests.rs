use std::{collections::BTreeSet, sync::Mutex, time::Duration};

use bytes::Bytes;
use kubewake_config::{
    ComponentId, FixedSources, PipelineId, load,
    model::{BulkIndexConfig, ExporterConfig},
};
use kubewake_otlp::json;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{
    core::{Part, RejectionCounts, testing::settle},
    net::testing::{Backend, Reply, Seen, Speaks},
};

/// 2023-11-14T22:13:20Z
const TIME: u64 = 1_700_000_000_000_000_000;

/// The settings of `elasticsearch` in flow style.
pub(super) fn settings(text: &str) -> BulkIndexConfig {
    let text = format!(
        "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\nexporters: {{elasticsearch: {text}}}\n\
         service: {{pipelines: {{logs: {{receivers: [otlp], exporters: [elasticsearch]}}}}}}"
    );
    let loaded = load(&text, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    match loaded.document.exporters.into_values().next() {
        Some(ExporterConfig::Elasticsearch(exporter)) => exporter.bulk,
        other => panic!("{other:?}"),
    }
}

fn part(signal: Signal, bytes: Vec<u8>) -> Part {
    let items = kubewake_otlp::scan(signal, &bytes).unwrap().items;
    Part::new(Bytes::from(bytes), items, Arc::default(), Arc::new(Charge::exempt()))
}

/// A batch of one request, from OTLP's JSON.
pub(super) fn request(signal: Signal, text: &str) -> Batch {
    Batch::single(signal, part(signal, json::decode(signal, text.as_bytes()).unwrap()))
}

fn attributes(pairs: &[(&str, &str)]) -> Value {
    let pairs = pairs.iter().map(|(key, value)| serde_json::json!({"key": key, "value": {"stringValue": value}}));
    pairs.collect()
}

/// Keys and values.
pub(super) type Attributes<'a> = &'a [(&'a str, &'a str)];

/// A request with a log record for each pair of attributes, of its resource and of its own.
pub(super) fn log_request(records: &[(Attributes<'_>, Attributes<'_>)]) -> Batch {
    let entries = records.iter().map(|(resource, record)| {
        let record = serde_json::json!({"timeUnixNano": TIME.to_string(), "attributes": attributes(record)});
        serde_json::json!({"resource": {"attributes": attributes(resource)}, "scopeLogs": [{"logRecords": [record]}]})
    });
    let text = serde_json::json!({"resourceLogs": entries.collect::<Value>()});
    request(Signal::Logs, &text.to_string())
}

/// A request with these bodies, each at a time of its own.
fn logs(bodies: &[&str]) -> Batch {
    let record = |(number, body): (usize, &&str)| {
        let time = (TIME + number as u64).to_string();
        serde_json::json!({"timeUnixNano": time, "body": {"stringValue": body}})
    };
    let records: Value = bodies.iter().enumerate().map(record).collect();
    let text = serde_json::json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]});
    request(Signal::Logs, &text.to_string())
}

fn parse_lines(body: &[u8]) -> Vec<(Value, Value)> {
    let text = std::str::from_utf8(body).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len() % 2, 0, "an action for each document");
    lines.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

/// The actions and documents of a batch.
pub(super) fn documents(settings_text: &str, batch: &Batch) -> Vec<(Value, Value)> {
    let settings = settings(settings_text);
    let rules = DocumentRules::new(&settings, batch.signal(), &ComponentId::new("elasticsearch"));
    let mut all = Vec::new();
    let mut next = Some(ChunkStart::default());
    let limit = usize::try_from(settings.max_bulk_bytes).unwrap();
    while let Some(start) = next.take() {
        let mut chunk = chunk::encode(batch, start, &rules, limit, false, TIME).unwrap();
        next = chunk.next.take();
        assert!(chunk.len() > 0 || batch.items() == 0);
        let body = chunk.body(&(0..chunk.len()));
        assert!(body.len() <= limit || chunk.records.len() == 1, "{} of {limit}", body.len());
        all.extend(parse_lines(&body));
    }
    all
}

fn exporter(settings: &BulkIndexConfig, signal: Signal) -> BulkExporter {
    BulkExporter {
        cluster: Cluster::new(settings, None).unwrap(),
        rules: Arc::new(DocumentRules::new(settings, signal, &ComponentId::new("elasticsearch"))),
        max_bytes: AtomicUsize::new(usize::try_from(settings.max_bulk_bytes).unwrap()),
    }
}

async fn backend(script: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Backend {
    Backend::start(Speaks::Http1, None, script).await
}

fn settings_for(backend: &Backend, more: &str) -> BulkIndexConfig {
    settings(&format!("{{endpoint: 'http://{}', compression: none, {more}}}", backend.address))
}

fn ok(body: &str) -> Reply {
    Reply::http(200, &[("content-type", "application/json")], body)
}

/// The answer with these statuses of the documents in the order of the request.
fn statuses(statuses: &[u16]) -> Reply {
    let items = statuses.iter().map(|status| {
        let kind = match status {
            429 => "es_rejected_execution_exception",
            400 => "document_parsing_exception",
            _ => "version_conflict_engine_exception",
        };
        let error = (*status > 299).then(|| serde_json::json!({"type": kind, "reason": "because"}));
        serde_json::json!({"create": {"status": status, "error": error}})
    });
    let errors = statuses.iter().any(|status| *status > 299);
    ok(&serde_json::json!({"took": 1, "errors": errors, "items": items.collect::<Value>()}).to_string())
}

fn bodies_of(seen: &Seen) -> Vec<String> {
    let text = |(_, document): (Value, Value)| document["body"]["text"].as_str().unwrap().to_owned();
    parse_lines(&seen.body).into_iter().map(text).collect()
}

fn texts(batch: &Batch) -> Vec<String> {
    documents("{endpoint: 'http://x'}", batch)
        .into_iter()
        .map(|(_, document)| document["body"]["text"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn request_is_a_post_of_lines_with_the_credentials() {
    let backend = backend(|_, _| ok(r#"{"errors":false}"#)).await;
    let text = format!(
        "{{endpoint: 'http://{}/es/', user: u, password: p, pipeline: 'a b&c', compression: gzip}}",
        backend.address
    );
    let exporter = exporter(&settings(&text), Signal::Logs);
    exporter.export(&logs(&["a", "b"])).await.unwrap();
    let seen = backend.only();
    assert_eq!(seen.uri.path(), "/es/_bulk");
    assert!(seen.uri.query().unwrap().ends_with("&pipeline=a%20b%26c"), "{}", seen.uri);
    assert_eq!(seen.header("content-type"), "application/x-ndjson");
    assert_eq!(seen.header("authorization"), "Basic dTpw");
    assert_eq!(seen.header("content-encoding"), "gzip");
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&seen.body[..]), &mut plain).unwrap();
    assert_eq!(parse_lines(&plain).len(), 2);
}

#[tokio::test]
async fn api_key_is_sent_as_the_server_showed_it() {
    let backend = backend(|_, _| ok(r#"{"errors":false}"#)).await;
    let exporter = exporter(&settings_for(&backend, "api_key: a2V5"), Signal::Logs);
    exporter.export(&logs(&["a"])).await.unwrap();
    assert_eq!(backend.only().header("authorization"), "ApiKey a2V5");
}

#[tokio::test]
async fn only_documents_without_room_are_sent_again() {
    let backend = backend(|_, _| statuses(&[201, 429, 400, 409, 503])).await;
    let exporter = exporter(&settings_for(&backend, ""), Signal::Logs);
    let error = exporter.export(&logs(&["a", "b", "c", "d", "e"])).await.unwrap_err();
    assert!(error.retryable && error.class == ErrorClass::Throttled, "{error:?}");
    let partial = error.partial.unwrap();
    assert_eq!(texts(&partial.rest), ["b", "e"]);
    assert_eq!(partial.outcome.rejected, RejectionCounts::from_reason(RejectReason::Mapping, 1));
    assert_eq!(partial.outcome.message, "status 400: document_parsing_exception: because");
}

#[tokio::test]
async fn rejected_documents_are_settled_with_the_others() {
    let backend = backend(|_, _| statuses(&[201, 400])).await;
    let success = exporter(&settings_for(&backend, ""), Signal::Logs).export(&logs(&["a", "b"])).await.unwrap();
    assert_eq!(success.rejected, RejectionCounts::from_reason(RejectReason::Mapping, 1));
}

#[tokio::test]
async fn answer_that_is_not_that_of_a_bulk_request_settles_nothing() {
    for body in ["", "{}", "<html>", r#"{"errors":true,"items":[]}"#] {
        let backend = backend(move |_, _| ok(body)).await;
        let error = exporter(&settings_for(&backend, ""), Signal::Logs).export(&logs(&["a"])).await.unwrap_err();
        assert!(error.retryable && error.partial.is_none(), "{body}: {error:?}");
        assert_eq!(error.class, ErrorClass::Protocol);
        assert!(error.message.contains("/_bulk: ") && !error.message.contains("filter_path"), "{error}");
    }
}

#[tokio::test]
async fn request_that_is_too_large_is_halved_down_to_the_document_at_fault() {
    let backend = backend(|seen, _| match seen.body.len() {
        length if length > 3000 => Reply::http(413, &[], ""),
        _ => statuses(&vec![201; bodies_of(seen).len()]),
    })
    .await;
    let large = "x".repeat(4000);
    let exporter = exporter(&settings_for(&backend, ""), Signal::Logs);
    let batch = logs(&["a", "b", "c", &large, "d", "e", "f", "g"]);
    let success = exporter.export(&batch).await.unwrap();
    assert_eq!(success.rejected, RejectionCounts::from_reason(RejectReason::TooLarge, 1));
    let taken: Vec<String> = backend.seen().iter().filter(|seen| seen.body.len() <= 3000).flat_map(bodies_of).collect();
    assert_eq!(taken, ["a", "b", "c", "d", "e", "f", "g"]);
}

#[tokio::test]
async fn size_that_was_too_large_is_not_tried_again() {
    let backend = backend(|seen, _| match seen.body.len() {
        length if length > 100_000 => Reply::http(413, &[], ""),
        _ => statuses(&vec![201; bodies_of(seen).len()]),
    })
    .await;
    let exporter = exporter(&settings_for(&backend, ""), Signal::Logs);
    let long = "x".repeat(10_000);
    let batch = logs(&[long.as_str(); 15]);
    exporter.export(&batch).await.unwrap();
    let refused = || backend.seen().iter().filter(|seen| seen.body.len() > 100_000).count();
    assert_eq!(refused(), 1);
    exporter.export(&batch).await.unwrap();
    assert_eq!(refused(), 1);
}

#[tokio::test]
async fn what_was_taken_before_an_error_is_settled() {
    let backend = backend(|_, number| match number {
        0 => statuses(&[201]),
        _ => Reply::http(503, &[("retry-after", "7")], r#"{"error":{"type":"busy","reason":"later"},"status":503}"#),
    })
    .await;
    let exporter = exporter(&settings_for(&backend, "flush: {bytes: 1}"), Signal::Logs);
    let error = exporter.export(&logs(&["a", "b", "c"])).await.unwrap_err();
    assert_eq!((error.retryable, error.retry_after), (true, Some(Duration::from_secs(7))));
    assert!(error.message.ends_with("HTTP 503 busy: later"), "{error}");
    assert_eq!(texts(&error.partial.unwrap().rest), ["b", "c"]);
}

#[tokio::test]
async fn bad_credentials_are_not_tried_again_and_not_shown() {
    let backend = backend(|seen, _| Reply::http(401, &[], format!("no {}", seen.header("authorization")))).await;
    let error =
        exporter(&settings_for(&backend, "api_key: hunter2"), Signal::Logs).export(&logs(&["a"])).await.unwrap_err();
    assert!(!error.retryable && error.class == ErrorClass::Authentication);
    assert!(!error.message.contains("hunter2"), "{error}");
}

#[tokio::test]
async fn node_that_is_away_is_passed_over() {
    let away = backend(|_, _| Reply::http(503, &[], "")).await;
    let here = backend(|_, _| ok(r#"{"errors":false}"#)).await;
    let endpoints = format!("['http://{}', 'http://127.0.0.1:1', 'http://{}']", away.address, here.address);
    let settings = settings(&format!("{{endpoints: {endpoints}, compression: none}}"));
    let exporter = exporter(&settings, Signal::Logs);
    for _ in 0..3 {
        exporter.export(&logs(&["a"])).await.unwrap();
    }
    assert_eq!(here.seen().len(), 3);
    assert!(!away.seen().is_empty());
}

#[tokio::test]
async fn lost_answer_makes_no_document_twice() {
    let stored = Arc::new(Mutex::new(BTreeSet::new()));
    let ids = stored.clone();
    let backend = backend(move |seen, number| {
        let mut ids = ids.lock().unwrap();
        let store = |(action, _): (Value, Value)| {
            if ids.insert(action["create"]["_id"].as_str().unwrap().to_owned()) { 201 } else { 409 }
        };
        let all: Vec<u16> = parse_lines(&seen.body).into_iter().map(store).collect();
        // The answer to the first request is lost.
        if number == 0 { statuses(&all).after(Duration::from_secs(60)) } else { statuses(&all) }
    })
    .await;
    let exporter = exporter(&settings_for(&backend, "timeout: 60s"), Signal::Logs);
    let batch = logs(&["a", "b"]);
    let attempt = async {
        let failed = exporter.export(&batch).await.unwrap_err();
        assert!(failed.is_unanswered() && failed.partial.is_none(), "{failed:?}");
    };
    let hang_up = async {
        while stored.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        backend.hang_up();
    };
    tokio::join!(attempt, hang_up);
    exporter.export(&batch).await.unwrap();
    assert_eq!(stored.lock().unwrap().len(), 2);
    settle().await;
}

#[tokio::test]
async fn equal_records_keep_their_ids_when_only_one_is_sent_again() {
    let stored = Arc::new(Mutex::new(BTreeSet::new()));
    let ids = stored.clone();
    let backend = backend(move |seen, number| {
        let mut ids = ids.lock().unwrap();
        let lines = parse_lines(&seen.body);
        let count = lines.len();
        let store = |(at, (action, _)): (usize, (Value, Value))| match () {
            () if number == 0 && at == count - 1 => 429,
            () if ids.insert(action["create"]["_id"].to_string()) => 201,
            () => 409,
        };
        statuses(&lines.into_iter().enumerate().map(store).collect::<Vec<u16>>())
    })
    .await;
    let exporter = exporter(&settings_for(&backend, ""), Signal::Logs);
    let record = serde_json::json!({"timeUnixNano": TIME.to_string(), "body": {"stringValue": "same"}});
    let other = serde_json::json!({"timeUnixNano": TIME.to_string(), "body": {"stringValue": "other"}});
    let text = serde_json::json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record, other, record]}]}]});
    let error = exporter.export(&request(Signal::Logs, &text.to_string())).await.unwrap_err();
    let partial = error.partial.unwrap();
    assert_eq!(texts(&partial.rest), ["same", "same"], "the two stay together");
    exporter.export(&partial.rest).await.unwrap();
    assert_eq!(stored.lock().unwrap().len(), 3, "three records are three documents");
}

#[test]
fn exporter_is_built_from_settings() {
    let settings = settings("{endpoint: 'http://search:9200', retry_on_failure: {enabled: false}}");
    let id = ComponentId::new("elasticsearch");
    let pipeline = PipelineId { signal: Signal::Traces, name: None };
    assert!(prepare(&settings, &ExporterContext { id: &id, pipeline: &pipeline, auth: None }).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn lines_are_pairs_of_an_action_and_a_document_whatever_the_records_are(
        bodies in proptest::collection::vec(any::<String>(), 0..20),
        mode in prop_oneof![Just("otel"), Just("ecs"), Just("none"), Just("raw"), Just("bodymap"), Just("ss4o")],
        limit in 1..2000_u32,
    ) {
        let texts: Vec<&str> = bodies.iter().map(String::as_str).collect();
        let settings = format!("{{endpoint: 'http://x', mapping: {{mode: {mode}}}, flush: {{bytes: {limit}}}}}");
        let all = documents(&settings, &logs(&texts));
        prop_assert_eq!(all.len(), bodies.len());
        let ids: BTreeSet<String> = all.iter().map(|(action, _)| action["create"]["_id"].to_string()).collect();
        prop_assert_eq!(ids.len(), bodies.len());
    }
}
