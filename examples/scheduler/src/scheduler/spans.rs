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
//! In the trace of the configuration's change are `takeConfiguration` and, once, `firstPodScheduled ~> SchedulePod`.
//!
//! An attempt is over before its spans are made, of what it tells of itself: whether a pod that fits nowhere for the same reason as before is worth
//! a trace is known only then.

use std::{
    borrow::Cow,
    time::{Duration, SystemTime},
};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kubewake_trail::{Trail, operand::Work};
use opentelemetry::{
    Array, Context, KeyValue, StringValue, Value,
    trace::{Link, SpanBuilder, SpanContext, Status, TraceContextExt},
};

use crate::{
    configuration::Configuration,
    cycle::{Cycle, Phase, Ran, Rejection, Scores, Span},
    queue::Turn,
    resources::Resources,
};

/// As many nodes are told of in one attribute; a number tells of all.
const NODES: usize = 64;

/// As long after it was taken the first pod of a configuration is told of in its trace.
const FIRST_WITHIN: Duration = Duration::from_secs(600);

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

/// Makes spans for the scheduler of this name.
#[derive(Clone, Debug)]
pub struct Spans {
    trail: Trail,
    profile: String,
}

/// A span that has not ended, to work in.
#[derive(Clone, Debug)]
pub struct Open(Context);

impl Open {
    /// What is done in it.
    pub fn context(&self) -> Context {
        self.0.clone()
    }

    /// Which one it is.
    pub fn id(&self) -> SpanContext {
        self.0.span().span_context().clone()
    }

    /// It ends, well or with these words.
    pub fn end(self, result: Result<(), String>) {
        if let Err(words) = result {
            self.0.span().set_status(Status::error(words));
        }
        self.0.span().end();
    }

    /// One thing more about it.
    fn set(&self, key: &'static str, value: impl Into<Value>) {
        self.0.span().set_attribute(KeyValue::new(key, value));
    }
}

impl Spans {
    /// Of the scheduler that pods ask for by this name.
    pub fn new(trail: Trail, profile: &str) -> Self {
        Self { trail, profile: profile.to_owned() }
    }

    /// The scheduler takes the configuration in this ConfigMap: the trace of whoever changed it goes on.
    pub fn take(&self, config_map: &ConfigMap, revision: &str, before: Option<&Configuration>) -> Open {
        let mut attributes = vec![
            KeyValue::new(key::PROFILE, self.profile.clone()),
            KeyValue::new(key::NAMESPACE, config_map.namespace().unwrap_or_default()),
            KeyValue::new(key::CONFIG_MAP, config_map.name_any()),
            KeyValue::new(key::REVISION, revision.to_owned()),
        ];
        attributes.extend(before.map(|before| KeyValue::new(key::BEFORE, before.revision.clone())));
        let builder = SpanBuilder::from_name("takeConfiguration").with_attributes(attributes);
        // It is taken again at each start.
        Open(self.trail.follow(config_map, Work::Repeated, builder))
    }

    /// What was in it.
    pub fn taken(&self, open: &Open, configuration: &Configuration) {
        open.set(key::FILTERS, texts(configuration.filters.iter().map(|(name, _)| (*name).to_owned())));
        let scores = configuration.scores.iter().map(|score| match &score.label {
            Some(label) => format!("{} ({label}) x{}", score.name, score.weight),
            None => format!("{} x{}", score.name, score.weight),
        });
        open.set(key::CONFIGURED_SCORES, texts(scores));
    }

    /// An attempt was made for a pod by a configuration that was taken in that span. All of it is told; what follows from it comes in the
    /// span that is given back.
    pub fn schedule(&self, turn: &Turn, cycle: &Cycle, revision: &str, taken: &SpanContext) -> Open {
        let wait = i64::try_from(turn.waited.as_millis()).unwrap_or(i64::MAX);
        let mut attributes = self.of_pod(&turn.pod);
        attributes.extend([
            KeyValue::new(key::REVISION, revision.to_owned()),
            KeyValue::new(key::ATTEMPT, i64::from(turn.attempt)),
            KeyValue::new(key::WAIT, wait),
        ]);
        let builder =
            SpanBuilder::from_name("SchedulePod").with_start_time(cycle.span.start).with_attributes(attributes);
        let open = Open(self.trail.follow(&*turn.pod, Work::Asked, builder));
        // Not when it begins: whether a pod's trace is sampled is not for the configuration to say.
        open.0.span().add_link(taken.clone(), Vec::new());
        match &cycle.outcome {
            Ok(chosen) => open.set(key::NODE, chosen.node.clone()),
            Err(_) => open.set(key::RESULT, "unschedulable"),
        }
        if open.0.span().is_recording() {
            self.cycle(&open.0, cycle);
        }
        open
    }

    fn cycle(&self, attempt: &Context, cycle: &Cycle) {
        let Span { start, end } = cycle.span;
        let span = self.open("schedulingCycle", attempt, start, [KeyValue::new(key::PHASE, "scheduling")]);
        self.phase("preFilter", &span, &cycle.before, &[], of_requests);
        let (all, feasible) = (number(cycle.nodes), number(cycle.feasible()));
        let nodes = [KeyValue::new(key::NODES, all), KeyValue::new(key::FEASIBLE, feasible)];
        self.phase("filter", &span, &cycle.filter, &nodes, |found| of_rejections(found));
        let totals = cycle.outcome.as_ref().map(|chosen| chosen.totals.as_slice()).unwrap_or_default();
        if let Some(score) = &cycle.score {
            self.phase("score", &span, score, &[KeyValue::new(key::TOTALS, points(totals))], of_scores);
        }
        span.span().end_with_timestamp(end);
    }

    /// The pod gets its node, in a span within that of its attempt.
    pub fn bind(&self, attempt: &Open) -> (Open, Open) {
        let now = SystemTime::now();
        let cycle = self.open("bindingCycle", &attempt.0, now, [KeyValue::new(key::PHASE, "binding")]);
        let bind = self.open("bind", &cycle, now, [KeyValue::new(key::POINT, "bind")]);
        (Open(cycle), Open(bind))
    }

    /// The pod has its node, or not.
    pub fn bound(&self, attempt: Open, result: Result<(), String>) {
        attempt.set(key::RESULT, if result.is_ok() { "scheduled" } else { "error" });
        attempt.end(result);
    }

    /// The first pod that a configuration decided, told in the trace of the configuration: from there one finds the pod's, as from the pod's one
    /// finds that. After a long time it would only make an old trace grow.
    pub fn first(&self, taken: &SpanContext, at: SystemTime, pod: &Pod, attempt: &SpanContext) {
        if !taken.is_valid() || at.elapsed().is_ok_and(|passed| passed > FIRST_WITHIN) {
            return;
        }
        let builder = SpanBuilder::from_name("firstPodScheduled").with_start_time(at).with_attributes(self.of_pod(pod));
        let builder = builder.with_links(vec![Link::with_context(attempt.clone())]);
        self.trail.start(builder, &Context::new().with_remote_span_context(taken.clone())).span().end();
    }

    /// What stays with a pod that is bound: where its trace goes on.
    pub fn stamp(&self, pod: &Pod, node: &str, bind: &Open) -> Vec<(String, String)> {
        let mut bound = pod.clone();
        bound.spec.get_or_insert_default().node_name = Some(node.to_owned());
        self.trail.annotations_for(&bound, &bind.id())
    }

    fn open(
        &self,
        name: impl Into<Cow<'static, str>>,
        parent: &Context,
        start: SystemTime,
        attributes: impl IntoIterator<Item = KeyValue>,
    ) -> Context {
        self.trail.start(SpanBuilder::from_name(name).with_start_time(start).with_attributes(attributes), parent)
    }

    fn phase<T>(
        &self,
        name: &'static str,
        parent: &Context,
        phase: &Phase<T>,
        more: &[KeyValue],
        found: impl Fn(&T) -> Vec<KeyValue>,
    ) {
        let attributes = more.iter().cloned().chain([KeyValue::new(key::POINT, name)]);
        let span = self.open(name, parent, phase.span.start, attributes);
        for Ran { span: Span { start, end }, plugin, found: what } in &phase.plugins {
            let which = [KeyValue::new(key::PLUGIN, *plugin), KeyValue::new(key::POINT, name)];
            let attributes = which.into_iter().chain(found(what));
            self.open(format!("plugin: {plugin}"), &span, *start, attributes).span().end_with_timestamp(*end);
        }
        span.span().end_with_timestamp(phase.span.end);
    }

    fn of_pod(&self, pod: &Pod) -> Vec<KeyValue> {
        vec![
            KeyValue::new(key::PROFILE, self.profile.clone()),
            KeyValue::new(key::NAMESPACE, pod.namespace().unwrap_or_default()),
            KeyValue::new(key::POD, pod.name_any()),
            KeyValue::new(key::POD_UID, pod.uid().unwrap_or_default()),
        ]
    }
}

fn of_requests(needs: &Resources) -> Vec<KeyValue> {
    vec![KeyValue::new(key::REQUESTS, needs.to_string())]
}

fn of_rejections(rejections: &[Rejection]) -> Vec<KeyValue> {
    let names = rejections.iter().map(|rejection| rejection.node.clone());
    let reasons = rejections.iter().map(|rejection| format!("{}: {}", rejection.node, rejection.reasons.join(", ")));
    vec![KeyValue::new(key::REJECTED, texts(names)), KeyValue::new(key::REASONS, texts(reasons))]
}

fn of_scores(scores: &Scores) -> Vec<KeyValue> {
    let label = scores.label.clone().map(|label| KeyValue::new(key::LABEL, label));
    let known = [KeyValue::new(key::WEIGHT, scores.weight), KeyValue::new(key::SCORES, points(&scores.points))];
    known.into_iter().chain(label).collect()
}

fn points(points: &[(String, i64)]) -> Value {
    texts(points.iter().map(|(node, points)| format!("{node}={points}")))
}

fn texts(texts: impl Iterator<Item = String>) -> Value {
    Value::Array(Array::String(texts.take(NODES).map(StringValue::from).collect()))
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
