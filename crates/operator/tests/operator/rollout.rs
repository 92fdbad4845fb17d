//! Rollouts of a change: its prerequisites exist first, obstacles are reported, and ordinary waits are no
//! errors.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod, events::v1::Event, rbac::v1::RoleBinding};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kubewake_api::{State, v1alpha1::Telemetry};
use serde_json::{Value, json};

use crate::world::{NAMESPACE, TestCluster, condition, to, until, with_token};

/// Reports all collectors of the gateway as ready in the status of their Deployment.
async fn are_ready(world: &TestCluster) {
    let deployments = Api::<Deployment>::namespaced(world.client.clone(), NAMESPACE);
    let status = json!({"status": {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}});
    deployments.patch_status("kubewake-gateway", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

/// Creates a pod of the gateway with this condition of the scheduler.
async fn new_pod(world: &TestCluster, name: &str, scheduled: Value) {
    let pods = Api::<Pod>::namespaced(world.client.clone(), NAMESPACE);
    let pod = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {
            "app.kubernetes.io/component": "collector", "app.kubernetes.io/name": "kubewake-gateway"}},
        "spec": {"automountServiceAccountToken": false, "containers": [{"name": "collector", "image": "any"}]},
    }));
    pods.create(&PostParams::default(), &pod.unwrap()).await.unwrap();
    let status = json!({"status": {"phase": "Pending", "conditions": [scheduled]}});
    pods.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

#[tokio::test]
async fn a_rollout_that_no_node_has_room_for_is_said_until_it_is_over() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.telemetry(json!({})).await;
    world.apply("backend", to("backend.example.com:4317")).await;
    world.until_configured("backend").await;
    are_ready(&world).await;
    world.until_status("backend", "it is ready", |status| status.state == Some(State::Ready)).await;

    let words = "0/3 nodes are available: 3 Insufficient cpu.";
    let full = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words});
    new_pod(&world, "new", full).await;
    let status = world.until_reason("backend", "CollectorNotReady").await;
    assert_eq!(status.state, Some(State::Degraded), "the others go on: {status:?}");
    let ready = status.conditions.iter().find(|it| it.type_ == "CollectorReady").unwrap();
    assert_eq!(ready.status, "False");
    assert_eq!(
        ready.message,
        format!("1 of 2 collectors of kubewake-gateway are ready (the pod new is not scheduled: {words})")
    );
    until("the Telemetry says so, too", async || {
        let status = world.of::<Telemetry>().get("default").await.unwrap().status?;
        (status.state == Some(State::Degraded) && status.reason.as_deref() == Some("CollectorNotReady")).then_some(())
    })
    .await;

    let pods = Api::<Pod>::namespaced(world.client.clone(), NAMESPACE);
    pods.delete("new", &DeleteParams::default()).await.unwrap();
    world.until_status("backend", "it is ready again", |status| status.state == Some(State::Ready)).await;
    operator.stop().await;
}

fn revision(text: Option<&String>) -> u64 {
    text.unwrap().parse().unwrap()
}

#[tokio::test]
async fn collectors_have_their_rights_before_the_document_that_asks_for_them() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.apply("backend", to("backend.example.com:4317")).await;
    world.until_configured("backend").await;
    let mut spec = to("backend.example.com:4317");
    spec["sampling"] = json!({"tail": {"policies": [{"name": "all", "alwaysSample": {}}]}});
    world.apply("backend", spec).await;
    let (_, document) = until("the document spreads traces", async || {
        world.document("kubewake-gateway").await.filter(|(text, _)| text.contains("load_balancing"))
    })
    .await;
    let binding = world.object::<RoleBinding>("kubewake-gateway").await.expect("it is there already");
    let [right, asked] = [&binding.metadata, &document.metadata].map(|it| revision(it.resource_version.as_ref()));
    assert!(right < asked, "{right} {asked}");
    operator.stop().await;
}

#[tokio::test]
async fn what_may_be_missing_is_not_asked_for_as_if_it_were_there() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.apply("backend", to("backend.example.com:4317")).await;
    world.until_configured("backend").await;
    let asked = operator.asked();
    let gets: Vec<&String> = asked.iter().filter(|uri| uri.contains("/configmaps/")).collect();
    assert!(gets.is_empty(), "{gets:?}");
    assert_eq!(condition(&world.status("backend").await, "Accepted").0, "True");
    operator.stop().await;
}

#[tokio::test]
async fn image_that_cannot_be_pulled_is_a_warning() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.apply("backend", to("backend.example.com:4317")).await;
    world.until_configured("backend").await;
    let scheduled = json!({"type": "PodScheduled", "status": "True"});
    new_pod(&world, "new", scheduled).await;
    let waiting = json!({"name": "collector", "image": "no/such:1", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": "ImagePullBackOff"}}});
    let status = json!({"status": {"containerStatuses": [waiting]}});
    let pods = Api::<Pod>::namespaced(world.client.clone(), NAMESPACE);
    pods.patch_status("new", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    let events = Api::<Event>::all(world.client.clone());
    until("a warning names the image", async || {
        let all = events.list(&ListParams::default()).await.unwrap().items;
        let names = |event: &&Event| event.note.as_deref().unwrap_or_default().contains("no/such:1 cannot be pulled");
        let event = all.iter().find(names)?;
        assert_eq!(event.type_.as_deref(), Some("Warning"), "{event:?}");
        Some(())
    })
    .await;
    operator.stop().await;
}

#[tokio::test]
async fn another_reason_for_the_same_trouble_is_an_event_of_its_own() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    let events = Api::<Event>::all(world.client.clone());
    for secret in ["first", "second"] {
        world.apply("backend", with_token(secret)).await;
        until("an event names what is missing", async || {
            let all = events.list(&ListParams::default()).await.unwrap().items;
            let names = |event: &&Event| {
                let note = event.note.as_deref().unwrap_or_default();
                event.reason.as_deref() == Some("SecretMissing") && note.contains(&format!("default/{secret}"))
            };
            all.iter().find(names).map(|_| ())
        })
        .await;
    }
    operator.stop().await;
}
