//! Somebody tells the stories of clients on a cluster that is there already.

use std::process::Command;

use kubewake_e2e::{Kubectl, cluster::KUBECONFIG, eventually};

/// Some of each sort: with a namespace, with a kind of one's own, with a client of another language, with a webhook.
const STORIES: [&str; 5] = [
    "stories::kubectl::custom::what_the_schema_forbids_is_refused",
    "stories::kubectl::delete::a_namespace_goes_with_everything_in_it",
    "stories::kubectl::read::objects_are_shown_in_every_form",
    "stories::python_kubernetes::",
    "stories::webhook::rules::",
];

/// One that needs nodes.
const OPERATOR: &str = "stories::head_operator::whole::one_apply_is_one_trace_until_everything_is_ready";

#[test]
fn stories_are_told_on_the_cluster_that_is_named_and_leave_nothing_behind() {
    let Some(kubectl) = Kubectl::start() else { return };
    let all = || kubectl.ok("get namespaces,customresourcedefinitions,mutatingwebhookconfigurations -o name");
    let (before, version) = (all(), || kubectl.json(&format!("namespace {}", kubectl.namespace()))["metadata"].clone());
    let untouched = version();
    let mut tell = Command::new(std::env::current_exe().unwrap());
    let told = tell.args(STORIES).env(KUBECONFIG, kubectl.cluster().kubeconfig()).output().unwrap();
    let said = String::from_utf8_lossy(&told.stdout);
    assert!(told.status.success(), "{said}{}", String::from_utf8_lossy(&told.stderr));
    assert!(said.contains("12 passed"), "{said}");
    eventually("what they made is gone", || all() == before);
    assert_eq!(version(), untouched);
    assert!(kubectl.ok("get events --all-namespaces -o name").is_empty());
}

#[test]
fn an_operator_is_followed_on_a_cluster_whose_api_server_tells_nobody() {
    let Some(kubectl) = Kubectl::with_nodes(&["--image", "busybox=/bin/sh"]) else { return };
    let all = || kubectl.ok("get namespaces,customresourcedefinitions,mutatingwebhookconfigurations -o name");
    let before = all();
    let mut tell = Command::new(std::env::current_exe().unwrap());
    let tell = tell.arg(OPERATOR).env(KUBECONFIG, kubectl.cluster().kubeconfig());
    let told = tell.output().unwrap();
    let said = String::from_utf8_lossy(&told.stdout);
    assert!(told.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&told.stderr));
    eventually("what it made is gone", || all() == before);
}
