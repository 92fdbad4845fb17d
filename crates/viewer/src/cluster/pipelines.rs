//! Pipelines with their counters, sampled while a page is open.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use futures_util::{StreamExt as _, stream};
use kube::{
    Api, Client, ResourceExt as _,
    api::ListParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use kubewake_runtime::lock::Mutex;
use kubewake_status::{CollectorStatus, PipelineReport};
use kubewake_status_client::CollectorPod;
use serde::Serialize;
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::{
    ClusterReadError, ClusterReader,
    pipeline_series::{DeliveryTotals, PipelineHistory, PipelineSeries},
};
use crate::receive::unix_nanos_now;

/// How often collectors are sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(2);
/// How long sampling continues after the last request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// How long the list of a kind may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(3);
/// How many collectors are sampled concurrently.
const MAX_CONCURRENT_REQUESTS: usize = 8;
/// Each kind of pipeline, with the prefix of its ids in a collector.
const PIPELINE_KINDS: [(&str, &str); 3] =
    [("TracePipeline", "traces"), ("LogPipeline", "logs"), ("MetricPipeline", "metrics")];
/// Label selector of collector pods.
const COLLECTOR_SELECTOR: &str = "app.kubernetes.io/component=collector";

/// State of all pipelines, shared by the requests.
#[derive(Default)]
pub(crate) struct PipelineMonitor(Mutex<PipelineMonitorState>);

#[derive(Default)]
struct PipelineMonitorState {
    last_viewed: Option<Instant>,
    /// Whether a sampling task is running.
    running: bool,
    histories: BTreeMap<String, PipelineHistory>,
    views: Vec<PipelineView>,
    failure: Option<String>,
}

/// A pipeline as the API returns it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PipelineView {
    kind: String,
    name: String,
    state: String,
    reason: String,
    message: String,
    backend: String,
    conditions: Value,
    collectors: Vec<CollectorView>,
    series: PipelineSeries,
    totals: DeliveryTotals,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct CollectorView {
    pod: String,
    ready: bool,
}

impl ClusterReader {
    /// All pipelines, or why they cannot be listed. Starts sampling of their collectors.
    pub(crate) async fn pipelines(&self) -> Result<Vec<PipelineView>, String> {
        let begins = {
            let mut state = self.state.pipelines.lock();
            state.last_viewed = Some(Instant::now());
            !std::mem::replace(&mut state.running, true)
        };
        if begins {
            // Sampled once here, so that the first response is not empty.
            self.sample().await;
            tokio::spawn(self.clone().run_monitor());
        }
        let state = self.state.pipelines.lock();
        state.failure.clone().map_or_else(|| Ok(state.views.clone()), Err)
    }

    async fn run_monitor(self) {
        let mut rounds = interval(SAMPLE_INTERVAL);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        rounds.tick().await;
        loop {
            rounds.tick().await;
            if !self.state.pipelines.has_recent_viewer() {
                return;
            }
            self.sample().await;
        }
    }

    async fn sample(&self) {
        match self.read_pipelines().await {
            Ok(seen) => self.state.pipelines.record_sample(seen),
            Err(error) => {
                self.forget_client();
                self.state.pipelines.lock().failure = Some(error.to_string());
            }
        }
    }

    async fn read_pipelines(&self) -> Result<PipelineSample, ClusterReadError> {
        let client = self.client().await?;
        let pipelines =
            timeout(LIST_TIMEOUT, list_pipelines(&client)).await.map_err(|_| ClusterReadError::Timeout)??;
        let collectors = timeout(LIST_TIMEOUT, list_collectors(&client, &self.namespace))
            .await
            .map_err(|_| ClusterReadError::Timeout)??;
        let asked = collectors.into_iter().map(|collector| {
            let client = &client;
            async move { (kubewake_status_client::fetch_status_of(client, collector.pod()).await.ok(), collector) }
        });
        let reports = stream::iter(asked.collect::<Vec<_>>()).buffer_unordered(MAX_CONCURRENT_REQUESTS).collect().await;
        Ok(PipelineSample { at: unix_nanos_now() / 1_000_000, pipelines, reports })
    }
}

#[derive(Clone, Debug)]
struct CollectorPodAddress {
    namespace: String,
    name: String,
    address: Option<IpAddr>,
    ready: bool,
}

impl CollectorPodAddress {
    fn pod(&self) -> CollectorPod<'_> {
        CollectorPod { namespace: &self.namespace, name: &self.name, address: self.address }
    }
}

/// Pipelines and reports at one moment.
struct PipelineSample {
    at: u64,
    pipelines: Vec<(&'static str, &'static str, DynamicObject)>,
    reports: Vec<(Option<CollectorStatus>, CollectorPodAddress)>,
}

async fn list_pipelines(client: &Client) -> Result<Vec<(&'static str, &'static str, DynamicObject)>, ClusterReadError> {
    let mut all = Vec::new();
    let mut served = false;
    for (kind, signal) in PIPELINE_KINDS {
        let kind_of = GroupVersionKind::gvk("telemetry.kubewake.io", "v1alpha1", kind);
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind_of));
        match api.list(&ListParams::default()).await {
            Ok(list) => {
                served = true;
                all.extend(list.items.into_iter().map(|object| (kind, signal, object)));
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error.into()),
        }
    }
    if served { Ok(all) } else { Err(ClusterReadError::NotInstalled) }
}

/// Lists the collector pods that the operator manages. Anybody who may create pods in another namespace can use
/// the same labels, and would otherwise put numbers and error texts on this page.
async fn list_collectors(client: &Client, namespace: &str) -> Result<Vec<CollectorPodAddress>, ClusterReadError> {
    let pod = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &pod);
    let pods = api.list(&ListParams::default().labels(COLLECTOR_SELECTOR)).await?;
    let is_asked = |pod: &&DynamicObject| pod.metadata.deletion_timestamp.is_none() && is_operator_managed(pod);
    Ok(pods.items.iter().filter(is_asked).map(collector_pod_address).collect())
}

/// Whether the pod's controller has a name that the operator gives to its workloads.
fn is_operator_managed(pod: &DynamicObject) -> bool {
    let controls = |kind: &str, name: &str| match kind {
        "ReplicaSet" => name.starts_with("kubewake-gateway-"),
        "StatefulSet" | "DaemonSet" => name.starts_with("kubewake-"),
        _ => false,
    };
    let mut owners = pod.owner_references().iter();
    owners.any(|owner| {
        owner.controller == Some(true) && owner.api_version == "apps/v1" && controls(&owner.kind, &owner.name)
    })
}

fn collector_pod_address(pod: &DynamicObject) -> CollectorPodAddress {
    let status = |pointer: &str| pod.data.pointer(pointer);
    let conditions = status("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    CollectorPodAddress {
        namespace: pod.namespace().unwrap_or_default(),
        name: pod.name_any(),
        address: status("/status/podIP").and_then(Value::as_str).and_then(|address| address.parse().ok()),
        ready: ready.next().is_some(),
    }
}

impl PipelineMonitor {
    fn lock(&self) -> std::sync::MutexGuard<'_, PipelineMonitorState> {
        self.0.lock()
    }

    /// Whether there was a request lately. Otherwise sampling ends.
    fn has_recent_viewer(&self) -> bool {
        let mut state = self.lock();
        let goes_on = state.last_viewed.is_some_and(|looked| looked.elapsed() < IDLE_TIMEOUT);
        if !goes_on {
            *state = PipelineMonitorState::default();
        }
        goes_on
    }

    fn record_sample(&self, seen: PipelineSample) {
        let mut state = self.lock();
        let courses = std::mem::take(&mut state.histories);
        let mut kept = BTreeMap::new();
        let mut views = Vec::new();
        for (kind, signal, object) in &seen.pipelines {
            let id = format!("{signal}/{}", object.name_any());
            let carrying = seen
                .reports
                .iter()
                .filter_map(|(report, collector)| Some((collector, report.as_ref()?.pipelines.get(&id)?)));
            let uid = object.uid().unwrap_or_default();
            // Skip reports of an earlier pipeline of the same name.
            let carrying = carrying.filter(|(_, report)| report.matches_uid(Some(&uid)));
            let carrying: Vec<_> = carrying.collect();
            let mut course = courses.get(&uid).cloned().unwrap_or_default();
            let reports: BTreeMap<String, &PipelineReport> =
                carrying.iter().map(|(pod, report)| (pod.name.clone(), *report)).collect();
            course.add(seen.at, &reports);
            let lost = dropped_elsewhere(&seen, &uid).saturating_add(dropped_at_shutdown(object));
            course.totals.dropped = course.totals.dropped.saturating_add(lost);
            views.push(pipeline_view(kind, object, &course, carrying.iter().map(|(collector, _)| *collector)));
            kept.insert(uid, course);
        }
        (state.histories, state.views, state.failure) = (kept, views, None);
    }
}

/// Data that collectors lost while they carried it to others, or before their configuration changed.
fn dropped_elsewhere(seen: &PipelineSample, uid: &str) -> u64 {
    let statuses = seen.reports.iter().filter_map(|(status, _)| status.as_ref());
    statuses.fold(0, |sum, status| sum.saturating_add(status.dropped_elsewhere(uid)))
}

/// Data that was lost by collectors that have ended. The operator records it in the status.
fn dropped_at_shutdown(object: &DynamicObject) -> u64 {
    object.data.pointer("/status/droppedAtShutdown/items").and_then(Value::as_u64).unwrap_or(0)
}

fn pipeline_view<'a>(
    kind: &str,
    object: &DynamicObject,
    course: &PipelineHistory,
    on: impl Iterator<Item = &'a CollectorPodAddress>,
) -> PipelineView {
    let status = |field: &str| object.data.pointer(&format!("/status/{field}"));
    let text = |field: &str| status(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let conditions = status("conditions").cloned().unwrap_or_else(|| Value::Array(Vec::new()));
    let reason = text("reason");
    let deciding = conditions.as_array().into_iter().flatten().find(|condition| condition["reason"] == reason);
    let message = deciding.and_then(|condition| condition["message"].as_str()).unwrap_or_default().to_owned();
    PipelineView {
        kind: kind.to_owned(),
        name: object.name_any(),
        state: text("state"),
        reason,
        message,
        backend: text("backend"),
        conditions,
        collectors: on.map(|collector| CollectorView { pod: collector.name.clone(), ready: collector.ready }).collect(),
        series: course.series.clone(),
        totals: course.totals,
        last_error: course.last_error.clone(),
    }
}
