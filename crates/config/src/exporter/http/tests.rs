use super::*;
use crate::{FixedSources, exporter::ExporterConfig, load};

fn document(settings: &str) -> String {
    format!(
        "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\nexporters: {{http: {settings}}}\n\
         service: {{pipelines: {{logs: {{receivers: [otlp], exporters: [http]}}}}}}"
    )
}

fn read(settings: &str) -> HttpExporter {
    let loaded =
        load(&document(settings), &FixedSources::new()).unwrap_or_else(|errors| panic!("{settings}\n{errors}"));
    match loaded.document.exporters.into_values().next() {
        Some(ExporterConfig::Http(exporter)) => *exporter,
        other => panic!("{other:?}"),
    }
}

#[test]
fn defaults_are_those_of_a_kyma_pipeline() {
    let exporter = read("{endpoint: 'https://logs.example.com/in'}");
    assert_eq!(exporter, HttpExporter::new("https://logs.example.com/in".into()));
    assert_eq!((exporter.url.as_str(), exporter.method), ("https://logs.example.com/in", HttpMethod::Post));
    assert_eq!((exporter.format, exporter.date_format), (HttpFormat::Json, DateNotation::Iso8601));
    assert_eq!((exporter.date_key.as_deref(), exporter.body_key.as_str()), (Some("date"), "message"));
    assert!(exporter.merge_attributes && exporter.dedot == Dedot::None);
}

#[test]
fn every_setting_is_read() {
    let exporter = read(
        "{endpoint: 'http://l', method: PUT, format: json_lines, date_key: '', date_format: epoch_ms, body_key: log, \
         merge_attributes: false, dedot: kubernetes, max_request_size: 1000, compression: none, timeout: 5s}",
    );
    assert_eq!((exporter.method, exporter.format), (HttpMethod::Put, HttpFormat::JsonLines));
    assert_eq!((exporter.date_key, exporter.date_format), (None, DateNotation::EpochMs));
    assert_eq!((exporter.body_key.as_str(), exporter.merge_attributes), ("log", false));
    assert_eq!((exporter.dedot, exporter.max_request_bytes), (Dedot::Kubernetes, 1000));
    assert_eq!(read("{endpoint: 'http://l', date_key: time}").date_key.as_deref(), Some("time"));
}

#[test]
fn what_cannot_be_a_document_is_refused_at_load() {
    for (settings, message) in [
        ("{}", "the exporter needs an `endpoint`"),
        ("{endpoint: 'logs:80'}", "`endpoint` must be a URL"),
        ("{endpoint: 'http://l', method: GET}", "unknown `method`"),
        ("{endpoint: 'http://l', format: msgpack}", "unknown `format`"),
        ("{endpoint: 'http://l', date_key: kubernetes}", "another member \"kubernetes\""),
        ("{endpoint: 'http://l', body_key: date}", "another member \"date\""),
        ("{endpoint: 'http://l', body_key: resource}", "another member \"resource\""),
    ] {
        let errors = load(&document(settings), &FixedSources::new()).unwrap_err().to_string();
        assert!(errors.contains(message), "{settings}: {errors}");
    }
}
