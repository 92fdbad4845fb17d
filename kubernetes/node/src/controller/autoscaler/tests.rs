use std::time::Duration;

use k8s_openapi::api::{apps::v1::Deployment, autoscaling::v2::HorizontalPodAutoscalerCondition};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::*;
use crate::{
    testing::TestCluster,
    usage::{ContainerUsage, PodUsage},
};

/// The cpu usage of every pod, in thousandths of a core.
#[derive(Default)]
struct Load(Mutex<Option<u64>>);

impl Load {
    fn set(&self, milli: u64) {
        *self.0.lock() = Some(milli);
    }
}

impl UsageProvider for Load {
    fn pod_usage(&self, _pod: &NamespacedKey) -> Option<PodUsage> {
        let milli = (*self.0.lock())?;
        let usage =
            ContainerUsage { cpu_nanocores: milli * 1_000_000, memory_bytes: 3 << 20, window: Duration::from_secs(1) };
        Some(PodUsage { containers: vec![("c".to_owned(), usage)] })
    }
}

/// A cluster with short autoscaler periods, in which no controller creates pods.
struct Scene {
    world: TestCluster,
    load: Arc<Load>,
}

impl Scene {
    async fn new() -> Self {
        Self::with(Duration::from_millis(10)).await
    }

    async fn with(period: Duration) -> Self {
        let mut world = TestCluster::new().await;
        let load = Arc::new(Load::default());
        let settings = AutoscalerSettings {
            period,
            downscale_stabilization: Duration::from_millis(50),
            ..AutoscalerSettings::default()
        };
        start(&world.client, &world.informers, Arc::clone(&load) as Arc<dyn UsageProvider>, settings, &mut world.tasks);
        Self { world, load }
    }

    async fn deployment(&self, replicas: i32) {
        let container = json!({ "name": "c", "image": "i", "resources": { "requests": { "cpu": "100m" } } });
        let template = json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [container] } });
        let selector = json!({ "matchLabels": { "app": "web" } });
        let spec = json!({ "replicas": replicas, "selector": selector, "template": template });
        self.world.make::<Deployment>(json!({ "metadata": { "name": "web" }, "spec": spec })).await;
    }

    async fn running(&self, name: &str) {
        let container = json!({ "name": "c", "image": "i", "resources": { "requests": { "cpu": "100m" } } });
        let metadata = json!({ "name": name, "labels": { "app": "web" } });
        self.world.make::<Pod>(json!({ "metadata": metadata, "spec": { "containers": [container] } })).await;
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z" });
        let status = json!({ "phase": "Running", "startTime": "2020-01-01T00:00:00Z", "conditions": [ready] });
        let patch = Patch::Merge(json!({ "status": status }));
        self.world.api::<Pod>().patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn autoscaler(&self, name: &str, mut spec: Value) {
        spec["scaleTargetRef"] = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" });
        self.world.make::<HorizontalPodAutoscaler>(json!({ "metadata": { "name": name }, "spec": spec })).await;
    }

    /// Waits for a condition with this reason.
    async fn says(&self, name: &str, kind: &str, status: &str, reason: &str) -> String {
        let find = |autoscaler: &HorizontalPodAutoscaler| {
            let conditions = autoscaler.status.as_ref()?.conditions.clone()?;
            let fits = |one: &&_| is(one, kind, status, reason);
            conditions.iter().find(fits).and_then(|condition| condition.message.clone())
        };
        let said = |autoscaler: &HorizontalPodAutoscaler| find(autoscaler).is_some();
        find(&self.world.until(name, said).await).unwrap()
    }

    async fn replicas(&self, wanted: i32) {
        let has = |deployment: &Deployment| deployment.spec.as_ref().unwrap().replicas == Some(wanted);
        self.world.until("web", has).await;
    }
}

fn is(one: &HorizontalPodAutoscalerCondition, kind: &str, status: &str, reason: &str) -> bool {
    one.type_ == kind && one.status == status && one.reason.as_deref() == Some(reason)
}

#[tokio::test]
async fn load_makes_replicas_come_and_go() {
    let scene = Scene::new().await;
    scene.deployment(1).await;
    scene.running("one").await;
    scene.load.set(150);
    scene.autoscaler("web", json!({ "maxReplicas": 3 })).await;
    scene.replicas(2).await;
    let note = "New size: 2; reason: cpu resource utilization (percentage of request) above target";
    scene.world.event("SuccessfulRescale", note).await;
    scene.says("web", "ScalingActive", "True", "ValidMetricFound").await;
    let two = |autoscaler: &HorizontalPodAutoscaler| autoscaler.status.as_ref().unwrap().current_replicas == Some(2);
    let seen = scene.world.until("web", two).await;
    let status = serde_json::to_value(seen.status.unwrap()).unwrap();
    let current = json!({ "averageUtilization": 150, "averageValue": "150m" });
    assert_eq!(
        status["currentMetrics"],
        json!([{ "type": "Resource", "resource": { "name": "cpu", "current": current } }])
    );
    assert!(status["lastScaleTime"].is_string());
    scene.running("two").await;
    scene.load.set(10);
    scene.replicas(1).await;
}

#[tokio::test]
async fn what_is_not_measured_yet_is_no_reason_to_warn() {
    let scene = Scene::with(Duration::from_secs(600)).await;
    scene.deployment(1).await;
    scene.running("one").await;
    scene.autoscaler("web", json!({ "maxReplicas": 3 })).await;
    scene.says("web", "AbleToScale", "True", "SucceededGetScale").await;
    scene.load.set(100);
    // Long before the next sync is due.
    scene.says("web", "ScalingActive", "True", "ValidMetricFound").await;
    let events = scene.world.api::<k8s_openapi::api::core::v1::Event>().list(&ListParams::default()).await.unwrap();
    let warnings = events.items.iter().filter(|event| event.type_.as_deref() == Some("Warning"));
    assert_eq!(warnings.count(), 0);
}

#[tokio::test]
async fn bounds_hold_without_metrics() {
    let scene = Scene::new().await;
    scene.deployment(9).await;
    scene.autoscaler("web", json!({ "minReplicas": 2, "maxReplicas": 3 })).await;
    scene.replicas(3).await;
    let note = "New size: 3; reason: Current number of replicas above Spec.MaxReplicas";
    scene.world.event("SuccessfulRescale", note).await;
    let message = scene.says("web", "ScalingActive", "False", "FailedGetResourceMetric").await;
    let why = "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for \
               resource cpu: no metrics returned from resource metrics API";
    assert_eq!(message, why);
    let note = "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: failed to get \
                cpu utilization: unable to get metrics for resource cpu: no metrics returned from resource metrics API";
    scene.world.event("FailedComputeMetricsReplicas", note).await;
}

#[tokio::test]
async fn a_target_that_is_not_there_is_said_and_found_when_it_comes() {
    let scene = Scene::new().await;
    scene.autoscaler("web", json!({ "maxReplicas": 3 })).await;
    let message = scene.says("web", "AbleToScale", "False", "FailedGetScale").await;
    let why = "the HPA controller was unable to get the target's current scale: deployments.apps \"web\" not found";
    assert_eq!(message, why);
    scene.deployment(0).await;
    scene.says("web", "AbleToScale", "True", "SucceededGetScale").await;
    scene.says("web", "ScalingActive", "False", "ScalingDisabled").await;
}

#[tokio::test]
async fn two_autoscalers_of_the_same_pods_do_nothing() {
    let scene = Scene::new().await;
    scene.deployment(1).await;
    scene.running("one").await;
    scene.autoscaler("first", json!({ "maxReplicas": 3 })).await;
    scene.autoscaler("second", json!({ "maxReplicas": 3 })).await;
    scene.says("first", "ScalingActive", "False", "AmbiguousSelector").await;
    scene.says("second", "ScalingActive", "False", "AmbiguousSelector").await;
}

#[tokio::test]
async fn other_metrics_are_refused_in_words() {
    let scene = Scene::new().await;
    scene.deployment(1).await;
    let target = json!({ "type": "AverageValue", "averageValue": "1" });
    let metric = json!({ "type": "Pods", "pods": { "metric": { "name": "requests" }, "target": target } });
    scene.autoscaler("web", json!({ "maxReplicas": 3, "metrics": [metric] })).await;
    let message = scene.says("web", "ScalingActive", "False", "FailedGetPodsMetric").await;
    assert!(message.contains("unable to get metric requests"), "{message}");
    let unknown = json!({ "apiVersion": "example.com/v1", "kind": "Head", "name": "web" });
    let patch = json!({ "spec": { "scaleTargetRef": unknown } });
    scene.world.patch::<HorizontalPodAutoscaler>("web", patch).await;
    let message = scene.says("web", "AbleToScale", "False", "FailedGetScale").await;
    assert!(message.ends_with("no matches for kind \"Head\" in group \"example.com\""), "{message}");
}

#[tokio::test]
async fn memory_is_told_in_bytes() {
    let scene = Scene::new().await;
    scene.deployment(2).await;
    scene.running("one").await;
    scene.load.set(1);
    let target = json!({ "type": "AverageValue", "averageValue": "3Mi" });
    let metric = json!({ "type": "Resource", "resource": { "name": "memory", "target": target } });
    scene.autoscaler("web", json!({ "maxReplicas": 3, "metrics": [metric] })).await;
    let message = scene.says("web", "ScalingActive", "True", "ValidMetricFound").await;
    assert_eq!(message, "the HPA was able to successfully calculate a replica count from memory resource");
    let told = |autoscaler: &HorizontalPodAutoscaler| autoscaler.status.as_ref().unwrap().current_metrics.is_some();
    let seen = scene.world.until("web", told).await;
    let status = serde_json::to_value(seen.status.unwrap()).unwrap();
    assert_eq!(status["currentMetrics"][0]["resource"]["current"], json!({ "averageValue": "3Mi" }));
    scene.says("web", "ScalingLimited", "False", "DesiredWithinRange").await;
}
