use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, PodCondition};
use kube::{
    api::{DeleteParams, ListParams},
    runtime::wait::await_condition,
};
use kubewake_apiserver::server::{ApiServer, Options};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::*;
use crate::controller::nodes;

/// A cluster with a scheduler and nothing else.
struct World {
    _server: ApiServer,
    client: Client,
    _tasks: JoinSet<()>,
}

impl World {
    async fn new() -> Self {
        let server = ApiServer::start(Options::default()).await.unwrap();
        let (client, views, mut tasks) = (server.client().unwrap(), Views::default(), JoinSet::new());
        views.follow(&client, &mut tasks).await;
        start(&client, &views, &mut tasks);
        nodes::start(&client, &views, nodes::orphans::QUARANTINE, &mut tasks);
        Self { _server: server, client, _tasks: tasks }
    }

    async fn node(&self, name: &str, cpu: &str) {
        let capacity = json!({ "cpu": cpu, "memory": "1Gi", "pods": "10" });
        let node = json!({ "metadata": { "name": name }, "status": {
            "allocatable": capacity,
            "capacity": capacity,
            "conditions": [{ "type": "Ready", "status": "True" }],
        } });
        let node: Node = serde_json::from_value(node).unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &node).await.unwrap();
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn make<K>(&self, object: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + serde::Serialize
            + std::fmt::Debug,
    {
        let object: K = serde_json::from_value(object).unwrap();
        Api::namespaced(self.client.clone(), "default").create(&PostParams::default(), &object).await.unwrap()
    }

    async fn pod(&self, name: &str, cpu: &str, mut spec: Value) {
        spec["containers"] = json!([{ "name": "c", "image": "i", "resources": { "requests": { "cpu": cpu } } }]);
        self.make::<Pod>(json!({ "metadata": { "name": name }, "spec": spec })).await;
    }

    async fn until(&self, name: &str, holds: impl Fn(&Pod) -> bool) -> Pod {
        let condition = |pod: Option<&Pod>| pod.is_some_and(&holds);
        await_condition(self.pods(), name, condition).await.unwrap().unwrap()
    }

    async fn runs_on(&self, name: &str) -> String {
        let pod = self.until(name, |pod| node_of(pod).is_some()).await;
        assert_eq!(pods::condition(&pod, "PodScheduled").unwrap().status, "True");
        node_of(&pod).unwrap().to_owned()
    }

    /// Why it fits nowhere.
    async fn waits(&self, name: &str, why: &str) {
        self.until(name, |pod| {
            let condition = pods::condition(pod, "PodScheduled").filter(|condition| condition.status == "False");
            condition.is_some_and(|condition| {
                condition.reason.as_deref() == Some("Unschedulable") && condition.message.as_deref() == Some(why)
            })
        })
        .await;
    }

    /// Waits for an event about a pod.
    async fn event(&self, pod: &str, reason: &str) -> Event {
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        loop {
            let all = events.list(&ListParams::default()).await.unwrap();
            let about = |event: &Event| event.involved_object.name.as_deref() == Some(pod);
            let found = all.items.into_iter().find(|event| about(event) && event.reason.as_deref() == Some(reason));
            if let Some(event) = found {
                return event;
            }
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_pod_gets_a_node_and_its_event() {
    let world = World::new().await;
    world.node("one", "1").await;
    world.pod("web", "500m", json!({})).await;
    assert_eq!(world.runs_on("web").await, "one");
    let event = world.event("web", "Scheduled").await;
    assert_eq!(event.message.as_deref(), Some("Successfully assigned default/web to one"));
}

#[tokio::test]
async fn a_pod_waits_for_room_and_gets_it() {
    let world = World::new().await;
    world.pod("first", "600m", json!({})).await;
    world.waits("first", "no nodes available to schedule pods").await;
    world.node("one", "1").await;
    world.runs_on("first").await;
    world.pod("second", "600m", json!({})).await;
    world.waits("second", "0/1 nodes are available: 1 Insufficient cpu.").await;
    let event = world.event("second", "FailedScheduling").await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    let gone = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    world.pods().delete("first", &gone).await.unwrap();
    world.runs_on("second").await;
}

#[tokio::test]
async fn many_pods_at_once_never_get_more_than_there_is() {
    let world = World::new().await;
    world.node("one", "1").await;
    world.node("two", "1").await;
    for index in 0..10 {
        world.pod(&format!("p{index}"), "250m", json!({})).await;
    }
    let full =
        |condition: &PodCondition| condition.message.as_deref() == Some("0/2 nodes are available: 2 Insufficient cpu.");
    let settled = |pod: &Pod| node_of(pod).is_some() || pods::condition(pod, "PodScheduled").is_some_and(full);
    let mut on = std::collections::BTreeMap::new();
    for index in 0..10 {
        let pod = world.until(&format!("p{index}"), settled).await;
        *on.entry(node_of(&pod).map(str::to_owned)).or_insert(0) += 1;
    }
    let counts: Vec<_> = on.iter().map(|(node, count)| (node.as_deref(), *count)).collect();
    assert_eq!(counts, [(None, 2), (Some("one"), 4), (Some("two"), 4)]);
}

#[tokio::test]
async fn pods_of_other_schedulers_and_with_gates_are_left_alone() {
    let world = World::new().await;
    world.node("one", "1").await;
    world.pod("other", "1m", json!({ "schedulerName": "mine" })).await;
    world.pod("gated", "1m", json!({ "schedulingGates": [{ "name": "example.com/later" }] })).await;
    world.pod("last", "1m", json!({})).await;
    world.runs_on("last").await;
    for name in ["other", "gated"] {
        assert_eq!(node_of(&world.pods().get(name).await.unwrap()), None);
    }
    let open = json!({ "spec": { "schedulingGates": null } });
    world.pods().patch("gated", &PatchParams::default(), &Patch::Merge(open)).await.unwrap();
    world.runs_on("gated").await;
}

#[tokio::test]
async fn a_pod_waits_for_its_claim() {
    let world = World::new().await;
    world.node("one", "1").await;
    let volume = json!({ "name": "data", "persistentVolumeClaim": { "claimName": "data" } });
    world.pod("web", "1m", json!({ "volumes": [volume] })).await;
    world.waits("web", "0/1 nodes are available: persistentvolumeclaim \"data\" not found.").await;
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
    world.make::<PersistentVolumeClaim>(json!({ "metadata": { "name": "data" }, "spec": spec })).await;
    world.waits("web", "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.").await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(world.client.clone(), "default");
    let bound = Patch::Merge(json!({ "status": { "phase": "Bound" } }));
    claims.patch_status("data", &PatchParams::default(), &bound).await.unwrap();
    world.runs_on("web").await;
}
