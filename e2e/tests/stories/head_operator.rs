//! Somebody applies a Head, and sees in one trace what came of it.

mod again;
mod distrust;
mod rapid;
mod refused;
mod restart;
mod whole;

use std::{fs, process::Command};

use kubewake_e2e::{
    Traced,
    process::{Process, example, workspace},
    traced::ADMINISTRATORS,
};

/// The groups that the API server believes: who types, and the operator.
const TRUSTED: [&str; 2] = [ADMINISTRATORS, "system:serviceaccounts:head-system"];
/// Who makes spans beside the API server.
const OURS: [&str; 2] = ["head-operator", "kubewake-webhook"];
/// The kinds on which contexts are stamped.
const KINDS: [&str; 2] = ["demo.kubewake.io/v1alpha1/heads", "demo.kubewake.io/v1alpha1/childas"];

/// A file of the example.
fn file(name: &str) -> String {
    fs::read_to_string(workspace().join("examples/head-operator/deploy").join(name)).unwrap()
}

/// A cluster that knows Heads, without an operator.
fn cluster(trusted: &[&str]) -> Option<Traced> {
    let traced = Traced::start(&["--image", "busybox=/bin/sh"], trusted)?;
    let kubectl = &traced.kubectl;
    kubectl.ok_with("apply -f -", &file("crds.yaml"));
    kubectl.ok("wait --for=condition=Established crd/heads.demo.kubewake.io crd/childas.demo.kubewake.io");
    kubectl.ok_with("apply -f - --namespace head-system", &file("operator.yaml"));
    // It runs beside the cluster, where it can be stopped and started.
    kubectl.ok("scale deployment/head-operator --namespace head-system --replicas=0");
    Some(traced)
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

/// Writes paths out that would make every line too long.
fn paths(expected: &str) -> String {
    let short = [("DEMO/", "demo.kubewake.io/v1alpha1"), ("APPS/", "apps/v1"), ("EVENTS/", "events.k8s.io/v1")];
    short.iter().fold(expected.to_owned(), |text, (short, group)| {
        text.replace(&format!(" {short}"), &format!(" /apis/{group}/namespaces/{{:namespace}}/"))
    })
}
