//! Pods without a node: status, eviction under a budget, deletion with a grace period.

use k8s_openapi::api::{core::v1::Pod, policy::v1::PodDisruptionBudget};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, EvictParams, LogParams, Patch, PatchParams, PostParams},
    runtime::wait::{await_condition, conditions::is_pod_running},
};
use serde_json::json;

use crate::support::{World, refused, soon};

async fn pod(world: &World, name: &str) -> Api<Pod> {
    let api: Api<Pod> = Api::default_namespaced(world.client.clone());
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": name, "labels": { "app": "a" } },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    }))
    .unwrap();
    api.create(&PostParams::default(), &pod).await.unwrap();
    api
}

#[tokio::test]
async fn a_pod_runs_when_its_status_says_so() {
    let world = World::new().await;
    let api = pod(&world, "p").await;
    let waiting = tokio::spawn(await_condition(api.clone(), "p", is_pod_running()));
    let patch = Patch::Merge(json!({ "status": { "phase": "Running" } }));
    api.patch_status("p", &PatchParams::default(), &patch).await.unwrap();
    soon(waiting).await.unwrap().unwrap();
    // Nothing has been written by a container that no node runs.
    assert_eq!(api.logs("p", &LogParams::default()).await.unwrap(), "");
}

#[tokio::test]
async fn an_eviction_needs_the_budgets_leave() {
    let world = World::new().await;
    let api = pod(&world, "p").await;
    let ready = json!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } });
    api.patch_status("p", &PatchParams::default(), &Patch::Merge(ready)).await.unwrap();
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(world.client.clone());
    let budget: PodDisruptionBudget = serde_json::from_value(json!({
        "metadata": { "name": "b" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "a" } } },
    }))
    .unwrap();
    let budget = budgets.create(&PostParams::default(), &budget).await.unwrap();
    // A client that does not try again by itself, as kube-rs would for minutes.
    let mut config = world.server.client_config().unwrap();
    config.default_retry = false;
    let impatient: Api<Pod> = Api::default_namespaced(config.try_into().unwrap());
    assert_eq!(refused(impatient.evict("p", &EvictParams::default()).await).code, 429);

    let status = json!({
        "status": {
            "observedGeneration": budget.metadata.generation, "disruptionsAllowed": 1,
            "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2,
        },
    });
    budgets.patch_status("b", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    let evict = EvictParams { delete_options: Some(DeleteParams::default().grace_period(0)), ..EvictParams::default() };
    api.evict("p", &evict).await.unwrap();
    assert_eq!(api.get_opt("p").await.unwrap(), None);
    let left = budgets.get("b").await.unwrap().status.unwrap();
    assert_eq!(left.disruptions_allowed, 0);
    assert!(left.disrupted_pods.unwrap().contains_key("p"));
}

#[tokio::test]
async fn a_pod_on_a_node_is_given_its_grace_period() {
    let world = World::new().await;
    let api = pod(&world, "p").await;
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "p" },
        "target": { "apiVersion": "v1", "kind": "Node", "name": "n" },
    });
    let _: serde_json::Value = api.create_subresource("binding", "p", &PostParams::default(), &binding).await.unwrap();
    let marked = api.delete("p", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(marked.metadata.deletion_grace_period_seconds, Some(30));
    assert_eq!(api.get("p").await.unwrap().uid(), marked.uid());
    // The node reports that it has ended.
    api.delete("p", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert_eq!(api.get_opt("p").await.unwrap(), None);
}
