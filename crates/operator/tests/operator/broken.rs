//! Failures, and what must continue despite them.

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt as _, api::DeleteParams};
use kubewake_api::State;
use serde_json::json;

use crate::world::{TestCluster, condition, to, until, with_token};

/// The values in the collectors' Secret.
async fn values(world: &TestCluster) -> Vec<String> {
    let secret = world.object::<Secret>("kubewake-gateway").await;
    let data = secret.and_then(|secret| secret.data).unwrap_or_default();
    data.into_values().map(|value| String::from_utf8(value.0).unwrap()).collect()
}

#[tokio::test]
async fn a_secret_that_comes_changes_and_goes() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.apply("backend", with_token("token")).await;
    let status = world.until_reason("backend", "SecretMissing").await;
    assert_eq!(status.state, Some(State::Invalid));
    assert!(status.conditions[0].message.contains("default/token"), "{status:?}");
    assert!(world.made().await.is_empty());

    world.secret("token", "planted-first").await;
    world.until_configured("backend").await;
    let (first, _) = world.document("kubewake-gateway").await.unwrap();
    assert!(!first.contains("planted"), "{first}");
    assert_eq!(values(&world).await, ["planted-first"]);

    world.secret("token", "planted-second").await;
    until("the document names the new revision", async || {
        let (text, _) = world.document("kubewake-gateway").await?;
        (text != first).then_some(())
    })
    .await;
    assert!(values(&world).await.contains(&"planted-second".to_owned()));

    let (second, map) = world.document("kubewake-gateway").await.unwrap();
    let secrets = Api::<Secret>::namespaced(world.client.clone(), "default");
    secrets.delete("token", &DeleteParams::default()).await.unwrap();
    let status = world.until_reason("backend", "SecretMissing").await;
    assert_eq!((status.state, condition(&status, "Configured").1), (Some(State::Degraded), "NotAccepted".into()));
    operator.stop().await;

    let operator = world.operator();
    until("the new operator has looked", async || {
        (operator.figure("kubewake_operator_layer_runs_total") >= 1.0).then_some(())
    })
    .await;
    let (third, same) = world.document("kubewake-gateway").await.unwrap();
    assert_eq!((third, same.resource_version()), (second.clone(), map.resource_version()), "what runs goes on");
    assert_eq!(world.until_reason("backend", "SecretMissing").await.state, Some(State::Degraded));
    let gateway = world.gateway("gateway").await;
    gateway.reads(&second);
    until("nobody goes by the old document", async || (values(&world).await == ["planted-second"]).then_some(())).await;
    gateway.end().await;

    world.secret("token", "planted-third").await;
    world.until_configured("backend").await;
    assert_ne!(world.document("kubewake-gateway").await.unwrap().0, second);
    // Secrets are read in two ways only: the operator's own by their label, and referenced ones by their name.
    let asked: Vec<String> = operator.asked().into_iter().filter(|uri| uri.contains("/secrets")).collect();
    assert!(asked.iter().any(|uri| uri.contains("/namespaces/default/secrets") && uri.contains("token")), "{asked:?}");
    for uri in asked {
        let namespaces = ["kubewake-system", "kubewake-agents"];
        let is_own_namespace = namespaces.iter().any(|name| uri.contains(&format!("/namespaces/{name}/secrets")));
        let own = is_own_namespace && uri.contains("labelSelector=");
        assert!(own || uri.contains("fieldSelector=metadata.name%3D"), "{uri}");
    }
    operator.stop().await;
}

#[tokio::test]
async fn nonsense_in_one_pipeline_disturbs_neither_itself_nor_others() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.telemetry(json!({"slots": {"traces": 2}})).await;
    world.apply("one", to("one.example.com:4317")).await;
    world.apply("two", to("two.example.com:4317")).await;
    world.until_configured("one").await;
    world.until_configured("two").await;
    world.apply("one", to("nonsense in here")).await;
    let status = world.until_reason("one", "EndpointInvalid").await;
    assert_eq!(status.state, Some(State::Degraded));
    world.apply("two", to("three.example.com:4317")).await;
    until("the other is changed", async || {
        let (text, _) = world.document("kubewake-gateway").await?;
        (text.contains("three.example.com") && text.contains("one.example.com")).then_some(())
    })
    .await;
    world.until_configured("two").await;
    operator.stop().await;
}

#[tokio::test]
async fn planted_secrets_are_nowhere_but_in_secrets() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.secret("token", "planted-value").await;
    world.apply("backend", with_token("token")).await;
    world.until_configured("backend").await;
    world.secret("token", "planted-bad\nvalue").await;
    world.until_status("backend", "it is refused", |status| condition(status, "Accepted").0 == "False").await;
    for kind in kubewake_operator::ObjectKind::REQUIRED
        .into_iter()
        .filter(|kind| *kind != kubewake_operator::ObjectKind::Secret)
    {
        let all =
            kind.api(&world.client, crate::world::NAMESPACE).list(&kube::api::ListParams::default()).await.unwrap();
        assert!(!serde_json::to_string(&all).unwrap().contains("planted"), "{kind:?}");
    }
    let status = serde_json::to_string(&world.status("backend").await).unwrap();
    let events = Api::<k8s_openapi::api::events::v1::Event>::all(world.client.clone());
    let events = serde_json::to_string(&events.list(&kube::api::ListParams::default()).await.unwrap()).unwrap();
    for (what, text) in [("status", status), ("events", events), ("metrics", operator.metrics.render())] {
        assert!(!text.contains("planted"), "{what}: {text}");
    }
    operator.stop().await;
}
