//! Somebody applies a Head, and sees in one trace what came of it.

mod again;
mod distrust;
mod links;
pub(super) mod parts;
mod rapid;
mod readme;
mod refused;
mod removed;
mod restart;
mod rule;
mod whole;

use std::{fs, process::Command};

use kubewake_e2e::{
    TraceReceiver, TracedCluster,
    process::{ChildProcess, example, workspace},
    traced_cluster::ADMINISTRATORS_GROUP,
    traces::{CallerVisibility, ExportedSpan},
};

/// The groups that the API server believes: who types, and the operator.
const TRUSTED: [&str; 2] = [ADMINISTRATORS_GROUP, "system:serviceaccounts:head-system"];
/// Who makes spans beside the API server.
const OURS: [&str; 2] = ["head-operator", "kubewake-webhook"];
/// The kinds on which contexts are stamped.
const KINDS: [&str; 2] = ["demo.kubewake.io/v1alpha1/heads", "demo.kubewake.io/v1alpha1/childas"];

/// What its pods run, as a cluster on this machine knows it.
const IMAGE: [&str; 2] = ["--image", "busybox=/bin/sh"];

/// A file of the example.
fn file(name: &str) -> String {
    fs::read_to_string(workspace().join("examples/head-operator/deploy").join(name)).unwrap()
}

/// A cluster that knows Heads, without an operator.
fn cluster(trusted: &[&str]) -> Option<TracedCluster> {
    TracedCluster::start(&IMAGE, trusted).map(prepared)
}

/// The same, or the cluster that was named.
fn anywhere() -> Option<TracedCluster> {
    TracedCluster::start_anywhere(&IMAGE, &TRUSTED).map(prepared)
}

fn prepared(mut traced: TracedCluster) -> TracedCluster {
    for name in ["operator.yaml", "crds.yaml"] {
        traced.kubectl.delete_on_drop(&file(name), "--namespace head-system");
    }
    let kubectl = &traced.kubectl;
    kubectl.run_ok_with("apply -f -", &file("crds.yaml"));
    kubectl.run_ok("wait --for=condition=Established crd/heads.demo.kubewake.io crd/childas.demo.kubewake.io");
    kubectl.run_ok_with("apply -f - --namespace head-system", &file("operator.yaml"));
    // It runs beside the cluster, where it can be stopped and started.
    kubectl.run_ok("scale deployment/head-operator --namespace head-system --replicas=0");
    traced
}

fn operator_command(traced: &TracedCluster, args: &[&str]) -> Command {
    let mut command = traced.as_account(example("head-operator"), "head-system", "head-operator");
    command.arg("run").args(args);
    if !traced.kubectl.cluster().is_embedded() {
        command.args(["--namespace", traced.kubectl.namespace()]);
    }
    command
}

/// The operator with its own rights, at work.
fn operator(traced: &TracedCluster, args: &[&str]) -> ChildProcess {
    let mut operator = ChildProcess::start(&mut operator_command(traced, args));
    operator.wait_until_ready();
    operator
}

/// The webhook for Heads and their children, at work.
fn webhook(traced: &TracedCluster) -> ChildProcess {
    let webhook = traced.start_webhook(&KINDS, &[]);
    traced.wait_until_stamped(&head("probe", ""));
    webhook
}

/// Whether a stamp was not only tried.
fn is_real(span: &ExportedSpan) -> bool {
    span.attribute("trail.dry_run").is_empty()
}

/// Ends it; what it had to export it has exported.
fn stop(mut process: ChildProcess) {
    process.signal("TERM");
    let status = process.wait_for_exit();
    assert!(status.success(), "{status}: {}", process.stderr());
}

/// A Head with one child of one pod, for whatever runs for long.
fn head(name: &str, word: &str) -> String {
    format!(
        r#"
apiVersion: demo.kubewake.io/v1alpha1
kind: Head
metadata: {{name: {name}}}
spec:
  children:
  - name: a
    template: {{image: busybox, command: ["sh", "-c", "exec sleep 1000000", "{word}"]}}
"#
    )
}

fn wait_ready(traced: &TracedCluster, name: &str) {
    traced.kubectl.run_ok(&format!("wait --for=condition=Ready head/{name} --timeout=60s"));
}

/// Whether a trace is as this text says.
fn is(traces: &TraceReceiver, trace: &str, short: &str) {
    traces.assert_matches(trace, &parts::whole(traces.callers(), short));
}

/// Sees to it that nobody of ours has spans in other traces. Where the API server begins a trace for each
/// request, those of the webhook are in there.
fn tell_only(traces: &TraceReceiver, told: &[&str]) {
    let ours = if traces.callers() == CallerVisibility::Linked { &OURS[..1] } else { &OURS[..] };
    traces.assert_only_in(ours, told);
}
