//! The manifests of `deploy/webhook`, on an embedded cluster: two replicas behind a Service, with the least permissions.

use kubewake_e2e::{Traced, eventually, process::workspace};

use super::*;

#[test]
fn two_replicas_share_their_certificates_and_stamp_what_is_deployed() {
    let Some(stage) = Traced::start(&[], &["system:masters"]) else { return };
    let (kubectl, traces) = (&stage.kubectl, &stage.traces);
    kubectl.ok(&format!("apply -k {}", workspace().join("deploy/webhook").display()));
    let of = "--namespace kubewake-webhook";
    kubectl
        .ok(&format!("set env deployment/kubewake-webhook {of} OTEL_EXPORTER_OTLP_ENDPOINT=http://{}", traces.grpc()));
    kubectl.ok(&format!("rollout status deployment/kubewake-webhook {of} --timeout=120s"));
    let ready = || kubectl.field(&format!("deployment kubewake-webhook {of}"), ".status.readyReplicas");
    assert_eq!(ready(), "2");
    assert!(kubectl.exists(&format!("secret kubewake-webhook {of}")));

    let probe = "create deployment probe --image=example --dry-run=server -o json";
    eventually("the API server calls", || kubectl.ok(probe).contains(PARENT));
    kubectl.ok("create deployment shop --image=example --replicas=0");
    let object = kubectl.json("deployment shop");
    let context = object["metadata"]["annotations"][PARENT].as_str().expect("it is stamped").to_owned();
    traces
        .until("the span of the stamp", |spans| spans.of(SERVICE).find(|span| span.traceparent() == context).cloned());

    // A replica that goes takes nothing along: the other one has the same certificates.
    kubectl.ok(&format!("scale deployment kubewake-webhook {of} --replicas=1"));
    eventually("one is left", || {
        let pods = kubectl.json(&format!("pods {of}"));
        pods["items"].as_array().is_some_and(|pods| pods.len() == 1)
    });
    eventually("it is called", || kubectl.ok(probe).contains(PARENT));
    let said = kubectl.ok(&format!("logs deployment/kubewake-webhook {of}"));
    assert!(!said.contains("cannot be"), "{said}");
}
