//! Creation, change and removal of the layer's objects.

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{ConfigMap, Pod, Service},
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::world::{NAMESPACE, TestCluster, condition, to, until};

#[tokio::test]
async fn everything_goes_with_the_last_pipeline_also_while_no_operator_runs() {
    let world = TestCluster::start().await;
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
    let world = TestCluster::start().await;
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
    let world = TestCluster::start().await;
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

async fn image(world: &TestCluster) -> Option<String> {
    let deployment = world.object::<Deployment>("kubewake-gateway").await?;
    deployment.spec?.template.spec?.containers.first()?.image.clone()
}

#[tokio::test]
async fn an_operator_with_other_defaults_rolls_the_collectors() {
    let world = TestCluster::start().await;
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

fn with_policies() -> Value {
    let mut spec = to("backend.example.com:4317");
    spec["sampling"] = json!({"tail": {"policies": [{"name": "all", "alwaysSample": {}}]}});
    spec
}

/// Waits until the gateway's document does not spread traces any more, and returns it.
async fn until_plain(world: &TestCluster) -> String {
    let is_plain = |(text, _): &(String, ConfigMap)| !text.contains("load_balancing");
    until("the document is plain", async || world.document("kubewake-gateway").await.filter(is_plain)).await.0
}

#[tokio::test]
async fn tail_policies_bring_the_sticky_tier_and_take_it_away() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.apply("backend", with_policies()).await;
    world.until_configured("backend").await;
    assert!(world.object::<StatefulSet>("kubewake-sticky").await.is_some());
    let (text, _) = world.document("kubewake-sticky").await.unwrap();
    assert!(text.contains("tail_sampling/traces-backend"), "{text}");
    let gateway = world.gateway("gateway").await;
    world.apply("backend", to("backend.example.com:4317")).await;
    gateway.reads(&until_plain(&world).await);
    until("the tier is gone", async || (!world.has_sticky().await).then_some(())).await;
    operator.stop().await;
}

#[tokio::test]
async fn sticky_tier_stays_until_gateways_were_seen_to_have_read_the_new_document() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.apply("backend", with_policies()).await;
    world.until_configured("backend").await;
    let [first, second] = [world.gateway("first").await, world.gateway("second").await];
    let (spreading, _) = world.document("kubewake-gateway").await.unwrap();
    [&first, &second].iter().for_each(|gateway| gateway.reads(&spreading));
    operator.kill().await;

    // The policies are deleted while nobody leads, and the next leader begins with empty caches.
    world.apply("backend", to("backend.example.com:4317")).await;
    let operator = world.operator();
    let plain = until_plain(&world).await;
    // Runs follow each other as long as something changes: this one comes after the document was written and
    // the collectors were polled.
    world
        .until_status("backend", "collectors are waited for", |status| {
            condition(status, "Configured").1 == "RolloutInProgress"
        })
        .await;
    assert!(world.has_sticky().await, "the gateways still send to it");
    first.reads(&plain);
    let rounds = operator.figure("kubewake_operator_layer_runs_total");
    world.telemetry(json!({"logLevel": "warn"})).await;
    let plain = until("the document logs less", async || {
        world.document("kubewake-gateway").await.map(|(text, _)| text).filter(|text| text.contains("warn"))
    })
    .await;
    first.reads(&plain);
    until("the layer was looked at since", async || {
        (operator.figure("kubewake_operator_layer_runs_total") > rounds + 1.0).then_some(())
    })
    .await;
    assert!(world.has_sticky().await, "one of the gateways still sends to it");
    second.end().await;
    until("the tier is gone", async || (!world.has_sticky().await).then_some(())).await;
    operator.stop().await;
}

#[tokio::test]
async fn sticky_tier_stays_while_no_gateway_was_seen() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.apply("backend", with_policies()).await;
    world.until_configured("backend").await;
    world.apply("backend", to("backend.example.com:4317")).await;
    until_plain(&world).await;
    world.until_configured("backend").await;
    assert!(world.has_sticky().await, "nobody has said that nobody needs it");
    let gateway = world.gateway("gateway").await;
    gateway.reads(&until_plain(&world).await);
    until("the tier is gone", async || (!world.has_sticky().await).then_some(())).await;
    operator.stop().await;
}

#[tokio::test]
async fn sticky_tier_outlives_the_gateways_of_a_paused_pipeline() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.apply("backend", with_policies()).await;
    world.until_configured("backend").await;
    let gateway = world.gateway("gateway").await;
    let mut paused = with_policies();
    paused["paused"] = json!(true);
    world.apply("backend", paused).await;
    until("the gateway goes", async || world.object::<Deployment>("kubewake-gateway").await.is_none().then_some(()))
        .await;
    assert!(world.object::<StatefulSet>("kubewake-sticky").await.is_some(), "what a gateway still holds goes there");
    gateway.end().await;
    until("the tier is gone", async || (!world.has_sticky().await).then_some(())).await;
    operator.stop().await;
}

#[tokio::test]
async fn a_paused_pipeline_keeps_its_slot_and_needs_no_collectors() {
    let world = TestCluster::start().await;
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

/// The identities of the Service that senders use, and of the Deployment.
async fn identity(world: &TestCluster) -> Option<(String, String)> {
    let service = world.object::<Service>("kubewake-otlp").await?;
    Some((service.uid()?, world.object::<Deployment>("kubewake-gateway").await?.uid()?))
}

/// Waits until no pipeline holds a slot.
async fn until_free(world: &TestCluster) {
    let lock = "kubewake-tracepipeline-lock";
    until("the slot is free", async || world.config_maps().get_opt(lock).await.unwrap().is_none().then_some(())).await;
}

#[tokio::test]
async fn who_takes_over_takes_over_what_is_there() {
    let world = TestCluster::start().await;
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
    let world = TestCluster::start().await;
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

/// The desired number of gateway replicas.
async fn replicas(world: &TestCluster) -> Option<i32> {
    world.object::<Deployment>("kubewake-gateway").await?.spec?.replicas
}

#[tokio::test]
async fn gateway_begins_with_the_least_replicas_and_is_the_autoscalers_from_then_on() {
    let world = TestCluster::start().await;
    world.telemetry(json!({"replicas": {"min": 3, "max": 6}})).await;
    let operator = world.operator();
    let deployments = Api::<Deployment>::namespaced(world.client.clone(), NAMESPACE);
    world.apply("backend", to("backend.example.com:4317")).await;
    let made = until("there is a gateway", async || world.object::<Deployment>("kubewake-gateway").await).await;
    assert_eq!(made.spec.unwrap().replicas, Some(3), "at whatever moment it is seen");
    world.until_configured("backend").await;
    assert_eq!(replicas(&world).await, Some(3));

    let scale = |replicas: i32| Patch::Merge(json!({"spec": {"replicas": replicas}}));
    let autoscaler = PatchParams { field_manager: Some("autoscaler".into()), ..PatchParams::default() };
    deployments.patch_scale("kubewake-gateway", &autoscaler, &scale(5)).await.unwrap();
    world.telemetry(json!({"replicas": {"min": 3, "max": 6}, "resources": {"requests": {"cpu": "200m"}}})).await;
    until("the collectors ask for more", async || {
        let template = world.object::<Deployment>("kubewake-gateway").await?.spec?.template;
        let requests = template.spec?.containers.first()?.resources.clone()?.requests?;
        (requests.get("cpu")?.0 == "200m").then_some(())
    })
    .await;
    assert_eq!(replicas(&world).await, Some(5), "what the autoscaler wrote stays");
    world.telemetry(json!({"replicas": {"min": 6, "max": 8}})).await;
    until("there are as many as there must be", async || (replicas(&world).await? == 6).then_some(())).await;
    operator.stop().await;
}
