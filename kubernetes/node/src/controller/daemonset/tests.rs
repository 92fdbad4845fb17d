use std::{collections::BTreeMap, sync::Mutex};

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSetStatus};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::*;
use crate::{controller::pods, testing::TestCluster};

async fn world(nodes: &[&str]) -> TestCluster {
    let mut world = TestCluster::new().await.with_scheduler();
    for node in nodes {
        world.add_node(node, json!({"kubernetes.io/hostname": node})).await;
    }
    world.start::<DaemonSetController>();
    world
}

fn set(more: Value) -> Value {
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "c", "image": "one"}]},
        },
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"metadata": {"name": "agent"}, "spec": spec})
}

fn rolling(unavailable: i32, surge: i32) -> Value {
    let rolling = json!({"maxUnavailable": unavailable, "maxSurge": surge});
    set(json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}))
}

fn image(name: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": name}]}}}})
}

fn status(set: &DaemonSet) -> DaemonSetStatus {
    set.status.clone().unwrap_or_default()
}

/// Whether this number of nodes has updated and available pods.
fn runs_on(nodes: i32) -> impl Fn(&DaemonSet) -> bool {
    move |set| {
        let status = status(set);
        status.observed_generation == set.metadata.generation
            && status.desired_number_scheduled == nodes
            && status.number_available.unwrap_or(0) == nodes
            && status.updated_number_scheduled.unwrap_or(0) == nodes
    }
}

async fn by_node(world: &TestCluster) -> BTreeMap<String, Pod> {
    let pods = world.api::<Pod>().list(&Default::default()).await.unwrap();
    pods.items.into_iter().map(|pod| (node_name(&pod).to_owned(), pod)).collect()
}

/// The smallest number of nodes with a ready pod of the set, from now on.
fn least_ready(world: &TestCluster) -> Arc<Mutex<usize>> {
    let least = Arc::new(Mutex::new(usize::MAX));
    let views = world.informers.clone();
    let to = Arc::clone(&least);
    world.informers.pods.on_change(move |_| {
        let pods = views.pods.all();
        let ready = pods.iter().filter(|pod| pods::is_ready(pod) && pod.metadata.deletion_timestamp.is_none());
        let nodes: std::collections::BTreeSet<_> = ready.map(|pod| node_name(pod).to_owned()).collect();
        let mut least = to.lock().unwrap();
        *least = nodes.len().min(*least);
    });
    least
}

#[tokio::test]
async fn every_node_that_fits_runs_a_pod() {
    let world = world(&["a", "b"]).await;
    world.make::<DaemonSet>(set(json!({}))).await;
    world.until::<DaemonSet>("agent", runs_on(2)).await;
    let pods = by_node(&world).await;
    assert_eq!(pods.keys().collect::<Vec<_>>(), ["a", "b"]);
    let pod = &pods["a"];
    assert!(pod.name_any().starts_with("agent-"));
    assert_eq!(pod.labels().get("pod-template-generation").map(String::as_str), Some("1"));
    world.event("SuccessfulCreate", &format!("Created pod: {}", pod.name_any())).await;

    world.add_node("c", json!({})).await;
    world.until::<DaemonSet>("agent", runs_on(3)).await;

    let taint = |effect: &str| json!({"spec": {"taints": [{"key": "k", "effect": effect}]}});
    world.patch_node("b", taint("NoSchedule")).await;
    let set = world.until::<DaemonSet>("agent", runs_on(2)).await;
    assert_eq!(status(&set).number_misscheduled, 1, "it may stay");
    world.patch_node("b", taint("NoExecute")).await;
    world.until::<DaemonSet>("agent", |set| status(set).number_misscheduled == 0).await;
    assert_eq!(by_node(&world).await.keys().collect::<Vec<_>>(), ["a", "c"]);
}

#[tokio::test]
async fn a_selector_follows_the_labels_of_nodes() {
    let world = world(&["a", "b"]).await;
    let mut set = set(json!({}));
    set["spec"]["template"]["spec"]["nodeSelector"] = json!({"disk": "fast"});
    world.make::<DaemonSet>(set).await;
    world.until::<DaemonSet>("agent", runs_on(0)).await;
    world.patch_node("b", json!({"metadata": {"labels": {"disk": "fast"}}})).await;
    world.until::<DaemonSet>("agent", runs_on(1)).await;
    assert_eq!(by_node(&world).await.keys().collect::<Vec<_>>(), ["b"]);
    world.patch_node("b", json!({"metadata": {"labels": {"disk": null}}})).await;
    world.until_all(&world.informers.pods, |pods| pods.is_empty().then_some(())).await;
}

#[tokio::test]
async fn an_update_keeps_enough_pods_available() {
    let world = world(&["a", "b", "c"]).await;
    world.make::<DaemonSet>(rolling(1, 0)).await;
    world.until::<DaemonSet>("agent", runs_on(3)).await;
    let least = least_ready(&world);
    world.patch::<DaemonSet>("agent", image("two")).await;
    world.until::<DaemonSet>("agent", runs_on(3)).await;
    assert!(*least.lock().unwrap() >= 2, "{least:?}");
    let images = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
    assert!(by_node(&world).await.values().all(|pod| images(pod) == "two"));
    let revisions = world.api::<ControllerRevision>().list(&Default::default()).await.unwrap();
    let mut numbers: Vec<i64> = revisions.items.iter().map(|revision| revision.revision).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
}

#[tokio::test]
async fn a_surge_keeps_all_available() {
    let world = world(&["a", "b", "c"]).await;
    world.make::<DaemonSet>(rolling(0, 1)).await;
    world.until::<DaemonSet>("agent", runs_on(3)).await;
    let least = least_ready(&world);
    world.patch::<DaemonSet>("agent", image("two")).await;
    world.until::<DaemonSet>("agent", runs_on(3)).await;
    assert_eq!(*least.lock().unwrap(), 3);
    world.until_all(&world.informers.pods, |pods| (pods.len() == 3).then_some(())).await;
}

#[tokio::test]
async fn on_delete_waits_for_somebody_to_delete() {
    let world = world(&["a"]).await;
    world.make::<DaemonSet>(set(json!({"updateStrategy": {"type": "OnDelete"}}))).await;
    world.until::<DaemonSet>("agent", runs_on(1)).await;
    let old = by_node(&world).await["a"].clone();
    world.patch::<DaemonSet>("agent", image("two")).await;
    let set = world.until::<DaemonSet>("agent", |set| status(set).observed_generation == Some(2)).await;
    assert_eq!(status(&set).updated_number_scheduled, None);
    assert_eq!(by_node(&world).await["a"].uid(), old.uid());
    world.delete::<Pod>(&old.name_any()).await;
    world.until::<DaemonSet>("agent", runs_on(1)).await;
}

#[tokio::test]
async fn a_failed_pod_is_replaced() {
    let world = world(&["a"]).await;
    world.make::<DaemonSet>(set(json!({}))).await;
    world.until::<DaemonSet>("agent", runs_on(1)).await;
    let old = by_node(&world).await["a"].name_any();
    world.fail(&old).await;
    world.until_gone::<Pod>(&old).await;
    world.until::<DaemonSet>("agent", runs_on(1)).await;
    let note = format!("Found failed daemon pod default/{old} on node a, will try to kill it");
    world.event("FailedDaemonPod", &note).await;
}

#[tokio::test]
async fn orphans_are_adopted() {
    let world = world(&["a", "b"]).await;
    world.make::<DaemonSet>(set(json!({}))).await;
    world.until::<DaemonSet>("agent", runs_on(2)).await;
    let old = by_node(&world).await;
    world.api::<DaemonSet>().delete("agent", &DeleteParams::orphan()).await.unwrap();
    world.until_gone::<DaemonSet>("agent").await;
    let again = world.make::<DaemonSet>(set(json!({}))).await;
    world.until::<DaemonSet>("agent", runs_on(2)).await;
    let new = by_node(&world).await;
    assert_eq!(old["a"].uid(), new["a"].uid());
    assert!(new.values().all(|pod| owner_reference::is_controlled_by(pod, &again)));
}
