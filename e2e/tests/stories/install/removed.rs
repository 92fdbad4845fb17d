//! A platform engineer removes what was installed, and nothing of it is left in the cluster.

use std::collections::BTreeSet;

use kubewake_e2e::{Kubectl, SinkProcess, process::workspace, wait_for_ok, wait_until};

use super::*;

const WEBHOOK: &str = "--namespace kubewake-webhook";

/// Every object of every kind, as `NAMESPACE KIND/NAME`. Events are left out: they end by themselves.
fn inventory(kubectl: &Kubectl) -> Result<BTreeSet<String>, String> {
    let kinds = kubectl.run_ok("api-resources --verbs=list -o name");
    let kinds: Vec<&str> = kinds.lines().filter(|kind| !kind.starts_with("events")).collect();
    let format = "-o=go-template={{range.items}}{{.metadata.namespace}}{{\"\\x20\"}}{{.kind}}/{{.metadata.name}}{{\"\\n\"}}{{end}}";
    // A kind may be removed between the two commands.
    let listed = kubectl.run_anywhere(&format!("get {} --all-namespaces {format}", kinds.join(",")), "");
    match listed.code {
        0 => Ok(listed.stdout.lines().map(str::to_owned).collect()),
        _ => Err(listed.stderr),
    }
}

fn folder(of: &str) -> String {
    workspace().join(of).display().to_string()
}

#[test]
fn removed_install_leaves_nothing_in_the_cluster() {
    let Some(kubectl) = Kubectl::with_nodes(&[]) else { return };
    if !kubectl.is_at_least(22, "kustomize that knows patches") {
        return;
    }
    let before = wait_for_ok(|| inventory(&kubectl));
    for part in ["deploy", "deploy/webhook"] {
        kubectl.ok_anywhere(&format!("apply -k {}", folder(part)), "");
    }
    kubectl.run_ok(&format!("rollout status deployment/kubewake-operator {SYSTEM} --timeout=120s"));
    kubectl.run_ok(&format!("rollout status deployment/kubewake-webhook {WEBHOOK} --timeout=120s"));
    let sink = SinkProcess::start();
    let pipeline = pipeline("backend", sink.address()).to_string();
    wait_until("the pipeline is taken", || kubectl.run("apply -f -", &pipeline).code == 0);
    kubectl.run_ok("wait tracepipeline/backend --for condition=CollectorReady --timeout=120s");

    webhooks_without_pods(&kubectl, &pipeline);

    // The pipeline is still there, as whoever forgets to delete it has it.
    for part in ["deploy/webhook", "deploy"] {
        kubectl.ok_anywhere(&format!("delete -k {} --ignore-not-found", folder(part)), "");
    }
    wait_for_ok(|| {
        let left: Vec<String> = inventory(&kubectl)?.difference(&before).cloned().collect();
        left.is_empty().then_some(()).ok_or_else(|| format!("these are left: {left:#?}"))
    });
    kubectl.run_ok("create deployment shop --image=example --replicas=0");
}

/// While the configurations are there and nobody answers: the trail webhook keeps nothing from being written,
/// and that of the operator keeps pipelines from being written, but not from being deleted, and nothing else.
fn webhooks_without_pods(kubectl: &Kubectl, pipeline: &str) {
    kubectl.run_ok(&format!("scale deployment kubewake-operator {SYSTEM} --replicas=0"));
    kubectl.run_ok(&format!("scale deployment kubewake-webhook {WEBHOOK} --replicas=0"));
    for of in [SYSTEM, WEBHOOK] {
        wait_until("no pod answers", || {
            let pods = kubectl.run_ok(&format!("get pods {of} -o name"));
            !pods.contains("kubewake-operator") && !pods.contains("kubewake-webhook")
        });
    }
    assert!(kubectl.exists("mutatingwebhookconfiguration kubewake-webhook"));
    assert!(kubectl.exists("validatingwebhookconfiguration kubewake-operator"));
    kubectl.run_ok("create deployment unstamped --image=example --replicas=0");
    kubectl.run_ok("create configmap other");
    let refused = kubectl.run_failing_with("apply -f -", &pipeline.replace("backend", "second"));
    assert!(refused.contains("failed calling webhook"), "{refused}");
    kubectl.run_ok("delete deployment unstamped");
    kubectl.run_ok("delete configmap other");
}
