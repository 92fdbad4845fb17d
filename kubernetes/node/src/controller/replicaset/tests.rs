use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::*;
use crate::testing::{NAMESPACE, TestCluster};

const NAME: &str = "set";

async fn world() -> TestCluster {
    let mut world = TestCluster::new().await.with_scheduler();
    world.add_node("n1", json!({})).await;
    world.start::<ReplicaSetController>();
    world
}

fn set(replicas: i32) -> Value {
    let template = json!({
        "metadata": {"labels": {"app": NAME, "tier": "back"}, "annotations": {"note": "kept"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let spec = json!({"replicas": replicas, "selector": {"matchLabels": {"app": NAME}}, "template": template});
    json!({"metadata": {"name": NAME}, "spec": spec})
}

fn pod(name: &str, labels: Value) -> Value {
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    json!({"metadata": {"name": name, "labels": labels}, "spec": spec})
}

impl TestCluster {
    async fn until_available(&self, count: i32) -> ReplicaSet {
        self.until(NAME, |set: &ReplicaSet| {
            let status = set.status.clone().unwrap_or_default();
            status.replicas == count
                && status.available_replicas.unwrap_or(0) == count
                && status.observed_generation == set.metadata.generation
        })
        .await
    }

    async fn relabel(&self, pod: &str, labels: Value) {
        self.patch::<Pod>(pod, json!({"metadata": {"labels": labels}})).await;
    }

    fn names(&self) -> Vec<String> {
        self.informers.pods.in_namespace(NAMESPACE).iter().map(|pod| pod.name_any()).collect()
    }
}

#[tokio::test]
async fn there_are_as_many_pods_as_are_asked_for() {
    let world = world().await;
    world.make::<ReplicaSet>(set(5)).await;
    let set = world.until_available(5).await;
    let status = set.status.clone().unwrap();
    assert_eq!(
        (status.ready_replicas, status.fully_labeled_replicas, status.terminating_replicas),
        (Some(5), Some(5), Some(0))
    );
    for pod in world.api::<Pod>().list(&ListParams::default()).await.unwrap() {
        assert!(pod.name_any().starts_with("set-"));
        assert!(owner_reference::is_controlled_by(&pod, &set));
        assert_eq!(pod.annotations().get("note").map(String::as_str), Some("kept"));
    }
    let gone = world.names().remove(0);
    world.delete::<Pod>(&gone).await;
    world.until_gone::<Pod>(&gone).await;
    world.until_available(5).await;
    assert!(!world.names().contains(&gone));
}

#[tokio::test]
async fn the_pods_that_are_missed_least_go_first() {
    let world = world().await;
    world.make::<ReplicaSet>(set(3)).await;
    world.until_available(3).await;
    let cheap = world.names().remove(1);
    let cost = json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}});
    world.patch::<Pod>(&cheap, cost).await;
    let seen = |pods: &[Arc<Pod>]| {
        pods.iter()
            .any(|pod| pod.annotations().contains_key("controller.kubernetes.io/pod-deletion-cost"))
            .then_some(())
    };
    world.until_all(&world.informers.pods, seen).await;
    world.patch::<ReplicaSet>(NAME, json!({"spec": {"replicas": 2}})).await;
    world.event("SuccessfulDelete", &format!("Deleted pod: {cheap}")).await;
    world.until_available(2).await;
    world.until_gone::<Pod>(&cheap).await;
}

#[tokio::test]
async fn orphans_are_taken_and_strangers_let_go() {
    let world = world().await;
    world.make::<Pod>(pod("orphan", json!({"app": NAME}))).await;
    world.make::<Pod>(pod("other", json!({"app": "other"}))).await;
    world.make::<ReplicaSet>(set(2)).await;
    let set = world.until_available(2).await;
    assert_eq!(set.status.as_ref().unwrap().fully_labeled_replicas, Some(1), "the orphan lacks a label");
    let orphan = world.api::<Pod>().get("orphan").await.unwrap();
    assert!(owner_reference::is_controlled_by(&orphan, &set));
    assert!(world.api::<Pod>().get("other").await.unwrap().owner_references().is_empty());

    world.relabel("orphan", json!({"app": "free"})).await;
    let released = world.until("orphan", |pod: &Pod| pod.owner_references().is_empty()).await;
    assert!(pods::is_active(&released), "it lives on");
    world.until_available(2).await;
    assert_eq!(world.names().len(), 4);

    // With its label restored, it is a surplus pod.
    world.relabel("orphan", json!({"app": NAME})).await;
    world.until_all(&world.informers.pods, |pods| (pods.len() == 3).then_some(())).await;
    world.until_available(2).await;
}

#[tokio::test]
async fn nothing_is_taken_by_a_set_that_is_going() {
    let world = world().await;
    let mut going = set(0);
    going["metadata"]["finalizers"] = json!(["example.com/stay"]);
    world.make::<ReplicaSet>(going).await;
    world.until_available(0).await;
    world.api::<ReplicaSet>().delete(NAME, &DeleteParams::default()).await.unwrap();
    world.make::<Pod>(pod("orphan", json!({"app": NAME}))).await;
    world.until("orphan", pods::is_ready).await;
    assert!(world.api::<Pod>().get("orphan").await.unwrap().owner_references().is_empty());
    let none = json!({"metadata": {"finalizers": null}});
    world.api::<ReplicaSet>().patch(NAME, &PatchParams::default(), &Patch::Merge(none)).await.unwrap();
    world.until_gone::<ReplicaSet>(NAME).await;
}

#[tokio::test]
async fn a_pod_that_failed_is_replaced_and_one_on_its_way_out_is_counted() {
    let world = world().await;
    world.make::<ReplicaSet>(set(1)).await;
    world.until_available(1).await;
    let failed = world.names().remove(0);
    world.fail(&failed).await;
    let status = |set: &ReplicaSet| set.status.clone().unwrap_or_default();
    world.until_all(&world.informers.pods, |pods| pods.iter().any(|pod| pods::is_ready(pod)).then_some(())).await;
    world.until_available(1).await;

    let slow = world.names().into_iter().find(|name| *name != failed).unwrap();
    world.keep_terminating(&slow);
    world.delete::<Pod>(&slow).await;
    world
        .until(NAME, |set: &ReplicaSet| {
            status(set).terminating_replicas == Some(1) && status(set).available_replicas == Some(1)
        })
        .await;
    world.finish_termination(&slow);
    world.until(NAME, |set: &ReplicaSet| status(set).terminating_replicas == Some(0)).await;
}

#[tokio::test]
async fn a_pod_is_available_after_a_while() {
    let world = world().await;
    let mut slow = set(1);
    slow["spec"]["minReadySeconds"] = json!(3600);
    world.make::<ReplicaSet>(slow).await;
    let ready = |set: &ReplicaSet| set.status.as_ref().is_some_and(|status| status.ready_replicas == Some(1));
    let set = world.until(NAME, ready).await;
    assert_eq!(set.status.unwrap().available_replicas, None);
    world.patch::<ReplicaSet>(NAME, json!({"spec": {"minReadySeconds": 2}})).await;
    world.until_available(1).await;
}

#[test]
fn the_next_look_is_when_the_first_pod_becomes_available() {
    let at = |ready: &str, since: &str| -> Arc<Pod> {
        let condition = json!({"type": "Ready", "status": ready, "lastTransitionTime": since});
        Arc::new(serde_json::from_value(json!({"metadata": {}, "status": {"conditions": [condition]}})).unwrap())
    };
    let pods =
        [at("True", "2026-01-01T00:00:00Z"), at("True", "2026-01-01T00:00:05Z"), at("False", "2026-01-01T00:00:01Z")];
    let slow = json!({"metadata": {}, "spec": {"selector": {}, "minReadySeconds": 10}});
    let slow: ReplicaSet = serde_json::from_value(slow).unwrap();
    let next = |now: &str| next_available(&slow, &pods, now.parse().unwrap());
    assert_eq!(next("2026-01-01T00:00:06Z"), Some(Duration::from_secs(4)));
    assert_eq!(next("2026-01-01T00:00:11Z"), Some(Duration::from_secs(4)));
    assert_eq!(next("2026-01-01T00:00:15Z"), None);
}

#[tokio::test]
async fn what_is_refused_is_tried_once_and_told() {
    let world = world().await;
    let mut refused = set(50);
    refused["spec"]["template"]["metadata"]["finalizers"] = json!(["not-qualified"]);
    world.make::<ReplicaSet>(refused).await;
    let failed = |set: &ReplicaSet| set.status.as_ref().is_some_and(|status| status.conditions.is_some());
    let set = world.until(NAME, failed).await;
    let condition = set.status.unwrap().conditions.unwrap().remove(0);
    assert_eq!((condition.type_.as_str(), condition.reason.as_deref()), ("ReplicaFailure", Some("FailedCreate")));
    world.event("FailedCreate", &format!("Error creating: {}", condition.message.unwrap())).await;
    world.patch::<ReplicaSet>(NAME, json!({"spec": {"template": {"metadata": {"finalizers": null}}}})).await;
    let set = world.until_available(50).await;
    assert!(set.status.unwrap().conditions.is_none());
}
