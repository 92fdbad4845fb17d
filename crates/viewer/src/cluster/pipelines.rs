//! Pipelines with their figures, sampled while somebody looks.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use kube::{
    Api, Client, ResourceExt as _,
    api::ListParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde::Serialize;
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::{
    Cluster, Error,
    ask::{Collector, PipelineReport, Report, ask},
    series::{Course, Series, Totals},
};
use crate::receive::now;

/// How often collectors are asked.
const PERIOD: Duration = Duration::from_secs(2);
/// For how long they are asked after somebody looked.
const INTEREST: Duration = Duration::from_secs(300);
/// How long a list may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// How many collectors are asked at once.
const AT_ONCE: usize = 8;
/// Each kind of pipeline, with what its ids begin with in a collector.
const KINDS: [(&str, &str); 3] = [("TracePipeline", "traces"), ("LogPipeline", "logs"), ("MetricPipeline", "metrics")];
/// What pods of collectors are selected by.
const COLLECTORS: &str = "app.kubernetes.io/component=collector";

/// What is known of pipelines.
#[derive(Default)]
pub(crate) struct Pipelines(Mutex<State>);

#[derive(Default)]
struct State {
    /// When somebody looked last.
    looked: Option<Instant>,
    /// Whether they are being asked.
    running: bool,
    /// By the pipeline's uid.
    courses: BTreeMap<String, Course>,
    views: Vec<PipelineView>,
    failure: Option<String>,
}

/// A pipeline as it is shown.
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
    series: Series,
    totals: Totals,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct CollectorView {
    pod: String,
    ready: bool,
}

impl Cluster {
    /// All pipelines as they are, or why that is not known. From now on their figures are followed for a while.
    pub(crate) async fn pipelines(&self) -> Result<Vec<PipelineView>, String> {
        let begins = {
            let mut state = self.shared.pipelines.lock();
            state.looked = Some(Instant::now());
            !std::mem::replace(&mut state.running, true)
        };
        if begins {
            // The first answer is not empty.
            self.sample().await;
            tokio::spawn(self.clone().follow());
        }
        let state = self.shared.pipelines.lock();
        state.failure.clone().map_or_else(|| Ok(state.views.clone()), Err)
    }

    async fn follow(self) {
        let mut rounds = interval(PERIOD);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        rounds.tick().await;
        loop {
            rounds.tick().await;
            if !self.shared.pipelines.goes_on() {
                return;
            }
            self.sample().await;
        }
    }

    async fn sample(&self) {
        match self.look_at_pipelines().await {
            Ok(seen) => self.shared.pipelines.note(seen),
            Err(error) => {
                self.forget_client();
                self.shared.pipelines.lock().failure = Some(error.to_string());
            }
        }
    }

    async fn look_at_pipelines(&self) -> Result<Seen, Error> {
        let client = self.client().await?;
        let pipelines = timeout(PATIENCE, pipelines(&client)).await.map_err(|_| Error::Late)??;
        let collectors = timeout(PATIENCE, collectors(&client, &self.namespace)).await.map_err(|_| Error::Late)??;
        let asked = collectors.into_iter().map(|collector| {
            let client = &client;
            async move { (ask(client, &collector).await, collector) }
        });
        let reports = stream::iter(asked.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).collect().await;
        Ok(Seen { at: now() / 1_000_000, pipelines, reports })
    }
}

/// What was seen at one moment.
struct Seen {
    at: u64,
    pipelines: Vec<(&'static str, &'static str, DynamicObject)>,
    reports: Vec<(Option<Report>, Collector)>,
}

async fn pipelines(client: &Client) -> Result<Vec<(&'static str, &'static str, DynamicObject)>, Error> {
    let (mut all, mut served) = (Vec::new(), false);
    for (kind, signal) in KINDS {
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
    if served { Ok(all) } else { Err(Error::NoKinds) }
}

/// The pods of collectors that the operator made. Whoever may create a pod elsewhere can give it the same labels, and with them figures
/// and error texts for this page.
async fn collectors(client: &Client, namespace: &str) -> Result<Vec<Collector>, Error> {
    let pod = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &pod);
    let pods = api.list(&ListParams::default().labels(COLLECTORS)).await?;
    let is_asked = |pod: &&DynamicObject| pod.metadata.deletion_timestamp.is_none() && is_of_the_operator(pod);
    Ok(pods.items.iter().filter(is_asked).map(collector).collect())
}

/// Whether a workload controls it that has a name as the operator gives them.
fn is_of_the_operator(pod: &DynamicObject) -> bool {
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

fn collector(pod: &DynamicObject) -> Collector {
    let status = |pointer: &str| pod.data.pointer(pointer);
    let conditions = status("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    Collector {
        namespace: pod.namespace().unwrap_or_default(),
        name: pod.name_any(),
        address: status("/status/podIP").and_then(Value::as_str).and_then(|address| address.parse().ok()),
        ready: ready.next().is_some(),
    }
}

impl Pipelines {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody looked lately. If not, everything ends here.
    fn goes_on(&self) -> bool {
        let mut state = self.lock();
        let goes_on = state.looked.is_some_and(|looked| looked.elapsed() < INTEREST);
        if !goes_on {
            *state = State::default();
        }
        goes_on
    }

    fn note(&self, seen: Seen) {
        let mut state = self.lock();
        let courses = std::mem::take(&mut state.courses);
        let (mut kept, mut views) = (BTreeMap::new(), Vec::new());
        for (kind, signal, object) in &seen.pipelines {
            let id = format!("{signal}/{}", object.name_any());
            let carrying = seen
                .reports
                .iter()
                .filter_map(|(report, collector)| Some((collector, report.as_ref()?.pipelines.get(&id)?)));
            let uid = object.uid().unwrap_or_default();
            // One that had its name before is not this one.
            let carrying = carrying.filter(|(_, report)| report.uid.as_ref().is_none_or(|of| *of == uid));
            let carrying: Vec<_> = carrying.collect();
            let mut course = courses.get(&uid).cloned().unwrap_or_default();
            let reports: BTreeMap<String, &PipelineReport> =
                carrying.iter().map(|(pod, report)| (pod.name.clone(), *report)).collect();
            course.add(seen.at, &reports);
            let lost = lost_elsewhere(&seen, &uid).saturating_add(lost_at_shutdown(object));
            course.totals.dropped = course.totals.dropped.saturating_add(lost);
            views.push(view(kind, object, &course, carrying.iter().map(|(collector, _)| *collector)));
            kept.insert(uid, course);
        }
        (state.courses, state.views, state.failure) = (kept, views, None);
    }
}

/// What collectors lost of a pipeline on the way to others, or before their document changed.
fn lost_elsewhere(seen: &Seen, uid: &str) -> u64 {
    let is_of = |of: Option<&str>, carries: &[String]| of == Some(uid) || carries.iter().any(|of| of == uid);
    let reports = || seen.reports.iter().filter_map(|(report, _)| report.as_ref());
    let carriers = reports().flat_map(|report| report.pipelines.values()).filter(|it| is_of(None, &it.carries));
    let ended = reports().flat_map(|report| &report.ended).filter(|it| is_of(it.uid.as_deref(), &it.carries));
    let dropped = carriers.map(|it| &it.dropped).chain(ended.map(|it| &it.dropped));
    dropped.flat_map(BTreeMap::values).fold(0, |sum, count| sum.saturating_add(*count))
}

/// What collectors lost that have ended, and cannot be asked any more. The operator has noted it.
fn lost_at_shutdown(object: &DynamicObject) -> u64 {
    object.data.pointer("/status/droppedAtShutdown/items").and_then(Value::as_u64).unwrap_or(0)
}

fn view<'a>(
    kind: &str,
    object: &DynamicObject,
    course: &Course,
    on: impl Iterator<Item = &'a Collector>,
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
