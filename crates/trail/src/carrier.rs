//! Trace context on the annotations of an object.
//!
//! A writer leaves a [`Stamp`]: the context, the hash of the spec that the context belongs to, the generation
//! of that spec, the time of the stamp, and the context that it replaces. [`AnnotationKeys::read`] reads it
//! back, and also reads the annotations of other tools.
//!
//! *Guaranteed*: for any annotations, reading returns a valid context or none, and counts the annotations that
//! could not be read. It looks at a bounded number of bytes. *Not done*: the decision whether to trust a
//! context ([`crate::NamespaceTrust`]).

use std::collections::BTreeMap;

use jiff::Timestamp;
use opentelemetry::trace::SpanContext;

use crate::context;

mod foreign;
pub mod hash;
mod keys;

pub use keys::{AnnotationKeys, InvalidKeyPrefix};

/// The annotations of an object.
pub type Annotations = BTreeMap<String, String>;

/// An upper limit; a valid hash has 32 digits.
const MAX_HASH_LENGTH: usize = 64;
/// RFC 3339 with any fraction and offset.
const MAX_TIMESTAMP_LENGTH: usize = 64;

/// The result of reading the annotations of an object.
#[derive(Clone, Debug, Default)]
pub struct ContextReading {
    /// The context, if there is one.
    pub found: Option<ObjectContext>,
    /// The number of annotations under known keys whose value could not be read.
    pub unreadable: u32,
}

/// A context read from an object, with its details.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectContext {
    /// The context; always valid and remote.
    pub context: SpanContext,
    /// The convention under which the context was found.
    pub source: ContextSource,
    /// The hash of the spec that the context belongs to, as computed by its writer.
    pub spec: Option<String>,
    /// The generation that the context belongs to.
    pub generation: Option<i64>,
    /// The time of the stamp.
    pub stamped_at: Option<Timestamp>,
    /// The context that this one replaced.
    pub previous: Option<SpanContext>,
}

/// The annotation convention under which a context was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextSource {
    /// Our own [`AnnotationKeys`].
    Own,
    /// Tekton's `tekton.dev/…SpanContext`.
    Tekton,
    /// A bare `traceparent` annotation.
    Bare,
    /// `trace.kubernetes.io/context`, from the first proposal for Kubernetes.
    Proposal,
}

impl ContextSource {
    /// The value of the span attribute.
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

impl ObjectContext {
    /// Whether the object was changed after the context was stamped, by a writer that left no context. False
    /// where the stamp has no generation.
    #[must_use]
    pub fn is_outdated(&self, generation: Option<i64>) -> bool {
        matches!((self.generation, generation), (Some(stamped), Some(now)) if now > stamped)
    }
}

/// The annotations that a writer leaves on an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Stamp {
    /// The context that later work on this object continues.
    pub context: SpanContext,
    /// The [hash](hash::hash_value) of the spec that the context belongs to.
    pub spec: String,
    /// The generation of the object with this spec, where the writer knows it: 1 for a new object, the previous
    /// one plus 1 for a changed object.
    pub generation: Option<i64>,
    /// The time of the stamp.
    pub stamped_at: Timestamp,
    /// The context that this one replaces.
    pub previous: Option<SpanContext>,
}

impl Stamp {
    /// The annotations of this stamp.
    #[must_use]
    pub fn entries(&self, keys: &AnnotationKeys) -> Vec<(String, String)> {
        let mut entries = vec![
            (keys.traceparent.clone(), context::traceparent(&self.context)),
            (keys.spec.clone(), self.spec.clone()),
            (keys.stamped_at.clone(), format_timestamp(self.stamped_at)),
        ];
        entries.extend(context::tracestate(&self.context).map(|state| (keys.tracestate.clone(), state)));
        entries.extend(self.generation.map(|generation| (keys.generation.clone(), generation.to_string())));
        entries.extend(self.previous.as_ref().map(|old| (keys.previous.clone(), context::traceparent(old))));
        entries
    }

    /// Writes the stamp to an object and removes every annotation of an earlier stamp.
    pub fn write(&self, keys: &AnnotationKeys, annotations: &mut Annotations) {
        keys.all().iter().for_each(|key| drop(annotations.remove(*key)));
        annotations.extend(self.entries(keys));
    }
}

impl AnnotationKeys {
    /// Reads the context of an object: under our own keys first, then under those of other tools.
    #[must_use]
    pub fn read(&self, annotations: Option<&Annotations>) -> ContextReading {
        let Some(annotations) = annotations else { return ContextReading::default() };
        let mut garbage = 0;
        let own = self.read_own_context(annotations, &mut garbage).map(|context| (context, ContextSource::Own));
        let context = own
            .or_else(|| self.read_foreign.then(|| foreign::read_foreign_context(annotations, &mut garbage)).flatten());
        let Some((context, source)) = context else { return ContextReading { found: None, unreadable: garbage } };
        let text = |key: &str, most: usize, garbage: &mut u32| text_within_limit(annotations.get(key), most, garbage);
        let found = ObjectContext {
            context,
            source,
            spec: text(&self.spec, MAX_HASH_LENGTH, &mut garbage).map(str::to_owned),
            generation: parse_or_count(
                text(&self.generation, MAX_HASH_LENGTH, &mut garbage),
                |text| text.parse().ok(),
                &mut garbage,
            ),
            stamped_at: parse_or_count(
                text(&self.stamped_at, MAX_TIMESTAMP_LENGTH, &mut garbage),
                |text| text.parse().ok(),
                &mut garbage,
            ),
            previous: parse_or_count(annotations.get(&self.previous), |text| context::parse(text, None), &mut garbage),
        };
        ContextReading { found: Some(found), unreadable: garbage }
    }

    /// The annotations under our keys, unchanged, so that they can be kept or restored.
    #[must_use]
    pub fn entries(&self, annotations: Option<&Annotations>) -> Vec<(String, String)> {
        let Some(annotations) = annotations else { return Vec::new() };
        let entry = |key: &&str| annotations.get(*key).map(|value| ((*key).to_owned(), value.clone()));
        self.all().iter().filter_map(entry).collect()
    }

    /// The longest value under this key that is still read.
    pub(crate) fn max_value_length(&self, key: &str) -> usize {
        match key {
            _ if key == self.tracestate => context::MAX_TRACESTATE,
            _ if key == self.traceparent || key == self.previous => context::MAX_TRACEPARENT,
            _ if key == self.stamped_at => MAX_TIMESTAMP_LENGTH,
            _ => MAX_HASH_LENGTH,
        }
    }

    fn read_own_context(&self, annotations: &Annotations, garbage: &mut u32) -> Option<SpanContext> {
        let parent = annotations.get(&self.traceparent)?;
        let state = annotations.get(&self.tracestate).map(String::as_str);
        parse_or_count(Some(parent), |parent| context::parse(parent, state), garbage)
    }
}

/// Whether the generation of this kind also counts changes of annotations. It does for Deployments, because
/// their controller copies the annotations.
#[must_use]
pub fn counts_annotations(group: &str, kind: &str) -> bool {
    (group, kind) == ("apps", "Deployment")
}

/// Microsecond precision is enough to order the writes of one cluster.
fn format_timestamp(at: Timestamp) -> String {
    format!("{at:.6}")
}

fn text_within_limit<'a>(text: Option<&'a String>, most: usize, garbage: &mut u32) -> Option<&'a str> {
    let text = text?;
    if text.len() > most {
        *garbage += 1;
        return None;
    }
    Some(text)
}

fn parse_or_count<T: AsRef<str>, V>(
    text: Option<T>,
    parse: impl FnOnce(&str) -> Option<V>,
    garbage: &mut u32,
) -> Option<V> {
    let value = parse(text?.as_ref());
    *garbage += u32::from(value.is_none());
    value
}

#[cfg(test)]
mod tests;
