//! The effect of a deletion on an object: grace periods, finalizers of the garbage collector, and the rules of
//! single kinds.

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::DeletionOutcome;
use crate::{
    api::{
        StatusError, identity,
        meta::{MetaAccessor, remove_meta, set_meta},
        status::StatusDetails,
    },
    codec::query::{DeleteOptions, DeletionPropagation},
    controller::definitions,
    handler::{
        call::ResourceRequest,
        metadata,
        subresource::{self},
    },
    server_state::has_namespace_finalizers,
};

/// The two finalizers that the garbage collector handles.
const FOREGROUND_FINALIZER: &str = "foregroundDeletion";
const ORPHAN_FINALIZER: &str = "orphan";

const JOB_WARNING: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
                           them or set propagationPolicy=Orphan to suppress this warning";

/// How to carry out a deletion.
#[derive(Debug)]
pub enum DeletionPlan {
    /// The object is being deleted already and does not change.
    Nothing,
    /// Store this state until nothing keeps the object.
    Mark(Value),
    /// Store this state, so that watchers see it, and remove the object.
    MarkAndRemove(Value),
    Remove(Value),
}

impl DeletionPlan {
    /// The outcome that a dry run reports.
    pub fn dry_run_outcome(self, unchanged: Value) -> DeletionOutcome {
        match self {
            Self::Nothing => DeletionOutcome::Marked(unchanged),
            Self::Mark(object) => DeletionOutcome::Marked(object),
            Self::MarkAndRemove(object) | Self::Remove(object) => DeletionOutcome::Gone(object),
        }
    }
}

/// The default for the dependents of a kind's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GarbageCollectionPolicy {
    DeleteDependents,
    /// The behaviour from before there was a garbage collector.
    OrphanDependents,
    /// The kind has no dependents; options about them are ignored.
    Unsupported,
}

fn default_gc_policy(on: ResourceRequest<'_>) -> GarbageCollectionPolicy {
    match (&*on.resource.gv.group, &*on.resource.plural) {
        ("batch", "jobs") | ("", "replicationcontrollers") => GarbageCollectionPolicy::OrphanDependents,
        ("" | "events.k8s.io", "events") => GarbageCollectionPolicy::Unsupported,
        _ => GarbageCollectionPolicy::DeleteDependents,
    }
}

/// Warns about a deletion of jobs that does not say what happens to their pods.
pub fn warn_job_dependents(on: ResourceRequest<'_>, options: &DeleteOptions) {
    let is_job = on.resource.gv.group.as_ref() == "batch" && &*on.resource.plural == "jobs";
    if is_job && options.propagation().is_none() {
        on.call.warnings.add(JOB_WARNING);
    }
}

fn is_namespace(on: ResourceRequest<'_>) -> bool {
    on.resource.gv.group.is_empty() && &*on.resource.plural == "namespaces"
}

fn is_definition(on: ResourceRequest<'_>) -> bool {
    on.collection() == definitions::collection()
}

/// Refuses an object without the expected uid or resourceVersion. Two kinds have messages of their own.
pub fn check_preconditions(on: ResourceRequest<'_>, options: &DeleteOptions, live: &Value) -> Result<(), StatusError> {
    let of_its_own = is_namespace(on) || is_definition(on);
    let differs = |wanted: &Option<String>, found: &str| wanted.clone().filter(|wanted| wanted != found);
    let (name, wanted, found, event) = if let Some(wanted) = differs(&options.uid, live.uid()) {
        ("UID", wanted, live.uid(), "deleted and then recreated")
    } else if let Some(wanted) = differs(&options.resource_version, live.resource_version()) {
        ("ResourceVersion", wanted, live.resource_version(), "modified")
    } else {
        return Ok(());
    };
    if of_its_own {
        let why = format!("Precondition failed: {name} in precondition: {wanted}, {name} in object meta: {found}");
        return Err(StatusError::conflict(&on.collection(), &on.path.name, &why));
    }
    let message = format!(
        "Operation cannot be fulfilled on {} {:?}: the {name} in the precondition ({wanted}) does not match the {name} in record \
         ({found}). The object might have been {event}",
        conflict_kind(on),
        on.path.name
    );
    let details = StatusDetails {
        name: on.path.name.clone(),
        group: on.resource.gv.group.to_string(),
        kind: on.resource.kind.to_string(),
        ..StatusDetails::default()
    };
    Err(StatusError::new(StatusCode::CONFLICT, "Conflict", message).with(details))
}

/// The kind, where other messages have the resource.
fn conflict_kind(on: ResourceRequest<'_>) -> String {
    if on.resource.gv.group.is_empty() {
        on.resource.kind.to_string()
    } else {
        format!("{}.{}", on.resource.kind, on.resource.gv.group)
    }
}

/// Plans the deletion of an object.
pub fn plan(on: ResourceRequest<'_>, options: &DeleteOptions, mut object: Value) -> DeletionPlan {
    let now = on.core().now();
    if is_namespace(on) && object.is_deleting() && has_namespace_finalizers(&object) {
        return DeletionPlan::Nothing;
    }
    let begins = !object.is_deleting();
    if begins {
        on.served_resource().strategy.prepare_delete(&mut object, &now);
    }
    if begins && is_definition(on) {
        metadata::mark_deleted(&mut object, &now, None);
        return DeletionPlan::Mark(object);
    }
    if begins && is_namespace(on) {
        set_gc_finalizers(on, options, &mut object);
        metadata::mark_deleted(&mut object, &now, None);
        subresource::mark_terminating(&mut object);
        return DeletionPlan::Mark(object);
    }
    let grace = set_grace_period(on, options, &mut object);
    if grace == GracefulDeletion::Pending {
        return DeletionPlan::Nothing;
    }
    set_gc_finalizers(on, options, &mut object);
    let is_kept = object.finalizers().next().is_some();
    match grace {
        GracefulDeletion::Given(0) if !is_kept => DeletionPlan::MarkAndRemove(object),
        GracefulDeletion::Given(_) => DeletionPlan::Mark(object),
        _ if is_kept => {
            metadata::mark_deleted(&mut object, &now, Some(0));
            DeletionPlan::Mark(object)
        }
        _ => DeletionPlan::Remove(object),
    }
}

/// The grace period of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GracefulDeletion {
    /// The kind has no grace periods, or that of this object is over.
    None,
    /// The object has one already, which is not longer than the requested one.
    Pending,
    /// The object has this many seconds from now on.
    Given(i64),
}

/// Sets the grace period of an object, or shortens the one it has.
fn set_grace_period(on: ResourceRequest<'_>, options: &DeleteOptions, object: &mut Value) -> GracefulDeletion {
    let asked = options.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
    let Some(given) = on.served_resource().strategy.grace_period(object, asked) else { return GracefulDeletion::None };
    let now = on.core().time();
    if !object.is_deleting() {
        let end = now.saturating_add(SignedDuration::from_secs(given)).unwrap_or(now);
        metadata::mark_deleted(object, &identity::time(end), Some(given));
        return GracefulDeletion::Given(given);
    }
    let current = object.meta("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    match asked {
        _ if current == 0 => GracefulDeletion::None,
        Some(asked) if asked < current => GracefulDeletion::Given(shorten(object, now, current, asked)),
        _ => GracefulDeletion::Pending,
    }
}

/// Shortens a grace period. One that should have ended already ends now, and lasts a second unless zero was
/// requested.
fn shorten(object: &mut Value, now: Timestamp, current: i64, asked: i64) -> i64 {
    let end = object.meta("deletionTimestamp").and_then(Value::as_str).and_then(|end| end.parse::<Timestamp>().ok());
    let earlier = end.and_then(|end| end.saturating_sub(SignedDuration::from_secs(current.saturating_sub(asked))).ok());
    let (end, seconds) = match earlier.filter(|earlier| *earlier >= now) {
        Some(earlier) => (earlier, asked),
        None => (now, asked.min(1)),
    };
    set_meta(object, "deletionTimestamp", identity::time(end));
    set_meta(object, "deletionGracePeriodSeconds", seconds);
    seconds
}

/// Adds or removes the finalizers of the garbage collector, as the options, the object or its kind require.
fn set_gc_finalizers(on: ResourceRequest<'_>, options: &DeleteOptions, object: &mut Value) {
    let policy = default_gc_policy(on);
    let asked = options.propagation().filter(|_| policy != GarbageCollectionPolicy::Unsupported);
    let present = object.finalizers().find(|finalizer| matches!(*finalizer, ORPHAN_FINALIZER | FOREGROUND_FINALIZER));
    let wanted = match (asked, present) {
        _ if policy == GarbageCollectionPolicy::Unsupported => None,
        (Some(DeletionPropagation::Foreground), _) => Some(FOREGROUND_FINALIZER),
        (Some(DeletionPropagation::Orphan), _) => Some(ORPHAN_FINALIZER),
        (Some(DeletionPropagation::Background), _) => None,
        (None, Some(ORPHAN_FINALIZER)) => Some(ORPHAN_FINALIZER),
        (None, Some(_)) => Some(FOREGROUND_FINALIZER),
        (None, None) if policy == GarbageCollectionPolicy::OrphanDependents => Some(ORPHAN_FINALIZER),
        (None, None) => None,
    };
    if wanted == present {
        return;
    }
    let others = object.finalizers().filter(|finalizer| !matches!(*finalizer, ORPHAN_FINALIZER | FOREGROUND_FINALIZER));
    let finalizers: Vec<String> = others.chain(wanted).map(str::to_owned).collect();
    if finalizers.is_empty() {
        drop(remove_meta(object, "finalizers"))
    } else {
        set_meta(object, "finalizers", finalizers)
    }
}
