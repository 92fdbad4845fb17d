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
mod whole;

use std::{fs, process::Command};

use kubewake_e2e::{
    Traced, Traces,
    process::{Process, example, workspace},
    traced::ADMINISTRATORS,
    traces::{Callers, Span, Tree},
};

/// The groups that the API server believes: who types, and the operator.
const TRUSTED: [&str; 2] = [ADMINISTRATORS, "system:serviceaccounts:head-system"];
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
fn cluster(trusted: &[&str]) -> Option<Traced> {
    Traced::start(&IMAGE, trusted).map(prepared)
}

fn prepared(traced: Traced) -> Traced {
    let kubectl = &traced.kubectl;
    kubectl.ok_with("apply -f -", &file("crds.yaml"));
    kubectl.ok("wait --for=condition=Established crd/heads.demo.kubewake.io crd/childas.demo.kubewake.io");
    kubectl.ok_with("apply -f - --namespace head-system", &file("operator.yaml"));
    // It runs beside the cluster, where it can be stopped and started.
    kubectl.ok("scale deployment/head-operator --namespace head-system --replicas=0");
    traced
}

/// Removes what is not in the story's namespace, where there may be others.
fn clean_up(traced: &Traced) {
    for name in ["operator.yaml", "crds.yaml"].into_iter().filter(|_| !traced.kubectl.cluster().is_embedded()) {
        traced.kubectl.ok_with("delete --ignore-not-found -f - --namespace head-system", &file(name));
    }
}

fn operator_command(traced: &Traced, args: &[&str]) -> Command {
    let mut command = traced.as_account(example("head-operator"), "head-system", "head-operator");
    command.arg("run").args(args);
    command
}

/// The operator with its own rights, at work.
fn operator(traced: &Traced, args: &[&str]) -> Process {
    let mut operator = Process::start(&mut operator_command(traced, args));
    operator.ready();
    operator
}

/// The webhook for Heads and their children, at work.
fn webhook(traced: &Traced) -> Process {
    let webhook = traced.webhook(&KINDS, &[]);
    traced.until_stamped(&head("probe", ""));
    webhook
}

/// Whether a stamp was not only tried.
fn is_real(span: &Span) -> bool {
    span.attribute("trail.dry_run").is_empty()
}

/// Ends it; what it had to export it has exported.
fn stop(mut process: Process) {
    process.signal("TERM");
    let status = process.wait();
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

fn wait_ready(traced: &Traced, name: &str) {
    traced.kubectl.ok(&format!("wait --for=condition=Ready head/{name} --timeout=60s"));
}

/// Sees to it that every trace of the operator but one has one root, which is one of these; gives how many there are.
fn each_begins_with(traces: &Traces, except: &str, known: &[&str]) -> usize {
    let spans = traces.spans();
    let mut others = spans.traces_of(&["head-operator"]);
    others.remove(except);
    for trace in &others {
        let tree = Tree::of(&spans, trace, Callers::Trusted);
        let roots: Vec<_> = tree.0.keys().filter(|path| path.len() == 1).map(|path| path[0].as_str()).collect();
        assert!(roots.len() == 1 && known.contains(&roots[0]), "{tree}");
    }
    others.len()
}
