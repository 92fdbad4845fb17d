use std::time::Duration;

use super::*;
use crate::{
    FixedSources, load,
    model::{CompressionType, ExporterConfig},
};

fn document(signal: &str, exporter: &str, settings: &str) -> String {
    format!(
        "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\nexporters: {{{exporter}: {settings}}}\n\
         service: {{pipelines: {{{signal}: {{receivers: [otlp], exporters: [{exporter}]}}}}}}"
    )
}

fn bulk(exporter: &str, settings: &str) -> BulkIndexConfig {
    let text = document("logs", exporter, settings);
    let loaded = load(&text, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    match loaded.document.exporters.into_values().next() {
        Some(ExporterConfig::Elasticsearch(exporter)) => exporter.bulk,
        Some(ExporterConfig::Opensearch(exporter)) => exporter.bulk,
        other => panic!("{other:?}"),
    }
}

fn errors(signal: &str, exporter: &str, settings: &str) -> String {
    load(&document(signal, exporter, settings), &FixedSources::new()).unwrap_err().to_string()
}

#[test]
fn elasticsearch_writes_data_streams_of_opentelemetry_by_default() {
    let bulk = bulk("elasticsearch", "{endpoint: 'https://search:9200'}");
    assert_eq!(bulk.endpoints, ["https://search:9200"]);
    assert_eq!((bulk.mode, bulk.dedot, bulk.document_ids), (MappingMode::Otel, Dedot::None, DocumentIds::Content));
    assert!(bulk.require_data_stream && bulk.logs_index.is_none() && bulk.traces_index.is_none());
    assert_eq!(bulk.http.timeout, Some(Duration::from_secs(90)));
    assert_eq!((bulk.http.compression, bulk.max_bulk_bytes), (CompressionType::Gzip, 5_000_000));
    assert_eq!(bulk.dataset, NameTemplate::parse("%{data_stream.dataset:-generic}").unwrap());
}

#[test]
fn opensearch_writes_data_streams_of_the_simple_schema_by_default() {
    let bulk = bulk("opensearch", "{http: {endpoint: 'https://search:9200'}, timeout: 3s}");
    assert_eq!((bulk.mode, bulk.stream_prefix), (MappingMode::Ss4o, "ss4o_"));
    assert_eq!((bulk.dataset.as_text(), bulk.namespace.as_text()), (Some("default"), Some("namespace")));
    assert_eq!(bulk.http.timeout, Some(Duration::from_secs(3)));
    assert!(!bulk.require_data_stream);
}

#[test]
fn indices_have_dates_in_either_notation() {
    let template = |text: &str| Some(NameTemplate::parse(text).unwrap());
    let logstash = "{endpoint: 'http://x', logs_index: 'app-%{service.name}', logstash_format: {enabled: true}}";
    assert_eq!(bulk("elasticsearch", logstash).logs_index, template("app-%{service.name:-unknown}-%{+yyyy.MM.dd}"));
    let opensearch = "{http: {endpoint: 'http://x'}, logs_index: 'a-%{b}', logs_index_fallback: none, \
        logs_index_time_format: yyyy-MM}";
    assert_eq!(bulk("opensearch", opensearch).logs_index, template("a-%{b:-none}-%{+yyyy-MM}"));
}

#[test]
fn dots_are_handled_as_the_mapping_says() {
    for (mapping, dedot) in [
        ("{mode: ecs}", Dedot::Nested),
        ("{mode: ecs, dedot: false}", Dedot::None),
        ("{mode: none, dedot: true}", Dedot::Nested),
        ("{dedot: all_keys}", Dedot::AllKeys),
        ("{dedot: kubernetes}", Dedot::Kubernetes),
        ("{dedot: nested}", Dedot::Nested),
        ("{dedot: none}", Dedot::None),
    ] {
        assert_eq!(bulk("elasticsearch", &format!("{{endpoint: 'http://x', mapping: {mapping}}}")).dedot, dedot);
    }
}

#[test]
fn credentials_are_of_one_kind() {
    let login = |more: &str| bulk("elasticsearch", &format!("{{endpoint: 'http://x', {more}}}")).login;
    assert!(matches!(login("user: u, password: p"), Some(BulkLogin::Basic { user, .. }) if user == "u"));
    assert!(matches!(login("api_key: k"), Some(BulkLogin::ApiKey(_))));
    for (more, expected) in [
        ("user: u, password: p, api_key: hunter2", "several kinds of credentials"),
        ("password: hunter2", "`password` needs a `user`"),
        ("user: 'u:v', password: hunter2", "must not have a colon"),
    ] {
        let errors = errors("logs", "elasticsearch", &format!("{{endpoint: 'http://x', {more}}}"));
        assert!(errors.contains(expected) && !errors.contains("hunter2"), "{errors}");
    }
}

#[test]
fn bad_settings_are_refused_with_what_helps() {
    for (exporter, settings, expected) in [
        ("elasticsearch", "{}", "the exporter needs an `endpoint`"),
        ("elasticsearch", "{endpoints: []}", "the exporter needs an `endpoint`"),
        ("elasticsearch", "{endpoint: 'http://x', endpoints: ['http://y']}", "not both"),
        ("elasticsearch", "{endpoint: 'http://x?a=b'}", "a URL with a query"),
        ("elasticsearch", "{endpoint: 'http://x', logs_index: Logs}", "in lower case"),
        ("elasticsearch", "{endpoint: 'http://x', logs_index: .logs}", "names do not begin with"),
        ("elasticsearch", "{endpoint: 'http://x', logs_index: '%{a'}", "is not closed"),
        ("elasticsearch", "{endpoint: 'http://x', dataset: a-b}", "characters that the name must not have"),
        ("elasticsearch", "{endpoint: 'http://x', dataset: 'a%{+yyyy}'}", "has a date in it"),
        ("elasticsearch", "{endpoint: 'http://x', logstash_format: {enabled: true}}", "needs an index"),
        ("elasticsearch", "{endpoint: 'http://x', mapping: {mode: ECS}}", "unknown `mode`"),
        ("elasticsearch", "{endpoint: 'http://x', mapping: {dedot: some}}", "unknown `dedot`"),
        ("elasticsearch", "{endpoint: 'http://x', flush: {bytes: 0}}", "bytes"),
        ("elasticsearch", "{endpoint: 'http://x', cloudid: a}", "`cloudid` is not supported"),
        ("opensearch", "{endpoint: 'http://x'}", "needs an `http.endpoint`"),
        ("opensearch", "{http: {endpoint: 'http://x', timeout: 1s}}", "belongs to the exporter"),
        ("opensearch", "{http: {endpoint: 'http://x'}, logs_index: a, logs_index_time_format: x}", "no date"),
    ] {
        let errors = errors("logs", exporter, settings);
        assert!(errors.contains(expected), "{settings}: {errors}");
    }
}

#[test]
fn metrics_and_spans_without_a_document_are_refused_at_load() {
    assert!(errors("metrics", "elasticsearch", "{endpoint: 'http://x'}").contains("metrics"));
    let errors = errors("traces", "elasticsearch", "{endpoint: 'http://x', mapping: {mode: bodymap}}");
    assert!(errors.contains("is for logs only"), "{errors}");
}

#[test]
fn settings_of_the_collector_without_effect_are_warned_of() {
    let text = document(
        "logs",
        "elasticsearch",
        "{endpoint: 'http://x', retry: {max_retries: 5}, num_workers: 3, flush: {interval: 1s}, \
          logs_dynamic_index: {enabled: true}}",
    );
    let warnings = format!("{:?}", load(&text, &FixedSources::new()).unwrap().warnings);
    for name in ["`retry`", "`num_workers`", "`interval`", "`logs_dynamic_index`"] {
        assert!(warnings.contains(name), "{name}: {warnings}");
    }
}
