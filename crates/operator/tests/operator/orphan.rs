//! Pipelines that are deleted with `--cascade=orphan`: the garbage collector removes owner references, and
//! leaves the objects.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::PostParams};
use serde_json::json;

use crate::world::{NAMESPACE, TestCluster, to, until, with_token};

const LOCK: &str = "ConfigMap/kubewake-tracepipeline-lock";

/// The Secrets with last valid specs.
async fn kept(world: &TestCluster) -> BTreeSet<String> {
    world.made().await.into_iter().filter(|it| it.starts_with("Secret/kubewake-kept-")).collect()
}

/// Waits until there are this many Secrets with last valid specs.
async fn until_kept(world: &TestCluster, count: usize) -> BTreeSet<String> {
    until(&format!("{count} are kept"), async || Some(kept(world).await).filter(|kept| kept.len() == count)).await
}

async fn until_gone(world: &TestCluster, name: &str) {
    until(&format!("{name} is gone"), async || (!world.exists(name).await).then_some(())).await;
}

#[tokio::test]
async fn the_last_pipeline_takes_everything_along_at_once() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.secret("token", "planted").await;
    world.apply("backend", with_token("token")).await;
    world.until_configured("backend").await;
    until_kept(&world, 1).await;
    world.orphan("backend").await;
    world.until_nothing_is_left().await;
    world.apply("backend", with_token("token")).await;
    world.until_configured("backend").await;
    operator.stop().await;
}

#[tokio::test]
async fn what_was_left_while_no_operator_ran_goes_when_one_starts() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.secret("token", "planted").await;
    world.apply("backend", with_token("token")).await;
    world.until_configured("backend").await;
    let kept = until_kept(&world, 1).await;
    operator.kill().await;
    world.orphan("backend").await;
    until_gone(&world, "backend").await;
    let left = world.made().await;
    for name in ["Deployment/kubewake-gateway", "ConfigMap/kubewake-layer", LOCK, kept.first().unwrap()] {
        assert!(left.iter().any(|it| it == name), "{name} is not left in {left:?}");
    }
    let operator = world.operator();
    world.until_nothing_is_left().await;
    operator.stop().await;
}

#[tokio::test]
async fn one_of_several_leaves_its_slot_and_nothing_that_was_kept_of_it() {
    let world = TestCluster::start().await;
    world.telemetry(json!({"slots": {"traces": 2}})).await;
    let operator = world.operator();
    world.secret("token", "planted").await;
    world.apply("one", with_token("token")).await;
    world.until_configured("one").await;
    let of_one = until_kept(&world, 1).await;
    world.apply("two", with_token("token")).await;
    world.until_configured("two").await;
    let of_both = until_kept(&world, 2).await;
    world.apply("three", to("three.example.com:4317")).await;
    world.until_reason("three", "Pending").await;

    world.orphan("one").await;
    world.until_configured("three").await;
    let of_others = until("nothing is kept of the first", async || {
        Some(kept(&world).await).filter(|kept| kept.is_disjoint(&of_one) && kept.len() == 2)
    })
    .await;
    assert!(of_both.difference(&of_one).all(|it| of_others.contains(it)), "what lives is kept");

    // A pipeline of the same name that was never valid has no use for the Secret either.
    operator.kill().await;
    world.orphan("two").await;
    until_gone(&world, "two").await;
    world.apply("two", to("not an endpoint")).await;
    let operator = world.operator();
    until_kept(&world, 1).await;
    world.until_reason("two", "EndpointInvalid").await;
    let (text, _) = world.document("kubewake-gateway").await.unwrap();
    assert!(text.contains("three.example.com") && !text.contains("traces-two"), "{text}");
    assert!(world.made().await.iter().any(|it| it == LOCK), "the third still holds its slot");
    operator.stop().await;
}

#[tokio::test]
async fn what_others_made_stays() {
    let world = TestCluster::start().await;
    let secrets = Api::<Secret>::namespaced(world.client.clone(), NAMESPACE);
    let labels = json!({"telemetry.kubewake.io/part": "kept"});
    let theirs = [("kubewake-kept-traces-theirs", json!({})), ("theirs", labels.clone())];
    for (name, labels) in &theirs {
        let secret = json!({"metadata": {"name": name, "labels": labels}});
        secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    }
    let ours = json!({"metadata": {"name": "kubewake-kept-traces-0", "labels": labels}});
    secrets.create(&PostParams::default(), &serde_json::from_value(ours).unwrap()).await.unwrap();
    let operator = world.operator();
    let is_gone = async || secrets.get_opt("kubewake-kept-traces-0").await.unwrap().is_none().then_some(());
    until("what nobody can read is gone", is_gone).await;
    for (name, _) in &theirs {
        assert!(secrets.get_opt(name).await.unwrap().is_some(), "{name}");
    }
    operator.stop().await;
}
