//! Collectors that lose data when they end, and pipelines whose deletion finalizers hold.

use jiff::Timestamp;
use k8s_openapi::api::{core::v1::Pod, events::v1::Event};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use kubewake_api::{State, v1alpha1::TracePipeline};
use serde_json::json;

use crate::world::{NAMESPACE, TestCluster, condition, to, until};

/// Reports 200 dropped items of this pipeline, as a kubelet writes it after the container has ended, right
/// before the pod is removed.
async fn drops(world: &TestCluster, pipeline: &str) {
    let lost = json!({"items": 200, "reason": "shutdown", "id": "traces/_sticky", "carries": [pipeline]});
    let message = json!({"dropped": [lost]}).to_string();
    let ended = json!({"exitCode": 0, "reason": "Completed", "finishedAt": Timestamp::now(), "message": message});
    let container = json!({
        "name": "collector", "image": "any", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": ended},
    });
    let pods = Api::<Pod>::namespaced(world.client.clone(), NAMESPACE);
    let status = json!({"status": {"containerStatuses": [container]}});
    pods.patch_status("gateway", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

#[tokio::test]
async fn loss_of_a_collector_that_ended_after_its_pipeline_is_told_in_an_event() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.apply("backend", to("backend.example.com:4317")).await;
    world.until_configured("backend").await;
    let uid = world.of::<TracePipeline>().get("backend").await.unwrap().uid().unwrap();
    let gateway = world.gateway("gateway").await;
    gateway.reads(&world.document("kubewake-gateway").await.unwrap().0);

    world.of::<TracePipeline>().delete("backend", &DeleteParams::background()).await.unwrap();
    until("it is gone", async || (!world.exists("backend").await).then_some(())).await;
    drops(&world, &uid).await;
    gateway.end().await;
    let events = Api::<Event>::all(world.client.clone());
    let event = until("an event tells of the loss", async || {
        let all = events.list(&ListParams::default()).await.unwrap();
        all.into_iter().find(|event| event.reason.as_deref() == Some("DataDropped"))
    })
    .await;
    assert!(event.note.as_deref().is_some_and(|note| note.contains("200 items")), "{event:?}");
    let about = event.regarding.unwrap_or_default();
    assert_eq!((about.kind.as_deref(), about.name.as_deref()), (Some("TracePipeline"), Some("backend")));
    assert_eq!(about.uid, Some(uid));
    operator.stop().await;
}

#[tokio::test]
async fn loss_of_a_collector_that_ended_is_in_the_status_of_its_pipeline() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.apply("backend", to("backend.example.com:4317")).await;
    world.until_configured("backend").await;
    let uid = world.of::<TracePipeline>().get("backend").await.unwrap().uid().unwrap();
    let gateway = world.gateway("gateway").await;
    gateway.reads(&world.document("kubewake-gateway").await.unwrap().0);

    drops(&world, &uid).await;
    gateway.end().await;

    let status =
        world.until_status("backend", "it counts what was lost", |status| status.dropped_at_shutdown.is_some()).await;
    assert_eq!(status.dropped_at_shutdown.as_ref().unwrap().items, 200);
    assert_eq!(condition(&status, "Delivering"), ("False".to_owned(), "DataDropped".to_owned()));
    let delivering = status.conditions.iter().find(|it| it.type_ == "Delivering").unwrap();
    assert!(delivering.message.contains("200 items"), "{delivering:?}");
    operator.stop().await;

    let operator = world.operator();
    until("the next operator has looked", async || {
        (operator.figure("kubewake_operator_layer_runs_total") >= 1.0).then_some(())
    })
    .await;
    let status = world.until_status("backend", "it still says so", |status| status.dropped_at_shutdown.is_some()).await;
    assert_eq!(status.dropped_at_shutdown.unwrap().items, 200, "it is not counted again");
    operator.stop().await;
}

#[tokio::test]
async fn pipeline_held_by_a_finalizer_is_terminating_and_leaves_the_document() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.apply("backend", to("backend.example.com:4317")).await;
    world.until_configured("backend").await;
    let pipelines = world.of::<TracePipeline>();
    let held = |finalizers: &[&str]| Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    pipelines.patch("backend", &PatchParams::default(), &held(&["example.com/hold"])).await.unwrap();
    pipelines.delete("backend", &DeleteParams::background()).await.unwrap();
    let status =
        world.until_status("backend", "it is terminating", |status| status.state == Some(State::Terminating)).await;
    assert_eq!(status.reason.as_deref(), Some("Terminating"));
    assert_eq!(condition(&status, "Delivering"), ("Unknown".to_owned(), "Terminating".to_owned()));
    assert!(status.conditions[0].message.contains("example.com/hold"), "{status:?}");
    assert_eq!(status.ready, None);
    pipelines.patch("backend", &PatchParams::default(), &held(&[])).await.unwrap();
    until("it is gone", async || (!world.exists("backend").await).then_some(())).await;
    world.until_nothing_is_left().await;
    operator.stop().await;
}
