//! Somebody who may write pipelines names a Secret that is not theirs, and others write what makes no sense.

use kubewake_e2e::{SinkProcess, free_address, wait_until};
use serde_json::json;

use super::*;

/// Who may write pipelines, and nothing else.
const JANE: &str = "--as jane";

#[test]
fn nobody_names_a_secret_that_they_may_not_read() {
    let Some(kubectl) = installed() else { return };
    let sink = SinkProcess::start();
    kubectl.run_ok("create clusterrolebinding jane-edits --clusterrole kubewake-edit --user jane");
    kubectl.run_ok("create clusterrolebinding jane-views --clusterrole kubewake-view --user jane");
    kubectl.run_ok("create secret generic backend --from-literal=password=planted");
    let own = kubectl.namespace();

    let secret = with_password(pipeline("backend", sink.address()), own, "backend");
    let said = kubectl.run_failing_with(&format!("apply {JANE} -f -"), &secret.to_string());
    assert!(said.contains(&format!("you may not read Secret {own}/backend")), "{said}");
    assert!(said.contains("validate.telemetry.kubewake.io") && said.contains("orbidden"), "{said}");

    // Who may read it may name it.
    kubectl.run_ok("create role read-backend --verb get --resource secrets --resource-name backend");
    kubectl.run_ok("create rolebinding jane-reads --role read-backend --user jane");
    wait_until("the right is known", || kubectl.run(&format!("apply {JANE} -f -"), &secret.to_string()).code == 0);
    kubectl.run_ok("delete rolebinding jane-reads");

    // Others may change the rest, and not where it goes.
    let patch = |change: &Value| format!("patch {JANE} tracepipeline backend --type merge --patch {change}");
    kubectl.run_ok(&patch(&json!({"spec": {"paused": true, "output": {"otlp": {"timeout": "7s"}}}})));
    let elsewhere =
        json!({"spec": {"output": {"otlp": {"endpoint": {"value": format!("http://{}", free_address())}}}}});
    wait_until("the right is forgotten", || {
        let done = kubectl.run(&format!("{} --dry-run=server", patch(&elsewhere)), "");
        done.code == 1 && done.stderr.contains("you may not read Secret")
    });
    kubectl.run_ok(&format!("label {JANE} tracepipeline backend team=shop"));
    kubectl.run_ok(&format!("delete {JANE} tracepipeline backend"));
    assert!(!super::said(&kubectl).contains("planted"));
}

#[test]
fn all_that_is_wrong_is_said_at_once_and_what_is_unwise_is_a_warning() {
    let Some(kubectl) = installed() else { return };
    let sink = SinkProcess::start();
    let mut bad = pipeline("bad", sink.address());
    bad["spec"]["output"]["otlp"]["endpoint"]["value"] = "no address".into();
    bad["spec"]["output"]["otlp"]["headers"] =
        json!([{"name": "x-one", "value": "1"}, {"name": "X-One", "value": "2"}]);
    bad["spec"]["filter"] = json!([{"matchType": "regexp", "services": ["("]}]);
    let said = kubectl.run_failing_with("apply -f -", &bad.to_string());
    for path in ["spec.output.otlp.endpoint", "spec.output.otlp.headers[1].name", "spec.filter[0].services[0]"] {
        assert!(said.contains(path), "{path}\n{said}");
    }

    let mut unwise = pipeline("first", sink.address());
    unwise["spec"]["output"]["otlp"]["headers"] = json!([{"name": "authorization", "value": "planted"}]);
    let done = kubectl.run("apply -f -", &unwise.to_string());
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.contains("Warning: spec.output.otlp."), "{}", done.stderr);
    assert!(!done.stderr.contains("planted"), "{}", done.stderr);

    kubectl.run_ok("wait tracepipeline/first --for condition=Accepted --timeout=120s");
    let done = kubectl.run("apply -f -", &pipeline("second", sink.address()).to_string());
    assert!(done.code == 0 && done.stderr.contains("will be Pending"), "{}", done.stderr);

    // What was let in before the webhook was there, or while it was away, can be deleted and described. But
    // nothing new comes in without it.
    kubectl.run_ok(&format!("scale deployment/kubewake-operator {SYSTEM} --replicas=0"));
    wait_until("no webhook answers", || {
        let done = kubectl.run("apply --dry-run=server -f -", &pipeline("third", sink.address()).to_string());
        done.code == 1 && done.stderr.contains("failed calling webhook")
    });
    kubectl.run_ok("label tracepipeline second team=shop --dry-run=client");
    kubectl.run_ok("delete tracepipeline first second");
}
