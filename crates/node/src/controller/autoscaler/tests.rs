use k8s_openapi::api::{apps::v1::Deployment, core::v1::Event};
use kube::{
    api::{ListParams, PostParams},
    runtime::wait::await_condition,
};
use kubewake_apiserver::server::{ApiServer, Options};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::*;
use crate::usage::{ContainerUsage, PodUsage};

/// What every pod uses of the cpu, in thousandths of a core.
#[derive(Default)]
struct Load(Mutex<Option<u64>>);

impl Load {
    fn set(&self, milli: u64) {
        *self.0.lock().unwrap() = Some(milli);
    }
}

impl Usage for Load {
    fn of(&self, _pod: &Key) -> Option<PodUsage> {
        let milli = (*self.0.lock().unwrap())?;
        let usage =
            ContainerUsage { cpu_nanocores: milli * 1_000_000, memory_bytes: 3 << 20, window: Duration::from_secs(1) };
        Some(PodUsage { containers: vec![("c".to_owned(), usage)] })
    }
}

/// A cluster with autoscalers in a hurry, and nobody who makes pods.
struct World {
    _server: ApiServer,
    client: Client,
    load: Arc<Load>,
    _tasks: JoinSet<()>,
}

impl World {
    async fn new() -> Self {
        let server = ApiServer::start(Options::default()).await.unwrap();
        let (client, views, mut tasks) = (server.client().unwrap(), Views::default(), JoinSet::new());
        views.follow(&client, &mut tasks).await;
        let load = Arc::new(Load::default());
        let settings = Settings {
            period: Duration::from_millis(10),
            downscale_stabilization: Duration::from_millis(50),
            ..Settings::default()
        };
        start(&client, &views, Arc::clone(&load) as Arc<dyn Usage>, settings, &mut tasks);
        Self { _server: server, client, load, _tasks: tasks }
    }

    fn api<K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>>(&self) -> Api<K> {
        Api::default_namespaced(self.client.clone())
    }

    async fn make<K>(&self, object: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Serialize
            + std::fmt::Debug,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    async fn deployment(&self, replicas: i32) {
        let container = json!({ "name": "c", "image": "i", "resources": { "requests": { "cpu": "100m" } } });
        let template = json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [container] } });
        let selector = json!({ "matchLabels": { "app": "web" } });
        let spec = json!({ "replicas": replicas, "selector": selector, "template": template });
        self.make::<Deployment>(json!({ "metadata": { "name": "web" }, "spec": spec })).await;
    }

    async fn running(&self, name: &str) {
        let container = json!({ "name": "c", "image": "i", "resources": { "requests": { "cpu": "100m" } } });
        let metadata = json!({ "name": name, "labels": { "app": "web" } });
        self.make::<Pod>(json!({ "metadata": metadata, "spec": { "containers": [container] } })).await;
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z" });
        let status = json!({ "phase": "Running", "startTime": "2020-01-01T00:00:00Z", "conditions": [ready] });
        let patch = Patch::Merge(json!({ "status": status }));
        self.api::<Pod>().patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn autoscaler(&self, name: &str, mut spec: Value) {
        spec["scaleTargetRef"] = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" });
        self.make::<HorizontalPodAutoscaler>(json!({ "metadata": { "name": name }, "spec": spec })).await;
    }

    async fn until(&self, name: &str, holds: impl Fn(&HorizontalPodAutoscaler) -> bool) -> HorizontalPodAutoscaler {
        let condition = |autoscaler: Option<&HorizontalPodAutoscaler>| autoscaler.is_some_and(&holds);
        await_condition(self.api(), name, condition).await.unwrap().unwrap()
    }

    /// Waits for a condition with this reason.
    async fn says(&self, name: &str, kind: &str, status: &str, reason: &str) -> String {
        let find = |autoscaler: &HorizontalPodAutoscaler| {
            let conditions = autoscaler.status.as_ref()?.conditions.clone()?;
            let fits = |one: &&_| is(one, kind, status, reason);
            conditions.iter().find(fits).and_then(|condition| condition.message.clone())
        };
        find(&self.until(name, |autoscaler| find(autoscaler).is_some()).await).unwrap()
    }

    async fn replicas(&self, wanted: i32) {
        let has = |deployment: Option<&Deployment>| {
            deployment.and_then(|deployment| deployment.spec.as_ref()).and_then(|spec| spec.replicas) == Some(wanted)
        };
        await_condition(self.api::<Deployment>(), "web", has).await.unwrap();
    }

    async fn event(&self, reason: &str) -> String {
        loop {
            let all = self.api::<Event>().list(&ListParams::default()).await.unwrap();
            if let Some(event) = all.items.into_iter().find(|event| event.reason.as_deref() == Some(reason)) {
                return event.message.unwrap();
            }
            tokio::task::yield_now().await;
        }
    }
}

fn is(
    one: &k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscalerCondition,
    kind: &str,
    status: &str,
    reason: &str,
) -> bool {
    one.type_ == kind && one.status == status && one.reason.as_deref() == Some(reason)
}

#[tokio::test]
async fn load_makes_replicas_come_and_go() {
    let world = World::new().await;
    world.deployment(1).await;
    world.running("one").await;
    world.load.set(150);
    world.autoscaler("web", json!({ "maxReplicas": 3 })).await;
    world.replicas(2).await;
    let note = world.event("SuccessfulRescale").await;
    assert_eq!(note, "New size: 2; reason: cpu resource utilization (percentage of request) above target");
    world.says("web", "ScalingActive", "True", "ValidMetricFound").await;
    let seen = world.until("web", |autoscaler| autoscaler.status.as_ref().unwrap().current_replicas == Some(2)).await;
    let status = serde_json::to_value(seen.status.unwrap()).unwrap();
    let current = json!({ "averageUtilization": 150, "averageValue": "150m" });
    assert_eq!(
        status["currentMetrics"],
        json!([{ "type": "Resource", "resource": { "name": "cpu", "current": current } }])
    );
    assert!(status["lastScaleTime"].is_string());
    world.running("two").await;
    world.load.set(10);
    world.replicas(1).await;
}

#[tokio::test]
async fn bounds_hold_without_metrics() {
    let world = World::new().await;
    world.deployment(9).await;
    world.autoscaler("web", json!({ "minReplicas": 2, "maxReplicas": 3 })).await;
    world.replicas(3).await;
    let note = world.event("SuccessfulRescale").await;
    assert_eq!(note, "New size: 3; reason: Current number of replicas above Spec.MaxReplicas");
    let message = world.says("web", "ScalingActive", "False", "FailedGetResourceMetric").await;
    let why = "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for \
               resource cpu: no metrics returned from resource metrics API";
    assert_eq!(message, why);
    let note = world.event("FailedComputeMetricsReplicas").await;
    assert!(
        note.starts_with("invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource"),
        "{note}"
    );
}

#[tokio::test]
async fn a_target_that_is_not_there_is_said_and_found_when_it_comes() {
    let world = World::new().await;
    world.autoscaler("web", json!({ "maxReplicas": 3 })).await;
    let message = world.says("web", "AbleToScale", "False", "FailedGetScale").await;
    let why = "the HPA controller was unable to get the target's current scale: deployments.apps \"web\" not found";
    assert_eq!(message, why);
    world.deployment(0).await;
    world.says("web", "AbleToScale", "True", "SucceededGetScale").await;
    world.says("web", "ScalingActive", "False", "ScalingDisabled").await;
}

#[tokio::test]
async fn two_autoscalers_of_the_same_pods_do_nothing() {
    let world = World::new().await;
    world.deployment(1).await;
    world.running("one").await;
    world.autoscaler("first", json!({ "maxReplicas": 3 })).await;
    world.autoscaler("second", json!({ "maxReplicas": 3 })).await;
    world.says("first", "ScalingActive", "False", "AmbiguousSelector").await;
    world.says("second", "ScalingActive", "False", "AmbiguousSelector").await;
}

#[tokio::test]
async fn other_metrics_are_refused_in_words() {
    let world = World::new().await;
    world.deployment(1).await;
    let target = json!({ "type": "AverageValue", "averageValue": "1" });
    let metric = json!({ "type": "Pods", "pods": { "metric": { "name": "requests" }, "target": target } });
    world.autoscaler("web", json!({ "maxReplicas": 3, "metrics": [metric] })).await;
    let message = world.says("web", "ScalingActive", "False", "FailedGetPodsMetric").await;
    assert!(message.contains("unable to get metric requests"), "{message}");
    let unknown = json!({ "apiVersion": "example.com/v1", "kind": "Head", "name": "web" });
    let patch = Patch::Merge(json!({ "spec": { "scaleTargetRef": unknown } }));
    world.api::<HorizontalPodAutoscaler>().patch("web", &PatchParams::default(), &patch).await.unwrap();
    let message = world.says("web", "AbleToScale", "False", "FailedGetScale").await;
    assert!(message.ends_with("no matches for kind \"Head\" in group \"example.com\""), "{message}");
}

#[tokio::test]
async fn memory_is_told_in_bytes() {
    let world = World::new().await;
    world.deployment(2).await;
    world.running("one").await;
    world.load.set(1);
    let target = json!({ "type": "AverageValue", "averageValue": "3Mi" });
    let metric = json!({ "type": "Resource", "resource": { "name": "memory", "target": target } });
    world.autoscaler("web", json!({ "maxReplicas": 3, "metrics": [metric] })).await;
    let message = world.says("web", "ScalingActive", "True", "ValidMetricFound").await;
    assert_eq!(message, "the HPA was able to successfully calculate a replica count from memory resource");
    let seen = world.until("web", |autoscaler| autoscaler.status.as_ref().unwrap().current_metrics.is_some()).await;
    let status = serde_json::to_value(seen.status.unwrap()).unwrap();
    assert_eq!(status["currentMetrics"][0]["resource"]["current"], json!({ "averageValue": "3Mi" }));
    world.says("web", "ScalingLimited", "False", "DesiredWithinRange").await;
}
