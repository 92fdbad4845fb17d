//! Somebody loads the images of a release on nodes that pull nothing, and installs by the manifests as they are.

use kubewake_e2e::{SinkProcess, wait_until};
use serde_json::json;

use super::*;

/// Reasons of events about images that were not there.
const FAILED_PULLS: [&str; 4] = ["Pulling", "BackOff", "ErrImageNeverPull", "InspectFailed"];

fn apply_and_wait(kubectl: &Kubectl, apply: &str, deployment: &str, namespace: &str) {
    kubectl.ok_anywhere(apply, "");
    kubectl.run_ok(&format!("rollout status deployment/{deployment} --namespace {namespace} --timeout=120s"));
}

fn assert_nothing_was_pulled(kubectl: &Kubectl) {
    let events = kubectl.json("events --all-namespaces");
    let pulls: Vec<&Value> = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| {
            event["involvedObject"]["kind"] == "Pod" && FAILED_PULLS.iter().any(|reason| event["reason"] == *reason)
        })
        .collect();
    assert!(pulls.is_empty(), "{pulls:#?}");
}

#[test]
fn every_manifest_finds_its_image_where_archives_are_loaded() {
    let Some(kubectl) = with_archives(&ReleaseImage::ALL) else { return };
    let sink = SinkProcess::start();
    let at = |path: &str| workspace().join(path).display().to_string();
    apply_and_wait(&kubectl, &format!("apply -k {}", at("deploy")), "kubewake-operator", "kubewake-system");
    kubectl.run_ok_with("apply -f -", &pipeline("backend", sink.address()).to_string());
    kubectl.run_ok("wait tracepipeline/backend --for condition=CollectorReady --timeout=120s");
    let image =
        kubectl.field(&format!("deployment kubewake-gateway {SYSTEM}"), ".spec.template.spec.containers[0].image");
    assert_eq!(image, ReleaseImage::Collector.reference());

    apply_and_wait(&kubectl, &format!("apply -k {}", at("deploy/webhook")), "kubewake-webhook", "kubewake-webhook");
    let example =
        |name: &str| format!("apply -f {0}/crds.yaml -f {0}/operator.yaml", at(&format!("examples/{name}/deploy")));
    apply_and_wait(&kubectl, &example("head-operator"), "head-operator", "head-system");
    apply_and_wait(&kubectl, &example("scheduler"), "scheduler-operator", "scheduler-system");
    assert_nothing_was_pulled(&kubectl);
}

#[test]
fn changed_image_is_run_as_its_own_policy_says() {
    let Some(kubectl) = with_archives(&[ReleaseImage::Collector, ReleaseImage::Operator]) else { return };
    let sink = SinkProcess::start();
    apply_and_wait(
        &kubectl,
        &format!("apply -k {}", workspace().join("deploy").display()),
        "kubewake-operator",
        "kubewake-system",
    );
    // Without a tag it is pulled, and nothing can be: no node has it, and no registry.
    let telemetry = |image: &str| {
        json!({
            "apiVersion": "telemetry.kubewake.io/v1alpha1", "kind": "Telemetry", "metadata": {"name": "default"},
            "spec": {"image": image},
        })
        .to_string()
    };
    kubectl.run_ok_with("apply -f -", &telemetry("kubewake/collector"));
    kubectl.run_ok_with("apply -f -", &pipeline("backend", sink.address()).to_string());
    wait_until("the pull of the image fails", || {
        let events = kubectl.run_ok(&format!("get events {SYSTEM} -o jsonpath={{.items[*].message}}"));
        events.contains("docker.io/kubewake/collector:latest: not found")
    });
    // The one that was loaded is found, as the policy follows the image.
    kubectl.run_ok_with("apply -f -", &telemetry(ReleaseImage::Collector.reference()));
    kubectl.run_ok("wait tracepipeline/backend --for condition=CollectorReady --timeout=120s");
}
