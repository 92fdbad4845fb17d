//! The scheduler: assigns nodes to the pods that name it, by the plugins of its configuration.
//!
//! *Guaranteed*: the requests of the pods on a node never exceed its resources, as long as the plugin that
//! checks this is configured and no other scheduler assigns the same resources. An unschedulable pod gets a
//! reason, in its condition `PodScheduled` and in an Event, and is retried when a node, the free resources or
//! the configuration changes. An invalid configuration is rejected and changes nothing. Every attempt with a
//! new result is recorded in a trace of its own or in the pod's, with a link to the span in which its
//! configuration was loaded. *Not done*: preemption, affinity between pods, volumes, host ports.

mod pod_writer;
mod report;
pub mod spans;
mod state;
mod watch;

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use futures_util::StreamExt;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Pod},
    jiff::Timestamp,
};
use kube::{Client, ResourceExt};
use kubewake_trail::{Trail, error_chain};
use opentelemetry::trace::{FutureExt, SpanContext};
use tokio::{sync::watch as latest, task::JoinSet, time};

use self::{
    pod_writer::PodWriter,
    report::ConfigurationReport,
    spans::{OpenSpan, SchedulerSpans},
    state::SchedulingState,
    watch::SchedulerEvent,
};
use crate::{
    api::RefusedConfiguration,
    configuration::{CONFIGURATION_KEY, ConfigurationDocument, SchedulerConfiguration},
    cycle::{self, SchedulingCycle},
    queue::{PodBackoff, QueuedPodInfo},
};

/// The field manager of the scheduler's writes.
const FIELD_MANAGER: &str = "demo-scheduler";
/// The limit of pods with requests in flight.
const MAX_CONCURRENT_REQUESTS: usize = 16;
/// The time limit for requests in flight after a stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// The annotation with the configuration by which a pod was scheduled.
pub const CONFIGURATION_ANNOTATION: &str = "demo.kubewake.io/configuration";

#[derive(Clone, Debug)]
pub struct SchedulerIdentity {
    /// The namespace of the scheduler.
    pub namespace: String,
    /// The name of its Scheduler object.
    pub scheduler: String,
    /// The value of `schedulerName` in pods.
    pub name: String,
    /// The ConfigMap of its configuration.
    pub config_map: String,
    /// The name of the scheduler's own pod.
    pub pod: String,
}

/// The current configuration, with the span in which it was loaded, and the time.
struct ActiveConfiguration {
    configuration: SchedulerConfiguration,
    span: SpanContext,
    at: SystemTime,
    /// Whether it has scheduled a pod with a trace of its own.
    used: AtomicBool,
}

/// The result of the requests for a pod.
struct PodRequestResult {
    pod: Arc<Pod>,
    outcome: PodRequestOutcome,
}

enum PodRequestOutcome {
    Bound,
    NotBound,
    Reported,
    NotReported,
}

struct PodScheduler {
    state: SchedulingState,
    spans: SchedulerSpans,
    pods: PodWriter,
    active: Option<Arc<ActiveConfiguration>>,
    /// The revision that was rejected last.
    refused: Option<String>,
    reports: latest::Sender<Option<ConfigurationReport>>,
    tasks: JoinSet<PodRequestResult>,
}

/// Runs the scheduler until `stop` completes.
pub async fn run(client: Client, trail: Trail, identity: SchedulerIdentity, stop: impl Future<Output = ()>) {
    let mut seen = watch::watch_all(&client, &identity.namespace, &identity.config_map);
    let (reports, reported) = latest::channel(None);
    let mut scheduler = PodScheduler {
        state: SchedulingState::new(&identity.name),
        pods: PodWriter::new(client.clone(), &trail, &identity.name, &identity.pod),
        spans: SchedulerSpans::new(trail, &identity.name),
        active: None,
        refused: None,
        reports,
        tasks: JoinSet::new(),
    };
    let writer = tokio::spawn(report::write_reports(client, identity, reported));
    let mut stop = pin!(stop);
    loop {
        let due = scheduler.next_due().map(time::Instant::from_std);
        tokio::select! {
            () = &mut stop => break,
            Some(seen) = seen.next() => scheduler.handle_event(seen),
            Some(done) = scheduler.tasks.join_next() => done.into_iter().for_each(|done| scheduler.handle_request_result(&done)),
            () = time::sleep_until(due.unwrap_or_else(time::Instant::now)), if due.is_some() => {}
        }
        scheduler.schedule_due_pods();
    }
    let PodScheduler { mut tasks, reports, .. } = scheduler;
    drop(reports);
    let finish = async {
        while tasks.join_next().await.is_some() {}
        let _ = writer.await;
    };
    let _ = time::timeout(SHUTDOWN_TIMEOUT, finish).await;
}

impl PodScheduler {
    fn handle_event(&mut self, seen: SchedulerEvent) {
        match seen {
            SchedulerEvent::Pod(event) => self.state.handle_pod_event(*event, Instant::now()),
            SchedulerEvent::Node(event) => self.state.handle_node_event(*event, Instant::now()),
            SchedulerEvent::ConfigMap(config_map) => self.apply_configuration(&config_map),
        }
    }

    /// Loads the configuration from a ConfigMap, unless it is the current or the rejected one.
    fn apply_configuration(&mut self, config_map: &ConfigMap) {
        let text = config_map
            .data
            .as_ref()
            .and_then(|data| data.get(CONFIGURATION_KEY))
            .map(String::as_str)
            .unwrap_or_default();
        let revision = ConfigurationDocument::claimed_revision(text);
        let read = ConfigurationDocument::parse(text);
        let current = self.active.as_ref().map(|active| active.configuration.revision.clone());
        let known = match (&read, &self.refused) {
            (Ok(_), None) => &current,
            // A valid one after a rejected one is reported, even if it is the current one.
            (Ok(_), Some(_)) => &None,
            (Err(_), refused) => refused,
        };
        if known.as_deref() == Some(revision.as_str()) {
            return;
        }
        let before = self.active.as_ref().map(|active| &active.configuration);
        let span = self.spans.start_configuration_span(config_map, &revision, before);
        let report = match read {
            Ok(configuration) => {
                tracing::info!(revision, "the scheduler uses a new configuration");
                self.spans.record_configuration(&span, &configuration);
                let at = SystemTime::now();
                let used = AtomicBool::new(false);
                self.active =
                    Some(Arc::new(ActiveConfiguration { configuration, span: span.span_context(), at, used }));
                self.refused = None;
                self.state.move_all_to_active(Instant::now());
                ConfigurationReport { revision: Some(revision), refused: None, span }
            }
            Err(refusal) => {
                tracing::warn!(revision, %refusal, "the scheduler refused a configuration");
                self.refused = Some(revision.clone());
                let refused = RefusedConfiguration { revision, reason: refusal.to_string() };
                ConfigurationReport { revision: current, refused: Some(refused), span }
            }
        };
        self.reports.send_replace(Some(report));
    }

    fn next_due(&self) -> Option<Instant> {
        self.state.next_due().filter(|_| self.active.is_some() && self.tasks.len() < MAX_CONCURRENT_REQUESTS)
    }

    /// Tries all pods that are due.
    fn schedule_due_pods(&mut self) {
        let Some(active) = self.active.clone() else { return };
        while self.tasks.len() < MAX_CONCURRENT_REQUESTS
            && let Some(queued) = self.state.pop(Instant::now())
        {
            let cycle = cycle::run_cycle(
                &active.configuration,
                &queued.pod,
                &self.state.cluster.node_allocations(),
                &SystemTime::now,
            );
            self.handle_cycle_outcome(Arc::clone(&active), queued, &cycle);
        }
    }

    /// Starts the requests that follow from a cycle.
    fn handle_cycle_outcome(
        &mut self,
        active: Arc<ActiveConfiguration>,
        queued: QueuedPodInfo,
        cycle: &SchedulingCycle,
    ) {
        let pods = self.pods.clone();
        let spans = self.spans.clone();
        let start_attempt = || spans.start_attempt_span(&queued, cycle, &active.configuration.revision, &active.span);
        match &cycle.outcome {
            Ok(chosen) => {
                let attempt = start_attempt();
                let node = chosen.node.clone();
                self.state.assume_pod(&queued.pod, &node);
                self.tasks.spawn(async move { bind_pod(&pods, &spans, attempt, &active, queued.pod, &node).await });
            }
            Err(nowhere) => {
                let why = nowhere.to_string();
                if self.state.mark_unschedulable(&queued.pod, &why, active.configuration.backoff, Instant::now()) {
                    let attempt = start_attempt();
                    self.tasks.spawn(async move { report_unschedulable(&pods, attempt, queued.pod, &why).await });
                }
            }
        }
    }

    fn handle_request_result(&mut self, done: &PodRequestResult) {
        match done.outcome {
            PodRequestOutcome::Bound => self.state.confirm_binding(&done.pod),
            PodRequestOutcome::NotBound => self.state.handle_binding_failure(&done.pod, self.backoff(), Instant::now()),
            PodRequestOutcome::Reported => {}
            PodRequestOutcome::NotReported => self.state.clear_reported_reason(&done.pod),
        }
    }

    fn backoff(&self) -> PodBackoff {
        let least = PodBackoff { initial: Duration::from_secs(1), max: Duration::from_secs(1) };
        self.active.as_ref().map_or(least, |active| active.configuration.backoff)
    }
}

/// Binds the pod to its node.
async fn bind_pod(
    pods: &PodWriter,
    spans: &SchedulerSpans,
    attempt: OpenSpan,
    active: &ActiveConfiguration,
    pod: Arc<Pod>,
    node: &str,
) -> PodRequestResult {
    let (cycle, bind) = spans.start_binding_spans(&attempt);
    let mut annotations =
        BTreeMap::from([(CONFIGURATION_ANNOTATION.to_owned(), active.configuration.revision.clone())]);
    annotations.extend(spans.binding_annotations(&pod, node, &bind));
    let bound = pods.bind(&pod, node, &annotations).with_context(bind.context()).await;
    let result = bound.map_err(|error| {
        tracing::warn!(
            kind = "Pod",
            namespace = pod.namespace(),
            name = pod.name_any(),
            node,
            error = error_chain(&error),
            "failed to bind the pod"
        );
        error_chain(&error)
    });
    bind.end(result.clone());
    cycle.end(result.clone());
    let id = attempt.span_context();
    let context = attempt.context();
    spans.end_attempt(attempt, result.clone());
    if result.is_err() {
        return PodRequestResult { pod, outcome: PodRequestOutcome::NotBound };
    }
    // Within one trace no link is needed.
    if id.trace_id() != active.span.trace_id() && !active.used.swap(true, Ordering::Relaxed) {
        spans.record_first_pod(&active.span, active.at, &pod, &id);
    }
    pods.publish_event(&pod, Ok(node)).with_context(context).await;
    PodRequestResult { pod, outcome: PodRequestOutcome::Bound }
}

/// Reports in status and Event why the pod is unschedulable.
async fn report_unschedulable(pods: &PodWriter, attempt: OpenSpan, pod: Arc<Pod>, why: &str) -> PodRequestResult {
    let context = attempt.context();
    let reported = pods.patch_unschedulable(&pod, why, Timestamp::now()).with_context(context.clone()).await;
    attempt.end(Err(why.to_owned()));
    pods.publish_event(&pod, Err(why)).with_context(context).await;
    if let Err(error) = reported {
        let namespace = pod.namespace();
        let name = pod.name_any();
        tracing::warn!(
            kind = "Pod",
            namespace,
            name,
            error = error_chain(&error),
            "failed to write the status of the pod"
        );
        return PodRequestResult { pod, outcome: PodRequestOutcome::NotReported };
    }
    PodRequestResult { pod, outcome: PodRequestOutcome::Reported }
}
