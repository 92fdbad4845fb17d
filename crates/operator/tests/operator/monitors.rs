//! Prometheus' operator comes and goes.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, DynamicObject, PostParams},
};
use kubewake_operator::kind::Kind;
use serde_json::json;

use crate::world::{NAMESPACE, World, to, until};

const DEFINITION: &str = "podmonitors.monitoring.coreos.com";

fn definition() -> CustomResourceDefinition {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    serde_json::from_value(json!({
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": "monitoring.coreos.com", "scope": "Namespaced",
            "names": {"kind": "PodMonitor", "listKind": "PodMonitorList", "plural": "podmonitors", "singular": "podmonitor"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    }))
    .unwrap()
}

#[tokio::test]
async fn a_pod_monitor_is_there_where_its_kind_is() {
    let world = World::start().await;
    let operator = world.operator_with(|options| options.resync = Duration::from_secs(1));
    world.apply("backend", to("one.example.com:4317")).await;
    world.until_configured("backend").await;

    let definitions = Api::<CustomResourceDefinition>::all(world.client.clone());
    definitions.create(&PostParams::default(), &definition()).await.unwrap();
    let monitors: Api<DynamicObject> = Kind::PodMonitor.api(&world.client, NAMESPACE);
    let monitor = async || monitors.get_opt("kubewake-metrics").await.ok().flatten();
    let made = until("there is one when Prometheus' operator has come", monitor).await;
    assert_eq!(made.owner_references().first().map(|owner| owner.name.as_str()), Some("kubewake-layer"));

    definitions.delete(DEFINITION, &DeleteParams::default()).await.unwrap();
    until("the kind is gone", async || definitions.get_opt(DEFINITION).await.unwrap().is_none().then_some(())).await;
    world.apply("backend", to("two.example.com:4317")).await;
    world.until_configured("backend").await;
    let (text, _) = world.document("kubewake-gateway").await.unwrap();
    assert!(text.contains("two.example.com"), "pipelines go on without it: {text}");
    operator.stop().await;
    world.delete("backend").await;
    world.until_nothing_is_left().await;
}
