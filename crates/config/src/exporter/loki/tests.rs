use crate::{FixedSources, exporter::ExporterConfig, load};

use super::*;

fn document(settings: &str) -> String {
    format!(
        "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\nexporters: {{loki: {settings}}}\n\
         service: {{pipelines: {{logs: {{receivers: [otlp], exporters: [loki]}}}}}}"
    )
}

fn read(settings: &str) -> LokiExporter {
    let loaded =
        load(&document(settings), &FixedSources::new()).unwrap_or_else(|errors| panic!("{settings}\n{errors}"));
    match loaded.document.exporters.into_values().next() {
        Some(ExporterConfig::Loki(exporter)) => *exporter,
        other => panic!("{other:?}"),
    }
}

fn errors(settings: &str) -> String {
    load(&document(settings), &FixedSources::new()).unwrap_err().to_string()
}

#[test]
fn defaults_are_within_the_limits_of_loki() {
    let exporter = read("{endpoint: 'http://loki:3100'}");
    assert_eq!(exporter, LokiExporter::new("http://loki:3100".into()));
    assert_eq!(exporter.push_url(), "http://loki:3100/loki/api/v1/push");
    assert_eq!((exporter.tenant, exporter.allow_record_attributes.len()), (None, 0));
    let names: Vec<&str> = exporter.labels.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.len() <= LOKI_MAX_LABELS && names.is_sorted() && names.contains(&"k8s_namespace_name"), "{names:?}");
    assert_eq!(exporter.structured_metadata, Some(StructuredMetadataConfig { max_entries: 128, max_bytes: 64_000 }));
    assert_eq!((exporter.max_line_bytes, exporter.max_line_behavior), (256_000, LongLineBehavior::Truncate));
    assert!(exporter.http.retry.is_some() && exporter.http.queue.is_some());
}

#[test]
fn path_of_the_push_api_is_added_where_it_is_missing() {
    for (endpoint, url) in [
        ("https://l/", "https://l/loki/api/v1/push"),
        ("https://l/proxy", "https://l/proxy/loki/api/v1/push"),
        ("https://l/loki/api/v1/push", "https://l/loki/api/v1/push"),
        ("https://l/?key=k", "https://l/loki/api/v1/push?key=k"),
    ] {
        assert_eq!(read(&format!("{{endpoint: '{endpoint}'}}")).push_url(), url);
    }
}

#[test]
fn labels_and_tenant_are_templates() {
    let exporter = read(
        "{endpoint: 'http://l', tenant: '%{k8s.namespace.name:-shared}', labels: {ns: '%{k8s.namespace.name}', \
         cluster: prod}, allow_record_attributes: [k8s.namespace.name], structured_metadata: {enabled: false}}",
    );
    assert_eq!(exporter.tenant.unwrap().attribute_keys().collect::<Vec<_>>(), ["k8s.namespace.name"]);
    let [(cluster, prod), (ns, _)] = exporter.labels.as_slice() else { panic!("{:?}", exporter.labels) };
    assert_eq!((cluster.as_str(), prod.as_text(), ns.as_str()), ("cluster", Some("prod"), "ns"));
    assert_eq!((exporter.allow_record_attributes.len(), exporter.structured_metadata), (1, None));
    assert!(read("{endpoint: 'http://l', labels: {}}").labels.is_empty());
}

#[test]
fn what_loki_would_refuse_is_refused_at_load() {
    for (settings, message) in [
        ("{}", "the exporter needs an `endpoint`"),
        ("{endpoint: 'loki:3100'}", "`endpoint` must be a URL"),
        ("{endpoint: 'http://l', tenant: 'a/b'}", "does not allow in tenants"),
        ("{endpoint: 'http://l', tenant: '%{a:-x|y}'}", "does not allow in tenants"),
        ("{endpoint: 'http://l', tenant: '..'}", "is no tenant id"),
        ("{endpoint: 'http://l', tenant: '%{a'}", "is not closed"),
        ("{endpoint: 'http://l', labels: {a.b: c}}", "is not a name of a label"),
        ("{endpoint: 'http://l', labels: {__a: c}}", "is reserved"),
        ("{endpoint: 'http://l', labels: [a]}", "a map of names and values"),
        ("{endpoint: 'http://l', compression: gzip}", "unknown `compression`"),
        ("{endpoint: 'http://l', max_line_size: 0}", "`max_line_size` must be positive"),
    ] {
        let errors = errors(settings);
        assert!(errors.contains(message), "{settings}: {errors}");
    }
}

#[test]
fn pipelines_of_other_signals_are_refused() {
    let text = document("{endpoint: 'http://l'}").replace("logs:", "traces:");
    assert!(load(&text, &FixedSources::new()).unwrap_err().to_string().contains("traces"));
}

#[test]
fn more_labels_than_loki_takes_and_allowances_without_use_cause_warnings() {
    let labels: Vec<String> = (0..16).map(|number| format!("l{number}: x")).collect();
    for settings in [
        format!("{{endpoint: 'http://l', labels: {{{}}}}}", labels.join(", ")),
        "{endpoint: 'http://l', allow_record_attributes: [unused]}".to_owned(),
    ] {
        let loaded = load(&document(&settings), &FixedSources::new()).unwrap();
        assert_eq!(loaded.warnings.len(), 1, "{settings}");
    }
}
