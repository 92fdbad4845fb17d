//! `apply` by client and by server, `diff`, and kustomizations.

use std::fs;

use kubewake_e2e::{Kubectl, wait_for_ok};

use super::WEB;

#[test]
fn what_is_applied_again_changes_only_what_differs() {
    let Some(kubectl) = Kubectl::start() else { return };
    let said = kubectl.run_ok_with("apply -f -", WEB);
    assert_eq!(said.lines().filter(|line| line.ends_with(" created")).count(), 3, "{said}");
    let version = kubectl.field("configmap settings", ".metadata.resourceVersion");
    let said = kubectl.run_ok_with("apply -f -", WEB);
    assert_eq!(said.lines().filter(|line| line.ends_with(" unchanged")).count(), 3, "{said}");
    if kubectl.cluster().is_embedded() {
        assert_eq!(kubectl.field("configmap settings", ".metadata.resourceVersion"), version);
    }

    kubectl.run_ok("label configmap settings kept=yes");
    let changed = WEB.replace("size: \"1\", shape: round", "size: \"2\"").replace("value: blue", "value: red");
    let said = kubectl.run_ok_with("apply -f -", &changed);
    assert!(said.contains("deployment.apps/web configured") && said.contains("service/web unchanged"), "{said}");
    let settings = kubectl.json("configmap settings");
    assert_eq!(settings["data"], serde_json::json!({"size": "2"}), "what was taken out of the file is gone");
    assert_eq!(settings["metadata"]["labels"]["kept"], "yes", "what others wrote stays");
    let containers = kubectl.json("deployment web")["spec"]["template"]["spec"]["containers"].clone();
    assert_eq!(containers[0]["env"][0]["value"], "red");
    assert_eq!(containers[1]["name"], "side");
    assert!(kubectl.run_ok("apply view-last-applied configmap/settings").contains("size: \"2\""));
}

#[test]
fn a_dry_run_and_a_diff_change_nothing() {
    let Some(kubectl) = Kubectl::start() else { return };
    assert!(kubectl.run_ok_with("apply -f - --dry-run=server", WEB).contains("created (server dry run)"));
    assert!(!kubectl.exists("configmap settings"));
    kubectl.run_ok_with("apply -f -", WEB);
    is_same(&kubectl, "diff -f -", WEB);
    let changed = WEB.replace("shape: round", "shape: square");
    let differs = kubectl.run("diff -f -", &changed);
    assert_eq!(differs.code, 1, "{}", differs.stderr);
    assert!(differs.stdout.contains("-  shape: round") && differs.stdout.contains("+  shape: square"), "{differs:?}");
    assert_eq!(kubectl.field("configmap settings", ".data.shape"), "round");
    let differs = kubectl.run("diff --server-side --force-conflicts -f -", &changed);
    assert_eq!(differs.code, 1, "{}", differs.stderr);
    assert!(differs.stdout.contains("+  shape: square"), "{differs:?}");
}

/// `kubectl diff` finds nothing. It reads an object, tries to apply it, and compares both, so that what a
/// controller writes in between is a difference, too.
fn is_same(kubectl: &Kubectl, diff: &str, file: &str) {
    wait_for_ok(|| {
        let done = kubectl.run(diff, file);
        (done.code == 0).then_some(()).ok_or_else(|| format!("there is no difference: {done:?}"))
    });
}

#[test]
fn who_applies_on_the_server_owns_fields() {
    let Some(kubectl) = Kubectl::start() else { return };
    assert_eq!(kubectl.run_ok_with("apply --server-side -f -", WEB).matches("serverside-applied").count(), 3);
    let version = kubectl.field("deployment web", ".metadata.resourceVersion");
    kubectl.run_ok_with("apply --server-side -f -", WEB);
    if kubectl.cluster().is_embedded() {
        assert_eq!(kubectl.field("deployment web", ".metadata.resourceVersion"), version, "nothing changed");
    }

    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {shape: square, more: all}\n";
    let apply = "apply --server-side --field-manager=other -f -";
    let refused = kubectl.run_failing_with(apply, other);
    assert!(
        refused.contains("1 conflict") && refused.contains("\"kubectl\"") && refused.contains(".data.shape"),
        "{refused}"
    );
    assert_eq!(kubectl.field("configmap settings", ".data.shape"), "round");
    kubectl.run_ok_with(&format!("{apply} --force-conflicts"), other);
    assert_eq!(kubectl.field("configmap settings", ".data.shape"), "square");
    assert_eq!(owned(&kubectl, "kubectl"), ["f:size"]);
    assert_eq!(owned(&kubectl, "other"), ["f:more", "f:shape"]);

    kubectl.run_ok_with(apply, &other.replace(", more: all", ""));
    assert_eq!(kubectl.json("configmap settings")["data"], serde_json::json!({"size": "1", "shape": "square"}));
}

/// The keys of the ConfigMap that somebody applied.
fn owned(kubectl: &Kubectl, manager: &str) -> Vec<String> {
    let raw = format!("get --raw /api/v1/namespaces/{}/configmaps/settings", kubectl.namespace());
    let settings: serde_json::Value = serde_json::from_str(&kubectl.run_ok(&raw)).unwrap();
    let entries = settings["metadata"]["managedFields"].as_array().unwrap();
    let is = |entry: &&serde_json::Value| entry["manager"] == manager && entry["operation"] == "Apply";
    let entry = entries.iter().find(is).unwrap_or_else(|| panic!("{manager} owns nothing in {settings}"));
    entry["fieldsV1"]["f:data"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn one_goes_over_from_applying_by_client_to_applying_by_server() {
    let Some(kubectl) = Kubectl::start() else { return };
    if !kubectl.is_at_least(26, "way from one kind of apply to the other") {
        return;
    }
    kubectl.run_ok_with("apply -f -", WEB);
    let changed = WEB.replace("shape: round", "shape: square").replace("size: \"1\", ", "");
    kubectl.run_ok_with("apply --server-side -f -", &changed);
    assert_eq!(kubectl.json("configmap settings")["data"], serde_json::json!({"shape": "square"}));
}

#[test]
fn a_folder_is_applied_as_a_kustomization() {
    let Some(kubectl) = Kubectl::start() else { return };
    let folder = kubectl.cluster().folder().join("base");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("web.yaml"), WEB).unwrap();
    let kustomization =
        "namePrefix: my-\nresources: [web.yaml]\nconfigMapGenerator:\n- {name: made, literals: [a=b]}\n";
    fs::write(folder.join("kustomization.yaml"), kustomization).unwrap();
    let with = |verb: &str| format!("{verb} -k {}", folder.display());
    assert_eq!(kubectl.run_ok(&with("apply")).matches(" created").count(), 4);
    assert_eq!(kubectl.field("deployment my-web", ".spec.replicas"), "2");
    assert!(kubectl.run_ok("get configmaps -o name").contains("configmap/my-made-"));
    is_same(&kubectl, &with("diff"), "");
    kubectl.run_ok(&with("delete"));
    assert!(!kubectl.exists("deployment my-web"));
}

#[test]
fn a_file_with_a_mistake_is_refused_and_the_rest_is_applied() {
    let Some(kubectl) = Kubectl::start() else { return };
    let wrong = WEB.replace("ports: [{port: 80}]", "ports: [{port: 80000}]");
    let refused = kubectl.run_failing_with("apply -f - --validate=false", &wrong);
    assert!(refused.contains("spec.ports[0].port: Invalid value: 80000"), "{refused}");
    assert!(kubectl.exists("configmap settings") && !kubectl.exists("service web"));
    let unknown = WEB.replace("replicas: 2", "replicaz: 2");
    assert!(kubectl.run_failing_with("apply -f -", &unknown).contains("replicaz"));
    if kubectl.is_at_least(25, "validation by the server") {
        let done = kubectl.run("apply -f - --validate=warn", &unknown);
        assert!(done.code == 0 && done.stderr.contains("unknown field \"spec.replicaz\""), "{done:?}");
    }
}
