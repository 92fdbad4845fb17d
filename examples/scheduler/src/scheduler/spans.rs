//! The spans of the scheduler, named as KEP-5927 names those of kube-scheduler.
//!
//! ```text
//! SchedulePod ~> takeConfiguration
//!   schedulingCycle
//!     preFilter
//!       plugin: NodeResourcesFit
//!     filter
//!       plugin: …
//!     score
//!       plugin: …
//!   bindingCycle
//!     bind
//! ```
//!
//! The trace of the configuration's change has `takeConfiguration` and, once, `firstPodScheduled ~>
//! SchedulePod`.
//!
//! The spans of an attempt are made afterwards from its record, because only then is it known whether an
//! unschedulable pod has a new reason and so is worth a trace.

use std::{
    borrow::Cow,
    time::{Duration, SystemTime},
};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kubewake_trail::{Trail, operand::OperandWork};
use opentelemetry::{
    Array, Context, KeyValue, StringValue, Value,
    trace::{Link, SpanBuilder, SpanContext, Status, TraceContextExt},
};

use crate::{
    configuration::SchedulerConfiguration,
    cycle::{NodeRejection, NodeScores, PluginPhase, PluginRun, SchedulingCycle, TimeInterval},
    queue::QueuedPodInfo,
    resources::ResourceList,
};

/// The most nodes listed in one attribute; another attribute has the number of all.
const MAX_NODES_PER_ATTRIBUTE: usize = 64;

/// The time after the load of a configuration in which its first pod is recorded in its trace.
const FIRST_POD_WINDOW: Duration = Duration::from_secs(600);

/// The names of all attributes.
mod key {
    pub const NAMESPACE: &str = "k8s.namespace.name";
    pub const POD: &str = "k8s.pod.name";
    pub const POD_UID: &str = "k8s.pod.uid";
    pub const CONFIG_MAP: &str = "k8s.configmap.name";
    pub const PHASE: &str = "scheduler.phase";
    pub const PROFILE: &str = "scheduler.profile";
    pub const PLUGIN: &str = "scheduler.plugin.name";
    pub const POINT: &str = "scheduler.plugin.extension_point";
    pub const WEIGHT: &str = "scheduler.plugin.weight";
    pub const LABEL: &str = "scheduler.plugin.label";
    pub const REQUESTS: &str = "scheduler.plugin.requests";
    pub const REJECTED: &str = "scheduler.plugin.rejected_nodes";
    pub const REASONS: &str = "scheduler.plugin.reasons";
    pub const SCORES: &str = "scheduler.plugin.scores";
    pub const RESULT: &str = "scheduler.result";
    pub const NODE: &str = "scheduler.selected_node";
    pub const TOTALS: &str = "scheduler.scores";
    pub const NODES: &str = "scheduler.nodes";
    pub const FEASIBLE: &str = "scheduler.feasible_nodes";
    pub const WAIT: &str = "scheduler.queue_wait_ms";
    pub const ATTEMPT: &str = "scheduler.attempt";
    pub const REVISION: &str = "scheduler.configuration.revision";
    pub const BEFORE: &str = "scheduler.configuration.previous";
    pub const FILTERS: &str = "scheduler.configuration.filters";
    pub const CONFIGURED_SCORES: &str = "scheduler.configuration.scores";
}

/// Records spans for a scheduler of this name.
#[derive(Clone, Debug)]
pub struct SchedulerSpans {
    trail: Trail,
    profile: String,
}

/// A span in progress.
#[derive(Clone, Debug)]
pub struct OpenSpan(Context);

impl OpenSpan {
    /// The context with this span.
    pub fn context(&self) -> Context {
        self.0.clone()
    }

    pub fn span_context(&self) -> SpanContext {
        self.0.span().span_context().clone()
    }

    /// Ends the span, with an error if there is one.
    pub fn end(self, result: Result<(), String>) {
        if let Err(message) = result {
            self.0.span().set_status(Status::error(message));
        }
        self.0.span().end();
    }

    fn set_attribute(&self, key: &'static str, value: impl Into<Value>) {
        self.0.span().set_attribute(KeyValue::new(key, value));
    }
}

impl SchedulerSpans {
    /// Creates a recorder for the scheduler of this name.
    pub fn new(trail: Trail, profile: &str) -> Self {
        Self { trail, profile: profile.to_owned() }
    }

    /// Starts the span of loading a configuration; it continues the trace of the ConfigMap's change.
    pub fn start_configuration_span(
        &self,
        config_map: &ConfigMap,
        revision: &str,
        before: Option<&SchedulerConfiguration>,
    ) -> OpenSpan {
        let mut attributes = vec![
            KeyValue::new(key::PROFILE, self.profile.clone()),
            KeyValue::new(key::NAMESPACE, config_map.namespace().unwrap_or_default()),
            KeyValue::new(key::CONFIG_MAP, config_map.name_any()),
            KeyValue::new(key::REVISION, revision.to_owned()),
        ];
        attributes.extend(before.map(|before| KeyValue::new(key::BEFORE, before.revision.clone())));
        let builder = SpanBuilder::from_name("takeConfiguration").with_attributes(attributes);
        // The configuration is loaded again at each start.
        OpenSpan(self.trail.follow(config_map, OperandWork::Repeated, builder))
    }

    pub fn record_configuration(&self, open: &OpenSpan, configuration: &SchedulerConfiguration) {
        open.set_attribute(
            key::FILTERS,
            string_values(configuration.filters.iter().map(|(name, _)| (*name).to_owned())),
        );
        let scores = configuration.scores.iter().map(|score| match &score.label {
            Some(label) => format!("{} ({label}) x{}", score.name, score.weight),
            None => format!("{} x{}", score.name, score.weight),
        });
        open.set_attribute(key::CONFIGURED_SCORES, string_values(scores));
    }

    /// Records an attempt for a pod, linked to the span in which its configuration was loaded. Returns the span
    /// of the attempt for the requests that follow.
    pub fn start_attempt_span(
        &self,
        queued: &QueuedPodInfo,
        cycle: &SchedulingCycle,
        revision: &str,
        loaded: &SpanContext,
    ) -> OpenSpan {
        let wait = i64::try_from(queued.waited.as_millis()).unwrap_or(i64::MAX);
        let mut attributes = self.pod_attributes(&queued.pod);
        attributes.extend([
            KeyValue::new(key::REVISION, revision.to_owned()),
            KeyValue::new(key::ATTEMPT, i64::from(queued.attempt)),
            KeyValue::new(key::WAIT, wait),
        ]);
        let builder =
            SpanBuilder::from_name("SchedulePod").with_start_time(cycle.interval.start).with_attributes(attributes);
        let open = OpenSpan(self.trail.follow(&*queued.pod, OperandWork::Requested, builder));
        // Added after the start: the configuration's link must not influence the sampling of the pod's trace.
        open.0.span().add_link(loaded.clone(), Vec::new());
        match &cycle.outcome {
            Ok(chosen) => open.set_attribute(key::NODE, chosen.node.clone()),
            Err(_) => open.set_attribute(key::RESULT, "unschedulable"),
        }
        if open.0.span().is_recording() {
            self.record_cycle(&open.0, cycle);
        }
        open
    }

    fn record_cycle(&self, attempt: &Context, cycle: &SchedulingCycle) {
        let TimeInterval { start, end } = cycle.interval;
        let span = self.start_span("schedulingCycle", attempt, start, [KeyValue::new(key::PHASE, "scheduling")]);
        self.record_phase("preFilter", &span, &cycle.pre_filter, &[], request_attributes);
        let all = saturating_i64(cycle.nodes);
        let feasible = saturating_i64(cycle.feasible_nodes());
        let nodes = [KeyValue::new(key::NODES, all), KeyValue::new(key::FEASIBLE, feasible)];
        self.record_phase("filter", &span, &cycle.filter, &nodes, |found| rejection_attributes(found));
        let totals = cycle.outcome.as_ref().map(|chosen| chosen.totals.as_slice()).unwrap_or_default();
        if let Some(score) = &cycle.score {
            self.record_phase(
                "score",
                &span,
                score,
                &[KeyValue::new(key::TOTALS, score_values(totals))],
                score_attributes,
            );
        }
        span.span().end_with_timestamp(end);
    }

    /// Starts the spans of the binding within the span of the attempt.
    pub fn start_binding_spans(&self, attempt: &OpenSpan) -> (OpenSpan, OpenSpan) {
        let now = SystemTime::now();
        let cycle = self.start_span("bindingCycle", &attempt.0, now, [KeyValue::new(key::PHASE, "binding")]);
        let bind = self.start_span("bind", &cycle, now, [KeyValue::new(key::POINT, "bind")]);
        (OpenSpan(cycle), OpenSpan(bind))
    }

    /// Ends the attempt with the result of the binding.
    pub fn end_attempt(&self, attempt: OpenSpan, result: Result<(), String>) {
        attempt.set_attribute(key::RESULT, if result.is_ok() { "scheduled" } else { "error" });
        attempt.end(result);
    }

    /// Records the first pod of a configuration in the configuration's trace, as a link back to the pod's
    /// trace. Later than `FIRST_POD_WINDOW` it would only extend an old trace.
    pub fn record_first_pod(&self, loaded: &SpanContext, at: SystemTime, pod: &Pod, attempt: &SpanContext) {
        if !loaded.is_valid() || at.elapsed().is_ok_and(|passed| passed > FIRST_POD_WINDOW) {
            return;
        }
        let builder =
            SpanBuilder::from_name("firstPodScheduled").with_start_time(at).with_attributes(self.pod_attributes(pod));
        let builder = builder.with_links(vec![Link::with_context(attempt.clone())]);
        self.trail.start(builder, &Context::new().with_remote_span_context(loaded.clone())).span().end();
    }

    /// The annotations of a bound pod by which its trace continues.
    pub fn binding_annotations(&self, pod: &Pod, node: &str, bind: &OpenSpan) -> Vec<(String, String)> {
        let mut bound = pod.clone();
        bound.spec.get_or_insert_default().node_name = Some(node.to_owned());
        self.trail.annotations_for(&bound, &bind.span_context())
    }

    fn start_span(
        &self,
        name: impl Into<Cow<'static, str>>,
        parent: &Context,
        start: SystemTime,
        attributes: impl IntoIterator<Item = KeyValue>,
    ) -> Context {
        self.trail.start(SpanBuilder::from_name(name).with_start_time(start).with_attributes(attributes), parent)
    }

    fn record_phase<T>(
        &self,
        name: &'static str,
        parent: &Context,
        phase: &PluginPhase<T>,
        more: &[KeyValue],
        found: impl Fn(&T) -> Vec<KeyValue>,
    ) {
        let attributes = more.iter().cloned().chain([KeyValue::new(key::POINT, name)]);
        let span = self.start_span(name, parent, phase.interval.start, attributes);
        for PluginRun { interval: TimeInterval { start, end }, plugin, result: what } in &phase.plugins {
            let which = [KeyValue::new(key::PLUGIN, *plugin), KeyValue::new(key::POINT, name)];
            let attributes = which.into_iter().chain(found(what));
            self.start_span(format!("plugin: {plugin}"), &span, *start, attributes).span().end_with_timestamp(*end);
        }
        span.span().end_with_timestamp(phase.interval.end);
    }

    fn pod_attributes(&self, pod: &Pod) -> Vec<KeyValue> {
        vec![
            KeyValue::new(key::PROFILE, self.profile.clone()),
            KeyValue::new(key::NAMESPACE, pod.namespace().unwrap_or_default()),
            KeyValue::new(key::POD, pod.name_any()),
            KeyValue::new(key::POD_UID, pod.uid().unwrap_or_default()),
        ]
    }
}

fn request_attributes(needs: &ResourceList) -> Vec<KeyValue> {
    vec![KeyValue::new(key::REQUESTS, needs.to_string())]
}

fn rejection_attributes(rejections: &[NodeRejection]) -> Vec<KeyValue> {
    let names = rejections.iter().map(|rejection| rejection.node.clone());
    let reasons = rejections.iter().map(|rejection| format!("{}: {}", rejection.node, rejection.reasons.join(", ")));
    vec![KeyValue::new(key::REJECTED, string_values(names)), KeyValue::new(key::REASONS, string_values(reasons))]
}

fn score_attributes(scores: &NodeScores) -> Vec<KeyValue> {
    let label = scores.label.clone().map(|label| KeyValue::new(key::LABEL, label));
    let known = [KeyValue::new(key::WEIGHT, scores.weight), KeyValue::new(key::SCORES, score_values(&scores.points))];
    known.into_iter().chain(label).collect()
}

fn score_values(points: &[(String, i64)]) -> Value {
    string_values(points.iter().map(|(node, points)| format!("{node}={points}")))
}

fn string_values(texts: impl Iterator<Item = String>) -> Value {
    Value::Array(Array::String(texts.take(MAX_NODES_PER_ATTRIBUTE).map(StringValue::from).collect()))
}

fn saturating_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
