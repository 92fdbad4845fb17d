//! What kubectl makes and changes.

use kubewake_e2e::{Kubectl, wait_until};
use serde_json::json;

use super::{LONE, WEB};

#[test]
fn objects_are_made_by_command() {
    let Some(kubectl) = Kubectl::start() else { return };
    for command in [
        "create configmap settings --from-literal=size=1 --from-literal=shape=round",
        "create secret generic password --from-literal=word=abc",
        "create secret docker-registry registry --docker-username=me --docker-password=secret",
        "create deployment web --image=nginx --port=80",
        "create job once --image=busybox -- true",
        "create ingress web --rule=example.com/=web:80",
        "create serviceaccount robot",
        "create quota few --hard=configmaps=100",
        "create service clusterip inside --tcp=80:8080",
        "create service nodeport outside --tcp=80:8080",
        "create service externalname away --external-name=example.com",
        "run one --image=busybox --restart=Never",
        "expose deployment web --port=80",
        "autoscale deployment web --min=1 --max=3",
    ] {
        kubectl.run_ok(command);
    }
    assert_eq!(kubectl.field("secret password", ".data.word"), "YWJj");
    assert_eq!(kubectl.field("secret registry", ".type"), "kubernetes.io/dockerconfigjson");
    assert_eq!(kubectl.field("service outside", ".spec.type"), "NodePort");
    assert_eq!(kubectl.field("service web", ".spec.selector.app"), "web");
    assert_eq!(kubectl.field("hpa web", ".spec.maxReplicas"), "3");
    assert_eq!(kubectl.field("pod one", ".spec.restartPolicy"), "Never");
    if kubectl.is_at_least(21, "kinds of v1 here") {
        kubectl.run_ok("create cronjob daily --image=busybox --schedule=@daily");
        kubectl.run_ok("create poddisruptionbudget web --selector=app=web --min-available=1");
        assert_eq!(kubectl.field("pdb web", ".spec.minAvailable"), "1");
    }
    assert!(kubectl.run_failing("create configmap settings").contains("already exists"));
    assert!(kubectl.run_failing("create configmap No_Name").contains("RFC 1123"));
    assert!(kubectl.run_ok("create configmap dry --dry-run=server -o yaml").contains("uid:"));
    assert!(!kubectl.exists("configmap dry"));
}

#[test]
fn names_are_made_up_by_the_server() {
    let Some(kubectl) = Kubectl::start() else { return };
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: made-}\n";
    let (one, two) =
        (kubectl.run_ok_with("create -f - -o name", manifest), kubectl.run_ok_with("create -f - -o name", manifest));
    assert!(one.starts_with("configmap/made-") && two.starts_with("configmap/made-") && one != two, "{one}{two}");
}

#[test]
fn labels_and_annotations_are_set_and_taken_away() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok_with("create -f -", LONE);
    assert!(kubectl.run_ok("label pod lone colour=red").contains("labeled"));
    assert!(kubectl.run_failing("label pod lone colour=blue").contains("--overwrite is false"));
    kubectl.run_ok("label pod lone colour=blue --overwrite");
    kubectl.run_ok("label pods --all mark=yes");
    assert!(kubectl.run_ok("annotate pod lone note=something").contains("annotate"));
    let lone = kubectl.json("pod lone");
    let labels = &lone["metadata"]["labels"];
    assert_eq!([&labels["app"], &labels["colour"], &labels["mark"]], ["lone", "blue", "yes"]);
    assert_eq!(lone["metadata"]["annotations"]["note"], "something");
    kubectl.run_ok("label pod lone mark-");
    kubectl.run_ok("annotate pod lone note-");
    let labels = kubectl.json("pod lone")["metadata"]["labels"].clone();
    assert_eq!((&labels["colour"], labels.get("mark")), (&json!("blue"), None));
    assert!(kubectl.run_failing("label pod lone colour=bad/value --overwrite").contains("a valid label must"));
    assert!(kubectl.run_failing("label pod lone colour=green --overwrite --resource-version=1").contains("Conflict"));
    // Its resourceVersion says nothing: a scheduler may write in between.
    assert_eq!(kubectl.field("pod lone", ".metadata.labels.colour"), "blue");
}

#[test]
fn objects_are_patched_in_three_ways() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok_with("create -f -", WEB);
    let strategic = r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"busybox:2"}]}}}}"#;
    kubectl.run_ok(&format!("patch deployment web --patch {strategic}"));
    assert_eq!(images(&kubectl), "nginx:1.27 busybox:2", "the other container stays");
    kubectl.run_ok(r#"patch deployment web --type=merge --patch {"spec":{"paused":true,"minReadySeconds":5}}"#);
    assert_eq!(kubectl.field("deployment web", ".spec.paused"), "true");
    let operations = concat!(
        r#"[{"op":"test","path":"/spec/minReadySeconds","value":5},{"op":"remove","path":"/spec/paused"},"#,
        r#"{"op":"add","path":"/metadata/labels/new","value":"yes"}]"#
    );
    kubectl.run_ok(&format!("patch deployment web --type=json --patch {operations}"));
    assert_eq!(kubectl.field("deployment web", ".spec.paused"), "");
    // kubectl compares what it read with what it wrote, and a controller may write in between.
    wait_until("nothing is changed", || {
        kubectl.run_ok(r#"patch deployment web --type=json --patch []"#).contains("(no change)")
    });
    let again = kubectl.run_failing(&format!("patch deployment web --type=json --patch {operations}"));
    assert!(again.contains("The request is invalid"), "what is gone cannot be removed: {again}");
    assert!(
        kubectl.run_failing(r#"patch deployment web --patch {"spec":{"selector":null}}"#).contains("spec.selector")
    );
    if kubectl.is_at_least(24, "patch of a subresource") {
        kubectl.run_ok(r#"patch deployment web --subresource=scale --type=merge --patch {"spec":{"replicas":7}}"#);
        assert_eq!(kubectl.field("deployment web", ".spec.replicas"), "7");
        assert!(kubectl.run_ok("get deployment web --subresource=status").contains("web"));
    }
}

fn images(kubectl: &Kubectl) -> String {
    kubectl.field("deployment web", ".spec.template.spec.containers[*].image")
}

#[test]
fn workloads_are_scaled_and_set() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok_with("create -f -", WEB);
    kubectl.run_ok("scale deployment web --replicas=5");
    assert_eq!(kubectl.field("deployment web", ".spec.replicas"), "5");
    assert!(
        kubectl
            .run_failing("scale deployment web --replicas=1 --current-replicas=2")
            .contains("Expected replicas to be 2")
    );
    kubectl.ok_despite_conflicts("scale deployment web --replicas=1 --current-replicas=5", "");
    kubectl.run_ok("set env deployment/web --containers=web SIZE=9 COLOUR-");
    assert_eq!(
        kubectl.json("deployment web")["spec"]["template"]["spec"]["containers"][0]["env"],
        json!([{"name": "SIZE", "value": "9"}])
    );
    assert!(kubectl.run_ok("set env deployment/web --list").contains("SIZE=9"));
    kubectl.run_ok("set env deployment/web --from=configmap/settings");
    kubectl.run_ok("set image deployment/web web=nginx:2");
    assert_eq!(images(&kubectl), "nginx:2 busybox:1");
    kubectl.run_ok("set resources deployment/web --limits=cpu=200m,memory=64Mi");
    kubectl.run_ok("set serviceaccount deployment/web default");
    kubectl.run_ok("set selector service/web app=other");
    assert_eq!(kubectl.field("service web", ".spec.selector.app"), "other");
}

#[test]
fn objects_are_replaced_and_edited() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok_with("create -f -", WEB);
    let replaced = kubectl.ok_despite_conflicts("replace -f -", &WEB.replace("size: \"1\", ", ""));
    assert_eq!(replaced.matches(" replaced").count(), 3, "{replaced}");
    assert_eq!(kubectl.json("configmap settings")["data"], json!({"shape": "round"}));
    let mut stale = kubectl.json("configmap settings");
    kubectl.run_ok("annotate configmap settings note=1");
    stale["data"]["shape"] = "flat".into();
    assert!(kubectl.run_failing_with("replace -f -", &stale.to_string()).contains("the object has been modified"));
    let uid = kubectl.field("configmap settings", ".metadata.uid");
    kubectl.run_ok_with("replace --force -f -", WEB);
    assert_ne!(kubectl.field("configmap settings", ".metadata.uid"), uid);

    let edited = kubectl.edit("configmap settings", r#"sed -i 's/shape: round/shape: square/' "$1""#);
    assert_eq!(edited.code, 0, "{edited:?}");
    assert_eq!(kubectl.field("configmap settings", ".data.shape"), "square");
    let untouched = kubectl.edit("configmap settings", "true");
    assert!(untouched.code == 0 && format!("{untouched:?}").contains("no changes made"), "{untouched:?}");
    let wrong = kubectl.edit("deployment web", r#"sed -i 's/replicas: 2/replicas: -2/' "$1""#);
    assert!(wrong.code == 1 && wrong.stderr.contains("is invalid"), "{wrong:?}");
}

#[test]
fn a_pod_is_replaced_where_the_server_alone_filled_it_in() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok_with("create -f -", LONE);
    if kubectl.cluster().is_embedded() {
        kubectl.run_ok_with("replace -f -", &LONE.replace("busybox:1", "busybox:2"));
        assert_eq!(kubectl.field("pod lone", ".spec.containers[0].image"), "busybox:2");
    }
    let moved = kubectl.run_failing(r#"patch pod lone --patch {"spec":{"nodeSelector":{"other":"node"}}}"#);
    assert!(moved.contains("pod updates may not change fields other than"), "{moved}");
}

#[test]
fn a_rollout_is_restarted_paused_and_undone() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok_with("create -f -", WEB);
    kubectl.run_ok("rollout restart deployment/web");
    let template = kubectl.json("deployment web")["spec"]["template"].clone();
    assert!(template["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"].is_string(), "{template}");
    kubectl.run_ok("rollout pause deployment/web");
    assert!(kubectl.run_failing("rollout pause deployment/web").contains("already paused"));
    kubectl.run_ok("rollout resume deployment/web");
    assert!(kubectl.run_failing("rollout status deployment/web --timeout=100ms").contains("timed out"));
    if !kubectl.cluster().is_embedded() {
        return;
    }
    assert!(kubectl.run_ok("rollout history deployment/web").contains("No rollout history found"));
    // What a controller would have made of the first revision.
    kubectl.run_ok_with("create -f -", &first_revision(&kubectl));
    kubectl.run_ok("set image deployment/web web=nginx:3");
    assert!(kubectl.run_ok("rollout history deployment/web --revision=1").contains("nginx:1.27"));
    kubectl.run_ok("rollout undo deployment/web --to-revision=1");
    assert_eq!(images(&kubectl), "nginx:1.27 busybox:1");
}

fn first_revision(kubectl: &Kubectl) -> String {
    let mut template = kubectl.json("deployment web")["spec"]["template"].clone();
    template["metadata"]["labels"]["pod-template-hash"] = "1".into();
    let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": true,
        "uid": kubectl.field("deployment web", ".metadata.uid")});
    let labels = json!({"app": "web", "pod-template-hash": "1"});
    let metadata = json!({"name": "web-1", "labels": labels, "ownerReferences": [owner],
        "annotations": {"deployment.kubernetes.io/revision": "1"}});
    let spec = json!({"replicas": 0, "selector": {"matchLabels": labels}, "template": template});
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}).to_string()
}
