//! What goes, and what goes with it.

use kubewake_e2e::{Kubectl, wait_until};
use serde_json::json;

use super::{LONE, WEB};

/// An owner, and two objects that belong to it, one through the other.
fn family(kubectl: &Kubectl) {
    kubectl.run_ok("create configmap parent");
    belong(kubectl, "child", "parent");
    belong(kubectl, "grandchild", "child");
}

fn belong(kubectl: &Kubectl, name: &str, owner: &str) {
    let uid = kubectl.field(&format!("configmap {owner}"), ".metadata.uid");
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "blockOwnerDeletion": true});
    let metadata = json!({"name": name, "ownerReferences": [owner]});
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    kubectl.run_ok_with("create -f -", &object.to_string());
}

#[test]
fn in_the_background_dependents_follow() {
    let Some(kubectl) = Kubectl::start() else { return };
    family(&kubectl);
    kubectl.run_ok("delete configmap parent --cascade=background");
    wait_until("the dependents go", || !kubectl.exists("configmap child") && !kubectl.exists("configmap grandchild"));
}

#[test]
fn in_the_foreground_dependents_go_first() {
    let Some(kubectl) = Kubectl::start() else { return };
    family(&kubectl);
    let hold = r#"patch configmap child --type=merge --patch {"metadata":{"finalizers":["example.com/hold"]}}"#;
    kubectl.run_ok(hold);
    kubectl.run_ok("delete configmap parent --cascade=foreground --wait=false");
    wait_until("the child is told to go", || {
        !kubectl.field("configmap child", ".metadata.deletionTimestamp").is_empty()
    });
    assert_eq!(kubectl.field("configmap parent", ".metadata.finalizers[0]"), "foregroundDeletion", "the parent waits");
    kubectl.run_ok(r#"patch configmap child --type=merge --patch {"metadata":{"finalizers":null}}"#);
    wait_until("all dependents are deleted", || {
        kubectl.run_ok("get configmaps parent child grandchild --ignore-not-found").is_empty()
    });
}

#[test]
fn orphans_stay_and_forget_their_owner() {
    let Some(kubectl) = Kubectl::start() else { return };
    family(&kubectl);
    kubectl.run_ok("delete configmap parent --cascade=orphan");
    assert_eq!(kubectl.field("configmap child", ".metadata.ownerReferences"), "");
    assert_eq!(kubectl.field("configmap grandchild", ".metadata.ownerReferences[0].name"), "child");
}

#[test]
fn objects_go_by_name_by_file_by_label_and_all_together() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok_with("create -f -", WEB);
    kubectl.run_ok_with("create -f -", LONE);
    assert!(kubectl.run_ok("delete pod lone --dry-run=server").contains("dry run"));
    assert!(kubectl.exists("pod lone"));
    assert!(kubectl.run_ok("delete pod lone --grace-period=0 --force").contains("force deleted"));
    assert!(!kubectl.exists("pod lone"));
    assert!(kubectl.run_failing("delete pod lone").contains("NotFound"));
    kubectl.run_ok("delete pod lone --ignore-not-found");
    kubectl.run_ok("delete deployments -l app=web");
    assert!(!kubectl.exists("deployment web"));
    kubectl.run_ok("delete configmap --field-selector=metadata.name=settings");
    let left = kubectl.run_failing_with("delete -f -", WEB);
    assert!(left.contains("NotFound") && !kubectl.exists("service web"), "{left}");
    for name in ["a", "b"] {
        kubectl.run_ok(&format!("create service clusterip {name} --tcp=80"));
        kubectl.run_ok(&format!("create deployment {name} --image=busybox"));
    }
    kubectl.run_ok("delete all --all");
    assert_eq!(kubectl.run_ok("get deployments,services -o name"), "");
}

#[test]
fn a_namespace_goes_with_everything_in_it() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok_with("create -f -", WEB);
    let namespace = kubectl.namespace();
    kubectl.run_ok(&format!("delete namespace {namespace}"));
    assert!(!kubectl.exists(&format!("namespace {namespace}")));
    assert!(kubectl.run_failing("create configmap late").contains(&format!("namespaces \"{namespace}\" not found")));
    assert!(!kubectl.exists("deployment web"));
}
