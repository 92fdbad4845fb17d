//! Settings from documents, and pods as the API server returns them.

use std::collections::BTreeMap;

use bytes::Bytes;
use kubewake_config::{
    FixedSources, load,
    model::{self, ExtractFrom},
};
use kubewake_otlp::{
    UnlimitedAllowance,
    view::{lossy, resources},
    wire::put_bytes,
};
use serde_json::json;

use super::{cluster_cache::testing::cluster_with_objects, *};
use crate::{
    core::{BackendStatus, Charge, ClusterState, ErrorClass, Origin},
    kubernetes::ApiError,
};

/// The settings in a document.
fn settings(text: &str) -> KubernetesAttributesProcessor {
    let indented: String = text.lines().map(|line| format!("    {line}\n")).collect();
    let document = format!(
        "receivers:\n  otlp: {{protocols: {{grpc: }}}}\nprocessors:\n  k8s_attributes:\n{indented}exporters:\n  nop:\n\
         service:\n  pipelines: {{traces: {{receivers: [otlp], processors: [k8s_attributes], exporters: [nop]}}}}\n"
    );
    let loaded = load(&document, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}"));
    match loaded.document.processors.into_values().next() {
        Some(model::ProcessorConfig::KubernetesAttributes(settings)) => *settings,
        other => panic!("{other:?}"),
    }
}

/// A pod of a Deployment.
fn pod() -> serde_json::Value {
    json!({
        "kind": "Pod",
        "metadata": {
            "name": "shop-6c45f8d6f6-x2x2x", "namespace": "web", "uid": "pod-uid", "creationTimestamp": "2026-11-16T06:00:00Z",
            "labels": {"pod-template-hash": "6c45f8d6f6", "app.kubernetes.io/component": "cart", "team": "blue"},
            "annotations": {"git-sha": "abc", "resource.opentelemetry.io/service.name": "cart"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "shop-6c45f8d6f6", "uid": "rs-uid", "controller": true}],
        },
        "spec": {
            "nodeName": "node-1", "hostname": "shop",
            "containers": [{"name": "main", "image": "r.io/team/shop:1.2"}, {"name": "side", "image": "proxy"}],
        },
        "status": {
            "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}], "startTime": "2026-11-16T06:00:01Z",
            "containerStatuses": [
                {"name": "main", "containerID": "containerd://aaa", "restartCount": 2, "imageID": "r.io/team/shop@sha256:ab"},
                {"name": "side", "containerID": "containerd://bbb", "restartCount": 0, "imageID": ""},
            ],
        },
    })
}

/// A request with one span, whose resource has these attributes.
fn request(attributes: &[(&str, &str)]) -> Bytes {
    let field = |number, content: &[u8]| {
        let mut out = Vec::new();
        put_bytes(&mut out, number, content);
        out
    };
    let pair = |(key, value): &(&str, &str)| {
        let value = field(2, &field(1, value.as_bytes()));
        field(1, &[field(1, key.as_bytes()), value].concat())
    };
    let resource = field(1, &attributes.iter().flat_map(pair).collect::<Vec<u8>>());
    let scope = field(2, &field(2, &field(5, b"span")));
    Bytes::from(field(1, &[resource, scope].concat()))
}

/// The attributes after enrichment, for a request from this address.
fn given(
    settings: &KubernetesAttributesProcessor,
    cluster: Option<&Arc<ClusterCache>>,
    from: &str,
    own: &[(&str, &str)],
) -> Given1 {
    let stats = Arc::new(ClusterStats::default());
    let enrich = KubernetesEnrichmentTransform { settings: settings.clone(), cluster: cluster.cloned(), stats };
    let peer = (!from.is_empty()).then(|| SocketAddr::new(from.parse().unwrap(), 4242));
    let origin = Arc::new(Origin { peer, ..Origin::default() });
    let part = Part::new(request(own), 1, origin, Arc::new(Charge::exempt()));
    let mapped = enrich.transform(Signal::Traces, &part, &mut UnlimitedAllowance).unwrap();
    kubewake_otlp::scan(Signal::Traces, &mapped.bytes).unwrap();
    let entry = resources(&mapped.bytes).next().unwrap();
    assert_eq!(entry.scopes().next().unwrap().spans().next().unwrap().name(), b"span");
    let text = |value: AnyValue<'_>| match value {
        AnyValue::String(text) => lossy(text).into_owned(),
        AnyValue::Array(items) => {
            let items: Vec<_> = items.map(|item| lossy(AnyValue::new(item).as_text().unwrap()).into_owned()).collect();
            format!("[{}]", items.join(","))
        }
        other => format!("{other:?}"),
    };
    entry.resource().attributes().iter().map(|pair| (lossy(pair.key()).into_owned(), text(pair.value()))).collect()
}

type Given1 = BTreeMap<String, String>;

fn pairs(list: &[(&str, &str)]) -> Given1 {
    list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_usual_attributes_by_the_address_of_the_sender() {
    let settings = settings("passthrough: false");
    let cluster = cluster_with_objects(&settings, &[pod()]);
    let usual = pairs(&[
        ("k8s.deployment.name", "shop"),
        ("k8s.namespace.name", "web"),
        ("k8s.node.name", "node-1"),
        ("k8s.pod.name", "shop-6c45f8d6f6-x2x2x"),
        ("k8s.pod.start_time", "2026-11-16T06:00:00Z"),
        ("k8s.pod.uid", "pod-uid"),
    ]);
    for address in ["10.0.0.7", "fd00::7", "::ffff:10.0.0.7"] {
        assert_eq!(given(&settings, Some(&cluster), address, &[]), usual, "{address}");
    }
    assert_eq!(given(&settings, Some(&cluster), "10.0.0.8", &[]), pairs(&[]), "a stranger");
    assert_eq!(cluster.asks(), ["/api/v1/pods"], "nothing else is asked for");
    let relayed = given(&settings, Some(&cluster), "10.0.0.8", &[("k8s.pod.ip", "10.0.0.7")]);
    assert_eq!(relayed["k8s.pod.name"], "shop-6c45f8d6f6-x2x2x", "what an agent wrote counts more");
}

#[test]
fn what_a_resource_says_itself_stays_unless_it_says_nothing() {
    let settings = settings("passthrough: false");
    let cluster = cluster_with_objects(&settings, &[pod()]);
    let own = [("k8s.pod.name", "mine"), ("k8s.node.name", ""), ("other", "x")];
    let got = given(&settings, Some(&cluster), "10.0.0.7", &own);
    assert_eq!((&*got["k8s.pod.name"], &*got["k8s.node.name"], &*got["other"]), ("mine", "node-1", "x"));
}

#[test]
fn an_agent_asks_only_for_the_pods_of_its_node() {
    let settings = settings(
        "filter:\n  node: node-1\n  namespace: web\n  labels: [{key: app}, {key: tier, op: exists}]\n  \
         fields: [{key: status.phase, value: Running, op: not-equals}]\n\
         extract:\n  metadata: [k8s.node.uid, k8s.cluster.uid, k8s.deployment.uid]\n",
    );
    let asks = cluster_with_objects(&settings, &[]).asks();
    assert_eq!(
        asks,
        [
            "/api/v1/namespaces/web/pods spec.nodeName=node-1,status.phase!=Running app=,tier",
            "/apis/apps/v1/namespaces/web/replicasets",
            "/api/v1/namespaces metadata.name=kube-system",
            "/api/v1/nodes metadata.name=node-1",
        ]
    );
}

#[test]
fn labels_and_annotations_of_pods_namespaces_nodes_and_deployments() {
    let settings = settings(
        "extract:\n  metadata: [k8s.deployment.uid, k8s.node.uid, k8s.cluster.uid]\n  otel_annotations: true\n  labels:\n  \
         - {tag_name: component, key: app.kubernetes.io/component}\n  - {key: team}\n  \
         - {tag_name: 'ns.$$1', key_regex: 'env-(.*)', from: namespace}\n  - {key: zone, from: node}\n  \
         - {key: tier, from: deployment}\n  annotations:\n  - {tag_name: sha, key: git-sha, from: pod}\n  \
         - {tag_name: nothing, key: missing}\n",
    );
    let meta = |kind: &str, metadata: serde_json::Value| json!({"kind": kind, "metadata": metadata});
    let cluster = cluster_with_objects(
        &settings,
        &[
            pod(),
            meta("Namespace", json!({"name": "web", "uid": "ns-uid", "labels": {"env-stage": "test", "other": "x"}})),
            meta("Namespace", json!({"name": "kube-system", "uid": "cluster"})),
            meta("Node", json!({"name": "node-1", "uid": "node-uid", "labels": {"zone": "z1"}})),
            meta(
                "Deployment",
                json!({"name": "shop", "namespace": "web", "uid": "d-uid", "labels": {"tier": "front"}}),
            ),
            meta(
                "ReplicaSet",
                json!({"name": "shop-6c45f8d6f6", "namespace": "web", "uid": "rs-uid",
                       "ownerReferences": [{"kind": "Deployment", "name": "shop", "uid": "d-uid"}]}),
            ),
        ],
    );
    assert_eq!(
        given(&settings, Some(&cluster), "10.0.0.7", &[]),
        pairs(&[
            ("component", "cart"),
            ("k8s.cluster.uid", "cluster"),
            ("k8s.deployment.label.tier", "front"),
            ("k8s.deployment.uid", "d-uid"),
            ("k8s.node.labels.zone", "z1"),
            ("k8s.node.uid", "node-uid"),
            ("k8s.pod.labels.team", "blue"),
            ("ns.stage", "test"),
            ("service.name", "cart"),
            ("sha", "abc"),
        ])
    );
}

#[test]
fn a_container_is_found_by_its_name_its_id_or_because_it_is_alone() {
    let settings = settings(
        "extract:\n  metadata: [k8s.container.name, container.id, container.image.name, container.image.tag, \
         container.image.tags, container.image.repo_digests, service.version, service.instance.id]\n",
    );
    let cluster = cluster_with_objects(&settings, &[pod()]);
    let main = pairs(&[
        ("container.id", "aaa"),
        ("container.image.name", "r.io/team/shop"),
        ("container.image.repo_digests", "[r.io/team/shop@sha256:ab]"),
        ("container.image.tag", "1.2"),
        ("container.image.tags", "[1.2]"),
        ("k8s.container.name", "main"),
        ("service.instance.id", "web.shop-6c45f8d6f6-x2x2x.main"),
        ("service.version", "1.2"),
    ]);
    assert_eq!(given(&settings, Some(&cluster), "10.0.0.7", &[("k8s.container.name", "main")]), main);
    assert_eq!(given(&settings, Some(&cluster), "10.0.0.7", &[("container.id", "aaa")]), main);
    assert_eq!(given(&settings, Some(&cluster), "10.0.0.7", &[]), pairs(&[]), "there are two");
    let earlier = [("k8s.container.name", "main"), ("k8s.container.restart_count", "1")];
    assert!(!given(&settings, Some(&cluster), "10.0.0.7", &earlier).contains_key("container.id"), "another run");
    let mut alone = pod();
    alone["spec"]["containers"].as_array_mut().unwrap().pop();
    let cluster = cluster_with_objects(&settings, &[alone]);
    assert_eq!(given(&settings, Some(&cluster), "10.0.0.7", &[]), main);
}

#[test]
fn associations_are_tried_in_their_order_and_all_sources_of_one_must_agree() {
    let settings = settings(
        "extract: {metadata: [k8s.pod.uid, container.id]}\npod_association:\n\
         - sources: [{from: resource_attribute, name: container.id}]\n\
         - sources: [{from: resource_attribute, name: k8s.pod.name}, {from: resource_attribute, name: k8s.namespace.name}]\n\
         - sources: [{from: connection}]\n",
    );
    let mut other = pod();
    other["metadata"]["uid"] = "other-uid".into();
    other["metadata"]["namespace"] = "other".into();
    other["status"]["podIP"] = "10.0.0.9".into();
    other["status"]["podIPs"] = json!([]);
    other["status"]["containerStatuses"] = json!([{"name": "main", "containerID": "docker://ccc", "restartCount": 0}]);
    let cluster = cluster_with_objects(&settings, &[pod(), other]);
    let uid = |from: &str, own: &[(&str, &str)]| {
        given(&settings, Some(&cluster), from, own).get("k8s.pod.uid").cloned().unwrap_or_default()
    };
    let name = ("k8s.pod.name", "shop-6c45f8d6f6-x2x2x");
    assert_eq!(uid("10.0.0.7", &[("container.id", "ccc")]), "other-uid");
    assert_eq!(uid("10.0.0.7", &[name, ("k8s.namespace.name", "other")]), "other-uid");
    assert_eq!(uid("10.0.0.9", &[name]), "other-uid", "one of two sources is none");
    assert_eq!(uid("10.0.0.7", &[("container.id", "unknown")]), "pod-uid", "the next one knows");
    assert_eq!(uid("", &[]), "");
}

#[test]
fn a_pod_is_found_by_its_uid_or_by_an_address_that_a_resource_names() {
    let settings = settings(
        "extract: {metadata: [k8s.pod.name, k8s.node.name]}\npod_association:\n\
         - sources: [{from: resource_attribute, name: k8s.pod.uid}]\n\
         - sources: [{from: resource_attribute, name: k8s.pod.ip}]\n",
    );
    let mut host = pod();
    host["metadata"]["uid"] = "host-uid".into();
    host["metadata"]["name"] = "agent".into();
    host["spec"]["hostNetwork"] = true.into();
    let cluster = cluster_with_objects(&settings, &[pod(), host]);
    let name = |own: &[(&str, &str)]| {
        given(&settings, Some(&cluster), "10.9.9.9", own).get("k8s.pod.name").cloned().unwrap_or_default()
    };
    assert_eq!(name(&[("k8s.pod.uid", "pod-uid")]), "shop-6c45f8d6f6-x2x2x");
    assert_eq!(name(&[("k8s.pod.uid", "host-uid")]), "agent", "its address would not do");
    assert_eq!(name(&[("k8s.pod.uid", "nobody")]), "");
    assert_eq!(name(&[("k8s.pod.ip", "10.0.0.7")]), "shop-6c45f8d6f6-x2x2x");
    assert_eq!(name(&[]), "", "the connection was not to be asked");
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_of_a_cluster_is_bounded_and_what_is_left_out_counted() {
    let settings = settings(
        "pod_delete_grace_period: 1s\nextract:\n  metadata: [k8s.pod.uid, k8s.deployment.uid]\n  annotations:\n  \
         - {key_regex: '.*'}\n  - {key_regex: '.*', from: deployment}\n",
    );
    let cluster = cluster_with_objects(&settings, &[]);
    let held = || cluster.state().held_bytes();
    let large = "x".repeat(10_000);
    let mut uids = Vec::new();
    for n in 0..200 {
        let mut object = pod();
        object["metadata"]["uid"] = format!("pod-{n}").into();
        object["metadata"]["annotations"] = json!({ "large": large });
        object["status"]["podIPs"] = json!([{"ip": format!("10.1.0.{n}")}]);
        cluster.apply_object(&object);
        uids.push(format!("pod-{n}"));
    }
    let count = || cluster.stats().left_out.load(Ordering::Relaxed);
    assert!(
        held() <= cluster_state::MAX_POD_BYTES && held() > cluster_state::MAX_POD_BYTES / 2,
        "{} bytes are held",
        held()
    );
    let without = count();
    assert!(without > 50, "{without} were left out");
    uids.iter().for_each(|uid| cluster.forget(uid));
    tokio::time::advance(std::time::Duration::from_secs(2)).await;
    cluster.sweep();
    assert_eq!(held(), 0);

    // The same for an object that is not a pod, which may have as much metadata.
    for n in 0..200 {
        let name = format!("d-{n}");
        let metadata = json!({"name": name, "namespace": "web", "uid": name, "annotations": {"large": large}});
        cluster.apply_object(&json!({"kind": "Deployment", "metadata": metadata}));
        let owners = json!([{"kind": "Deployment", "name": name, "uid": name}]);
        let metadata = json!({"name": name, "namespace": "web", "uid": format!("rs-{n}"), "ownerReferences": owners});
        cluster.apply_object(&json!({"kind": "ReplicaSet", "metadata": metadata}));
    }
    assert!(
        held() <= cluster_state::MAX_OBJECT_BYTES && held() > cluster_state::MAX_OBJECT_BYTES / 2,
        "{} bytes are held",
        held()
    );
    assert!(count() > without + 50);
    // A repeated event changes nothing, and a list without the pods removes them.
    let before = held();
    let metadata = json!({"name": "d-0", "namespace": "web", "uid": "d-0", "annotations": {"large": large}});
    cluster.apply_object(&json!({"kind": "Deployment", "metadata": metadata}));
    assert_eq!(held(), before);
    // An object that does not fit leaves the old record, and pods have room of their own.
    let larger = json!({"large": large.repeat(30)});
    let metadata = json!({"name": "d-0", "namespace": "web", "uid": "d-0", "annotations": larger});
    cluster.apply_object(&json!({"kind": "Deployment", "metadata": metadata}));
    assert_eq!(held(), before);
    assert_eq!(cluster.state().uid(ExtractFrom::Deployment, "web/d-0"), Some("d-0"));
    let left_out = count();
    cluster.apply_object(&pod());
    assert!(held() > before && count() == left_out);
    let uid = pod()["metadata"]["uid"].as_str().unwrap().to_owned();
    cluster.forget(&uid);
    tokio::time::advance(std::time::Duration::from_secs(2)).await;
    cluster.sweep();
    cluster.list_nothing();
    assert_eq!(held(), 0);
}

#[test]
fn passing_through_only_the_address_is_written() {
    let settings = settings("passthrough: true");
    assert_eq!(given(&settings, None, "10.0.0.7", &[]), pairs(&[("k8s.pod.ip", "10.0.0.7")]));
    let known = [("k8s.pod.ip", "10.1.1.1")];
    assert_eq!(given(&settings, None, "10.0.0.7", &known), pairs(&known));
}

#[test]
fn pods_that_are_to_be_passed_over_give_nothing() {
    let settings = settings("exclude: {pods: [{name: 'shop-.*'}]}");
    assert!(given(&settings, Some(&cluster_with_objects(&settings, &[pod()])), "10.0.0.7", &[]).is_empty());
    let settings = self::settings("passthrough: false");
    let mut ignored = pod();
    ignored["metadata"]["annotations"] = json!({"opentelemetry.io/k8s-processor/ignore": "True "});
    assert!(given(&settings, Some(&cluster_with_objects(&settings, &[ignored])), "10.0.0.7", &[]).is_empty());
    let mut host = pod();
    host["spec"]["hostNetwork"] = true.into();
    assert!(
        given(&settings, Some(&cluster_with_objects(&settings, &[host])), "10.0.0.7", &[]).is_empty(),
        "everybody's address"
    );
}

#[test]
fn the_jobs_of_a_cron_job_are_known_by_their_minute() {
    let settings = settings("extract: {metadata: [k8s.job.name, k8s.cronjob.name, service.name]}");
    let mut made = pod();
    // 2026-11-16T06:00 in minutes.
    made["metadata"]["ownerReferences"] = json!([{"kind": "Job", "name": "report-29913000", "uid": "j"}]);
    let minute = "2026-11-16T06:00:00Z".parse::<jiff::Timestamp>().unwrap().as_second() / 60;
    made["metadata"]["ownerReferences"][0]["name"] = format!("report-{minute}").into();
    let got = given(&settings, Some(&cluster_with_objects(&settings, &[made.clone()])), "10.0.0.7", &[]);
    assert_eq!((&*got["k8s.cronjob.name"], &*got["service.name"]), ("report", "report"));
    made["metadata"]["ownerReferences"][0]["name"] = "report-12345678".into();
    let got = given(&settings, Some(&cluster_with_objects(&settings, &[made])), "10.0.0.7", &[]);
    assert!(!got.contains_key("k8s.cronjob.name"));
    assert_eq!(got["service.name"], "report-12345678");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_is_remembered_for_a_while_and_its_address_is_the_next_ones() {
    let settings = settings("pod_delete_grace_period: 60s");
    let cluster = cluster_with_objects(&settings, &[pod()]);
    let name = |cluster: &Arc<ClusterCache>| {
        given(&settings, Some(cluster), "10.0.0.7", &[]).get("k8s.pod.uid").cloned().unwrap_or_default()
    };
    cluster.forget("pod-uid");
    cluster.sweep();
    assert_eq!(name(&cluster), "pod-uid");
    let mut next = pod();
    next["metadata"]["uid"] = "next-uid".into();
    next["status"]["startTime"] = "2026-11-16T06:05:00Z".into();
    cluster.apply_object(&next);
    assert_eq!(name(&cluster), "next-uid");
    cluster.apply_object(&pod());
    assert_eq!(name(&cluster), "next-uid", "late news of the older one");
    cluster.forget("pod-uid");
    tokio::time::advance(std::time::Duration::from_secs(61)).await;
    cluster.sweep();
    assert_eq!(name(&cluster), "next-uid");
    cluster.forget("next-uid");
    tokio::time::advance(std::time::Duration::from_secs(61)).await;
    cluster.sweep();
    assert_eq!(name(&cluster), "");
}

#[tokio::test(start_paused = true)]
async fn a_sender_is_told_to_come_again_until_all_is_known_or_the_time_is_up() {
    let settings = settings("wait_for_metadata: true\nwait_for_metadata_timeout: 5s");
    let stats = Arc::new(ClusterStats::default());
    for known in [true, false] {
        let cluster = cluster_with_objects(&settings, &[pod()]);
        let enrich = KubernetesEnrichmentTransform {
            settings: settings.clone(),
            cluster: Some(cluster.clone()),
            stats: stats.clone(),
        };
        let mapping = TransformProcessor::new(Signal::Traces, Box::new(enrich), Arc::default());
        let until = Instant::now() + std::time::Duration::from_secs(5);
        let gate = ArcSwap::from_pointee(Some((until, cluster.clone())));
        let enricher = Arc::new(KubernetesEnrichmentProcessor {
            id: ComponentId::new("k8s_attributes"),
            transform_processor: mapping,
            shared: SharedInstances::default(),
            stats: stats.clone(),
            gate,
            user: Mutex::default(),
        });
        let offer = || {
            let part = Part::new(request(&[]), 1, Arc::default(), Arc::new(Charge::exempt()));
            enricher.clone().consume(Batch::single(Signal::Traces, part), OverflowPolicy::Refuse)
        };
        assert!(matches!(offer(), ConsumeOutcome::Now(Err(no)) if no.is_retryable()));
        if known {
            cluster.complete_all()
        } else {
            tokio::time::advance(std::time::Duration::from_secs(6)).await
        }
        assert!(matches!(offer(), ConsumeOutcome::Now(Ok(()))));
    }
}

#[tokio::test(start_paused = true)]
async fn cluster_is_watched_until_its_last_processor_retires() {
    let settings = settings("passthrough: false");
    let shared = SharedInstances::default();
    let make = || {
        let counters = (Arc::default(), Arc::default());
        KubernetesEnrichmentProcessor::new(
            &ComponentId::new("k8s_attributes"),
            Signal::Traces,
            &settings,
            &shared,
            counters,
        )
    };
    let found = || shared.get_or_create(|_: &ClusterCache| true, || panic!("it is there"));
    let first = make();
    let second = make();
    let cluster = found();
    first.retire();
    assert!(!cluster.is_stopped(), "another one uses it");
    second.retire();
    assert!(cluster.is_stopped());
    let third = make();
    let user = third.user.lock();
    assert!(user.is_some(), "one that comes later does not rely on what is no longer watched");
}

#[tokio::test(start_paused = true)]
async fn it_can_be_seen_how_it_gets_on_with_the_cluster() {
    let cluster = cluster_with_objects(&settings("passthrough: false"), &[pod()]);
    let look = || (cluster.view.snapshot().state, cluster.view.snapshot().last_error, cluster.view.snapshot().pods);
    assert_eq!(look(), (ClusterState::Connecting, ErrorClass::None, 1));
    let status = http::StatusCode::FORBIDDEN;
    cluster.fail(ApiError::Refused { server: "s".into(), status, message: "no".into() });
    assert_eq!(look(), (ClusterState::Failing, ErrorClass::Authentication, 1));
    assert_eq!(cluster.view.snapshot().last_status, Some(BackendStatus::Http(status)));
    cluster.complete_all();
    assert_eq!(look(), (ClusterState::Synced, ErrorClass::Authentication, 1));
}

const VERIFYING: &str = "extract:
  metadata: [k8s.namespace.name, k8s.pod.name, k8s.pod.uid, k8s.deployment.name, k8s.statefulset.name, k8s.node.name]
pod_association:
  - sources: [{from: resource_attribute, name: k8s.pod.uid}]
  - sources: [{from: resource_attribute, name: k8s.pod.ip}]
  - sources: [{from: connection}]
verify_senders:
  trusted_relays: [{namespace: relays, service_account: forwarder}]
";

/// A pod of a StatefulSet in another namespace, at another address.
fn other_pod() -> serde_json::Value {
    json!({
        "kind": "Pod",
        "metadata": {
            "name": "mallory-0", "namespace": "evil", "uid": "mallory-uid", "creationTimestamp": "2026-11-16T06:00:00Z",
            "ownerReferences": [{"kind": "StatefulSet", "name": "mallory", "uid": "set-uid", "controller": true}],
        },
        "spec": {"nodeName": "node-2", "containers": [{"name": "main", "image": "m"}]},
        "status": {"podIP": "10.0.0.66", "podIPs": [{"ip": "10.0.0.66"}], "startTime": "2026-11-16T06:00:01Z"},
    })
}

/// The claims of a sender that wants to pass as the pod of [`pod`].
const CLAIMS: [(&str, &str); 6] = [
    ("k8s.pod.uid", "pod-uid"),
    ("k8s.pod.ip", "10.0.0.7"),
    ("k8s.pod.name", "shop-6c45f8d6f6-x2x2x"),
    ("k8s.namespace.name", "web"),
    ("k8s.deployment.name", "shop"),
    ("service.name", "shop"),
];

#[test]
fn verified_sender_cannot_pass_as_another_pod() {
    let settings = settings(VERIFYING);
    let cluster = cluster_with_objects(&settings, &[pod(), other_pod()]);
    let got = given(&settings, Some(&cluster), "10.0.0.66", &CLAIMS);
    let own = pairs(&[
        ("k8s.pod.uid", "mallory-uid"),
        ("k8s.pod.ip", "10.0.0.66"),
        ("k8s.pod.name", "mallory-0"),
        ("k8s.namespace.name", "evil"),
        ("k8s.statefulset.name", "mallory"),
        ("k8s.node.name", "node-2"),
        ("service.name", "shop"),
    ]);
    assert_eq!(got, own, "and what says nothing of who it is stays");
    let twice = [("k8s.namespace.name", "evil"), ("k8s.namespace.name", "web")];
    let got = given(&settings, Some(&cluster), "10.0.0.66", &twice);
    assert_eq!(got["k8s.namespace.name"], "evil", "also if it is said twice");
    let bytes = {
        let stats = Arc::new(ClusterStats::default());
        let enrich =
            KubernetesEnrichmentTransform { settings: settings.clone(), cluster: Some(cluster.clone()), stats };
        let origin = Arc::new(Origin { peer: Some("10.0.0.66:1".parse().unwrap()), ..Origin::default() });
        let part = Part::new(request(&twice), 1, origin, Arc::new(Charge::exempt()));
        enrich.transform(Signal::Traces, &part, &mut UnlimitedAllowance).unwrap().bytes
    };
    let entry = resources(&bytes).next().unwrap();
    let named = entry.resource().attributes().iter().filter(|pair| pair.key() == b"k8s.namespace.name").count();
    assert_eq!(named, 1);
}

#[test]
fn verified_sender_that_says_nothing_or_the_truth_is_enriched_as_ever() {
    let settings = settings(VERIFYING);
    let cluster = cluster_with_objects(&settings, &[pod(), other_pod()]);
    let plain = given(&settings, Some(&cluster), "10.0.0.7", &[]);
    assert_eq!(plain["k8s.deployment.name"], "shop");
    assert!(!plain.contains_key("k8s.pod.ip"), "what is not extracted is not added");
    let mut expected = plain;
    expected.extend(pairs(&[("k8s.pod.ip", "10.0.0.7"), ("service.name", "shop")]));
    assert_eq!(given(&settings, Some(&cluster), "10.0.0.7", &CLAIMS), expected);
}

#[test]
fn trusted_relay_is_believed_whose_data_it_forwards() {
    let settings = settings(VERIFYING);
    let relay = |namespace: &str, account: &str| {
        let mut relay = other_pod();
        relay["metadata"]["namespace"] = namespace.into();
        relay["spec"]["serviceAccountName"] = account.into();
        let cluster = cluster_with_objects(&settings, &[pod(), relay]);
        given(&settings, Some(&cluster), "10.0.0.66", &CLAIMS)["k8s.pod.name"].clone()
    };
    assert_eq!(relay("relays", "forwarder"), "shop-6c45f8d6f6-x2x2x");
    assert_eq!(relay("relays", "another"), "mallory-0");
    assert_eq!(relay("evil", "forwarder"), "mallory-0", "a ServiceAccount of that name elsewhere is another");
}

#[test]
fn nothing_of_trusted_relay_is_added_where_it_names_another_pod() {
    let metadata = "[k8s.pod.ip, k8s.pod.start_time, k8s.container.name, ";
    let settings = settings(&VERIFYING.replacen('[', metadata, 1));
    let mut relay = other_pod();
    relay["metadata"]["namespace"] = "relays".into();
    relay["spec"]["serviceAccountName"] = "forwarder".into();
    let cluster = cluster_with_objects(&settings, &[pod(), relay]);
    let forwarded = |own: &[(&str, &str)]| given(&settings, Some(&cluster), "10.0.0.66", own);
    for claim in [("k8s.pod.uid", "unknown"), ("k8s.pod.name", "unknown"), ("k8s.namespace.name", "web")] {
        assert_eq!(forwarded(&[claim, ("other", "x")]), pairs(&[claim, ("other", "x")]));
    }
    let found = forwarded(&[("k8s.pod.ip", "10.0.0.7")]);
    assert_eq!((&*found["k8s.pod.uid"], &*found["k8s.node.name"]), ("pod-uid", "node-1"), "who is known is given");
    for own in [&[][..], &[("k8s.pod.name", "")]] {
        let own_data = forwarded(own);
        let names = (&*own_data["k8s.pod.name"], &*own_data["k8s.pod.ip"], &*own_data["k8s.container.name"]);
        assert_eq!(names, ("mallory-0", "10.0.0.66", "main"), "it names no pod: the data is the relay's own");
    }
}

#[test]
fn sender_that_is_no_single_known_pod_is_taken_at_its_word() {
    let settings = settings(VERIFYING);
    let mut on_host = other_pod();
    on_host["spec"]["hostNetwork"] = true.into();
    for (what, pods) in [("a stranger", vec![pod()]), ("the network of the host", vec![pod(), on_host])] {
        let cluster = cluster_with_objects(&settings, &pods);
        let got = given(&settings, Some(&cluster), "10.0.0.66", &CLAIMS);
        assert_eq!(got["k8s.pod.name"], "shop-6c45f8d6f6-x2x2x", "{what}");
    }
    let cluster = cluster_with_objects(&settings, &[pod(), other_pod()]);
    cluster.forget("mallory-uid");
    let got = given(&settings, Some(&cluster), "10.0.0.66", &CLAIMS);
    assert_eq!(got["k8s.pod.name"], "shop-6c45f8d6f6-x2x2x", "the address may be another's by now");
    let mut next = other_pod();
    next["metadata"]["uid"] = "next-uid".into();
    next["metadata"]["name"] = "next-0".into();
    next["status"]["startTime"] = "2026-11-16T07:00:00Z".into();
    cluster.apply_object(&next);
    assert_eq!(given(&settings, Some(&cluster), "10.0.0.66", &CLAIMS)["k8s.pod.name"], "next-0", "and now it is");
}

#[test]
fn pod_cannot_hide_from_verification_by_an_annotation() {
    let settings = settings(VERIFYING);
    let mut hidden = other_pod();
    hidden["metadata"]["annotations"] = json!({"opentelemetry.io/k8s-processor/ignore": "true"});
    let cluster = cluster_with_objects(&settings, &[pod(), hidden]);
    let got = given(&settings, Some(&cluster), "10.0.0.66", &CLAIMS);
    assert_eq!(got, pairs(&[("service.name", "shop")]), "nothing is given for it, and it passes as nobody");
}

#[test]
fn senders_are_believed_unless_the_document_asks_for_verification() {
    let text = VERIFYING.split("verify_senders").next().unwrap();
    let settings = settings(text);
    let cluster = cluster_with_objects(&settings, &[pod(), other_pod()]);
    let got = given(&settings, Some(&cluster), "10.0.0.66", &CLAIMS);
    assert_eq!(got["k8s.pod.name"], "shop-6c45f8d6f6-x2x2x", "as the Collector does");
}
