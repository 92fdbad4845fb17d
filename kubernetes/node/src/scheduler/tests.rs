use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PodCondition};
use serde_json::Value;

use super::*;
use crate::{controller::nodes, testing::TestCluster};

/// A cluster with a scheduler.
struct Scene(TestCluster);

impl Scene {
    async fn new() -> Self {
        let mut world = TestCluster::new().await.with_scheduler();
        nodes::start(&world.client, &world.informers, nodes::pod_gc::ORPHAN_QUARANTINE, &mut world.tasks);
        Self(world)
    }

    async fn node(&self, name: &str, cpu: &str) {
        let capacity = json!({ "cpu": cpu, "memory": "1Gi", "pods": "10" });
        let node = json!({ "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } }, "status": {
            "allocatable": capacity,
            "capacity": capacity,
            "conditions": [{ "type": "Ready", "status": "True" }],
        } });
        let node: Node = serde_json::from_value(node).unwrap();
        Api::all(self.0.client.clone()).create(&PostParams::default(), &node).await.unwrap();
    }

    async fn pod(&self, name: &str, cpu: &str, mut spec: Value) {
        spec["containers"] = json!([{ "name": "c", "image": "i", "resources": { "requests": { "cpu": cpu } } }]);
        self.0.make::<Pod>(json!({ "metadata": { "name": name }, "spec": spec })).await;
    }

    async fn runs_on(&self, name: &str) -> String {
        let pod = self.0.until(name, |pod: &Pod| bound_node(pod).is_some()).await;
        bound_node(&pod).unwrap().to_owned()
    }

    async fn waits(&self, name: &str, why: &str) {
        self.0
            .until(name, |pod: &Pod| {
                let condition = pods::condition(pod, "PodScheduled").filter(|condition| condition.status == "False");
                condition.is_some_and(|condition| {
                    condition.reason.as_deref() == Some("Unschedulable") && condition.message.as_deref() == Some(why)
                })
            })
            .await;
    }
}

#[tokio::test]
async fn a_pod_gets_a_node_and_its_event() {
    let scene = Scene::new().await;
    scene.node("one", "1").await;
    scene.pod("web", "500m", json!({})).await;
    assert_eq!(scene.runs_on("web").await, "one");
    scene.0.event("Scheduled", "Successfully assigned default/web to one").await;
}

#[tokio::test]
async fn a_pod_waits_for_room_and_gets_it() {
    let scene = Scene::new().await;
    scene.pod("first", "600m", json!({})).await;
    scene.waits("first", "no nodes available to schedule pods").await;
    scene.node("one", "1").await;
    scene.runs_on("first").await;
    scene.pod("second", "600m", json!({})).await;
    scene.waits("second", "0/1 nodes are available: 1 Insufficient cpu.").await;
    let event = scene.0.event("FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu.").await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    scene.0.delete::<Pod>("first").await;
    scene.runs_on("second").await;
}

#[tokio::test]
async fn many_pods_at_once_never_get_more_than_there_is() {
    let scene = Scene::new().await;
    scene.node("one", "1").await;
    scene.node("two", "1").await;
    for index in 0..10 {
        scene.pod(&format!("p{index}"), "250m", json!({})).await;
    }
    let full =
        |condition: &PodCondition| condition.message.as_deref() == Some("0/2 nodes are available: 2 Insufficient cpu.");
    let settled = |pod: &Pod| bound_node(pod).is_some() || pods::condition(pod, "PodScheduled").is_some_and(full);
    let mut on = std::collections::BTreeMap::new();
    for index in 0..10 {
        let pod = scene.0.until(&format!("p{index}"), settled).await;
        *on.entry(bound_node(&pod).map(str::to_owned)).or_insert(0) += 1;
    }
    let counts: Vec<_> = on.iter().map(|(node, count)| (node.as_deref(), *count)).collect();
    assert_eq!(counts, [(None, 2), (Some("one"), 4), (Some("two"), 4)]);
}

#[tokio::test]
async fn pods_of_other_schedulers_and_with_gates_are_left_alone() {
    let scene = Scene::new().await;
    scene.node("one", "1").await;
    scene.pod("other", "1m", json!({ "schedulerName": "mine" })).await;
    scene.pod("gated", "1m", json!({ "schedulingGates": [{ "name": "example.com/later" }] })).await;
    scene.pod("last", "1m", json!({})).await;
    scene.runs_on("last").await;
    for name in ["other", "gated"] {
        assert_eq!(bound_node(&scene.0.api().get(name).await.unwrap()), None);
    }
    scene.0.patch::<Pod>("gated", json!({ "spec": { "schedulingGates": null } })).await;
    scene.runs_on("gated").await;
}

#[tokio::test]
async fn a_pod_waits_for_its_claim() {
    let scene = Scene::new().await;
    scene.node("one", "1").await;
    let volume = json!({ "name": "data", "persistentVolumeClaim": { "claimName": "data" } });
    scene.pod("web", "1m", json!({ "volumes": [volume] })).await;
    scene.waits("web", "0/1 nodes are available: persistentvolumeclaim \"data\" not found.").await;
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
    scene.0.make::<PersistentVolumeClaim>(json!({ "metadata": { "name": "data" }, "spec": spec })).await;
    scene.waits("web", "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.").await;
    let claims: Api<PersistentVolumeClaim> = scene.0.api();
    let bound = Patch::Merge(json!({ "status": { "phase": "Bound" } }));
    claims.patch_status("data", &PatchParams::default(), &bound).await.unwrap();
    scene.runs_on("web").await;
}

#[tokio::test]
async fn a_pod_waits_for_its_friend() {
    let scene = Scene::new().await;
    scene.node("one", "1").await;
    let term = json!({ "labelSelector": { "matchLabels": { "app": "db" } }, "topologyKey": "kubernetes.io/hostname" });
    let affinity = json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
    scene.pod("web", "1m", json!({ "affinity": affinity })).await;
    scene.waits("web", "0/1 nodes are available: 1 node(s) didn't match pod affinity rules.").await;
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }] });
    scene.0.make::<Pod>(json!({ "metadata": { "name": "db", "labels": { "app": "db" } }, "spec": spec })).await;
    scene.runs_on("web").await;
}

#[tokio::test]
async fn a_cordoned_node_gets_no_pods_until_it_is_free_again() {
    let scene = Scene::new().await;
    scene.node("one", "1").await;
    scene.0.patch_node("one", json!({ "spec": { "unschedulable": true } })).await;
    scene.pod("web", "1m", json!({})).await;
    scene.waits("web", "0/1 nodes are available: 1 node(s) were unschedulable.").await;
    scene.0.patch_node("one", json!({ "spec": { "unschedulable": null } })).await;
    scene.runs_on("web").await;
}
