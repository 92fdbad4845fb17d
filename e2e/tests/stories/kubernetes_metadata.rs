//! A collector in a cluster says which pod sent something, and finds its peers behind a Service.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, HttpBackend, Kubectl, LoadGenerator, SinkProcess, http,
    otlp::{attribute, resource_attributes},
    process,
    python::{python, span_sender},
    wait_for, wait_until,
};
use kubewake_otlp::Signal;
use kubewake_release::ReleaseImage;
use serde_json::Value;

/// A collector that may see pods and nothing else, and asks only for those of its node.
const COLLECTOR: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata: {name: collector}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: sees-pods}
rules: [{apiGroups: [""], resources: [pods], verbs: [list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: collector-sees-pods}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: sees-pods}
subjects: [{kind: ServiceAccount, name: collector, namespace: NAMESPACE}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: collector}
data:
  collector.yaml: |
    receivers:
      otlp: {protocols: {http: {endpoint: "${env:POD_IP}:4318"}}}
    processors:
      k8s_attributes:
        wait_for_metadata: true
        filter: {node_from_env_var: NODE_NAME}
        extract:
          metadata: [k8s.namespace.name, k8s.pod.name, k8s.pod.uid, k8s.deployment.name, k8s.node.name, k8s.container.name,
            container.image.name, service.version]
          labels: [{tag_name: team, key: team}]
          annotations: [{tag_name: "note.$$1", key_regex: "example.com/(.*)"}]
        pod_association: [{sources: [{from: connection}]}]
    exporters:
      otlp: {endpoint: "SINK", tls: {insecure: true}}
    service:
      telemetry: {metrics: {level: none}}
      pipelines: {traces: {receivers: [otlp], processors: [k8s_attributes], exporters: [otlp]}}
---
apiVersion: v1
kind: Pod
metadata: {name: collector, labels: {app: collector}}
spec:
  serviceAccountName: collector
  terminationGracePeriodSeconds: 2
  containers:
  - name: collector
    image: COLLECTOR_IMAGE
    args: ["--config", "/etc/collector/collector.yaml"]
    env:
    - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    volumeMounts: [{name: config, mountPath: /etc/collector}]
  volumes: [{name: config, configMap: {name: collector}}]
"#;

/// A program that sends a span again and again from the address of its pod.
const SENDER: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop, team: blue}, annotations: {example.com/sha: abc}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: example/python:3.7
        command: ["python", "-c", "SCRIPT"]
        env:
        - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: COLLECTOR, value: "ADDRESS"}
"#;

/// The attributes of resources that a sink has.
fn resources(sink: &SinkProcess) -> Vec<Value> {
    resource_attributes(&sink.received(Signal::Traces))
}

#[test]
fn a_pod_is_known_by_the_address_that_it_sends_from() {
    let image = format!("example/python:3.7={}", python().display());
    let Some(kubectl) = Kubectl::with_nodes(&["--image", &image]) else { return };
    let sink = SinkProcess::start();
    let document = COLLECTOR.replace("COLLECTOR_IMAGE", ReleaseImage::Collector.reference());
    let document = document.replace("SINK", &sink.address().to_string()).replace("NAMESPACE", kubectl.namespace());
    kubectl.run_ok_with("apply -f -", &document);
    kubectl.run_ok("wait --for=condition=Ready pod/collector --timeout=60s");
    let address = kubectl.field("pod collector", ".status.podIP");
    kubectl.run_ok_with("apply -f -", &SENDER.replace("SCRIPT", &span_sender("{}")).replace("ADDRESS", &address));
    kubectl.run_ok("rollout status deployment/shop --timeout=60s");
    let names = || kubectl.field("pods -l app=shop", ".items[*].metadata.name");
    let pods: BTreeSet<String> = names().split(' ').map(str::to_owned).collect();
    assert_eq!(pods.len(), 2);
    let seen = || resources(&sink).iter().map(|given| attribute(given, "k8s.pod.name").to_owned()).collect();
    wait_until("spans of both pods have the names of their pods", || {
        let seen: BTreeSet<String> = seen();
        pods.is_subset(&seen)
    });
    let given = resources(&sink).into_iter().find(|given| pods.contains(attribute(given, "k8s.pod.name"))).unwrap();
    let uid = kubectl.field(&format!("pod {}", attribute(&given, "k8s.pod.name")), ".metadata.uid");
    for (key, value) in [
        ("k8s.namespace.name", kubectl.namespace()),
        ("k8s.deployment.name", "shop"),
        ("k8s.pod.uid", &uid),
        ("k8s.node.name", &kubectl.field("pod collector", ".spec.nodeName")),
        ("k8s.container.name", "main"),
        ("container.image.name", "example/python"),
        ("service.version", "3.7"),
        ("team", "blue"),
        ("note.sha", "abc"),
    ] {
        assert_eq!(attribute(&given, key), value, "{key} in {given}");
    }
    // A pod that comes later is known, too.
    kubectl.run_ok("scale deployment/shop --replicas=3");
    let new =
        wait_for("a third pod exists", || names().split(' ').map(str::to_owned).find(|name| !pods.contains(name)));
    wait_until("spans of the new pod have its name", || {
        let seen: BTreeSet<String> = seen();
        seen.contains(&new)
    });
}

#[test]
fn a_cluster_that_cannot_be_asked_is_seen_until_it_can_be() {
    let allowed = Arc::new(AtomicBool::new(false));
    let asked = allowed.clone();
    let api = HttpBackend::start(move |request| match asked.load(Ordering::Relaxed) {
        false => (403, Vec::new(), br#"{"kind":"Status","message":"pods is forbidden"}"#.to_vec()),
        true if request.path.contains("watch=true") => (200, Vec::new(), Vec::new()),
        true => (200, Vec::new(), br#"{"metadata":{"resourceVersion":"1"},"items":[]}"#.to_vec()),
    });
    let kubeconfig = format!(
        "current-context: c\nclusters: [{{name: k, cluster: {{server: 'http://{}'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\nusers: [{{name: u, user: {{token: s3cret}}}}]\n",
        api.address()
    );
    let config = ConfigBuilder::exporting_to("nop", "")
        .processor("k8s_attributes/pods", r#"{auth_type: kubeConfig, kube_config_path: "${env:CLUSTER}"}"#)
        .processor("k8s_attributes/elsewhere", "{auth_type: serviceAccount}")
        .pipeline("traces", "k8s_attributes/pods, k8s_attributes/elsewhere", "nop");
    let builder = CollectorProcess::with_config(config).file("kubeconfig", kubeconfig);
    let path = builder.folder().join("kubeconfig");
    let collector = builder.env("CLUSTER", path).start();
    let cluster = |id: &str| collector.status()["clusters"][id].clone();
    wait_until("the cluster has the state failing", || cluster("k8s_attributes/pods")["state"] == "failing");
    let failing = cluster("k8s_attributes/pods");
    assert_eq!(
        (&failing["last_error"], &failing["last_error_code"]),
        (&"authentication".into(), &"http:403".into()),
        "{failing}"
    );
    wait_until("a pod is missed", || cluster("k8s_attributes/elsewhere")["last_error"] == "local");
    let logs = collector.logs();
    assert!(logs.contains("k8s_attributes/pods") && logs.contains("pods is forbidden"), "{logs}");
    assert!(
        logs.contains("auth_type: kubeConfig") && !logs.contains("KUBECONFIG") && !logs.contains("s3cret"),
        "{logs}"
    );
    allowed.store(true, Ordering::Relaxed);
    wait_until("the cluster has the state synced", || cluster("k8s_attributes/pods")["state"] == "synced");
    wait_until("that is in the log", || collector.logs().contains("the Kubernetes API responds again"));
    assert_eq!(cluster("k8s_attributes/elsewhere")["state"], "failing");
}

/// Backends behind a Service without an address of its own.
const TIER: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: tier}
spec: {clusterIP: None, selector: {app: tier}, ports: [{port: 4317}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: tier}
spec:
  replicas: 2
  selector: {matchLabels: {app: tier}}
  template:
    metadata: {labels: {app: tier}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: sink
        image: example/kubewake
        args: ["sink", "--listen", "$(POD_IP):4317"]
        env: [{name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
        readinessProbe: {httpGet: {path: /stats, port: 4317}, periodSeconds: 1}
"#;

#[test]
fn peers_are_the_ready_pods_of_a_service() {
    let image = format!("example/kubewake={}", process::kubewake().get_program().to_string_lossy());
    let Some(kubectl) = Kubectl::with_nodes(&["--image", &image]) else { return };
    kubectl.run_ok_with("apply -f -", TIER);
    kubectl.run_ok("rollout status deployment/tier --timeout=60s");
    let settings = format!(
        "{{protocol: {{otlp: {{tls: {{insecure: true}}, retry_on_failure: {{initial_interval: 50ms, max_interval: 1s}}}}}}, \
         resolver: {{k8s: {{service: tier.{}}}}}}}",
        kubectl.namespace()
    );
    let config = ConfigBuilder::new().exporter("load_balancing", settings).pipeline("traces", "", "load_balancing");
    let kubeconfig = kubectl.cluster().kubeconfig().to_owned();
    let collector = CollectorProcess::with_config(config).env("KUBECONFIG", kubeconfig).start();
    let peers = || collector.metric("otelcol_loadbalancer_num_backends", &["resolver=\"k8s\""]);
    wait_until("both peers are found", || peers() == 2.0);
    let items = || {
        let ips = kubectl.field("pods -l app=tier", ".items[*].status.podIP");
        let count = |ip: &str| http::get(format!("{ip}:4317").parse().unwrap(), "/stats").json()["items"].as_u64();
        ips.split(' ').filter(|ip| !ip.is_empty()).map(|ip| count(ip).unwrap_or_default()).collect::<Vec<u64>>()
    };
    let report = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "50", "--retry"]);
    assert_eq!(report.items("acknowledged"), 5000);
    wait_until("all items arrive", || items().iter().sum::<u64>() == 5000);
    assert!(items().iter().all(|count| *count > 1500), "in fair parts: {:?}", items());
    kubectl.run_ok("scale deployment/tier --replicas=3");
    wait_until("the third peer is found", || peers() == 3.0);
    kubectl.run_ok("scale deployment/tier --replicas=1");
    wait_until("those that went are not peers any more", || peers() == 1.0);
    let report = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "10", "--retry"]);
    assert_eq!(report.items("acknowledged"), 1000);
    assert_eq!(collector.metric("kubewake_pipeline_dropped_items", &[]), 0.0);
}
