//! One run of a reconciler as a span.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use jiff::SignedDuration;
use kube::{Resource, runtime::controller::Action};
use opentelemetry::{
    Context, KeyValue,
    trace::{SpanContext, SpanKind, Status, TraceContextExt as _, TraceId, Tracer as _},
};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    cause::{Cause, Reason},
    objects::Before,
    relation::Relation,
};
use crate::{
    attributes,
    carrier::Found,
    errors::{api_error, in_words},
    relate::is_outdated,
    run::Run,
    status::Standing,
    trail::Shared,
};

/// A run that has begun. When it is dropped before it is finished, it was cancelled.
pub(crate) struct Traced {
    shared: Arc<Shared>,
    run: Run,
    /// What the reconciler sees as current: the span, and the run.
    pub(crate) context: Context,
    uid: Option<String>,
    initial: bool,
    /// The trace of the change whose repair begins with this run, if it does.
    repairs: Option<TraceId>,
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
        let followed = found.as_ref().filter(|_| believed);
        // What follows costs more than all the rest, so it is done only for what is recorded. A context that is followed says so by its flag; without one
        // the sampler decides, and there is nothing to be outdated or to drift.
        let sampled = followed.is_some_and(|found| found.context.is_sampled());
        let mut seen = if sampled { shared.look(object, followed, &cause) } else { Seen::default() };
        let mut causes = cause.contexts.clone();
        causes.extend(seen.before.replaced.clone());
        let relation = shared.relation(found.as_ref(), believed, seen.outdated, seen.settled, &causes);
        let (drift, is_root) = (relation.drift, relation.parent.is_none());
        let run = Run::new(about(object));
        let context = start::<K>(shared, kind, relation, &run);
        let recording = context.span().is_recording();
        let mut repairs = None;
        if recording {
            if !sampled {
                seen = shared.look(object, None, &cause);
            }
            if cause.reason == Reason::InitialList && seen.standing == Standing::Ready {
                run.expect_nothing();
            }
            let span = context.span();
            span.set_attributes(attributes::object(object, kind));
            span.set_attributes(describe(&cause, &seen.before, drift, found.as_ref()));
            repairs = found.filter(|_| drift && is_root && !seen.outdated).map(|found| found.context.trace_id());
        }
        if let Some(trace) = repairs {
            let now = shared.options.clock.timestamp();
            shared.repairs.begin(trace, context.span().span_context().clone(), run.clone(), now);
        }
        let uid = object.meta().uid.clone().filter(|_| recording);
        let initial = cause.reason == Reason::InitialList;
        Self { shared: Arc::clone(shared), run, context, uid, initial, repairs, recording, settled: false }
    }

    /// The reconciler has answered.
    pub(crate) fn finish<E: std::error::Error + 'static>(mut self, result: &Result<Action, E>) {
        self.settled = true;
        if !self.recording {
            return;
        }
        let message = result.as_ref().err().map(|error| in_words(error));
        let failure = result.as_ref().err().map(|error| class(error, self.run.refused()));
        let (changed, now) = (self.run.has_changed(), self.shared.options.clock.timestamp());
        let news = self.uid.as_ref().is_none_or(|uid| self.shared.objects.end(uid, failure, changed, now));
        let span = self.context.span();
        match (result, message) {
            (Err(_), Some(message)) => {
                span.set_attribute(KeyValue::new(attributes::ERROR_TYPE, std::any::type_name::<E>()));
                span.set_status(Status::error(message));
            }
            (Ok(action), _) => span.set_attributes(requeue(action)),
            _ => {}
        }
        let refused = self.run.failure().filter(|_| failure.is_none());
        if let Some((kind, message)) = &refused {
            span.set_attribute(KeyValue::new(attributes::ERROR_TYPE, *kind));
            span.set_status(Status::error(message.clone()));
        }
        let outcome = match (failure, changed) {
            _ if refused.is_some() => "failed",
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
        if let Some(trace) = self.repairs.filter(|_| !keep) {
            self.shared.repairs.forget(trace, span.span_context());
        }
        self.shared.hold.settle(&self.run, keep);
        span.end();
    }
}

/// What is known of an object when a run begins.
#[derive(Debug, Default)]
struct Seen {
    before: Before,
    standing: Standing,
    /// It was in order before, at this generation.
    settled: bool,
    /// Its context is older than what it asks for.
    outdated: bool,
}

impl Shared {
    /// Looks at an object, and remembers what it is like.
    ///
    /// One that is ready in its first run was so before this process began, if it was there then: its converge span was written by another. How it stands is looked at only then and where
    /// the run could be a repair, as it takes the whole object.
    fn look<K: Resource + Serialize>(&self, object: &K, followed: Option<&Found>, cause: &Cause) -> Seen {
        let before = self.begin(object, followed.map(|found| &found.context), cause);
        let before_us = before.first && cause.may_be_older_than_us();
        let old = self.age(followed).is_some_and(|age| age > self.options.drift_after);
        let looks = old || before_us || cause.reason == Reason::InitialList;
        let standing = if looks { self.standing(object, followed) } else { Standing::Converging };
        // Of what this process has seen all along it knows more than a condition can tell.
        let standing = if standing == Standing::Lost && !before_us { Standing::Converging } else { standing };
        let meta = object.meta();
        let in_order = standing != Standing::Converging;
        if let Some(uid) = meta.uid.as_deref().filter(|_| in_order) {
            self.objects.settle(uid, meta.generation.unwrap_or(1), before_us);
        }
        let outdated = followed.is_some_and(|found| is_outdated(object, found, before.outdated));
        Seen { settled: before.settled || in_order, before, standing, outdated }
    }

    fn begin<K: Resource>(&self, object: &K, followed: Option<&SpanContext>, cause: &Cause) -> Before {
        let (meta, now) = (object.meta(), self.options.clock.timestamp());
        let waited = cause.waited().and_then(|waited| SignedDuration::try_from(waited).ok()).unwrap_or_default();
        let seen = now.checked_sub(waited).unwrap_or(now);
        let uid = meta.uid.as_deref();
        uid.map(|uid| self.objects.begin(uid, followed, meta.generation, seen)).unwrap_or_default()
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if self.recording && !self.settled {
            self.settle("cancelled", self.run.has_changed());
        }
    }
}

/// The object and its generation, as a hash.
fn about<K: Resource>(object: &K) -> u64 {
    let meta = object.meta();
    let uid = meta.uid.as_deref().unwrap_or_default();
    xxh3_64(uid.as_bytes()).rotate_left(1) ^ meta.generation.unwrap_or_default().unsigned_abs()
}

/// Failures of the same class are the same: the same call refused for the same reason; else the same words, whatever numbers are in them.
fn class<E: std::error::Error + 'static>(error: &E, refused: u64) -> u64 {
    match api_error(error) {
        Some(status) => xxh3_64(format!("{refused} {} {}", status.code, status.reason).as_bytes()),
        None => {
            let message = in_words(error);
            let words: Vec<_> =
                message.split(|c: char| c.is_ascii_digit()).filter(|word| !matches!(*word, "" | ".")).collect();
            xxh3_64(words.join("0").as_bytes())
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
    attributes.extend(cause.waited().map(|wait| KeyValue::new(attributes::QUEUE_WAIT_MS, milliseconds(wait))));
    attributes.extend(cause.related.clone().map(|related| KeyValue::new(attributes::RELATED, related)));
    attributes.extend(drift.then(|| KeyValue::new(attributes::DRIFT, true)));
    attributes.extend(found.map(|found| KeyValue::new(attributes::SOURCE, found.source.as_str())));
    attributes
}

/// To the microsecond, up to an hour: what is smaller is noise.
fn milliseconds(duration: Duration) -> f64 {
    let microseconds = u32::try_from(duration.as_micros()).unwrap_or(u32::MAX);
    f64::from(microseconds) / 1000.0
}

/// kube tells nobody what an action holds, except for whoever prints it.
fn requeue(action: &Action) -> Option<KeyValue> {
    let text = format!("{action:?}");
    let after = text.split_once("Some(")?.1.split_once(')')?.0;
    Some(KeyValue::new(attributes::REQUEUE, after.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_no_noise() {
        assert_eq!(milliseconds(Duration::from_nanos(1_234_567)).to_string(), "1.234");
        assert_eq!(milliseconds(Duration::from_nanos(100_999)).to_string(), "0.1");
    }

    #[test]
    fn failures_are_told_apart_by_what_was_refused_and_not_by_numbers() {
        let refusal = |message: &str, reason: &str| {
            let status = kube::core::Status::failure(message, reason).with_code(403);
            kube::Error::Api(Box::new(status))
        };
        let forbidden = class(&refusal("at 12:01", "Forbidden"), 7);
        assert_eq!(forbidden, class(&refusal("at 12:02, or so", "Forbidden"), 7));
        assert_ne!(forbidden, class(&refusal("at 12:01", "Invalid"), 7));
        assert_ne!(forbidden, class(&refusal("at 12:01", "Forbidden"), 8), "another call");
        let other = |text: &str| class(&std::io::Error::other(text.to_owned()), 0);
        assert_eq!(other("attempt 9 took 1.5s"), other("attempt 10 took 22.75s"));
        assert_ne!(other("it is broken"), other("it is lost"));
    }
}
