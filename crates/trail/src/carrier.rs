//! Trace context on the annotations of an object.
//!
//! A [`Stamp`] is what a writer leaves: the context, the hash of the spec that it belongs to, the generation that this spec gets, when it was
//! stamped, and the context that it replaces. [`Keys::read`] finds it again, also where others left theirs.
//!
//! Guaranteed: whatever stands in the annotations, reading gives a valid context or none, and counts what it could not read. Reading
//! looks at a bounded number of bytes.
//! Not done: whether a context is believed ([`crate::trust`]).

use std::collections::BTreeMap;

use jiff::Timestamp;
use opentelemetry::trace::SpanContext;

use crate::context;

pub mod hash;
mod keys;
mod others;

pub use keys::{BadPrefix, Keys};

/// Annotations, as objects have them.
pub type Annotations = BTreeMap<String, String>;

/// A hash is 32 digits; what is longer than this is none.
const MAX_HASH: usize = 64;
/// RFC 3339 with any fraction and offset.
const MAX_TIME: usize = 64;

/// What was found on an object.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The context, if there is one.
    pub found: Option<Found>,
    /// Annotations that should hold something and hold nothing that can be read.
    pub garbage: u32,
}

/// A context with what is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The context, always valid and remote.
    pub context: SpanContext,
    /// Who left it.
    pub source: Source,
    /// The hash of the spec that the context belongs to, as its writer saw the spec.
    pub spec: Option<String>,
    /// The generation that the context belongs to.
    pub generation: Option<i64>,
    /// When it was stamped.
    pub changed: Option<Timestamp>,
    /// The context that it replaced.
    pub previous: Option<SpanContext>,
}

/// Who left a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Our own keys.
    Own,
    /// Tekton's `tekton.dev/…SpanContext`.
    Tekton,
    /// An annotation that is called just `traceparent`.
    Bare,
    /// `trace.kubernetes.io/context`, of the first proposal for Kubernetes.
    Proposal,
}

impl Source {
    /// Its name, as spans have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Own => "trail",
            Self::Tekton => "tekton",
            Self::Bare => "traceparent",
            Self::Proposal => "trace.kubernetes.io",
        }
    }
}

impl Found {
    /// Whether the object was changed after the context was stamped, by somebody who left no context. Nothing is known without a generation.
    #[must_use]
    pub fn is_outdated(&self, generation: Option<i64>) -> bool {
        matches!((self.generation, generation), (Some(stamped), Some(now)) if now > stamped)
    }
}

/// What a writer leaves on an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Stamp {
    /// The context that whoever works on this object continues.
    pub context: SpanContext,
    /// The [hash](hash::of_value) of the spec that it belongs to.
    pub spec: String,
    /// The generation that the object has with this spec, where the writer knows: 1 for a new object, one more than before for a changed one.
    pub generation: Option<i64>,
    /// Now.
    pub changed: Timestamp,
    /// The context that this one replaces.
    pub previous: Option<SpanContext>,
}

impl Stamp {
    /// The annotations that say this.
    #[must_use]
    pub fn entries(&self, keys: &Keys) -> Vec<(String, String)> {
        let mut entries = vec![
            (keys.traceparent.clone(), context::traceparent(&self.context)),
            (keys.spec.clone(), self.spec.clone()),
            (keys.changed.clone(), time(self.changed)),
        ];
        entries.extend(context::tracestate(&self.context).map(|state| (keys.tracestate.clone(), state)));
        entries.extend(self.generation.map(|generation| (keys.generation.clone(), generation.to_string())));
        entries.extend(self.previous.as_ref().map(|old| (keys.previous.clone(), context::traceparent(old))));
        entries
    }

    /// Leaves the stamp on an object, and nothing of an earlier one.
    pub fn write(&self, keys: &Keys, annotations: &mut Annotations) {
        keys.all().iter().for_each(|key| drop(annotations.remove(*key)));
        annotations.extend(self.entries(keys));
    }
}

impl Keys {
    /// Looks for a context: under our own keys first, then where others leave theirs.
    #[must_use]
    pub fn read(&self, annotations: Option<&Annotations>) -> Reading {
        let Some(annotations) = annotations else { return Reading::default() };
        let mut garbage = 0;
        let own = self.context(annotations, &mut garbage).map(|context| (context, Source::Own));
        let context = own.or_else(|| self.others.then(|| others::read(annotations, &mut garbage)).flatten());
        let Some((context, source)) = context else { return Reading { found: None, garbage } };
        let text = |key: &str, most: usize, garbage: &mut u32| checked(annotations.get(key), most, garbage);
        let found = Found {
            context,
            source,
            spec: text(&self.spec, MAX_HASH, &mut garbage).map(str::to_owned),
            generation: parsed(text(&self.generation, MAX_HASH, &mut garbage), |text| text.parse().ok(), &mut garbage),
            changed: parsed(text(&self.changed, MAX_TIME, &mut garbage), |text| text.parse().ok(), &mut garbage),
            previous: parsed(annotations.get(&self.previous), |text| context::parse(text, None), &mut garbage),
        };
        Reading { found: Some(found), garbage }
    }

    /// What stands under our keys, word for word, so that it can be left as it is or put back.
    #[must_use]
    pub fn entries(&self, annotations: Option<&Annotations>) -> Vec<(String, String)> {
        let Some(annotations) = annotations else { return Vec::new() };
        let entry = |key: &&str| annotations.get(*key).map(|value| ((*key).to_owned(), value.clone()));
        self.all().iter().filter_map(entry).collect()
    }

    /// How long a text under this key is that can still be read.
    pub(crate) fn longest(&self, key: &str) -> usize {
        match key {
            _ if key == self.tracestate => context::MAX_TRACESTATE,
            _ if key == self.traceparent || key == self.previous => context::MAX_TRACEPARENT,
            _ if key == self.changed => MAX_TIME,
            _ => MAX_HASH,
        }
    }

    fn context(&self, annotations: &Annotations, garbage: &mut u32) -> Option<SpanContext> {
        let parent = annotations.get(&self.traceparent)?;
        let state = annotations.get(&self.tracestate).map(String::as_str);
        parsed(Some(parent), |parent| context::parse(parent, state), garbage)
    }
}

/// Microseconds: enough to order what one cluster does.
fn time(at: Timestamp) -> String {
    format!("{at:.6}")
}

fn checked<'a>(text: Option<&'a String>, most: usize, garbage: &mut u32) -> Option<&'a str> {
    let text = text?;
    if text.len() > most {
        *garbage += 1;
        return None;
    }
    Some(text)
}

fn parsed<T: AsRef<str>, V>(text: Option<T>, parse: impl FnOnce(&str) -> Option<V>, garbage: &mut u32) -> Option<V> {
    let value = parse(text?.as_ref());
    *garbage += u32::from(value.is_none());
    value
}

#[cfg(test)]
mod tests;
