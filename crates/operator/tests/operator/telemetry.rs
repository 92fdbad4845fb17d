//! The status of the Telemetry, and statuses of pipelines without outdated content.

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ServiceAccount, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use kubewake_api::{
    State,
    v1alpha1::{Telemetry, TelemetryStatus},
};
use serde_json::{Value, json};

use crate::world::{NAMESPACE, TestCluster, condition, to, until};

impl TestCluster {
    /// Waits until the status of the Telemetry satisfies a condition, for the newest generation.
    async fn until_telemetry(&self, what: &str, holds: impl Fn(&TelemetryStatus) -> bool) -> TelemetryStatus {
        let api = self.of::<Telemetry>();
        let check = async || {
            let object = api.get("default").await.unwrap();
            let status = object.status.unwrap_or_default();
            (status.observed_generation == object.metadata.generation && holds(&status)).then_some(status)
        };
        until(what, check).await
    }
}

fn paused(is: bool) -> Value {
    let mut spec = to("backend.example.com:4317");
    spec["paused"] = is.into();
    spec
}

#[tokio::test]
async fn what_holds_no_more_is_not_said_any_more() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.telemetry(json!({"receivers": {"opencensus": {"enabled": true}}})).await;
    let alone = world.until_telemetry("it is spoken of without a pipeline", |status| status.state.is_some()).await;
    assert_eq!((alone.state, &alone.endpoints), (Some(State::Ready), &None));

    world.apply("backend", paused(false)).await;
    world.until_configured("backend").await;
    world.until_status("backend", "there are collectors", |status| status.ready.is_some()).await;
    world
        .until_telemetry("senders are told", |status| {
            status.endpoints.as_ref().is_some_and(|it| it.opencensus.is_some())
        })
        .await;
    world.telemetry(json!({"receivers": {"opencensus": {"enabled": false}}})).await;
    let fewer = |status: &TelemetryStatus| status.endpoints.as_ref().is_some_and(|it| it.opencensus.is_none());
    world.until_telemetry("one of the endpoints is gone", fewer).await;

    world.apply("backend", paused(true)).await;
    let status = world.until_reason("backend", "Paused").await;
    assert_eq!(status.ready, None, "nothing carries it");
    let is_idle = |status: &TelemetryStatus| status.reason.as_deref() == Some("CollectorNotNeeded");
    let idle = world.until_telemetry("there are no collectors", is_idle).await;
    assert!(idle.endpoints.is_some(), "the Service is there, and senders keep their address");

    world.apply("backend", paused(false)).await;
    world.until_configured("backend").await;
    world.delete("backend").await;
    // The watches of pipelines and of objects have no order: for a moment the objects may be gone before the pipeline.
    let is_alone = |status: &TelemetryStatus| status.endpoints.is_none() && status.state == Some(State::Ready);
    world.until_telemetry("nobody listens again", is_alone).await;
    until("the figures of the pipeline are gone", async || {
        (operator.figure("kubewake_operator_pipelines{") == 0.0).then_some(())
    })
    .await;
    operator.stop().await;
}

#[tokio::test]
async fn a_telemetry_that_makes_no_sense_is_invalid_and_changes_nothing() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.telemetry(json!({"replicas": {"min": 3}, "slots": {"traces": 2}})).await;
    world.apply("one", to("one.example.com:4317")).await;
    world.until_configured("one").await;
    let before = world.object::<Deployment>("kubewake-gateway").await.unwrap();
    // Neither a schema nor a webhook refuses this.
    let wrong = json!({"replicas": {"min": 3}, "slots": {"traces": 2}, "image": "Not An Image",
        "resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}});
    world.telemetry(wrong).await;
    let status = world.until_telemetry("it is invalid", |status| status.state == Some(State::Invalid)).await;
    let message = &status.conditions[0].message;
    assert!(message.contains("spec.image: ") && message.contains("spec.resources.requests[memory]: "), "{message}");
    let events = Api::<Event>::all(world.client.clone());
    until("an event tells of it", async || {
        let all = events.list(&ListParams::default()).await.unwrap();
        let is_told = |event: &Event| {
            let kind = event.regarding.as_ref().and_then(|object| object.kind.as_deref());
            kind == Some("Telemetry") && event.reason.as_deref() == Some("SettingInvalid")
        };
        all.items.iter().any(is_told).then_some(())
    })
    .await;
    world.apply("two", to("two.example.com:4317")).await;
    world.until_configured("two").await;
    operator.stop().await;
    let operator = world.operator();
    world.apply("two", to("three.example.com:4317")).await;
    world.until_configured("two").await;
    let after = world.object::<Deployment>("kubewake-gateway").await.unwrap();
    assert_eq!(after.spec, before.spec, "also for an operator that never saw it valid");
    operator.stop().await;
}

#[tokio::test]
async fn what_an_api_server_refuses_is_said_in_its_words() {
    let world = TestCluster::start().await;
    // A foreign Deployment, whose selector cannot be changed.
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "kubewake-gateway"},
        "spec": {"selector": {"matchLabels": {"app": "other"}}, "template": {
            "metadata": {"labels": {"app": "other"}}, "spec": {"containers": [{"name": "other", "image": "other"}]}}},
    }))
    .unwrap();
    let deployments = Api::<Deployment>::namespaced(world.client.clone(), NAMESPACE);
    deployments.create(&PostParams::default(), &deployment).await.unwrap();
    let operator = world.operator();
    world.telemetry(json!({})).await;
    world.apply("backend", to("backend.example.com:4317")).await;
    let status = world.until_reason("backend", "ApplyFailed").await;
    let configured = status.conditions.iter().find(|it| it.type_ == "Configured").unwrap();
    assert_eq!(status.state, Some(State::Pending), "it does not run yet");
    assert!(configured.message.contains("422 Invalid") && configured.message.contains("selector"), "{configured:?}");
    let refused = world.until_telemetry("it says so, too", |status| status.state == Some(State::Degraded)).await;
    assert_eq!(refused.endpoints, None, "there is a Service, and nobody has ever listened there");
    let errors = "kubewake_operator_errors_total{step=\"layer\",reason=\"invalid\"}";
    until("it is counted", async || (operator.figure(errors) >= 1.0).then_some(())).await;
    deployments.delete("kubewake-gateway", &DeleteParams::default()).await.unwrap();
    // A change is reconciled at once, whatever the backoff.
    world.apply("backend", to("other.example.com:4317")).await;
    world.until_configured("backend").await;
    assert_eq!(condition(&world.status("backend").await, "Configured").1, "Configured");
    operator.stop().await;
}

#[tokio::test]
async fn trusted_relay_that_does_not_exist_is_a_warning() {
    let world = TestCluster::start().await;
    let accounts = Api::<ServiceAccount>::namespaced(world.client.clone(), "default");
    let account = ServiceAccount {
        metadata: ObjectMeta { name: Some("agent".to_owned()), ..ObjectMeta::default() },
        ..ServiceAccount::default()
    };
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let relay = |namespace: &str, name: &str| json!({"namespace": namespace, "serviceAccount": name});
    let operator = world.operator();
    let accepted = async |what: &str, relays: Value, message: &str| {
        world.telemetry(json!({"trustedRelays": relays})).await;
        let is_accepted = |status: &TelemetryStatus| {
            status.conditions.iter().any(|it| it.type_ == "Accepted" && it.status == "True" && it.message == message)
        };
        let status = world.until_telemetry(what, is_accepted).await;
        assert_eq!(status.state, Some(State::Ready), "it is no error: {status:?}");
    };
    let missing = "spec.trustedRelays: ServiceAccount agnet not found in namespace default, so that no pod is trusted by this entry";
    let nowhere = missing.replace("agnet", "agent").replace("namespace default", "namespace nowhere");
    let good = relay("default", "agent");
    let typo = relay("default", "agnet");
    accepted("both are named", json!([good, typo, relay("nowhere", "agent")]), &format!("{missing}; {nowhere}")).await;
    accepted("nothing is missing", json!([good]), "the spec is valid").await;
    operator.stop().await;
}
