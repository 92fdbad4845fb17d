//! The manifests of `deploy/webhook`, on an embedded cluster: two replicas behind a Service, with the least
//! permissions.

use kubewake_e2e::{TracedCluster, process::workspace, wait_until};

use super::*;

#[test]
fn two_replicas_share_their_certificates_and_stamp_what_is_deployed() {
    let Some(mut stage) = TracedCluster::start(&[], &["system:masters"]) else { return };
    let kubectl = &stage.kubectl;
    let traces = &stage.traces;
    let of = "--namespace kubewake-webhook";
    kubectl.run_ok(&format!("apply -k {} {of}", workspace().join("deploy/webhook").display()));
    kubectl.run_ok(&format!(
        "set env deployment/kubewake-webhook {of} OTEL_EXPORTER_OTLP_ENDPOINT=http://{}",
        traces.grpc()
    ));
    kubectl.run_ok(&format!("rollout status deployment/kubewake-webhook {of} --timeout=120s"));
    let ready = || kubectl.field(&format!("deployment kubewake-webhook {of}"), ".status.readyReplicas");
    assert_eq!(ready(), "2");
    // Those of before, who do not know where spans go, serve on for a while.
    wait_until("only pods of the new revision remain", || {
        kubectl.json(&format!("pods {of}"))["items"].as_array().is_some_and(|pods| pods.len() == 2)
    });
    assert!(kubectl.exists(&format!("secret kubewake-webhook {of}")));

    let probe = "create deployment probe --image=example --dry-run=server -o json";
    wait_until("the API server calls", || kubectl.run_ok(probe).contains(PARENT));
    kubectl.run_ok("create deployment shop --image=example --replicas=0");
    let object = kubectl.json("deployment shop");
    let context = object["metadata"]["annotations"][PARENT].as_str().expect("it is stamped").to_owned();
    traces.wait_for("the span of the stamp", |spans| {
        spans.from_service(SERVICE).find(|span| span.traceparent() == context).cloned()
    });

    // Both are replaced, one after the other, and no call is lost: they have the same certificates, and each
    // serves on for a while.
    kubectl.run_ok(&format!("rollout restart deployment/kubewake-webhook {of}"));
    let mut status = kubectl.follow(&format!("rollout status deployment/kubewake-webhook {of} --timeout=120s"));
    let mut made = 0;
    while status.is_running() {
        kubectl.run_ok(&format!("create deployment load-{made} --image=example --replicas=0"));
        made += 1;
    }
    assert!(status.wait_for_exit().success(), "{}", status.stderr());
    let said = kubectl.run_ok(&format!("logs deployment/kubewake-webhook {of}"));
    // An admission request may fail while a replica ends; the maintenance of the webhook must not.
    for task in ["renew certificates", "load the new certificate", "write the registration", "watch a registration"] {
        assert!(!said.contains(&format!("failed to {task}")), "{said}");
    }
    assert!(!said.contains("failed to export spans"), "{said}");
    let all = kubectl.json("deployments");
    let is_bare = |one: &&Value| one["metadata"]["annotations"][PARENT].is_null();
    let bare = all["items"].as_array().unwrap().iter().filter(is_bare).count();
    let said = stage.kubectl.process().stderr();
    // A machine that is busy may be slower than two seconds.
    let slow =
        said.lines().filter(|line| line.contains("failed calling webhook") && line.contains("deadline exceeded"));
    assert!(bare <= slow.count(), "{bare} of {made} are not stamped\n{said}");
}
