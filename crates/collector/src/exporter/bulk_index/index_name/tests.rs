use proptest::prelude::*;
use serde_json::json;

use crate::exporter::bulk_index::tests::{Attributes, documents, log_request};

/// The index of a log record with these attributes of the resource and of the record.
fn index(settings: &str, resource: Attributes<'_>, record: Attributes<'_>) -> String {
    indices(settings, &[(resource, record)]).remove(0)
}

fn indices(settings: &str, records: &[(Attributes<'_>, Attributes<'_>)]) -> Vec<String> {
    let batch = log_request(records);
    let all = documents(&format!("{{endpoint: 'http://x', {settings}}}"), &batch);
    all.iter().map(|(action, _)| action["create"]["_index"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn line_does_not_choose_its_index() {
    let record = [("data_stream.dataset", "evil"), ("service.name", "evil")];
    assert_eq!(index("mapping: {mode: ecs}", &[], &record), "logs-generic-default");
    assert_eq!(index("logs_index: 'app-%{service.name}'", &[], &record), "app-unknown");
    let allowed = "logs_index: 'app-%{service.name}', allow_record_attributes: [service.name]";
    assert_eq!(index(allowed, &[], &record), "app-evil");
    assert_eq!(index(allowed, &[("service.name", "good")], &record), "app-good", "the resource wins");
}

#[test]
fn values_become_what_names_may_have() {
    let stream = "dataset: '%{d}', namespace: '%{n}', mapping: {mode: ecs}";
    for (value, dataset, namespace) in [
        ("Web-App", "web_app", "web-app"),
        ("a/b\\c*d?e\"f<g>h|i j,k#l:m", "a_b_c_d_e_f_g_h_i_j_k_l_m", "a_b_c_d_e_f_g_h_i_j_k_l_m"),
        ("ÄÖ\n", "äö_", "äö_"),
        ("", "generic", "default"),
    ] {
        assert_eq!(index(stream, &[("d", value), ("n", value)], &[]), format!("logs-{dataset}-{namespace}"));
    }
    for (value, expected) in [("..", "unknown-x"), (".security", "security-x"), ("-_+a", "a-x"), ("_all", "all-x")] {
        let name = index("logs_index: '%{a}-x'", &[("a", value)], &[]);
        assert!(name == expected || value == ".." && name == "x", "{name}");
    }
}

#[test]
fn names_have_the_date_of_the_record() {
    assert_eq!(index("logs_index: 'logs-%{+yyyy.MM.dd}'", &[], &[]), "logs-2023.11.14");
    let logstash = "logs_index: logs, logstash_format: {enabled: true, date_format: '%Y-%m-%d'}";
    assert_eq!(index(logstash, &[], &[]), "logs-2023-11-14");
}

#[test]
fn further_names_beyond_the_maximum_share_one_index() {
    let values = ["a", "b", "c", "d"].map(|value| [("ns", value)]);
    let records: Vec<(Attributes<'_>, Attributes<'_>)> =
        values.iter().map(|resource| (&resource[..], &[][..])).collect();
    let index = "max_indices: 2, logs_index: 'logs-%{ns}-%{+yyyy}'";
    assert_eq!(
        indices(index, &records),
        ["logs-a-2023", "logs-b-2023", "logs-overflow-overflow", "logs-overflow-overflow"]
    );
    let stream = "max_indices: 2, mapping: {mode: ecs}, namespace: '%{ns}'";
    assert_eq!(indices(stream, &records)[2..], ["logs-overflow-overflow", "logs-overflow-overflow"]);
}

#[test]
fn only_data_streams_are_required_to_be_one() {
    let action = |settings: &str| {
        let settings = format!("{{endpoint: 'http://x', document_ids: none, {settings}}}");
        documents(&settings, &log_request(&[(&[], &[])])).remove(0).0
    };
    assert_eq!(action("logs_index: a"), json!({"create": {"_index": "a"}}));
    assert_eq!(action("require_data_stream: false"), json!({"create": {"_index": "logs-generic.otel-default"}}));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn any_value_becomes_a_valid_name(value in any::<String>(), other in "[A-Z.+_-]{0,200}") {
        let name = index("logs_index: '%{a}%{b}'", &[("a", &other), ("b", &value)], &[]);
        prop_assert!(!name.is_empty() && name.len() <= 255, "{}", name);
        prop_assert!(!name.starts_with(['-', '_', '+', '.']), "{}", name);
        prop_assert!(name.chars().all(kubewake_config::model::is_index_character), "{}", name);
    }
}
