//! `load_balancing` and `k8s_attributes`: the Collector's own examples, and refused settings.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Duration;

use kubewake_config::{
    FixedSources, load,
    model::{
        AssociationSource, ClusterAuth, ExporterConfig, ExtractFrom, ExtractKey, Field, KubernetesAttributesProcessor,
        LoadBalancingExporter, PeerResolver, ProcessorConfig, RoutingKey,
    },
};

/// A document with this exporter and this processor in pipelines of these signals.
fn document(exporter: &str, processor: &str, signals: &[&str]) -> String {
    let indented = |text: &str| text.lines().map(|line| format!("    {line}\n")).collect::<String>();
    let pipeline = |signal: &&str| {
        format!("    {signal}: {{receivers: [otlp], processors: [k8s_attributes], exporters: [load_balancing]}}\n")
    };
    format!(
        "receivers:\n  otlp: {{protocols: {{grpc: }}}}\nprocessors:\n  k8s_attributes:\n{}exporters:\n  load_balancing:\n{}\
         service:\n  pipelines:\n{}",
        indented(processor),
        indented(exporter),
        signals.iter().map(pipeline).collect::<String>()
    )
}

const PLAIN: &str = "protocol: {otlp: {timeout: 1s}}\nresolver: {static: {hostnames: [backend-1, 'backend-2:4318']}}\n";

fn balancing(text: &str) -> LoadBalancingExporter {
    let loaded = load(&document(text, "passthrough: false", &["traces"]), &FixedSources::new());
    match loaded.unwrap_or_else(|errors| panic!("{errors}")).document.exporters.into_values().next() {
        Some(ExporterConfig::LoadBalancing(exporter)) => *exporter,
        other => panic!("{other:?}"),
    }
}

fn attributes(text: &str) -> KubernetesAttributesProcessor {
    let loaded = load(&document(PLAIN, text, &["traces"]), &FixedSources::new());
    match loaded.unwrap_or_else(|errors| panic!("{errors}")).document.processors.into_values().next() {
        Some(ProcessorConfig::KubernetesAttributes(processor)) => *processor,
        other => panic!("{other:?}"),
    }
}

/// Each case: an exporter, a processor, signals, and the path and message of the one expected error.
fn refused(cases: &[(&str, &str, &[&str], &str, &str)]) {
    for (exporter, processor, signals, path, words) in cases {
        let exporter = if exporter.is_empty() { PLAIN } else { exporter };
        let processor = if processor.is_empty() { "passthrough: false" } else { processor };
        let Err(errors) = load(&document(exporter, processor, signals), &FixedSources::new()) else {
            panic!("taken: {exporter} {processor}");
        };
        assert_eq!(errors.problems().len(), 1, "{errors}");
        assert_eq!(errors.problems()[0].path, *path, "{errors}");
        assert!(errors.problems()[0].to_string().contains(words), "lacks {words:?}\n{errors}");
    }
}

#[test]
fn peers_by_list_name_and_service() {
    let plain = balancing(PLAIN);
    assert_eq!(plain.resolver, PeerResolver::Static(vec!["backend-1:4317".into(), "backend-2:4318".into()]));
    assert_eq!((plain.otlp.timeout, plain.otlp.endpoint.as_str()), (Some(Duration::from_secs(1)), ""));
    assert_eq!((plain.routing, plain.timeout, plain.retry, plain.queue), (None, None, None, None));
    let PeerResolver::Dns(dns) = balancing("protocol: {otlp: }\nresolver: {dns: {hostname: tier}}\n").resolver else {
        panic!("by name");
    };
    assert_eq!((dns.port, dns.interval, dns.timeout), (4317, Duration::from_secs(5), Duration::from_secs(1)));
    let service = "protocol: {otlp: }\nresolver: {k8s: {service: tier.web.svc.cluster.local, ports: [16317, 15317]}}\n";
    let PeerResolver::Kubernetes(service) = balancing(service).resolver else { panic!("by Service") };
    assert_eq!((service.name.as_str(), service.namespace.as_deref()), ("tier", Some("web")));
    assert_eq!((service.ports, service.timeout), (vec![15317, 16317], Duration::from_secs(60)));
}

#[test]
fn the_exporters_own_resilience_is_off_unless_it_is_there() {
    let exporter = balancing(
        "timeout: 10s\nretry_on_failure: {enabled: true, max_elapsed_time: 60s}\nsending_queue: {queue_size: 10}\n\
         routing_key: attributes\nrouting_attributes: [a, b]\nprotocol: {otlp: {sending_queue: {enabled: true}}}\n\
         resolver: {static: {hostnames: [a]}}\n",
    );
    assert_eq!(exporter.routing, Some(RoutingKey::Attributes(vec!["a".into(), "b".into()])));
    assert_eq!(exporter.retry.unwrap().max_elapsed_time, Some(Duration::from_secs(60)));
    assert_eq!((exporter.queue.unwrap().queue_size, exporter.timeout), (10, Some(Duration::from_secs(10))));
}

#[test]
fn what_a_balancer_cannot_mean() {
    let at = |field: &str| format!("exporters::load_balancing{field}");
    let with = |resolver: &str| format!("protocol: {{otlp: }}\nresolver: {resolver}\n");
    let plain = |more: &str| format!("{PLAIN}{more}\n");
    refused(&[
        ("resolver: {static: {hostnames: [a]}}", "", &["traces"], &at("::protocol"), "needs a `protocol`"),
        ("protocol: {otlp: }", "", &["traces"], &at("::resolver"), "needs a `resolver`"),
        (&with("{aws_cloud_map: }"), "", &["traces"], &at("::resolver"), "must have a resolver"),
        (
            &with("{static: {hostnames: [':4317']}}"),
            "",
            &["traces"],
            &at("::resolver::static::hostnames::0"),
            "the host is missing",
        ),
        (&with("{static: {hostnames: ['a:x']}}"), "", &["traces"], &at("::resolver::static::hostnames::0"), "port"),
        (
            &with("{static: {hostnames: [a, 'b b']}}"),
            "",
            &["traces"],
            &at("::resolver::static::hostnames::1"),
            "is not a host name",
        ),
        (
            &with("{static: {hostnames: ['a/b:1']}}"),
            "",
            &["traces"],
            &at("::resolver::static::hostnames::0"),
            "is not a host name",
        ),
        (&with("{static: {hostnames: ['[::x]:1']}}"), "", &["traces"], &at("::resolver::static::hostnames::0"), "IPv6"),
        (&with("{dns: {port: '1'}}"), "", &["traces"], &at("::resolver::dns::hostname"), "needs a `hostname`"),
        (&with("{dns: {hostname: 'a b'}}"), "", &["traces"], &at("::resolver::dns::hostname"), "is not a host name"),
        (&with("{dns: {hostname: 'a:4317'}}"), "", &["traces"], &at("::resolver::dns::hostname"), "is not a host name"),
        (&with("{dns: {hostname: '[::1]'}}"), "", &["traces"], &at("::resolver::dns::hostname"), "is not a host name"),
        (&with("{dns: {hostname: a, port: 'x'}}"), "", &["traces"], &at("::resolver::dns::port"), "not a valid port"),
        (
            &with("{k8s: {service: a.b.c}}"),
            "",
            &["traces"],
            &at("::resolver::k8s::service"),
            "is not the name of a Service",
        ),
        (&plain("routing_key: trace"), "", &["traces"], &at("::routing_key"), "unknown `routing_key`"),
        (&plain("routing_key: attributes"), "", &["traces"], &at("::routing_attributes"), "needs"),
        (
            &plain("routing_attributes: [a]"),
            "",
            &["traces"],
            &at("::routing_attributes"),
            "needs `routing_key: attributes`",
        ),
        (&plain("routing_key: traceID"), "", &["metrics"], "service::pipelines::metrics::exporters", "cannot route"),
        (&plain("routing_key: streamID"), "", &["logs"], "service::pipelines::logs::exporters", "is one of"),
        (&plain("sending_queue: {wait_for_result: true}"), "", &["traces"], &at("::sending_queue"), "as a whole"),
    ]);
}

#[test]
fn the_usual_metadata_and_the_collectors_example() {
    let usual = attributes("passthrough: false");
    assert_eq!((usual.auth, usual.metadata), (ClusterAuth::ServiceAccount, Field::DEFAULT_FIELDS.to_vec()));
    assert_eq!((usual.wait, usual.grace), (None, Duration::from_secs(120)));
    assert!(usual.exclude.iter().any(|name| name.is_match(b"jaeger-agent")));
    let example = attributes(
        "auth_type: kubeConfig\ncontext: there\nfilter: {node_from_env_var: KUBE_NODE_NAME}\nextract:\n  \
         metadata: [k8s.pod.name, service.instance.id]\n  labels:\n  - {tag_name: l, key: app.kubernetes.io/component}\n  \
         - {key_regex: 'a(.*)', from: node}\n  otel_annotations: true\npod_association:\n\
         - sources: [{from: resource_attribute, name: k8s.pod.ip}]\n- sources: [{from: connection}]\n\
         exclude: {pods: [{name: x}]}\nwait_for_metadata: true\nwait_for_metadata_timeout: 20s\n",
    );
    assert_eq!(example.auth, ClusterAuth::KubeConfig { path: None, context: Some("there".into()) });
    assert_eq!(example.metadata, [Field::PodName, Field::ServiceInstanceId]);
    assert_eq!(example.labels[0].key, ExtractKey::Exact("app.kubernetes.io/component".into()));
    assert!(matches!(&example.labels[1].key, ExtractKey::Matching(key) if key.is_match(b"ab") && !key.is_match(b"xa")));
    assert_eq!(example.labels[1].from, ExtractFrom::Node);
    assert_eq!(example.annotations.len(), 1, "those of OpenTelemetry");
    let sources = [vec![AssociationSource::Attribute("k8s.pod.ip".into())], vec![AssociationSource::Connection]];
    assert_eq!(example.associations, sources);
    assert_eq!(example.wait, Some(Duration::from_secs(20)));
}

#[test]
fn what_cannot_be_asked_of_a_cluster() {
    let at = |field: &str| format!("processors::k8s_attributes{field}");
    let traces: &[&str] = &["traces"];
    let five = "pod_association: [{sources: [{from: connection}, {from: connection}, {from: connection}, {from: connection}, \
                {from: connection}]}]";
    refused(&[
        ("", "auth_type: magic", traces, &at("::auth_type"), "unknown `auth_type`"),
        ("", "extract: {metadata: [k8s.pod.nam]}", traces, &at("::extract::metadata::0"), "k8s.pod.name"),
        (
            "",
            "extract: {metadata: [k8s.pod.name, k8s.nonsense]}",
            traces,
            &at("::extract::metadata::1"),
            "unknown `metadata` \"k8s.nonsense\"",
        ),
        ("", "extract: {labels: [{key: a, key_regex: b}]}", traces, &at("::extract::labels::0"), "cannot both"),
        ("", "extract: {labels: [{tag_name: a}]}", traces, &at("::extract::labels::0::key"), "must be set"),
        (
            "",
            "extract: {labels: [{key_regex: '('}]}",
            traces,
            &at("::extract::labels::0::key_regex"),
            "regular expression",
        ),
        (
            "",
            "extract: {labels: [{key: a, from: cluster}]}",
            traces,
            &at("::extract::labels::0::from"),
            "unknown `from`",
        ),
        ("", "filter: {fields: [{key: a, op: exists}]}", traces, &at("::filter::fields::0::op"), "unknown `op`"),
        ("", "filter: {labels: [{key: 'a,b'}]}", traces, &at("::filter::labels::0"), "must not contain"),
        (
            "",
            "pod_association: [{sources: [{from: resource_attribute}]}]",
            traces,
            &at("::pod_association::0::sources::0::name"),
            "needs the `name`",
        ),
        ("", five, traces, &at("::pod_association::0::sources"), "at most 4"),
        ("", "exclude: {pods: [{name: '['}]}", traces, &at("::exclude::pods::0::name"), "regular expression"),
        ("", "wait: true", traces, &at("::wait"), "unknown field"),
    ]);
}
