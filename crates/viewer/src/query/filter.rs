//! The filter of a search.
//!
//! Service, operation, kind, attributes and object must match one and the same span. Duration, time and errors
//! are those of the trace, as results show them. [`TraceFilter::span_duration`] is that of the span, as in
//! Jaeger.

use std::ops::RangeInclusive;

use kubewake_otlp::view::AttributesView;

use super::objects::ObjectId;
use crate::{
    json,
    store::{SpanRef, SpanSubject, StoredTrace, TraceChunk, attribute_mark},
};

/// The conditions of a search.
#[derive(Clone, Debug, Default)]
pub struct TraceFilter {
    /// A span is of this service.
    pub service: Option<String>,
    pub operation: Option<String>,
    pub span_kind: Option<u8>,
    /// Attributes of the span, of its resource, or of one of its events.
    pub attributes: Vec<(String, String)>,
    /// The object that the span is about.
    pub object: ObjectFilter,
    pub span_duration: Option<RangeInclusive<u64>>,
    /// The duration of the trace.
    pub duration: Option<RangeInclusive<u64>>,
    pub start: Option<RangeInclusive<u64>>,
    /// Whether the trace must contain an error.
    pub errors: bool,
    pub id: Option<String>,
}

/// An object, or all objects of a kind, namespace or name. Kinds are compared as kubectl does: `Head`, `head`
/// and `heads` are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectFilter {
    pub kind: Option<String>,
    /// Empty: cluster-scoped.
    pub namespace: Option<String>,
    pub name: Option<String>,
}

impl ObjectFilter {
    /// Whether there is no condition on the object.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn matches(&self, object: &SpanSubject) -> bool {
        self.matches_names(&object.kind, &object.namespace, &object.name)
    }

    pub fn matches_key(&self, key: &ObjectId) -> bool {
        self.matches_names(&key.kind, &key.namespace, &key.name)
    }

    fn matches_names(&self, kind: &str, namespace: &str, name: &str) -> bool {
        self.kind.as_deref().is_none_or(|wanted| matches_kind(kind, wanted))
            && self.namespace.as_deref().is_none_or(|wanted| namespace == wanted)
            && self.name.as_deref().is_none_or(|wanted| name == wanted)
    }
}

/// Whether `asked`, as a user writes it, names this kind.
pub(crate) fn matches_kind(kind: &str, asked: &str) -> bool {
    // The kind in a span may be invalid, and contain dots.
    let short = asked.split_once('.').map_or(asked, |(kind, _)| kind);
    if [asked, short].iter().any(|asked| kind.eq_ignore_ascii_case(asked)) {
        return true;
    }
    let kind = kind.to_ascii_lowercase();
    let asked = short.to_ascii_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if kind.ends_with(['s', 'x']) => format!("{kind}es"),
        _ => format!("{kind}s"),
    };
    asked == plural
}

impl TraceFilter {
    pub fn matches(&self, trace: &StoredTrace) -> bool {
        self.matches_trace_totals(trace)
            && (!self.has_span_conditions() || trace.chunks.iter().any(|chunk| self.matches_chunk(chunk)))
    }

    /// Whether a span matches. Conditions on the trace are applied to the span.
    pub fn matches_span(&self, span: SpanRef<'_>) -> bool {
        let entry = span.entry;
        (!self.errors || entry.is_error())
            && self.duration.as_ref().is_none_or(|range| range.contains(&entry.duration()))
            && self.service.as_deref().is_none_or(|service| span.service() == service)
            && self.matches_details(span)
    }

    fn matches_trace_totals(&self, trace: &StoredTrace) -> bool {
        (!self.errors || trace.errors > 0)
            && self.duration.as_ref().is_none_or(|range| range.contains(&trace.duration()))
            && self.start.as_ref().is_none_or(|range| range.contains(&trace.start()))
            && self.id.as_ref().is_none_or(|id| trace.id.to_string().starts_with(id))
    }

    fn has_span_conditions(&self) -> bool {
        self.service.is_some()
            || self.operation.is_some()
            || self.span_kind.is_some()
            || self.span_duration.is_some()
            || !self.attributes.is_empty()
            || !self.object.is_empty()
    }

    fn matches_chunk(&self, chunk: &TraceChunk) -> bool {
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

    /// Whether a span matches, apart from its service.
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
            let key = key.as_bytes();
            let value = value.as_bytes();
            has_attribute(view.attributes(), key, value)
                || span.origin().is_some_and(|origin| has_attribute(origin.resource().attributes(), key, value))
                || matches_implied(span, key, value)
                || view.events().any(|event| has_attribute(event.attributes(), key, value))
        })
    }
}

fn may_have(chunk: &TraceChunk, key: &str, value: &str) -> bool {
    IMPLIED_ATTRIBUTES.contains(&key) || chunk.may_have(attribute_mark(key.as_bytes(), value.as_bytes()))
}

fn has_attribute(attributes: AttributesView<'_>, key: &[u8], value: &[u8]) -> bool {
    attributes.iter().any(|attribute| attribute.key() == key && *attribute.value().to_text() == *value)
}

/// Tags in Jaeger that are fields in OTLP.
const IMPLIED_ATTRIBUTES: [&str; 5] =
    ["error", "span.kind", "otel.status_code", "otel.scope.name", "otel.library.name"];

fn matches_implied(span: SpanRef<'_>, key: &[u8], value: &[u8]) -> bool {
    match key {
        b"error" => value == if span.entry.is_error() { b"true".as_slice() } else { b"false" },
        b"span.kind" => value == json::span_kind_name(span.entry.kind).as_bytes(),
        b"otel.status_code" => value.eq_ignore_ascii_case(json::status_name(span.entry.status).as_bytes()),
        b"otel.scope.name" | b"otel.library.name" => span.origin().is_some_and(|origin| origin.scope().name() == value),
        _ => false,
    }
}
