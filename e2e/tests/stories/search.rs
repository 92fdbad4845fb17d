//! Logs and traces become documents of Elasticsearch and OpenSearch.

use std::collections::BTreeSet;

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, SearchBehavior, SearchKind, SearchServer, http, otlp::spans_json, wait_until,
};
use serde_json::{Value, json};

/// Short pauses between attempts.
const SENDING: &str = "timeout: 60s, retry_on_failure: {initial_interval: 10ms, max_interval: 50ms}";

fn config(kind: SearchKind, server: &SearchServer, more: &str) -> ConfigBuilder {
    let endpoint = format!("endpoint: 'http://{}'", server.address());
    let (name, settings) = match kind {
        SearchKind::Elasticsearch => ("elasticsearch", format!("{{{endpoint}, {SENDING}, {more}}}")),
        SearchKind::OpenSearch => ("opensearch", format!("{{http: {{{endpoint}}}, {SENDING}, {more}}}")),
    };
    ConfigBuilder::new().exporter(name, settings).pipeline("logs", "", name).pipeline("traces", "", name)
}

/// A request with these bodies, each at a time of its own, and these attributes of every record.
fn logs(bodies: &[String], attributes: &Value) -> String {
    let record = |(number, body): (usize, &String)| {
        let time = (1_700_000_000_000_000_000 + number as u64).to_string();
        json!({"timeUnixNano": time, "body": {"stringValue": body}, "attributes": attributes})
    };
    let records: Value = bodies.iter().enumerate().map(record).collect();
    let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]});
    json!({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": records}]}]}).to_string()
}

fn send(collector: &CollectorProcess, path: &str, request: &str) {
    let response = http::post(collector.http(), path, "application/json", request.as_bytes());
    assert_eq!(response.status, 200, "{}", response.text());
}

fn bodies(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix} {number}")).collect()
}

/// The text of the body of a document, in either mapping mode.
fn body_of(document: &Value) -> Option<String> {
    document["body"]["text"].as_str().or_else(|| document["body"].as_str()).map(str::to_owned)
}

#[test]
fn every_record_is_stored_once_whatever_the_server_does() {
    for kind in [SearchKind::Elasticsearch, SearchKind::OpenSearch] {
        let state = SearchBehavior {
            busy_documents: 150,
            lost_answers: 3,
            max_request_bytes: Some(600),
            ..SearchBehavior::default()
        };
        let server = SearchServer::start(kind, state);
        let collector = CollectorProcess::with_config(config(kind, &server, "")).start();
        let all: Vec<Vec<String>> = (0..4).map(|request| bodies(&format!("line {request}"), 100)).collect();
        for request in &all {
            send(&collector, "/v1/logs", &logs(request, &json!([])));
        }
        send(&collector, "/v1/traces", &spans_json(&["buy", "pay"]));
        wait_until("all documents are stored", || server.documents().len() >= 402);

        let stored: Vec<String> = server.documents().iter().filter_map(|(_, document)| body_of(document)).collect();
        let distinct: BTreeSet<&String> = stored.iter().collect();
        assert_eq!(distinct, all.iter().flatten().collect(), "{kind:?}");
        assert_eq!(stored.len(), distinct.len(), "{kind:?}: nothing is stored twice");
        let names: BTreeSet<String> = server
            .documents()
            .into_iter()
            .filter_map(|(_, document)| document["name"].as_str().map(str::to_owned))
            .collect();
        assert_eq!(names, ["buy".to_owned(), "pay".to_owned()].into(), "{kind:?}");
        assert_eq!(server.faults(), [""; 0], "{kind:?}");
        assert!(server.count(413) > 0 && server.count(409) > 0 && server.count(429) == 150, "{kind:?}");
        wait_until("the queues are empty", || collector.metric("kubewake_pipeline_delivered_items", &[]) == 402.0);
        assert_eq!(collector.metric("kubewake_pipeline_dropped_items", &[]), 0.0, "{kind:?}");
    }
}

#[test]
fn documents_that_are_rejected_are_counted_by_reason_and_hold_up_nothing() {
    for kind in [SearchKind::Elasticsearch, SearchKind::OpenSearch] {
        let server = SearchServer::start(kind, SearchBehavior::default());
        let collector = CollectorProcess::with_config(config(kind, &server, "")).start();
        let attribute = |value: Value| json!([{"key": "n", "value": value}]);
        send(&collector, "/v1/logs", &logs(&bodies("number", 1), &attribute(json!({"intValue": "7"}))));
        wait_until("the field has its type", || server.documents().len() == 1);
        let mut mixed: Value = serde_json::from_str(&logs(&bodies("mixed", 3), &json!([]))).unwrap();
        let records = &mut mixed["resourceLogs"][0]["scopeLogs"][0]["logRecords"];
        records[1]["attributes"] = attribute(json!({"stringValue": "hunter2"}));
        send(&collector, "/v1/logs", &mixed.to_string());

        let rejected = || collector.metric("kubewake_exporter_rejected_items", &["reason=\"mapping\""]);
        wait_until("the record is rejected", || rejected() == 1.0);
        assert_eq!(server.documents().len(), 3, "{kind:?}: the others are stored");
        assert_eq!(server.count(400), 1, "{kind:?}: it is not sent again");
        wait_until("the reason is logged", || collector.logs().contains("failed to parse field [attributes.n]"));
        assert!(!collector.logs().contains("hunter2"), "{kind:?}: the line is not logged");
    }
}

#[test]
fn log_line_chooses_neither_its_index_nor_its_id() {
    let server = SearchServer::start(SearchKind::Elasticsearch, SearchBehavior::default());
    let more = "mapping: {mode: raw}, dataset: '%{service.name}', namespace: '%{k8s.namespace.name:-none}'";
    let collector = CollectorProcess::with_config(config(SearchKind::Elasticsearch, &server, more)).start();
    let text = |key: &str| json!({"key": key, "value": {"stringValue": "../evil-Index"}});
    let keys = ["data_stream.dataset", "data_stream.namespace", "service.name", "k8s.namespace.name", "_index", "_id"];
    let attributes: Value = keys.iter().map(|key| text(key)).collect();
    send(&collector, "/v1/logs", &logs(&bodies("evil", 20), &attributes));
    wait_until("all documents are stored", || server.documents().len() == 20);
    for (index, document) in server.documents() {
        assert_eq!(index, "logs-shop-none");
        assert_eq!(document["data_stream.dataset"], "shop", "the resource wins");
    }
}

#[test]
fn credentials_are_sent_and_a_wrong_one_is_shown_in_the_status() {
    let expected = SearchBehavior { authorization: Some("ApiKey a2V5".into()), ..SearchBehavior::default() };
    let server = SearchServer::start(SearchKind::Elasticsearch, expected);
    let good = config(SearchKind::Elasticsearch, &server, "api_key: a2V5");
    let collector = CollectorProcess::with_config(good).start();
    send(&collector, "/v1/logs", &logs(&bodies("line", 1), &json!([])));
    wait_until("the document is stored", || server.documents().len() == 1);

    let bad = config(SearchKind::Elasticsearch, &server, "api_key: wrong-key");
    let collector = CollectorProcess::with_config(bad).start();
    send(&collector, "/v1/logs", &logs(&bodies("line", 1), &json!([])));
    wait_until("the failure shows", || collector.status()["pipelines"]["logs"]["last_error"] == "authentication");
    assert!(!collector.logs().contains("wrong-key"));
}
