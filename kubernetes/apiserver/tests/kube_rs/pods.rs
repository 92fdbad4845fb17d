//! Pods without a node: status, eviction under a budget, deletion with a grace period.

use k8s_openapi::api::{
    core::v1::{Pod, ServiceAccount},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, EvictParams, LogParams, Patch, PatchParams, PostParams},
    runtime::wait::{await_condition, conditions::is_pod_running},
};
use kubewake_apiserver::server::Options;
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
    // A container that no node runs has no output.
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
    // A client without retries, which kube-rs would continue for minutes.
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
    // The node reports that the pod has ended.
    api.delete("p", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert_eq!(api.get_opt("p").await.unwrap(), None);
}

#[tokio::test]
async fn the_old_path_binds_the_pod_that_the_binding_names() {
    let world = World::new().await;
    let api = pod(&world, "p").await;
    let bind = async |name: &str| {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name },
            "target": { "apiVersion": "v1", "kind": "Node", "name": "n" },
        });
        let request = http::Request::post("/api/v1/namespaces/default/bindings")
            .header("content-type", "application/json")
            .body(binding.to_string().into_bytes())
            .unwrap();
        world.client.request::<serde_json::Value>(request).await
    };
    assert_eq!(bind("p").await.unwrap()["status"], "Success");
    assert_eq!(api.get("p").await.unwrap().spec.unwrap().node_name.as_deref(), Some("n"));
    // The same as on the other path.
    assert_eq!(refused(bind("p").await).code, 409);
    assert_eq!(refused(bind("q").await).message, "pods \"q\" not found");
}

#[tokio::test]
async fn a_pod_has_an_account_that_is_there() {
    let world = World::with(Options { service_accounts: true, ..Options::default() }).await;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(world.client.clone());
    let robot = serde_json::from_value(json!({ "metadata": { "name": "robot" } })).unwrap();
    accounts.create(&PostParams::default(), &robot).await.unwrap();
    let api: Api<Pod> = Api::default_namespaced(world.client.clone());
    let create = async |metadata: serde_json::Value, account: &str| {
        let spec = json!({ "serviceAccountName": account, "containers": [{ "name": "c", "image": "i" }] });
        let pod = serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap();
        api.create(&PostParams::default(), &pod).await
    };
    let why = "error looking up service account default/nobody: serviceaccount \"nobody\" not found";
    for (metadata, name) in [(json!({ "name": "web" }), "web"), (json!({ "generateName": "web-" }), "web-")] {
        let status = refused(create(metadata, "nobody").await);
        assert_eq!((status.code, status.message), (403, format!("pods {name:?} is forbidden: {why}")));
    }
    let made = create(json!({ "name": "web" }), "robot").await.unwrap().spec.unwrap();
    let volume = &made.volumes.unwrap()[0];
    assert!(volume.name.starts_with("kube-api-access-") && volume.projected.is_some());
    assert_eq!(made.containers[0].volume_mounts.as_ref().unwrap()[0].name, volume.name);
}
