//! Somebody changes a Deployment, changes their mind, and is never without a replica.

use kubewake_e2e::wait_until;

use super::{page, service, web};

#[test]
fn a_rollout_is_told_restarted_and_undone() {
    let Some(kubectl) = web() else { return };
    let address = service(&kubectl, "web");
    let before = kubectl.field("replicasets", ".items[0].metadata.name");
    kubectl.run_ok("set env deployment/web COLOUR=green");
    let told = kubectl.run_ok("rollout status deployment/web --timeout=60s");
    assert!(told.contains("successfully rolled out"), "{told}");
    assert_eq!(kubectl.field("pods", ".items[0].spec.containers[0].env[?(@.name==\"COLOUR\")].value"), "green");
    assert_eq!(kubectl.field(&format!("replicaset {before}"), ".spec.replicas"), "0");
    assert_eq!(page(address).as_deref(), Some("first words"));

    let history = kubectl.run_ok("rollout history deployment/web");
    assert!(
        history.lines().any(|line| line.starts_with('1')) && history.lines().any(|line| line.starts_with('2')),
        "{history}"
    );
    kubectl.run_ok("rollout undo deployment/web");
    kubectl.run_ok("rollout status deployment/web --timeout=60s");
    assert_eq!(
        kubectl.field(&format!("replicaset {before}"), ".status.readyReplicas"),
        "3",
        "the old one is used again"
    );

    kubectl.run_ok("rollout restart deployment/web");
    kubectl.run_ok("rollout status deployment/web --timeout=60s");
    assert_eq!(kubectl.field("deployment web", ".metadata.annotations.deployment\\.kubernetes\\.io/revision"), "4");
}

#[test]
fn a_rollout_that_cannot_work_leaves_what_works() {
    let Some(kubectl) = web() else { return };
    let address = service(&kubectl, "web");
    kubectl.run_ok("set image deployment/web web=example/absent");
    wait_until("the status of the new pod has the error", || {
        let reasons = kubectl.field("pods", ".items[*].status.containerStatuses[*].state.waiting.reason");
        reasons.contains("ErrImagePull") || reasons.contains("ImagePullBackOff")
    });
    let message = kubectl.field("pods", ".items[*].status.containerStatuses[*].state.waiting.message");
    assert!(message.contains("example/python") && message.contains("example/absent"), "{message}");
    assert_eq!(page(address).as_deref(), Some("first words"));
    assert!(kubectl.run("rollout status deployment/web --timeout=1s", "").code != 0);
    kubectl.run_ok("rollout undo deployment/web");
    kubectl.run_ok("rollout status deployment/web --timeout=60s");
}
