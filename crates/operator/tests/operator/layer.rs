//! What is made, changed and removed.

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{Pod, Service},
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::world::{NAMESPACE, World, to, until};

#[tokio::test]
async fn everything_goes_with_the_last_pipeline_also_while_no_operator_runs() {
    let world = World::start().await;
    let operator = world.operator();
    world.apply("backend", to("backend.example.com:4317")).await;
    world.until_configured("backend").await;
    for kind in [
        "Deployment",
        "Service",
        "ConfigMap",
        "Secret",
        "ServiceAccount",
        "ClusterRole",
        "NetworkPolicy",
        "Horizontal",
        "PodDisruption",
    ] {
        assert!(world.made().await.iter().any(|it| it.starts_with(kind)), "{kind}");
    }
    operator.kill().await;
    world.delete("backend").await;
    world.until_nothing_is_left().await;
}

#[tokio::test]
async fn what_others_change_or_delete_is_mended() {
    let world = World::start().await;
    let operator = world.operator();
    world.apply("backend", to("backend.example.com:4317")).await;
    world.until_configured("backend").await;
    let services = Api::<Service>::namespaced(world.client.clone(), NAMESPACE);
    services.delete("kubewake-otlp", &DeleteParams::default()).await.unwrap();
    until("the Service is there again", async || world.object::<Service>("kubewake-otlp").await).await;
    let deployments = Api::<Deployment>::namespaced(world.client.clone(), NAMESPACE);
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "collector", "image": "evil"}]}}}});
    deployments.patch("kubewake-gateway", &PatchParams::default(), &Patch::Strategic(&patch)).await.unwrap();
    until("the image is ours again", async || (image(&world).await? == "kubewake/collector").then_some(())).await;
    assert!(
        operator.figure("kubewake_operator_queue_wait_seconds_count{") > 0.0,
        "something waited, if only for a moment"
    );
    until("nobody waits", async || (operator.figure("kubewake_operator_queue_depth{") == 0.0).then_some(())).await;
    operator.stop().await;
}

#[tokio::test]
async fn pods_are_told_of_a_new_document() {
    let world = World::start().await;
    let operator = world.operator();
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "collector", "labels": {
            "app.kubernetes.io/component": "collector", "app.kubernetes.io/name": "kubewake-gateway"}},
        "spec": {"automountServiceAccountToken": false, "containers": [{"name": "collector", "image": "any"}]},
    }))
    .unwrap();
    Api::namespaced(world.client.clone(), NAMESPACE).create(&PostParams::default(), &pod).await.unwrap();
    for endpoint in ["one.example.com:4317", "two.example.com:4317"] {
        world.apply("backend", to(endpoint)).await;
        until("it is told of the document that it is about to get", async || {
            let (text, _) = world.document("kubewake-gateway").await.filter(|(text, _)| text.contains(endpoint))?;
            let pod = world.object::<Pod>("collector").await?;
            let told = pod.annotations().get("telemetry.kubewake.io/document")?;
            (*told == kubewake_config::fingerprint(&text)).then_some(())
        })
        .await;
    }
    operator.stop().await;
}

async fn image(world: &World) -> Option<String> {
    let deployment = world.object::<Deployment>("kubewake-gateway").await?;
    deployment.spec?.template.spec?.containers.first()?.image.clone()
}

#[tokio::test]
async fn an_operator_with_other_defaults_rolls_the_collectors() {
    let world = World::start().await;
    let operator = world.operator();
    world.apply("backend", to("backend.example.com:4317")).await;
    world.until_configured("backend").await;
    let before = world.object::<Deployment>("kubewake-gateway").await.unwrap().metadata.generation;
    operator.stop().await;
    let operator = world.operator_with(|options| options.image = "kubewake/collector:2".into());
    until("it is rolled", async || (image(&world).await? == "kubewake/collector:2").then_some(())).await;
    assert!(world.object::<Deployment>("kubewake-gateway").await.unwrap().metadata.generation > before);
    operator.stop().await;
}

#[tokio::test]
async fn tail_policies_bring_the_sticky_tier_and_take_it_away() {
    let world = World::start().await;
    let operator = world.operator();
    let tail = json!({"policies": [{"name": "all", "alwaysSample": {}}]});
    let mut spec = to("backend.example.com:4317");
    spec["sampling"] = json!({"tail": tail});
    world.apply("backend", spec).await;
    world.until_configured("backend").await;
    assert!(world.object::<StatefulSet>("kubewake-sticky").await.is_some());
    let (text, _) = world.document("kubewake-sticky").await.unwrap();
    assert!(text.contains("tail_sampling/traces-backend"), "{text}");
    world.apply("backend", to("backend.example.com:4317")).await;
    until("the tier is gone", async || world.made().await.iter().all(|it| !it.contains("sticky")).then_some(())).await;
    operator.stop().await;
}

#[tokio::test]
async fn a_paused_pipeline_keeps_its_slot_and_needs_no_collectors() {
    let world = World::start().await;
    let operator = world.operator();
    world.apply("one", to("backend.example.com:4317")).await;
    world.until_configured("one").await;
    let mut spec = to("backend.example.com:4317");
    spec["paused"] = json!(true);
    world.apply("one", spec).await;
    let address = world.object::<Service>("kubewake-otlp").await.unwrap().uid();
    world.until_reason("one", "Paused").await;
    until("nothing runs", async || {
        let made = world.made().await;
        let is_address = |it: &String| {
            it == "Service/kubewake-otlp" || it.starts_with("ConfigMap/") || it.starts_with("Secret/kubewake-kept")
        };
        made.iter().all(is_address).then_some(())
    })
    .await;
    world.apply("two", to("backend.example.com:4317")).await;
    world.until_reason("two", "Pending").await;
    world.apply("one", to("backend.example.com:4317")).await;
    world.until_configured("one").await;
    let lock = world.config_maps().get("kubewake-tracepipeline-lock").await.unwrap();
    assert_eq!(lock.owner_references().len(), 1);
    assert_eq!(world.object::<Service>("kubewake-otlp").await.unwrap().uid(), address, "senders keep their address");
    operator.kill().await;
    world.delete("two").await;
    world.delete("one").await;
    world.until_nothing_is_left().await;
}

/// What senders know, and what runs for them.
async fn identity(world: &World) -> Option<(String, String)> {
    let service = world.object::<Service>("kubewake-otlp").await?;
    Some((service.uid()?, world.object::<Deployment>("kubewake-gateway").await?.uid()?))
}

/// Waits until nobody holds a slot.
async fn until_free(world: &World) {
    let lock = "kubewake-tracepipeline-lock";
    until("the slot is free", async || world.config_maps().get_opt(lock).await.unwrap().is_none().then_some(())).await;
}

#[tokio::test]
async fn who_takes_over_takes_over_what_is_there() {
    let world = World::start().await;
    let operator = world.operator();
    world.apply("one", to("one.example.com:4317")).await;
    world.until_configured("one").await;
    let before = identity(&world).await.unwrap();
    world.apply("two", to("two.example.com:4317")).await;
    world.until_reason("two", "Pending").await;
    world.delete("one").await;
    world.until_configured("two").await;
    assert_eq!(identity(&world).await.as_ref(), Some(&before));

    world.apply("three", to("three.example.com:4317")).await;
    world.until_reason("three", "Pending").await;
    operator.kill().await;
    world.delete("two").await;
    until_free(&world).await;
    assert_eq!(identity(&world).await.as_ref(), Some(&before), "also if nobody sees the holder go");
    let operator = world.operator();
    world.until_configured("three").await;
    assert_eq!(identity(&world).await, Some(before));
    let (text, _) = world.document("kubewake-gateway").await.unwrap();
    assert!(text.contains("three.example.com") && !text.contains("two.example.com"), "{text}");

    world.apply("four", to("four.example.com:4317")).await;
    world.until_reason("four", "Pending").await;
    operator.kill().await;
    world.delete("three").await;
    world.delete("four").await;
    world.until_nothing_is_left().await;
}

#[tokio::test]
async fn who_cannot_take_over_keeps_nothing() {
    let world = World::start().await;
    let operator = world.operator();
    world.apply("one", to("one.example.com:4317")).await;
    world.until_configured("one").await;
    world.apply("broken", to("not an endpoint")).await;
    world.until_reason("broken", "EndpointInvalid").await;
    world.apply("spoilt", to("two.example.com:4317")).await;
    world.until_reason("spoilt", "Pending").await;
    world.apply("spoilt", to("not an endpoint")).await;
    world.until_reason("spoilt", "EndpointInvalid").await;
    operator.kill().await;
    world.delete("one").await;
    world.until_nothing_is_left().await;
}
