//! The stamping rules of a webhook, independent of the service around them.
//!
//! [`decide`] compares the old and the new object and decides:
//!
//! - If the writer set a context itself, that context [stays](StampDecision::Keep).
//! - Otherwise, if the object is new or its desired state changes, a new context is
//!   [stamped](StampDecision::Stamp).
//! - Otherwise the previous context is [restored](StampDecision::Restore).
//!
//! *A context of the writer* is a valid one that the object did not have before, neither as its context nor as
//! the one that this replaced: a writer that sends an old copy of an object back sets no context. It counts
//! only in namespaces whose contexts are trusted.
//!
//! A context is restored unchanged, except for its generation on a Deployment, whose generation also counts
//! changes of annotations: there the next generation is written, so that the context still belongs to the
//! object.
//!
//! *Guaranteed*: only annotations of [`AnnotationKeys`] are changed, and only where necessary. If later
//! webhooks change the object and this one is invoked again, it finds its own stamp, takes it for the writer's,
//! and keeps it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kubewake_trail::carrier::{
    AnnotationKeys, Annotations, ContextSource, ObjectContext, Stamp, counts_annotations, hash,
};
use opentelemetry::trace::SpanContext;
use serde_json::Value;

/// The inputs of a decision.
#[derive(Clone, Copy, Debug)]
pub struct StampInput<'a> {
    /// The existing object; none for a new one.
    pub old: Option<&'a Value>,
    /// The new object.
    pub new: &'a Value,
    /// Whether contexts of writers are trusted in this namespace.
    pub is_trusted: bool,
}

/// The decision about an object.
#[derive(Clone, Debug, PartialEq)]
pub enum StampDecision {
    /// The object gets the webhook's own context.
    Stamp {
        /// The hash of the desired state.
        spec: String,
        /// The generation that the object will have, if it has one.
        generation: Option<i64>,
        /// The context that is replaced.
        previous: Option<SpanContext>,
    },
    /// The writer's context stays.
    Keep {
        /// The context.
        context: SpanContext,
        /// The context that the object had before.
        previous: Option<SpanContext>,
        /// The details to write beside the context; none where the writer wrote them.
        details: Option<StampDetails>,
    },
    /// The previous annotations are restored; none if the object had no context.
    Restore {
        /// The annotations, unchanged.
        entries: Vec<(String, String)>,
    },
}

/// The details of a context that the writer set.
#[derive(Clone, Debug, PartialEq)]
pub struct StampDetails {
    /// Whether the context is under a key of another tool and is copied to ours.
    pub is_foreign: bool,
    /// The hash of the desired state.
    pub spec: String,
    /// The generation that the object will have, if it is known.
    pub generation: Option<i64>,
}

/// The annotations of the object are malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("metadata.annotations is not a map of strings")]
pub struct InvalidAnnotations;

/// Decides what to do with an object.
pub fn decide(input: StampInput<'_>, keys: &AnnotationKeys) -> Result<StampDecision, InvalidAnnotations> {
    let new = object_annotations(input.new)?.unwrap_or_default();
    let old = input.old.map(object_annotations).transpose()?.flatten().unwrap_or_default();
    let spec = hash::hash_value(input.new);
    let before = input.old.map(hash::hash_value);
    let has_changed = before.as_ref() != Some(&spec);
    let last = keys.read(Some(&old)).found;
    let generation = match input.old {
        None => Some(1),
        Some(old) if has_changed => object_generation(old).map(|generation| generation.saturating_add(1)),
        Some(_) => None,
    };
    let own = writer_context(&new, &old, keys).filter(|_| input.is_trusted);
    Ok(match (own, last) {
        (Some(own), last) => {
            // A writer that also writes the hash uses this convention itself. Changing its hash would make it
            // write again and again.
            let is_foreign = own.source != ContextSource::Own;
            let last_spec = last.as_ref().and_then(|last| last.spec.as_ref());
            let is_whole = !is_foreign && own.spec.is_some() && own.spec.as_ref() != last_spec;
            let details = StampDetails { is_foreign, spec, generation };
            let previous = last.map(|last| last.context).filter(|context| !is_same_span(context, &own.context));
            StampDecision::Keep { context: own.context, previous, details: (!is_whole).then_some(details) }
        }
        (None, last) if has_changed => {
            StampDecision::Stamp { spec, generation, previous: last.map(|last| last.context) }
        }
        (None, Some(last)) if last.source == ContextSource::Own => {
            let mut entries = keys.entries(Some(&old));
            let others = |annotations: &Annotations| {
                let mut others = annotations.clone();
                keys.all().iter().for_each(|key| drop(others.remove(*key)));
                others
            };
            if others(&old) != others(&new)
                && let Some(next) = generation_after_annotating(&input, last.generation)
            {
                entries
                    .iter_mut()
                    .filter(|(key, _)| *key == keys.generation)
                    .for_each(|(_, value)| *value = next.to_string());
            }
            StampDecision::Restore { entries }
        }
        (None, _) => StampDecision::Restore { entries: keys.entries(Some(&new)) },
    })
}

/// The generation of an object after a change of its annotations, if its kind counts these and the context
/// belongs to the generation before.
fn generation_after_annotating(input: &StampInput<'_>, stamped: Option<i64>) -> Option<i64> {
    let old = input.old?;
    let text = |key: &str| input.new.get(key).and_then(Value::as_str).unwrap_or_default();
    let counts = counts_annotations(text("apiVersion").split('/').next().unwrap_or_default(), text("kind"));
    let before = object_generation(old).filter(|before| counts && stamped == Some(*before))?;
    Some(before.saturating_add(1))
}

/// The context that the writer set: under our keys, or else under those of other tools.
pub(super) fn writer_context(new: &Annotations, old: &Annotations, keys: &AnnotationKeys) -> Option<ObjectContext> {
    let others = |annotations: &Annotations| {
        let mut without = annotations.clone();
        without.remove(&keys.traceparent);
        keys.read(Some(&without)).found
    };
    let ours = |annotations: &Annotations| {
        keys.read(Some(annotations)).found.filter(|found| found.source == ContextSource::Own)
    };
    if_new(ours(new), ours(old)).or_else(|| if_new(others(new), others(old)))
}

/// The context, unless it is the one that the object had before or the one that this replaced.
fn if_new(now: Option<ObjectContext>, before: Option<ObjectContext>) -> Option<ObjectContext> {
    let known = |context: &SpanContext| {
        let last = before.as_ref().map(|before| &before.context);
        let replaced = before.as_ref().and_then(|before| before.previous.as_ref());
        last.into_iter().chain(replaced).any(|other| is_same_span(other, context))
    };
    now.filter(|now| !known(&now.context))
}

fn is_same_span(one: &SpanContext, other: &SpanContext) -> bool {
    one.trace_id() == other.trace_id() && one.span_id() == other.span_id()
}

fn object_generation(object: &Value) -> Option<i64> {
    object.get("metadata")?.get("generation")?.as_i64()
}

/// The annotations of an object, if it has any.
pub(super) fn object_annotations(object: &Value) -> Result<Option<Annotations>, InvalidAnnotations> {
    let metadata = object.get("metadata").and_then(Value::as_object).ok_or(InvalidAnnotations)?;
    let Some(annotations) = metadata.get("annotations").filter(|annotations| !annotations.is_null()) else {
        return Ok(None);
    };
    let pairs = annotations.as_object().ok_or(InvalidAnnotations)?.iter();
    pairs
        .map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect::<Option<BTreeMap<_, _>>>()
        .map(Some)
        .ok_or(InvalidAnnotations)
}

impl StampDecision {
    /// The context that this call replaces on the object.
    pub fn previous(&self) -> Option<&SpanContext> {
        match self {
            Self::Stamp { previous, .. } | Self::Keep { previous, .. } => previous.as_ref(),
            Self::Restore { .. } => None,
        }
    }

    /// The desired annotations under our keys. `own` is the context of the webhook; without it nothing new is
    /// stamped.
    pub fn entries(
        &self,
        keys: &AnnotationKeys,
        own: Option<&SpanContext>,
        now: Timestamp,
        new: &Annotations,
    ) -> Vec<(String, String)> {
        match self {
            Self::Stamp { spec, generation, previous } => own.map_or_else(
                || keys.entries(Some(new)),
                |own| {
                    let context = own.clone();
                    let spec = spec.clone();
                    let previous = previous.clone();
                    Stamp { context, spec, generation: *generation, stamped_at: now, previous }.entries(keys)
                },
            ),
            Self::Keep { details: None, .. } => keys.entries(Some(new)),
            Self::Keep { context, previous, details: Some(beside) } => {
                let context = context.clone();
                let spec = beside.spec.clone();
                let previous = previous.clone();
                let stamp = Stamp { context, spec, generation: beside.generation, stamped_at: now, previous };
                let mut entries = stamp.entries(keys);
                if !beside.is_foreign {
                    // The writer's own values stay unchanged.
                    let is_theirs = |key: &String| *key == keys.traceparent || *key == keys.tracestate;
                    entries.retain(|(key, _)| !is_theirs(key));
                    entries.extend(keys.entries(Some(new)).into_iter().filter(|(key, _)| is_theirs(key)));
                }
                entries
            }
            Self::Restore { entries } => entries.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
