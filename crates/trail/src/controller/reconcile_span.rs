//! The span of one run of a reconciler.

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

use super::run_cause::{RunCause, RunReason};
use crate::{
    attributes,
    carrier::ObjectContext,
    errors::{api_error, error_chain},
    lineage::{
        convergence, is_outdated,
        relation::{TraceRelation, TracedWork, choose_relation},
        tracked_objects::PriorRuns,
    },
    run::Run,
    status::ObjectConvergence,
    trail::TrailState,
};

/// The span of a run in progress. Dropping it before it is finished means that the run was cancelled.
pub(crate) struct ReconcileSpan {
    shared: Arc<TrailState>,
    run: Run,
    /// The context in which the reconciler runs: the span and the [`Run`].
    pub(crate) context: Context,
    uid: Option<String>,
    initial: bool,
    /// The trace of the change that this run repairs, if it is the first run of a repair.
    repairs: Option<TraceId>,
    recording: bool,
    settled: bool,
}

impl ReconcileSpan {
    /// Begins a run for an object.
    pub(crate) fn begin<K: Resource + Serialize>(
        shared: &Arc<TrailState>,
        object: &K,
        kind: &K::DynamicType,
        cause: RunCause,
    ) -> Self {
        shared.counts.runs.fetch_add(1, Ordering::Relaxed);
        let found = shared.read_context(object);
        let followed = found.trusted();
        // `observe_object` is the expensive part, so it is done only for sampled runs. A followed context
        // carries the `sampled` flag; without one the sampler decides, and the object can be neither outdated
        // nor drifted.
        let sampled = followed.is_some_and(|found| found.context.is_sampled());
        let mut seen = if sampled { observe_object(shared, object, followed, &cause) } else { RunState::default() };
        let mut causes = cause.contexts.clone();
        causes.extend(seen.prior_runs.replaced_context.clone());
        let work = TracedWork {
            found: &found,
            is_outdated: seen.is_outdated,
            was_converged: seen.was_converged,
            causes: &causes,
        };
        let relation = choose_relation(shared, work);
        let drift = relation.is_drift;
        let is_root = relation.parent.is_none();
        let run = Run::new(object_generation_hash(object));
        let context = start_span::<K>(shared, kind, relation, &run);
        let recording = context.span().is_recording();
        let mut repairs = None;
        if recording {
            if !sampled {
                seen = observe_object(shared, object, None, &cause);
            }
            if cause.reason == RunReason::InitialList && seen.convergence == ObjectConvergence::Ready {
                run.expect_nothing();
            }
            let span = context.span();
            span.set_attributes(attributes::object_attributes(object, kind));
            span.set_attributes(run_attributes(&cause, &seen.prior_runs, drift, found.any()));
            repairs =
                found.any().filter(|_| drift && is_root && !seen.is_outdated).map(|found| found.context.trace_id());
        }
        if let Some(trace) = repairs {
            let now = shared.options.clock.timestamp();
            shared.ongoing_repairs.insert_candidate(trace, context.span().span_context().clone(), run.clone(), now);
        }
        let uid = object.meta().uid.clone().filter(|_| recording);
        let initial = cause.reason == RunReason::InitialList;
        Self { shared: Arc::clone(shared), run, context, uid, initial, repairs, recording, settled: false }
    }

    /// Ends the run with the result of the reconciler.
    pub(crate) fn finish<E: std::error::Error + 'static>(mut self, result: &Result<Action, E>) {
        self.settled = true;
        if !self.recording {
            return;
        }
        let message = result.as_ref().err().map(|error| error_chain(error));
        let failure = result.as_ref().err().map(|error| failure_class(error, self.run.last_refused_call()));
        let changed = self.run.has_changed();
        let now = self.shared.options.clock.timestamp();
        let news = self.uid.as_ref().is_none_or(|uid| self.shared.tracked_objects.end_run(uid, failure, changed, now));
        let span = self.context.span();
        match (result, message) {
            (Err(_), Some(message)) => {
                span.set_attribute(KeyValue::new(attributes::ERROR_TYPE, std::any::type_name::<E>()));
                span.set_status(Status::error(message));
            }
            (Ok(action), _) => span.set_attributes(requeue_attribute(action)),
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
        // Without a traced client, writes are unknown: every run but those of the initial list is kept.
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
            self.shared.ongoing_repairs.forget(trace, span.span_context());
        }
        self.shared.processor.settle(&self.run, keep);
        span.end();
    }
}

/// The known state of an object when a run begins.
#[derive(Debug, Default)]
struct RunState {
    prior_runs: PriorRuns,
    convergence: ObjectConvergence,
    /// The object was ready before, at this generation.
    was_converged: bool,
    /// The context is older than the desired state.
    is_outdated: bool,
}

/// Records the state of an object and returns it.
///
/// An object that is ready in its first run was ready before this process began, if it existed then: another process
/// wrote its converge span. The convergence is determined only in that case and where the run could be a repair,
/// because it serializes the whole object.
fn observe_object<K: Resource + Serialize>(
    trail: &TrailState,
    object: &K,
    followed: Option<&ObjectContext>,
    cause: &RunCause,
) -> RunState {
    let prior_runs = begin_run(trail, object, followed.map(|found| &found.context), cause);
    let predates_process = prior_runs.is_first && cause.may_predate_process();
    let is_old = trail.context_age(followed).is_some_and(|age| age > trail.options.drift_after);
    let is_looked_at = is_old || predates_process || cause.reason == RunReason::InitialList;
    let observed = if is_looked_at { convergence(trail, object, followed) } else { ObjectConvergence::Converging };
    // For an object that this process has seen all along, its own records say more than a condition.
    let convergence = match observed {
        ObjectConvergence::NoLongerReady if !predates_process => ObjectConvergence::Converging,
        observed => observed,
    };
    let meta = object.meta();
    let was_ready = convergence != ObjectConvergence::Converging;
    if let Some(uid) = meta.uid.as_deref().filter(|_| was_ready) {
        trail.tracked_objects.mark_settled(uid, meta.generation.unwrap_or(1), predates_process);
    }
    let is_outdated = followed.is_some_and(|found| is_outdated(object, found, prior_runs.outdated));
    RunState { was_converged: prior_runs.was_settled || was_ready, prior_runs, convergence, is_outdated }
}

fn begin_run<K: Resource>(
    trail: &TrailState,
    object: &K,
    followed: Option<&SpanContext>,
    cause: &RunCause,
) -> PriorRuns {
    let meta = object.meta();
    let now = trail.options.clock.timestamp();
    let waited = cause.queue_wait().and_then(|waited| SignedDuration::try_from(waited).ok()).unwrap_or_default();
    let seen = now.checked_sub(waited).unwrap_or(now);
    let uid = meta.uid.as_deref();
    uid.map(|uid| trail.tracked_objects.begin_run(uid, followed, meta.generation, seen)).unwrap_or_default()
}

impl Drop for ReconcileSpan {
    fn drop(&mut self) {
        if self.recording && !self.settled {
            self.settle("cancelled", self.run.has_changed());
        }
    }
}

/// A hash of the object's uid and generation.
fn object_generation_hash<K: Resource>(object: &K) -> u64 {
    let meta = object.meta();
    let uid = meta.uid.as_deref().unwrap_or_default();
    xxh3_64(uid.as_bytes()).rotate_left(1) ^ meta.generation.unwrap_or_default().unsigned_abs()
}

/// A hash that is the same for failures of the same class: the same call refused for the same reason; otherwise
/// the same message apart from numbers.
fn failure_class<E: std::error::Error + 'static>(error: &E, refused: u64) -> u64 {
    match api_error(error) {
        Some(status) => xxh3_64(format!("{refused} {} {}", status.code, status.reason).as_bytes()),
        None => {
            let message = error_chain(error);
            let words: Vec<_> =
                message.split(|c: char| c.is_ascii_digit()).filter(|word| !matches!(*word, "" | ".")).collect();
            xxh3_64(words.join("0").as_bytes())
        }
    }
}

fn start_span<K: Resource>(shared: &TrailState, kind: &K::DynamicType, relation: TraceRelation, run: &Run) -> Context {
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

fn run_attributes(cause: &RunCause, before: &PriorRuns, drift: bool, found: Option<&ObjectContext>) -> Vec<KeyValue> {
    let reason = match cause.reason {
        RunReason::Unknown if before.failed => RunReason::Retry,
        RunReason::Requeue if before.failed => RunReason::Retry,
        reason => reason,
    };
    let mut attributes = vec![
        KeyValue::new(attributes::REASON, reason.as_str()),
        KeyValue::new(attributes::ATTEMPT, i64::from(before.attempt)),
    ];
    attributes.extend(cause.queue_wait().map(|wait| KeyValue::new(attributes::QUEUE_WAIT_MS, milliseconds(wait))));
    attributes.extend(cause.related.clone().map(|related| KeyValue::new(attributes::RELATED, related)));
    attributes.extend(drift.then(|| KeyValue::new(attributes::DRIFT, true)));
    attributes.extend(found.map(|found| KeyValue::new(attributes::SOURCE, found.source.as_str())));
    attributes
}

/// Rounds to the microsecond (at most 71 minutes), to avoid noise in the digits.
fn milliseconds(duration: Duration) -> f64 {
    let microseconds = u32::try_from(duration.as_micros()).unwrap_or(u32::MAX);
    f64::from(microseconds) / 1000.0
}

/// The time after which the object is reconciled again, if the reconciler asked for that.
///
/// kube 5.0 has no accessor for it. `PartialEq` tells only whether there is one, so the time is taken from the `Debug`
/// output, whose form a test pins. In any other form the attribute is left out.
fn requeue_attribute(action: &Action) -> Option<KeyValue> {
    if *action == Action::await_change() {
        return None;
    }
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
    fn requeue_time_is_readable_in_this_version_of_kube() {
        let after = |time| requeue_attribute(&Action::requeue(time)).map(|attribute| attribute.value.to_string());
        assert_eq!(after(Duration::from_millis(1500)).as_deref(), Some("1.5s"));
        assert_eq!(after(Duration::from_secs(300)).as_deref(), Some("300s"));
        assert_eq!(requeue_attribute(&Action::await_change()), None);
    }

    #[test]
    fn failures_are_told_apart_by_what_was_refused_and_not_by_numbers() {
        let refusal = |message: &str, reason: &str| {
            let status = kube::core::Status::failure(message, reason).with_code(403);
            kube::Error::Api(Box::new(status))
        };
        let forbidden = failure_class(&refusal("at 12:01", "Forbidden"), 7);
        assert_eq!(forbidden, failure_class(&refusal("at 12:02, or so", "Forbidden"), 7));
        assert_ne!(forbidden, failure_class(&refusal("at 12:01", "Invalid"), 7));
        assert_ne!(forbidden, failure_class(&refusal("at 12:01", "Forbidden"), 8), "another call");
        let other = |text: &str| failure_class(&std::io::Error::other(text.to_owned()), 0);
        assert_eq!(other("attempt 9 took 1.5s"), other("attempt 10 took 22.75s"));
        assert_ne!(other("it is broken"), other("it is lost"));
    }
}
