//! Which traces are wanted.
//!
//! Service, operation, kind, attributes and object must be those of one span together. Durations, times and errors are the trace's, as results show
//! them, except for [`Filter::span_duration`], which is the span's, as in Jaeger.

use std::ops::RangeInclusive;

use kubewake_otlp::view::Attributes;

use super::objects::Key;
use crate::{
    json,
    store::{Chunk, Object, SpanRef, Trace, mark},
};

/// What a trace must have.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// A span of this service.
    pub service: Option<String>,
    /// Its name.
    pub operation: Option<String>,
    /// Its kind.
    pub span_kind: Option<u8>,
    /// Its attributes, those of its resource, or of one of its events.
    pub attributes: Vec<(String, String)>,
    /// The object that it is about.
    pub object: ObjectFilter,
    /// How long it took.
    pub span_duration: Option<RangeInclusive<u64>>,
    /// How long the trace took.
    pub duration: Option<RangeInclusive<u64>>,
    /// When the trace began.
    pub start: Option<RangeInclusive<u64>>,
    /// Whether something must have failed in it.
    pub errors: bool,
    /// How its id begins.
    pub id: Option<String>,
}

/// An object, or all of a kind, of a namespace, of a name. Kinds are compared as kubectl does: `Head`, `head` and `heads` are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectFilter {
    /// Its kind.
    pub kind: Option<String>,
    /// Its namespace; empty: it has none.
    pub namespace: Option<String>,
    /// Its name.
    pub name: Option<String>,
}

impl ObjectFilter {
    /// Whether any object will do, or none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether this is one.
    pub fn matches(&self, object: &Object) -> bool {
        self.is(&object.kind, &object.namespace, &object.name)
    }

    /// Whether this is the name of one.
    pub fn matches_key(&self, key: &Key) -> bool {
        self.is(&key.kind, &key.namespace, &key.name)
    }

    fn is(&self, kind: &str, namespace: &str, name: &str) -> bool {
        self.kind.as_deref().is_none_or(|wanted| is_kind(kind, wanted))
            && self.namespace.as_deref().is_none_or(|wanted| namespace == wanted)
            && self.name.as_deref().is_none_or(|wanted| name == wanted)
    }
}

/// Whether somebody who writes `asked` means this kind.
pub(crate) fn is_kind(kind: &str, asked: &str) -> bool {
    // A span may name a kind as no API server would, with dots in it.
    let short = asked.split_once('.').map_or(asked, |(kind, _)| kind);
    if [asked, short].iter().any(|asked| kind.eq_ignore_ascii_case(asked)) {
        return true;
    }
    let (kind, asked) = (kind.to_ascii_lowercase(), short.to_ascii_lowercase());
    let plural = match kind.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if kind.ends_with(['s', 'x']) => format!("{kind}es"),
        _ => format!("{kind}s"),
    };
    asked == plural
}

impl Filter {
    /// Whether a trace is wanted.
    pub fn matches(&self, trace: &Trace) -> bool {
        self.matches_whole(trace)
            && (!self.asks_for_span() || trace.chunks.iter().any(|chunk| self.matches_chunk(chunk)))
    }

    /// Whether a span is wanted. What is asked of the trace is asked of the span.
    pub fn matches_span(&self, span: SpanRef<'_>) -> bool {
        let entry = span.entry;
        (!self.errors || entry.is_error())
            && self.duration.as_ref().is_none_or(|range| range.contains(&entry.duration()))
            && self.service.as_deref().is_none_or(|service| span.service() == service)
            && self.matches_details(span)
    }

    fn matches_whole(&self, trace: &Trace) -> bool {
        (!self.errors || trace.errors > 0)
            && self.duration.as_ref().is_none_or(|range| range.contains(&trace.duration()))
            && self.start.as_ref().is_none_or(|range| range.contains(&trace.start()))
            && self.id.as_ref().is_none_or(|id| trace.id.to_string().starts_with(id))
    }

    fn asks_for_span(&self) -> bool {
        self.service.is_some()
            || self.operation.is_some()
            || self.span_kind.is_some()
            || self.span_duration.is_some()
            || !self.attributes.is_empty()
            || !self.object.is_empty()
    }

    fn matches_chunk(&self, chunk: &Chunk) -> bool {
        let service = |service: &str| chunk.origins().iter().any(|origin| *origin.service == *service);
        let operation = |operation: &str| chunk.names().iter().any(|name| **name == *operation);
        let object = || chunk.objects().iter().any(|object| self.object.matches(object));
        self.service.as_deref().is_none_or(service)
            && self.operation.as_deref().is_none_or(operation)
            && (self.object.is_empty() || object())
            && self.attributes.iter().all(|(key, value)| may_have(chunk, key, value))
            && chunk.spans().any(|span| {
                self.service.as_deref().is_none_or(|service| span.service() == service) && self.matches_details(span)
            })
    }

    /// Whether a span is wanted, its service apart.
    fn matches_details(&self, span: SpanRef<'_>) -> bool {
        self.operation.as_deref().is_none_or(|operation| span.name() == operation)
            && self.span_kind.is_none_or(|kind| span.entry.kind == kind)
            && self.span_duration.as_ref().is_none_or(|range| range.contains(&span.entry.duration()))
            && (self.object.is_empty() || span.object().is_some_and(|object| self.object.matches(object)))
            && (self.attributes.is_empty() || self.matches_attributes(span))
    }

    fn matches_attributes(&self, span: SpanRef<'_>) -> bool {
        let view = span.view();
        self.attributes.iter().all(|(key, value)| {
            let (key, value) = (key.as_bytes(), value.as_bytes());
            has(view.attributes(), key, value)
                || span.origin().is_some_and(|origin| has(origin.resource().attributes(), key, value))
                || is_implied(span, key, value)
                || view.events().any(|event| has(event.attributes(), key, value))
        })
    }
}

fn may_have(chunk: &Chunk, key: &str, value: &str) -> bool {
    IMPLIED.contains(&key) || chunk.may_have(mark(key.as_bytes(), value.as_bytes()))
}

fn has(attributes: Attributes<'_>, key: &[u8], value: &[u8]) -> bool {
    attributes.iter().any(|attribute| attribute.key() == key && *attribute.value().to_text() == *value)
}

/// What Jaeger shows as attributes although it was not sent as such.
const IMPLIED: [&str; 5] = ["error", "span.kind", "otel.status_code", "otel.scope.name", "otel.library.name"];

fn is_implied(span: SpanRef<'_>, key: &[u8], value: &[u8]) -> bool {
    match key {
        b"error" => value == if span.entry.is_error() { b"true".as_slice() } else { b"false" },
        b"span.kind" => value == json::kind(span.entry.kind).as_bytes(),
        b"otel.status_code" => value.eq_ignore_ascii_case(json::status(span.entry.status).as_bytes()),
        b"otel.scope.name" | b"otel.library.name" => span.origin().is_some_and(|origin| origin.scope().name() == value),
        _ => false,
    }
}
