//! One run of a reconciler as a span.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
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
    relation::Relation,
};
use crate::{attributes, carrier::Found, relate::is_outdated, run::Run, status, trail::Shared};

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
        let followed = found.as_ref().filter(|_| believed).map(|found| &found.context);
        // What follows costs more than all the rest, so it is done only for what is recorded. A context that is followed says so by its flag; without one
        // the sampler decides, and there is nothing to be outdated or to drift.
        let sampled = followed.is_some_and(SpanContext::is_sampled);
        let mut before = if sampled { shared.begin(object, followed) } else { Before::default() };
        let is_ready = || status::is_ready(object, object.meta().generation, &shared.options.ready);
        let initial = cause.reason == Reason::InitialList;
        let old = shared.age(found.as_ref()).is_some_and(|age| age > shared.options.drift_after);
        let ready = sampled && (old || initial) && is_ready();
        let outdated = sampled && found.as_ref().is_some_and(|found| is_outdated(object, found, before.outdated));
        let mut causes = cause.contexts.clone();
        causes.extend(before.replaced.clone());
        let relation = shared.relation(found.as_ref(), believed, outdated, ready, &causes);
        let drift = relation.drift;
        let run = Run::new();
        let context = start::<K>(shared, kind, relation, &run);
        let recording = context.span().is_recording();
        if recording {
            if !sampled {
                before = shared.begin(object, None);
            }
            if initial && (ready || is_ready()) {
                run.expect_nothing();
            }
            let span = context.span();
            span.set_attributes(attributes::object(object, kind));
            span.set_attributes(describe(&cause, &before, drift, found.as_ref()));
        }
        let uid = object.meta().uid.clone().filter(|_| recording);
        Self { shared: Arc::clone(shared), run, context, uid, initial, recording, settled: false }
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

impl Shared {
    fn begin<K: Resource>(&self, object: &K, followed: Option<&SpanContext>) -> Before {
        let (meta, now) = (object.meta(), self.options.clock.timestamp());
        let uid = meta.uid.as_deref();
        uid.map(|uid| self.objects.begin(uid, followed, meta.generation, now)).unwrap_or_default()
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if self.recording && !self.settled {
            self.settle("cancelled", self.run.has_changed());
        }
    }
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
