//! A pod cannot pass as another, and a relay that is trusted is believed whose data it forwards.

use kubewake_e2e::{
    OperatorCluster, SinkProcess,
    operator::{telemetry, trace_pipeline},
    otlp::{attribute, resource_attributes},
    python::{python, span_sender},
    wait_until,
};
use kubewake_otlp::Signal;

/// A program that says in every request that it is the pod `victim`, from the address of its own pod.
const POD: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata: {name: ACCOUNT}
---
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  serviceAccountName: ACCOUNT
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: example/python
    command: ["python", "-c", "SCRIPT"]
    env:
    - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: COLLECTOR, value: "ADDRESS"}
    - {name: VICTIM, value: "UID"}
    - {name: VICTIM_IP, value: "ADDRESS_OF_VICTIM"}
    - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
"#;

/// What a program says of itself that claims to be the victim.
const CLAIMS: &str = "{'service.name': 'SERVICE', 'k8s.pod.uid': os.environ['VICTIM'], \
                      'k8s.pod.ip': os.environ['VICTIM_IP'], 'k8s.pod.name': 'victim', \
                      'k8s.namespace.name': os.environ['NAMESPACE']}";

/// The values of these attributes in a resource that says of itself that it is of this service.
fn said(sink: &SinkProcess, service: &str, keys: [&str; 3]) -> Option<[String; 3]> {
    let resources = resource_attributes(&sink.received(Signal::Traces));
    let last = resources.iter().rfind(|attributes| attribute(attributes, "service.name") == service);
    last.map(|attributes| keys.map(|key| attribute(attributes, key).to_owned()))
}

#[test]
fn pod_that_claims_to_be_another_is_corrected_and_trusted_relay_is_believed() {
    let image = format!("example/python={}", python().display());
    let Some(operated) = OperatorCluster::start_with(&["--image", &image], &[]) else { return };
    let sink = SinkProcess::start();
    let kubectl = &operated.kubectl;
    let namespace = kubectl.namespace().to_owned();
    let relay = format!("{{namespace: {namespace}, serviceAccount: forwarder}}");
    operated.apply(&telemetry(&format!("{{trustedRelays: [{relay}]}}")));
    operated.apply(&trace_pipeline("backend", sink.address()));
    operated.wait_for_state("tracepipeline/backend", "Ready");
    let collector = operated.addresses().remove(0).1.to_string();

    let victim = "import time; time.sleep(3600)";
    let pod = |name: &str, account: &str, script: &str| {
        POD.replace("SCRIPT", &script.replace("SERVICE", name))
            .replace("ACCOUNT", account)
            .replace("ADDRESS_OF_VICTIM", &address_of(&operated, "victim"))
            .replace("ADDRESS", &collector)
            .replace("UID", &kubectl_field(&operated, "victim", ".metadata.uid"))
            .replace("{name: NAME}", &format!("{{name: {name}}}"))
    };
    kubectl.run_ok_with("apply -f -", &pod("victim", "victim", victim));
    wait_until("the victim has an address", || !address_of(&operated, "victim").is_empty());
    kubectl.run_ok_with("apply -f -", &pod("mallory", "mallory", &span_sender(CLAIMS)));
    kubectl.run_ok_with("apply -f -", &pod("relay", "forwarder", &span_sender(CLAIMS)));

    let keys = ["k8s.pod.name", "k8s.pod.uid", "k8s.pod.ip"];
    let identity = |name: &str| {
        Some([name.to_owned(), kubectl_field(&operated, name, ".metadata.uid"), address_of(&operated, name)])
    };
    wait_until("a wrong identity of a sender is corrected", || said(&sink, "mallory", keys) == identity("mallory"));
    wait_until("the identity from a trusted sender is kept", || said(&sink, "relay", keys) == identity("victim"));
}

fn address_of(operated: &OperatorCluster, pod: &str) -> String {
    kubectl_field(operated, pod, ".status.podIP")
}

/// A field of a pod that may not be there yet.
fn kubectl_field(operated: &OperatorCluster, pod: &str, path: &str) -> String {
    if operated.kubectl.exists(&format!("pod {pod}")) {
        operated.kubectl.field(&format!("pod {pod}"), path)
    } else {
        String::new()
    }
}
