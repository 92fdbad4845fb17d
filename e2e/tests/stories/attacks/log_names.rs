//! Log lines that try to choose where they go.

use std::collections::BTreeSet;

use kubewake_e2e::{CollectorProcess, ConfigBuilder, LokiBackend, http, otlp::logs_json, wait_until};

/// Attributes that a line may have gained from its own JSON, in the hope that one of them names a tenant or a label.
const CLAIMS: [(&str, &str); 10] = [
    ("k8s.namespace.name", "kube-system"),
    ("k8s_namespace_name", "kube-system"),
    ("resource.k8s.namespace.name", "kube-system"),
    ("tenant", "admin"),
    ("loki.tenant", "admin"),
    ("X-Scope-OrgID", "admin"),
    ("loki.attribute.labels", "k8s.namespace.name"),
    ("loki.resource.labels", "k8s.namespace.name"),
    ("service.name", "kube-apiserver"),
    ("cluster", "other"),
];

const SETTINGS: &str = "tenant: '%{k8s.namespace.name:-shared}', max_tenants: 3, max_streams: 3, labels: {cluster: prod, \
                        k8s_namespace_name: '%{k8s.namespace.name}', service_name: '%{service.name}'}";

fn collector(loki: &LokiBackend) -> CollectorProcess {
    let settings = format!("{{endpoint: '{}', {SETTINGS}}}", loki.url());
    let config = ConfigBuilder::new().exporter("loki", settings).pipeline("logs", "", "loki");
    CollectorProcess::with_config(config).start()
}

fn post(collector: &CollectorProcess, body: &str) {
    assert_eq!(http::post(collector.http(), "/v1/logs", "application/json", body.as_bytes()).status, 200);
}

#[test]
fn line_chooses_neither_its_tenant_nor_its_labels() {
    let loki = LokiBackend::start();
    let collector = collector(&loki);
    let pod = [("k8s.namespace.name", "shop"), ("service.name", "cart")];
    let line = r#"{"k8s.namespace.name":"kube-system","tenant":"admin"}"#;
    post(&collector, &logs_json(&pod, &CLAIMS, &[line]));
    post(&collector, &logs_json(&[], &CLAIMS, &[line]));
    wait_until("both lines are stored", || loki.lines().len() == 2);
    let lines = loki.lines();
    let names: BTreeSet<_> = lines.iter().map(|line| (line.tenant.as_str(), line.labels.as_str())).collect();
    let own = r#"{cluster="prod", k8s_namespace_name="shop", service_name="cart"}"#;
    assert_eq!(names, BTreeSet::from([("shop", own), ("shared", r#"{cluster="prod"}"#)]));
    for line in &*lines {
        let labels = ["cluster", "k8s_namespace_name", "service_name"];
        let taken = labels.iter().filter(|name| line.labels.contains(&format!("{name}=")));
        assert!(taken.clone().all(|name| line.metadata(name).is_empty()), "a label is hidden by metadata: {line:?}");
    }
    assert_eq!(loki.requests().len(), 2, "no request to another tenant");
}

#[test]
fn header_cannot_be_written_by_a_name() {
    let loki = LokiBackend::start();
    let collector = collector(&loki);
    post(&collector, &logs_json(&[("k8s.namespace.name", "a\r\nX-Scope-OrgID: admin\r\n\r\nPOST /")], &[], &["x"]));
    wait_until("the line is stored", || loki.lines().len() == 1);
    let tenant = loki.lines()[0].tenant.clone();
    assert!(tenant.starts_with("a__X-Scope-OrgID__admin"), "{tenant:?}");
}

#[test]
fn sender_with_names_without_end_makes_few_tenants_and_streams() {
    let loki = LokiBackend::start();
    let collector = collector(&loki);
    for number in 0..50 {
        let name = format!("made-up-{number}");
        post(&collector, &logs_json(&[("k8s.namespace.name", &name)], &[], &["x"]));
    }
    let rejected = || collector.metric("kubewake_exporter_rejected_items", &["reason=\"cardinality\""]);
    wait_until("all others are counted", || rejected() == 47.0);
    let tenants: BTreeSet<String> = loki.lines().iter().map(|line| line.tenant.clone()).collect();
    assert_eq!(tenants.len(), 3, "{tenants:?}");
    assert_eq!(loki.lines().len(), 3);
}
