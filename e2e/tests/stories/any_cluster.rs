//! Somebody tells the stories of clients on a cluster that is there already.

mod reconnecting;
mod variants;
mod writer;

use std::{
    fs::{self, Permissions},
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use kubewake_e2e::{
    Kubectl,
    cluster::{HOST_VARIABLE, KUBECONFIG_VARIABLE},
    free_address,
    operator::in_cluster::IMAGES_VARIABLE,
    process::kubewake,
    traces::OTLP_VARIABLE,
    wait_until,
};

/// Some of each sort: with a namespace, with a kind of one's own, with a client of another language, with a webhook.
const STORIES: [&str; 5] = [
    "stories::kubectl::custom::what_the_schema_forbids_is_refused",
    "stories::kubectl::delete::a_namespace_goes_with_everything_in_it",
    "stories::kubectl::read::objects_are_shown_in_every_form",
    "stories::python_kubernetes::",
    "stories::webhook::rules::",
];

const OPERATOR: [&str; 10] = [
    "stories::head_operator::whole::one_apply_is_one_trace_until_everything_is_ready",
    "stories::head_operator::again::a_restart_and_a_hundred_resyncs_add_no_span",
    "stories::head_operator::distrust::a_context_of_a_namespace_that_is_not_trusted_is_not_followed",
    "stories::head_operator::distrust::garbage_in_the_place_of_a_context_is_as_if_there_were_none",
    "stories::head_operator::links::with_links_each_run_is_a_trace_that_leads_back_to_the_change",
    "stories::head_operator::rapid::a_change_before_the_first_is_done_is_a_trace_of_its_own_with_links_to_the_first",
    "stories::head_operator::rapid::two_changes_at_once_are_two_traces_that_know_each_other",
    "stories::head_operator::refused::a_deployment_that_is_refused_is_an_error_in_the_trace_until_it_is_taken",
    "stories::head_operator::restart::a_new_operator_goes_on_with_the_trace",
    "stories::head_operator::removed::a_child_that_is_no_longer_listed_goes_in_the_trace_of_that_change",
];

/// Those of the telemetry operator, one for each thing that differs elsewhere: it is installed, ended and
/// started, and asks collectors, from inside.
const PIPELINES: [&str; 5] = [
    "stories::operator::first::the_first_pipeline_brings_collectors_and_the_last_takes_them_away",
    "stories::operator::gone::the_last_pipeline_takes_everything_along_also_while_no_operator_runs",
    "stories::operator::missing::a_pipeline_starts_when_its_secret_appears",
    "stories::operator::slots::ten_at_once_are_one_active_and_nine_pending_whatever_becomes_of_the_operator",
    "stories::operator::delivery::a_wrong_password_shows_within_15_seconds",
];

/// A cluster with nodes, with these arguments.
fn with_nodes(args: &[&str]) -> Option<Kubectl> {
    Kubectl::with_nodes(&[&["--image", "busybox=/bin/sh"], args].concat())
}

fn told(stories: &[&str], kubectl: &Kubectl, variables: &[(&str, &str)]) -> Output {
    let mut tell = Command::new(std::env::current_exe().unwrap());
    tell.args(stories).env(KUBECONFIG_VARIABLE, kubectl.cluster().kubeconfig()).envs(variables.iter().copied());
    tell.output().unwrap()
}

/// Tells stories on this cluster, with these variables, and sees that they leave nothing behind.
fn tell(stories: &[&str], kubectl: &Kubectl, variables: &[(&str, &str)]) {
    let kinds = "namespaces,customresourcedefinitions,mutatingwebhookconfigurations,validatingwebhookconfigurations,\
                 validatingadmissionpolicies,validatingadmissionpolicybindings,clusterroles,clusterrolebindings";
    let all = || kubectl.run_ok(&format!("get {kinds} -o name"));
    let before = all();
    let told = told(stories, kubectl, variables);
    let said = String::from_utf8_lossy(&told.stdout);
    assert!(told.status.success(), "{said}{}", String::from_utf8_lossy(&told.stderr));
    assert!(said.contains(&format!("{} passed", stories.len())), "{said}");
    wait_until("the objects of the stories are deleted", || all() == before);
}

#[test]
fn stories_are_told_on_the_cluster_that_is_named_and_leave_nothing_behind() {
    let Some(kubectl) = Kubectl::start() else { return };
    let all = || kubectl.run_ok("get namespaces,customresourcedefinitions,mutatingwebhookconfigurations -o name");
    let before = all();
    let version = || kubectl.json(&format!("namespace {}", kubectl.namespace()))["metadata"].clone();
    let untouched = version();
    let mut tell = Command::new(std::env::current_exe().unwrap());
    let told = tell.args(STORIES).env(KUBECONFIG_VARIABLE, kubectl.cluster().kubeconfig()).output().unwrap();
    let said = String::from_utf8_lossy(&told.stdout);
    assert!(told.status.success(), "{said}{}", String::from_utf8_lossy(&told.stderr));
    assert!(said.contains("12 passed"), "{said}");
    wait_until("the objects of the stories are deleted", || all() == before);
    assert_eq!(version(), untouched);
    assert!(kubectl.run_ok("get events --all-namespaces -o name").is_empty());
}

#[test]
fn an_operator_is_followed_on_a_cluster_whose_api_server_tells_nobody() {
    let Some(kubectl) = with_nodes(&[]) else { return };
    tell(&OPERATOR, &kubectl, &[]);
}

#[test]
fn an_operator_whom_the_api_server_does_not_trust_is_followed_by_links_where_its_spans_come_here() {
    let folder = tempfile::tempdir().unwrap();
    let otlp = free_address();
    let config = trusting_nobody(folder.path(), otlp);
    let Some(kubectl) = with_nodes(&["--tracing-config-file", config.to_str().unwrap()]) else { return };
    tell(&OPERATOR, &kubectl, &[(OTLP_VARIABLE, &otlp.to_string())]);
}

/// A configuration for an API server that sends all its spans to this address, as kube-apiserver has it: nobody
/// says whom to trust, so that operators are not.
fn trusting_nobody(folder: &Path, otlp: SocketAddr) -> PathBuf {
    let config = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: {otlp}\nsamplingRatePerMillion: 1000000\n"
    );
    let path = folder.join("tracing.yaml");
    fs::write(&path, config).unwrap();
    path
}

#[test]
fn pipelines_work_on_a_cluster_that_is_there_already() {
    // Its images have other names than by default, and this machine another address, so that both are heeded.
    let folder = tempfile::tempdir().unwrap();
    let images = ["operator", "collector"].map(|name| {
        let path = folder.path().join(name);
        let run = format!("#!/bin/sh\nexec {} {name} \"$@\"\n", kubewake().get_program().display());
        fs::write(&path, run).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        format!("registry.example/{name}:1={}", path.display())
    });
    let Some(kubectl) = Kubectl::with_nodes(&["--image", &images[0], "--image", &images[1]]) else { return };
    tell(&PIPELINES, &kubectl, &[(HOST_VARIABLE, "127.0.0.77"), (IMAGES_VARIABLE, "registry.example/*:1")]);
}

#[test]
fn pipelines_of_somebody_else_are_left_alone() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok("create namespace kubewake-system");
    let told = told(&PIPELINES[..1], &kubectl, &[]);
    let said = String::from_utf8_lossy(&told.stdout);
    assert!(!told.status.success(), "{said}");
    assert!(said.contains("Kubewake is already installed on this cluster (namespace kubewake-system)"), "{said}");
    assert!(kubectl.exists("namespace kubewake-system"), "it is somebody's");
}
