//! From nothing to traces of the cluster itself, and back to nothing.

use std::{fs, process::Command};

use kubewake_e2e::{
    Kubectl, SinkProcess, http,
    process::{kubewake, workspace},
    wait_until,
};

use super::*;

const SPAN: &str = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"one"}]}]}]}"#;

#[test]
fn the_manifests_let_the_operator_do_all_that_it_does_and_no_more_is_needed() {
    let Some(kubectl) = installed() else { return };
    let sink = SinkProcess::start();
    assert_eq!(made(&kubectl), Vec::<String>::new(), "without a pipeline there is nothing");
    kubectl.run_ok_with("apply -f -", &pipeline("backend", sink.address()).to_string());
    kubectl.run_ok("wait tracepipeline/backend --for condition=CollectorReady --timeout=120s");

    let address = kubectl.field(&format!("service kubewake-otlp {SYSTEM}"), ".spec.clusterIP");
    let at = format!("{address}:4318").parse().unwrap();
    let answer = http::post(at, "/v1/traces", "application/json", SPAN.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    sink.wait_for_items(1);

    traces_of_another_api_server(&kubectl, &address, &sink);

    // It may start before its kinds are served, and then says that they cannot be watched yet.
    let log = said(&kubectl);
    for sign in ["orbidden", "may not", "not allowed", "failed to apply"] {
        assert!(!log.contains(sign), "{sign}\n{log}");
    }
    kubectl.run_ok("delete tracepipeline backend");
    wait_until("all created objects are deleted", || made(&kubectl).is_empty());
    taken_away(&kubectl);
}

/// `kubewake operator tracing-config` is what makes an API server send its spans to the pipeline.
fn traces_of_another_api_server(kubectl: &Kubectl, address: &str, sink: &SinkProcess) {
    let printed = command(kubectl, &["operator", "tracing-config", "--sampling-rate-per-million", "1000000"]);
    assert!(printed.contains(&format!("endpoint: \"{address}:4317\"\n")), "{printed}");
    let file = kubectl.cluster().folder().join("tracing.yaml");
    fs::write(&file, printed).unwrap();
    let Some(_other) = Kubectl::start_with(&["--tracing-config-file", file.to_str().unwrap()]) else { return };
    wait_until("spans of the API server arrive at the backend", || {
        sink.span_names().iter().any(|name| name.starts_with("POST /api/v1/namespaces"))
    });
}

fn taken_away(kubectl: &Kubectl) {
    let registration = "validatingwebhookconfiguration kubewake-operator";
    assert!(kubectl.exists(registration));
    kubectl.ok_anywhere(&format!("delete -k {} --ignore-not-found", workspace().join("deploy").display()), "");
    wait_until("the registration goes with the namespace", || !kubectl.exists(registration));
    let left = kubectl.run_ok("get clusterroles,clusterrolebindings,roles,rolebindings -A -o name");
    assert!(!left.contains("kubewake"), "{left}");
}

#[test]
fn what_the_program_prints_is_what_kustomize_makes() {
    let Some(kubectl) = Kubectl::start() else { return };
    let manifests = command(&kubectl, &["operator", "manifests"]);
    if !kubectl.cluster().is_embedded() || !kubectl.is_at_least(22, "kustomize that knows patches") {
        return;
    }
    let made = kubectl.ok_anywhere(&format!("apply -k {}", workspace().join("deploy").display()), "");
    let kinds = manifests.lines().filter(|line| line.starts_with("kind: ")).count();
    assert_eq!(made.lines().count(), kinds, "{made}");
    assert_eq!(kubectl.ok_anywhere("diff -f -", &manifests), "", "to apply it would change something");
}

#[test]
fn overlays_change_what_they_say_and_nothing_else() {
    let Some(kubectl) = Kubectl::start() else { return };
    if !kubectl.is_at_least(22, "kustomize that knows patches") {
        return;
    }
    let objects = |path: &str| kubectl.run_ok(&format!("kustomize {}", workspace().join(path).display()));
    let kinds = |text: &str| text.lines().filter(|line| line.starts_with("kind: ")).count();
    let whole = objects("deploy");
    let single = objects("deploy/overlays/single");
    assert_eq!(kinds(&single), kinds(&whole) - 1);
    assert!(single.contains("replicas: 1\n") && !single.contains("PodDisruptionBudget"), "{single}");
    let granted = objects("deploy/overlays/granted-secrets");
    assert_eq!(kinds(&granted), kinds(&whole) - 1);
    assert_eq!(
        granted.matches("name: kubewake-operator-references\n").count(),
        1,
        "the role is there, and nobody has it"
    );
    assert_eq!(whole.matches("name: kubewake-operator-references\n").count(), 3);
    let traced = objects("deploy/overlays/traced");
    let variable =
        "        - name: OTEL_EXPORTER_OTLP_ENDPOINT\n          value: http://kubewake-otlp.kubewake-system:4317\n";
    assert_eq!(traced.replacen(variable, "", 1), whole, "nothing else is changed");
    assert!(traced.contains(variable) && !whole.contains("OTEL_"), "{traced}");
}

/// The files for a mesh name what the operator makes.
#[test]
fn the_mesh_is_told_where_the_pipelines_are() {
    let text = |path: &str| fs::read_to_string(workspace().join("deploy/istio").join(path)).unwrap();
    for (protocol, port) in [("otlp", 4317), ("opencensus", 55678)] {
        let mesh = text(&format!("{protocol}/mesh.yaml"));
        let service = "        service: kubewake-otlp.kubewake-system.svc.cluster.local\n";
        assert!(mesh.contains(&format!("{service}        port: {port}\n")), "{mesh}");
        assert!(text(&format!("{protocol}/telemetry.yaml")).contains("providers: [{name: kubewake}]"));
        assert!(mesh.contains("- name: kubewake\n"));
    }
    assert!(text("opencensus/mesh.yaml").contains("context: [W3C_TRACE_CONTEXT]\n"));
    assert!(text("opencensus/receivers.yaml").contains("opencensus: {enabled: true}\n"));
}

/// Everything that the operator made.
fn made(kubectl: &Kubectl) -> Vec<String> {
    let kinds = "deployments,statefulsets,services,configmaps,secrets,serviceaccounts,roles,rolebindings,\
                 horizontalpodautoscalers,poddisruptionbudgets,networkpolicies,clusterroles,clusterrolebindings";
    let listed = kubectl
        .run_ok(&format!("get {kinds} {SYSTEM} --selector app.kubernetes.io/managed-by=kubewake-operator -o name"));
    listed.lines().map(str::to_owned).collect()
}

/// What this program prints, on the story's cluster.
fn command(kubectl: &Kubectl, args: &[&str]) -> String {
    let mut command: Command = kubewake();
    let output = command.args(args).env("KUBECONFIG", kubectl.cluster().kubeconfig()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
