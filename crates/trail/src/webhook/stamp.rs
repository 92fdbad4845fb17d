//! What a webhook does with an object: the rules, without anything that they are applied to.
//!
//! [`decide`] looks at the object as it was and as it is asked for, and says what to do:
//!
//! | | the writer set a context itself | it did not |
//! | --- | --- | --- |
//! | the object is new, or asks for something else | it [stays](Decision::Keep) | a new one is [stamped](Decision::Stamp) |
//! | it asks for the same as before | it [stays](Decision::Keep) | the one of before is [put back](Decision::Restore) |
//!
//! *A context of the writer's own* is a valid one that the object did not have before, neither as its context nor as the one which that replaced: whoever
//! sends an old copy of an object back sets nothing. It counts only in namespaces whose contexts are believed.
//!
//! Put back means word for word, but for the generation of a Deployment, which counts changes of annotations, too: there it says the next one, so that the context still belongs to the object.
//!
//! *Guaranteed*: no annotation but those of [`Keys`] is changed, and none where nothing is to be said. If webhooks that are called later change the object and this one
//! is asked again, it finds its own stamp, takes it for the writer's, and leaves it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use opentelemetry::trace::SpanContext;
use serde_json::Value;

use crate::{
    carrier::{Annotations, Found, Keys, Source, Stamp, hash},
    relate::counts_annotations,
};

/// What is known of a call.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The object as it was; none for a new one.
    pub old: Option<&'a Value>,
    /// The object as it is asked for.
    pub new: &'a Value,
    /// Whether contexts of writers are believed here.
    pub believed: bool,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The object gets the webhook's own context, which replaces this one.
    Stamp {
        /// The hash of what the object asks for.
        spec: String,
        /// The generation that it will have, where it has any.
        generation: Option<i64>,
        /// What it had before.
        previous: Option<SpanContext>,
    },
    /// The writer's context stays.
    Keep {
        /// The context.
        context: SpanContext,
        /// What the object had before.
        previous: Option<SpanContext>,
        /// What is written beside it; nothing where the writer did so itself.
        beside: Option<Beside>,
    },
    /// What was there before is there again. Nothing at all if the object had no context.
    Restore {
        /// The annotations as they were, word for word.
        entries: Vec<(String, String)>,
    },
}

/// What belongs to a context that the writer set.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// Whether the context itself is under a key of somebody else's, and written under ours.
    pub foreign: bool,
    /// The hash of what the object asks for.
    pub spec: String,
    /// The generation that it will have, if that is known.
    pub generation: Option<i64>,
}

/// Why there is no decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the object's annotations are no map of strings")]
pub struct BadObject;

/// Decides.
pub fn decide(question: Question<'_>, keys: &Keys) -> Result<Decision, BadObject> {
    let new = annotations(question.new)?.unwrap_or_default();
    let old = question.old.map(annotations).transpose()?.flatten().unwrap_or_default();
    let (spec, before) = (hash::of_value(question.new), question.old.map(hash::of_value));
    let has_changed = before.as_ref() != Some(&spec);
    let last = keys.read(Some(&old)).found;
    let generation = match question.old {
        None => Some(1),
        Some(old) if has_changed => generation(old).map(|generation| generation.saturating_add(1)),
        Some(_) => None,
    };
    let own = own_context(&new, &old, keys).filter(|_| question.believed);
    Ok(match (own, last) {
        (Some(own), last) => {
            // Whoever writes the hash, too, knows what it does, and would write it again and again if it were changed here.
            let (foreign, known) = (own.source != Source::Own, last.as_ref().and_then(|last| last.spec.as_ref()));
            let is_whole = !foreign && own.spec.is_some() && own.spec.as_ref() != known;
            let beside = Beside { foreign, spec, generation };
            let previous = last.map(|last| last.context).filter(|context| !same(context, &own.context));
            Decision::Keep { context: own.context, previous, beside: (!is_whole).then_some(beside) }
        }
        (None, last) if has_changed => Decision::Stamp { spec, generation, previous: last.map(|last| last.context) },
        (None, Some(last)) if last.source == Source::Own => {
            let mut entries = keys.entries(Some(&old));
            let others = |annotations: &Annotations| {
                let mut others = annotations.clone();
                keys.all().iter().for_each(|key| drop(others.remove(*key)));
                others
            };
            if others(&old) != others(&new)
                && let Some(next) = annotated(&question, last.generation)
            {
                entries
                    .iter_mut()
                    .filter(|(key, _)| *key == keys.generation)
                    .for_each(|(_, value)| *value = next.to_string());
            }
            Decision::Restore { entries }
        }
        (None, _) => Decision::Restore { entries: keys.entries(Some(&new)) },
    })
}

/// The generation that an object gets as its annotations change, where that counts and the context belongs to the generation before.
fn annotated(question: &Question<'_>, stamped: Option<i64>) -> Option<i64> {
    let old = question.old?;
    let text = |key: &str| question.new.get(key).and_then(Value::as_str).unwrap_or_default();
    let counts = counts_annotations(text("apiVersion").split('/').next().unwrap_or_default(), text("kind"));
    let before = generation(old).filter(|before| counts && stamped == Some(*before))?;
    Some(before.saturating_add(1))
}

/// The context that the writer set itself: under our keys, or else under those of others.
pub(super) fn own_context(new: &Annotations, old: &Annotations, keys: &Keys) -> Option<Found> {
    let others = |annotations: &Annotations| {
        let mut without = annotations.clone();
        without.remove(&keys.traceparent);
        keys.read(Some(&without)).found
    };
    let ours =
        |annotations: &Annotations| keys.read(Some(annotations)).found.filter(|found| found.source == Source::Own);
    is_new(ours(new), ours(old)).or_else(|| is_new(others(new), others(old)))
}

/// What was found, unless it was there before, or before that.
fn is_new(now: Option<Found>, before: Option<Found>) -> Option<Found> {
    let known = |context: &SpanContext| {
        let last = before.as_ref().map(|before| &before.context);
        let replaced = before.as_ref().and_then(|before| before.previous.as_ref());
        last.into_iter().chain(replaced).any(|other| same(other, context))
    };
    now.filter(|now| !known(&now.context))
}

fn same(one: &SpanContext, other: &SpanContext) -> bool {
    one.trace_id() == other.trace_id() && one.span_id() == other.span_id()
}

fn generation(object: &Value) -> Option<i64> {
    object.get("metadata")?.get("generation")?.as_i64()
}

/// The annotations of an object, if it has any.
pub(super) fn annotations(object: &Value) -> Result<Option<Annotations>, BadObject> {
    let metadata = object.get("metadata").and_then(Value::as_object).ok_or(BadObject)?;
    let Some(annotations) = metadata.get("annotations").filter(|annotations| !annotations.is_null()) else {
        return Ok(None);
    };
    let pairs = annotations.as_object().ok_or(BadObject)?.iter();
    pairs
        .map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect::<Option<BTreeMap<_, _>>>()
        .map(Some)
        .ok_or(BadObject)
}

impl Decision {
    /// The context that this call replaces on the object.
    pub fn previous(&self) -> Option<&SpanContext> {
        match self {
            Self::Stamp { previous, .. } | Self::Keep { previous, .. } => previous.as_ref(),
            Self::Restore { .. } => None,
        }
    }

    /// How the annotations under our keys should be. `own` is the context of the webhook, without which there is nothing to stamp.
    pub fn entries(
        &self,
        keys: &Keys,
        own: Option<&SpanContext>,
        now: Timestamp,
        new: &Annotations,
    ) -> Vec<(String, String)> {
        match self {
            Self::Stamp { spec, generation, previous } => own.map_or_else(
                || keys.entries(Some(new)),
                |own| {
                    let (context, spec, previous) = (own.clone(), spec.clone(), previous.clone());
                    Stamp { context, spec, generation: *generation, changed: now, previous }.entries(keys)
                },
            ),
            Self::Keep { beside: None, .. } => keys.entries(Some(new)),
            Self::Keep { context, previous, beside: Some(beside) } => {
                let (context, spec, previous) = (context.clone(), beside.spec.clone(), previous.clone());
                let stamp = Stamp { context, spec, generation: beside.generation, changed: now, previous };
                let mut entries = stamp.entries(keys);
                if !beside.foreign {
                    // The writer's own words stay as they are.
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
