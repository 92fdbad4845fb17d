//! One run of a reconciler as a span.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use kube::{Resource, runtime::controller::Action};
use opentelemetry::{
    Context, KeyValue,
    trace::{SpanContext, SpanKind, Status, TraceContextExt as _, Tracer as _},
};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    cause::{Cause, Reason},
    objects::Before,
    relation::{Facts, Relation, relation},
};
use crate::{attributes, carrier::Found, run::Run, status, trail::Shared};

/// A run that has begun. When it is dropped before it is finished, it was cancelled.
pub(crate) struct Traced {
    shared: Arc<Shared>,
    run: Run,
    /// What the reconciler sees as current: the span, and the run.
    pub(crate) context: Context,
    uid: Option<String>,
    initial: bool,
    recording: bool,
    settled: bool,
}

impl Traced {
    /// Begins a run for an object.
    pub(crate) fn begin<K: Resource + Serialize>(
        shared: &Arc<Shared>,
        object: &K,
        kind: &K::DynamicType,
        cause: Cause,
    ) -> Self {
        shared.counts.runs.fetch_add(1, Ordering::Relaxed);
        let (found, believed) = shared.read(object);
        let meta = object.meta();
        // Whatever the relation will be, nothing is recorded when this says no: parent and link have the same flag.
        let followed = found.as_ref().filter(|_| believed).map(|found| &found.context);
        let unsampled =
            followed.is_some_and(|context| !context.is_sampled()) && !cause.contexts.iter().any(|it| it.is_sampled());
        let before = match (&meta.uid, unsampled) {
            (Some(uid), false) => {
                shared.objects.begin(uid, followed, meta.generation, shared.options.clock.timestamp())
            }
            _ => Before::default(),
        };
        let ready = !unsampled && status::is_ready(object, meta.generation, &shared.options.ready);
        let mut causes = cause.contexts.clone();
        causes.extend(before.replaced.clone());
        let outdated = found.as_ref().is_some_and(|found| is_outdated(object, found, &before));
        let relation = related(shared, found.as_ref(), believed, outdated, ready, &causes);
        let drift = relation.drift;
        let initial = cause.reason == Reason::InitialList;
        let run = Run::new(initial && ready);
        let context = start::<K>(shared, kind, relation, &run);
        let recording = context.span().is_recording();
        if recording {
            let span = context.span();
            span.set_attributes(attributes::object(object, kind));
            span.set_attributes(describe(&cause, &before, drift, found.as_ref()));
        }
        Self { shared: Arc::clone(shared), run, context, uid: meta.uid.clone(), initial, recording, settled: false }
    }

    /// The reconciler has answered.
    pub(crate) fn finish<E: std::error::Error>(mut self, result: &Result<Action, E>) {
        self.settled = true;
        if !self.recording {
            return;
        }
        let message = result.as_ref().err().map(|error| attributes::message(error));
        let failure = message.as_ref().map(|message| xxh3_64(message.as_bytes()));
        let news = self.uid.as_ref().is_none_or(|uid| self.shared.objects.end(uid, failure));
        let changed = self.run.has_changed();
        let span = self.context.span();
        match (result, message) {
            (Err(_), Some(message)) => {
                span.set_attribute(KeyValue::new(attributes::ERROR_TYPE, std::any::type_name::<E>()));
                span.set_status(Status::error(message));
            }
            (Ok(action), _) => span.set_attributes(requeue(action)),
            _ => {}
        }
        let outcome = match (failure, changed) {
            (Some(_), _) => "failed",
            (None, true) => "changed",
            (None, false) => "unchanged",
        };
        // Who has no client of ours gets every run but those of the start.
        let unknown = failure.is_none() && !self.shared.tracks_writes.load(Ordering::Relaxed) && !self.initial;
        self.settle(outcome, changed || unknown || (failure.is_some() && news));
    }

    fn settle(&mut self, outcome: &'static str, keep: bool) {
        let span = self.context.span();
        span.set_attribute(KeyValue::new(attributes::OUTCOME, outcome));
        span.set_attribute(KeyValue::new(attributes::WRITES, i64::from(self.run.writes())));
        let keep = keep || self.run.is_exposed();
        if !keep {
            self.shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
        self.shared.hold.settle(&self.run, keep);
        span.end();
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if self.recording && !self.settled {
            self.settle("cancelled", self.run.has_changed());
        }
    }
}

/// Whether somebody changed the object after the context was stamped, and left none.
fn is_outdated<K: Resource>(object: &K, found: &Found, before: &Before) -> bool {
    match found.generation {
        Some(_) => found.is_outdated(object.meta().generation),
        None => before.outdated,
    }
}

fn related(
    shared: &Shared,
    found: Option<&Found>,
    believed: bool,
    outdated: bool,
    converged: bool,
    causes: &[SpanContext],
) -> Relation {
    let now = shared.options.clock.timestamp();
    let age = found
        .and_then(|found| found.changed)
        .map(|changed| Duration::try_from(now.duration_since(changed)).unwrap_or_default());
    relation(Facts {
        mode: shared.options.mode,
        found,
        believed,
        link_others: shared.options.trust.links_others(),
        outdated,
        converged,
        age,
        drift_after: shared.options.drift_after,
        causes,
    })
}

fn start<K: Resource>(shared: &Shared, kind: &K::DynamicType, relation: Relation, run: &Run) -> Context {
    let parent = Context::new().with_value(run.clone());
    let parent = match relation.parent {
        Some(context) => parent.with_remote_span_context(context),
        None => parent,
    };
    let builder = shared
        .tracer
        .span_builder(format!("reconcile {}", K::kind(kind)))
        .with_kind(SpanKind::Consumer)
        .with_links(relation.links);
    parent.with_span(shared.tracer.build_with_context(builder, &parent))
}

fn describe(cause: &Cause, before: &Before, drift: bool, found: Option<&Found>) -> Vec<KeyValue> {
    let reason = match cause.reason {
        Reason::Unknown if before.failed => Reason::Retry,
        Reason::Requeue if before.failed => Reason::Retry,
        reason => reason,
    };
    let mut attributes = vec![
        KeyValue::new(attributes::REASON, reason.as_str()),
        KeyValue::new(attributes::ATTEMPT, i64::from(before.attempt)),
    ];
    let wait = cause.arrived.map(|arrived| Instant::now().saturating_duration_since(arrived).as_secs_f64() * 1000.0);
    attributes.extend(wait.map(|wait| KeyValue::new(attributes::QUEUE_WAIT_MS, wait)));
    attributes.extend(cause.related.clone().map(|related| KeyValue::new(attributes::RELATED, related)));
    attributes.extend(drift.then(|| KeyValue::new(attributes::DRIFT, true)));
    attributes.extend(found.map(|found| KeyValue::new(attributes::SOURCE, found.source.as_str())));
    attributes
}

/// kube tells nobody what an action holds, except for whoever prints it.
fn requeue(action: &Action) -> Option<KeyValue> {
    let text = format!("{action:?}");
    let after = text.split_once("Some(")?.1.split_once(')')?.0;
    Some(KeyValue::new(attributes::REQUEUE, after.to_owned()))
}
