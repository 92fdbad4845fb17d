//! What kubectl shows: objects in every form, what there is, and what happens.

use kubewake_e2e::{Kubectl, wait_for, wait_until};

use super::{LONE, WEB};

#[test]
fn objects_are_shown_in_every_form() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok_with("create -f -", WEB);
    kubectl.run_ok_with("create -f -", LONE);
    // On a cluster that is shared, a kind of somebody else's may go between what kubectl asks first and what it
    // asks then.
    let all =
        wait_for("kubectl get all succeeds", || Some(kubectl.run("get all", "")).filter(|done| done.code == 0)).stdout;
    assert!(["deployment.apps/web", "service/web", "pod/lone"].iter().all(|name| all.contains(name)), "{all}");
    let wide = kubectl.run_ok("get deployments --output=wide");
    assert!(
        ["CONTAINERS", "SELECTOR", "web,side", "nginx:1.27,busybox:1"].iter().all(|it| wide.contains(it)),
        "{wide}"
    );
    assert!(kubectl.run_ok("get pods --output=wide").contains("NOMINATED NODE"));
    assert!(kubectl.run_ok("get deployment web -o yaml").contains("\n  replicas: 2\n"));
    let web = kubectl.json("deployment web");
    assert_eq!(
        (&web["kind"], &web["apiVersion"], &web["spec"]["replicas"]),
        (&"Deployment".into(), &"apps/v1".into(), &2.into())
    );
    let list = kubectl.json("deployment,service,configmap");
    assert!(list["items"].as_array().unwrap().iter().all(|item| item["kind"].is_string()), "{list}");
    assert_eq!(kubectl.run_ok("get deploy/web svc/web -o name"), "deployment.apps/web\nservice/web\n");
    assert_eq!(kubectl.field("deploy web", ".spec.template.spec.containers[*].name"), "web side");
    assert_eq!(kubectl.run_ok("get cm settings -o go-template={{.data.shape}}"), "round");
    assert_eq!(kubectl.run_ok("get cm settings -o custom-columns=SHAPE:.data.shape --no-headers").trim(), "round");
    assert!(kubectl.run_ok("get pods --show-labels --all-namespaces").contains("app=lone"));
}

#[test]
fn objects_are_chosen_and_sorted() {
    let Some(kubectl) = Kubectl::start() else { return };
    for (name, tier) in [("c", "back"), ("a", "front"), ("b", "back")] {
        kubectl.run_ok(&format!("create configmap {name} --from-literal=key={name}"));
        kubectl.run_ok(&format!("label configmap {name} tier={tier}"));
    }
    kubectl.run_ok_with("create -f -", LONE);
    let names =
        |options: &str| kubectl.run_ok(&format!("get configmaps -l tier {options} -o name")).replace("configmap/", "");
    assert_eq!(names(""), "a\nb\nc\n");
    assert_eq!(names("-l tier=back"), "b\nc\n");
    assert_eq!(names("--selector=tier,tier!=back"), "a\n");
    assert_eq!(names("--sort-by={.metadata.labels.tier}").lines().last(), Some("a"));
    assert_eq!(names("--chunk-size=1"), "a\nb\nc\n", "a page for each");
    assert_eq!(kubectl.run_ok("get cm --field-selector=metadata.name=b -o name"), "configmap/b\n");
    assert_eq!(kubectl.run_ok("get pods --field-selector=status.phase=Pending,spec.nodeName= -o name"), "pod/lone\n");
    assert!(kubectl.run_failing("get pods --field-selector=spec.colour=red").contains("field label not supported"));
    assert!(kubectl.run_failing("get configmap a none").contains("configmaps \"none\" not found"));
    assert!(kubectl.run_ok("get secrets -l none=at-all").is_empty());
}

#[test]
fn a_watch_shows_what_happens() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok("create configmap first --from-literal=a=1");
    let watch = kubectl.follow("get configmaps --watch --output-watch-events");
    let shown = |event: &str, name: &str| {
        let told = watch.stdout();
        told.lines().any(|line| line.split_whitespace().take(2).eq([event, name]))
    };
    wait_until("the watch shows the existing object", || shown("ADDED", "first"));
    kubectl.run_ok("create configmap second --from-literal=a=1");
    wait_until("the watch shows the new object", || shown("ADDED", "second"));
    kubectl.run_ok("annotate configmap second note=1");
    wait_until("the watch shows the change", || shown("MODIFIED", "second"));
    kubectl.run_ok("delete configmap second");
    wait_until("the watch shows the deletion", || shown("DELETED", "second"));
    let only = kubectl.run_ok("get configmaps first --watch-only --request-timeout=1s -o name");
    let is_alone = kubectl.cluster().is_embedded();
    assert!(only.is_empty() || !is_alone, "nothing happened to it: {only}");
}

#[test]
fn one_waits_for_a_condition() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok_with("create -f -", LONE);
    assert!(kubectl.run_failing("wait pod/lone --for=condition=Ready --timeout=50ms").contains("timed out"));
    let ready = kubectl.follow("wait pod/lone --for=condition=Ready --timeout=60s");
    let raw = format!("/api/v1/namespaces/{}/pods/lone/status", kubectl.namespace());
    // A scheduler says in the same status that there is no node for it.
    wait_until("the status of the pod is written", || {
        let mut pod = kubectl.json("pod lone");
        pod["status"]["conditions"] = serde_json::json!([{"type": "Ready", "status": "True"}]);
        let done = kubectl.run(&format!("replace --raw {raw} -f -"), &pod.to_string());
        assert!(done.code == 0 || done.stderr.contains("the object has been modified"), "{done:?}");
        done.code == 0
    });
    let output = ready.output();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("condition met"));
    let gone = kubectl.follow("wait pod/lone --for=delete --timeout=60s");
    kubectl.run_ok("delete pod lone --wait=false");
    assert!(gone.output().status.success());
    if kubectl.is_at_least(23, "wait for a field") {
        kubectl.run_ok("create configmap c --from-literal=a=1");
        kubectl.run_ok("wait configmap/c --for=jsonpath={.data.a}=1 --timeout=60s");
    }
    if kubectl.is_at_least(31, "wait for a creation") {
        let made = kubectl.follow("wait configmap/later --for=create --timeout=60s");
        kubectl.run_ok("create configmap later --from-literal=a=1");
        assert!(made.output().status.success());
    }
}

#[test]
fn objects_are_described() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok_with("create -f -", WEB);
    kubectl.run_ok_with("create -f -", LONE);
    kubectl.run_ok("create secret generic password --from-literal=word=abc");
    kubectl.run_ok("create quota limit --hard=pods=10");
    kubectl.run_ok("create job once --image=busybox");
    let says = |what: &str, words: &[&str]| {
        let text = kubectl.run_ok(&format!("describe {what}"));
        assert!(words.iter().all(|word| text.contains(word)), "describe {what} does not say {words:?}:\n{text}");
    };
    says("deployment web", &["Name:", "web", "2 desired", "nginx:1.27", "RollingUpdate", "COLOUR"]);
    says("service web", &["Type:", "ClusterIP", "80/TCP", "app=web"]);
    says("configmap settings", &["shape", "round"]);
    says("pod lone", &["Status:", "Pending", "busybox:1", "Node-Selectors:"]);
    says("secret password", &["Opaque", "3 bytes"]);
    says("quota limit", &["Name:", "limit"]);
    says("job once", &["Parallelism:", "busybox"]);
    says(&format!("namespace {}", kubectl.namespace()), &["Status:", "Active"]);
    says("clusterrole view", &["PolicyRule:", "configmaps"]);
    assert!(kubectl.run_failing("describe pod none").contains("not found"));
}

#[test]
fn logs_come_from_a_node_and_a_pod_without_one_has_none() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok_with("create -f -", LONE);
    let done = kubectl.run("logs lone", "");
    assert_eq!((done.code, &*done.stdout), (0, ""), "{}", done.stderr);
    assert!(kubectl.run_failing("logs lone -c other").contains("container other is not valid for pod lone"));
    assert!(kubectl.run_failing("logs none").contains("\"none\" not found"));
}

#[test]
fn events_are_listed() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok_with("create -f -", LONE);
    let event = format!(
        "apiVersion: v1\nkind: Event\nmetadata: {{name: lone.1}}\ntype: Warning\nreason: Unlucky\nmessage: no luck today\n\
         involvedObject: {{apiVersion: v1, kind: Pod, name: lone, namespace: {0}, uid: {1}}}\n\
         firstTimestamp: 2026-01-01T00:00:00Z\nlastTimestamp: 2026-01-01T00:00:00Z\ncount: 3\nsource: {{component: story}}\n",
        kubectl.namespace(),
        kubectl.field("pod lone", ".metadata.uid"),
    );
    kubectl.run_ok_with("create -f -", &event);
    for command in [
        "get events",
        "get events.events.k8s.io",
        "get ev --field-selector=involvedObject.name=lone",
        "describe pod lone",
    ] {
        assert!(kubectl.run_ok(command).contains("no luck today"), "{command}");
    }
    if kubectl.is_at_least(28, "`events`") {
        assert!(kubectl.run_ok("events --for=pod/lone --types=Warning").contains("Unlucky"));
    }
}

#[test]
fn one_sees_what_there_is() {
    let Some(kubectl) = Kubectl::start() else { return };
    let resources = kubectl.run_ok("api-resources");
    for row in ["configmaps", "deployments", "customresourcedefinitions", "leases", "networkpolicies", "endpointslices"]
    {
        assert!(resources.lines().any(|line| line.starts_with(row)), "{row} is not in\n{resources}");
    }
    let apps = kubectl.run_ok("api-resources --api-group=apps --namespaced=true --verbs=list,watch -o name");
    assert!(apps.lines().any(|line| line == "deployments.apps"), "{apps}");
    assert!(kubectl.run_ok("api-resources -o wide").contains("deletecollection"));
    assert!(kubectl.run_ok("api-versions").lines().any(|line| line == "rbac.authorization.k8s.io/v1"));
    assert!(kubectl.run_ok("version -o json").contains("\"serverVersion\""));
    assert!(kubectl.run_ok("cluster-info").contains("is running at"));
    assert!(kubectl.run("get endpoints", "").stderr.contains("v1 Endpoints is deprecated"), "nobody should use it");
    assert_eq!(kubectl.run_ok("get --raw /readyz"), "ok");
    let namespaces: serde_json::Value = serde_json::from_str(&kubectl.run_ok("get --raw /api/v1/namespaces")).unwrap();
    assert_eq!(namespaces["kind"], "NamespaceList");
    assert!(kubectl.run_failing("get --raw /api/v1/nothing").contains("NotFound"));
    assert!(kubectl.run_failing("get nothing").contains("the server doesn't have a resource type \"nothing\""));
}

#[test]
fn kinds_are_explained() {
    let Some(kubectl) = Kubectl::start() else { return };
    let says = |what: &str, words: &[&str]| {
        let text = kubectl.run_ok(&format!("explain {what}"));
        assert!(words.iter().all(|word| text.contains(word)), "explain {what} does not say {words:?}:\n{text}");
    };
    says("deployment", &["KIND:", "Deployment", "spec", "status"]);
    says("deployment.spec.replicas", &["replicas", "integer"]);
    says("pods.spec.containers", &["image", "livenessProbe", "[]"]);
    says("pods --recursive", &["tolerationSeconds", "hostPort"]);
    says("hpa --api-version=autoscaling/v1", &["v1", "spec"]);
    assert!(kubectl.run_failing("explain deployment.spec.nothing").contains("does not exist"));
    assert!(kubectl.run_failing("explain nothing").contains("nothing"));
}
