//! A cluster in which PodMonitors appear and disappear.

use std::time::Duration;

use k8s_openapi::{
    api::autoscaling::v2::HorizontalPodAutoscaler,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, DynamicObject, PostParams},
};
use kubewake_operator::ObjectKind;
use serde_json::{Value, json};

use crate::world::{NAMESPACE, Running, TestCluster, to, until};

const DEFINITION: &str = "podmonitors.monitoring.coreos.com";

impl TestCluster {
    /// An operator that soon notices PodMonitors, and a pipeline.
    async fn with_pipeline(&self) -> Running {
        let operator = self.operator_with(|options| options.resync = Duration::from_secs(1));
        self.apply("backend", to("one.example.com:4317")).await;
        self.until_configured("backend").await;
        operator
    }

    async fn define(&self, schema: Value) -> Api<CustomResourceDefinition> {
        let definitions = Api::<CustomResourceDefinition>::all(self.client.clone());
        definitions.create(&PostParams::default(), &definition(schema)).await.unwrap();
        definitions
    }

    async fn until_monitored(&self) -> DynamicObject {
        let monitors: Api<DynamicObject> = ObjectKind::PodMonitor.api(&self.client, NAMESPACE);
        let monitor = async || monitors.get_opt("kubewake-metrics").await.ok().flatten();
        until("there is a PodMonitor", monitor).await
    }

    async fn until_another_is_configured(&self) {
        self.apply("backend", to("two.example.com:4317")).await;
        self.until_configured("backend").await;
        let (text, _) = self.document("kubewake-gateway").await.unwrap();
        assert!(text.contains("two.example.com"), "{text}");
    }
}

fn anything() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn definition(schema: Value) -> CustomResourceDefinition {
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
    let world = TestCluster::start().await;
    let operator = world.with_pipeline().await;
    let definitions = world.define(anything()).await;
    let made = world.until_monitored().await;
    assert_eq!(made.owner_references().first().map(|owner| owner.name.as_str()), Some("kubewake-layer"));

    definitions.delete(DEFINITION, &DeleteParams::default()).await.unwrap();
    until("the kind is gone", async || definitions.get_opt(DEFINITION).await.unwrap().is_none().then_some(())).await;
    world.until_another_is_configured().await;
    operator.stop().await;

    world.define(anything()).await;
    let operator = world.operator();
    let made = world.until_monitored().await;
    operator.stop().await;
    let operator = world.operator();
    world.apply("backend", to("one.example.com:4317")).await;
    world.until_configured("backend").await;
    operator.stop().await;
    assert_eq!(world.until_monitored().await.uid(), made.uid(), "an operator that starts leaves it alone");
    world.delete("backend").await;
    world.until_nothing_is_left().await;
}

#[tokio::test]
async fn what_held_before_holds_on_when_the_kind_comes() {
    let world = TestCluster::start().await;
    world.telemetry(json!({"replicas": {"min": 3}})).await;
    let operator = world.with_pipeline().await;
    // Neither a schema nor a webhook refuses this.
    world.telemetry(json!({"replicas": {"min": 5}, "image": "Not An Image"})).await;
    world.define(anything()).await;
    world.until_monitored().await;
    let scaler = world.object::<HorizontalPodAutoscaler>("kubewake-gateway").await.unwrap();
    assert_eq!(scaler.spec.unwrap().min_replicas, Some(3), "as the Telemetry said when it was valid");
    operator.stop().await;
}

#[tokio::test]
async fn one_that_cannot_be_written_is_in_nobodys_way() {
    let world = TestCluster::start().await;
    let operator = world.with_pipeline().await;
    let mut strict = anything();
    strict["properties"] = json!({"strange": {"type": "string"}});
    strict["required"] = json!(["strange"]);
    world.define(strict).await;
    let errors = "kubewake_operator_errors_total{step=\"layer\",reason=\"invalid\"}";
    until("it is counted", async || (operator.figure(errors) >= 1.0).then_some(())).await;
    world.until_another_is_configured().await;
    operator.stop().await;
}

#[tokio::test]
async fn one_that_cannot_be_listed_is_in_nobodys_way() {
    let world = TestCluster::start().await;
    let operator = world.with_pipeline().await;
    operator.never_answer("/podmonitors");
    world.define(anything()).await;
    until("it is asked for", async || operator.asked().iter().any(|uri| uri.contains("/podmonitors?")).then_some(()))
        .await;
    world.until_another_is_configured().await;
    // A new operator does not wait for the kind either.
    operator.stop().await;
    let operator = world.operator();
    operator.never_answer("/podmonitors");
    world.apply("backend", to("one.example.com:4317")).await;
    world.until_configured("backend").await;
    operator.stop().await;
}
