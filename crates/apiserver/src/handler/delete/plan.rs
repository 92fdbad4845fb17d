//! What a deletion makes of an object: grace periods, finalizers of the garbage collector, and kinds that end in their own way.

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Deleted;
use crate::{
    api::{
        Status, identity,
        meta::{Meta, remove_meta, set_meta},
        status::Details,
    },
    codec::query::{DeleteOptions, Propagation},
    controller::definitions,
    core::has_namespace_finalizers,
    handler::{
        call::On,
        metadata,
        subresource::{self},
    },
};

/// The garbage collector looks after these two.
const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

const JOB_WARNING: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
                           them or set propagationPolicy=Orphan to suppress this warning";

/// What is to be done.
#[derive(Debug)]
pub enum Plan {
    /// It is being deleted already, and stays as it is.
    Nothing,
    /// It is stored like this until nothing keeps it.
    Mark(Value),
    /// It is stored like this, so that watchers see it, and removed.
    MarkAndRemove(Value),
    /// It is removed.
    Remove(Value),
}

impl Plan {
    /// What a dry run answers.
    pub fn outcome(self, unchanged: Value) -> Deleted {
        match self {
            Self::Nothing => Deleted::Marked(unchanged),
            Self::Mark(object) => Deleted::Marked(object),
            Self::MarkAndRemove(object) | Self::Remove(object) => Deleted::Gone(object),
        }
    }
}

/// What becomes of the dependents of a kind's objects if nobody says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Default {
    Delete,
    /// As it was before there was a garbage collector.
    Orphan,
    /// The kind has no dependents, and takes no orders about them.
    Unsupported,
}

fn default_policy(on: On<'_>) -> Default {
    match (&*on.resource.gv.group, &*on.resource.plural) {
        ("batch", "jobs") | ("", "replicationcontrollers") => Default::Orphan,
        ("" | "events.k8s.io", "events") => Default::Unsupported,
        _ => Default::Delete,
    }
}

/// Tells whoever deletes jobs without saying what becomes of their pods.
pub fn warn(on: On<'_>, options: &DeleteOptions) {
    let is_job = on.resource.gv.group.as_ref() == "batch" && &*on.resource.plural == "jobs";
    if is_job && options.propagation().is_none() {
        on.call.warnings.add(JOB_WARNING);
    }
}

fn is_namespace(on: On<'_>) -> bool {
    on.resource.gv.group.is_empty() && &*on.resource.plural == "namespaces"
}

fn is_definition(on: On<'_>) -> bool {
    on.collection() == definitions::collection()
}

/// Refuses what does not have the uid or resourceVersion that the caller expects. Two kinds say so in other words.
pub fn check(on: On<'_>, options: &DeleteOptions, live: &Value) -> Result<(), Status> {
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
        return Err(Status::conflict(&on.collection(), &on.path.name, &why));
    }
    let message = format!(
        "Operation cannot be fulfilled on {} {:?}: the {name} in the precondition ({wanted}) does not match the {name} in record \
         ({found}). The object might have been {event}",
        conflict_kind(on),
        on.path.name
    );
    let details = Details {
        name: on.path.name.clone(),
        group: on.resource.gv.group.to_string(),
        kind: on.resource.kind.to_string(),
        ..Details::default()
    };
    Err(Status::new(StatusCode::CONFLICT, "Conflict", message).with(details))
}

/// A kind where other messages have a resource.
fn conflict_kind(on: On<'_>) -> String {
    match on.resource.gv.group.is_empty() {
        true => on.resource.kind.to_string(),
        false => format!("{}.{}", on.resource.kind, on.resource.gv.group),
    }
}

/// What a deletion makes of an object.
pub fn plan(on: On<'_>, options: &DeleteOptions, mut object: Value) -> Plan {
    let now = on.core().now();
    if is_namespace(on) && object.is_deleting() && has_namespace_finalizers(&object) {
        return Plan::Nothing;
    }
    let begins = !object.is_deleting();
    if begins {
        on.shown().strategy.prepare_delete(&mut object, &now);
    }
    if begins && is_definition(on) {
        metadata::mark_deleted(&mut object, &now, None);
        return Plan::Mark(object);
    }
    if begins && is_namespace(on) {
        keep_finalizers(on, options, &mut object);
        metadata::mark_deleted(&mut object, &now, None);
        subresource::mark_terminating(&mut object);
        return Plan::Mark(object);
    }
    let grace = give_grace(on, options, &mut object);
    if grace == Grace::Pending {
        return Plan::Nothing;
    }
    keep_finalizers(on, options, &mut object);
    let is_kept = object.finalizers().next().is_some();
    match grace {
        Grace::Given(0) if !is_kept => Plan::MarkAndRemove(object),
        Grace::Given(_) => Plan::Mark(object),
        _ if is_kept => {
            metadata::mark_deleted(&mut object, &now, Some(0));
            Plan::Mark(object)
        }
        _ => Plan::Remove(object),
    }
}

/// How long an object stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grace {
    /// The kind has no grace periods, or this object's is over.
    None,
    /// It has one already, which is not longer than what is asked for.
    Pending,
    /// It has these seconds from now on.
    Given(i64),
}

/// Gives an object its grace period, or a shorter one than it has.
fn give_grace(on: On<'_>, options: &DeleteOptions, object: &mut Value) -> Grace {
    let asked = options.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
    let Some(given) = on.shown().strategy.grace_period(object, asked) else { return Grace::None };
    let now = on.core().time();
    if !object.is_deleting() {
        let end = now.saturating_add(SignedDuration::from_secs(given)).unwrap_or(now);
        metadata::mark_deleted(object, &identity::time(end), Some(given));
        return Grace::Given(given);
    }
    let current = object.meta("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    match asked {
        _ if current == 0 => Grace::None,
        Some(asked) if asked < current => Grace::Given(shorten(object, now, current, asked)),
        _ => Grace::Pending,
    }
}

/// A grace period that was to end already ends now, and lasts a second unless there is to be none.
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

/// Adds or removes the finalizers of the garbage collector, as the caller, the object or its kind wants it.
fn keep_finalizers(on: On<'_>, options: &DeleteOptions, object: &mut Value) {
    let policy = default_policy(on);
    let asked = options.propagation().filter(|_| policy != Default::Unsupported);
    let present = object.finalizers().find(|finalizer| matches!(*finalizer, ORPHAN | FOREGROUND));
    let wanted = match (asked, present) {
        _ if policy == Default::Unsupported => None,
        (Some(Propagation::Foreground), _) => Some(FOREGROUND),
        (Some(Propagation::Orphan), _) => Some(ORPHAN),
        (Some(Propagation::Background), _) => None,
        (None, Some(ORPHAN)) => Some(ORPHAN),
        (None, Some(_)) => Some(FOREGROUND),
        (None, None) if policy == Default::Orphan => Some(ORPHAN),
        (None, None) => None,
    };
    if wanted == present {
        return;
    }
    let others = object.finalizers().filter(|finalizer| !matches!(*finalizer, ORPHAN | FOREGROUND));
    let finalizers: Vec<String> = others.chain(wanted).map(str::to_owned).collect();
    match finalizers.is_empty() {
        true => drop(remove_meta(object, "finalizers")),
        false => set_meta(object, "finalizers", finalizers),
    }
}
