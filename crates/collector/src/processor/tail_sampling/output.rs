//! Writes kept spans as requests.
//!
//! *Guaranteed*: spans of one resource and scope that are written together share one entry, so that the output
//! is not larger than the input, whatever the size of a resource. Spans are copied unchanged, except for `th`
//! and `rv` in their trace state. Each resource is a request of its own, so that no request has spans of two
//! senders, and a batch of which a backend refuses one sender's spans can be split. All requests are slices of
//! one allocation. *Assumed*: equal headers are the same bytes in memory, as they are for spans that arrived
//! together, and for no others.

use std::borrow::Cow;

use bytes::Bytes;
use kubewake_otlp::{
    TraceState,
    probability::Randomness,
    view::{KeyValue, MessageView},
    wire::{WireFields, len_field_size, put_bool, put_bytes, put_header},
};

use super::{
    policy::{DecisionStamp, SampleWeight, StampTable},
    wire,
};
use crate::core::PART_OVERHEAD_BYTES;

/// A span to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputSpan<'a> {
    /// The fields of its resource entry, without scopes.
    pub(super) resource: &'a [u8],
    /// The fields of its scope entry, without spans.
    pub(super) scope: &'a [u8],
    /// The content of the span.
    pub(super) span: &'a [u8],
    pub(super) kept: KeepRecord,
}

/// The decision that kept a trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeepRecord {
    pub(super) stamp: DecisionStamp,
    /// The randomness that the trace's spans carry, if any does and it is known.
    pub(super) randomness: Option<Randomness>,
}

/// Options for the annotation of decisions.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputOptions<'a> {
    pub(super) stamps: &'a StampTable,
    /// Whether scopes record the policy that kept their spans.
    pub(super) record: bool,
    /// Whether the decision was made before the spans arrived.
    pub(super) late: bool,
}

/// Sorted spans of the requests, whose size is known before they are written.
pub(super) struct RequestDraft<'a> {
    resources: Vec<OutputResource<'a>>,
    items: usize,
    unreadable: u64,
    size: usize,
}

struct OutputResource<'a> {
    fields: &'a [u8],
    scopes: Vec<OutputScope<'a>>,
    items: usize,
    size: usize,
}

struct OutputScope<'a> {
    fields: Cow<'a, [u8]>,
    spans: Vec<Cow<'a, [u8]>>,
    size: usize,
}

impl<'a> RequestDraft<'a> {
    pub(super) fn new(mut pieces: Vec<OutputSpan<'a>>, marks: &OutputOptions<'_>) -> Self {
        // An empty header may have the same address as another one, so that the length is compared, too.
        pieces.sort_by_key(|piece| {
            (piece.resource.as_ptr(), piece.resource.len(), piece.scope.as_ptr(), piece.kept.stamp, piece.span.as_ptr())
        });
        let mut draft = Self { resources: Vec::new(), items: pieces.len(), unreadable: 0, size: 0 };
        let mut scopes: Vec<(&[u8], OutputScope<'_>)> = Vec::new();
        let same = |a: &OutputSpan<'_>, b: &OutputSpan<'_>| {
            std::ptr::eq(a.resource, b.resource) && std::ptr::eq(a.scope, b.scope) && a.kept.stamp == b.kept.stamp
        };
        for group in pieces.chunk_by(same) {
            let Some(first) = group.first() else { continue };
            scopes.push((first.resource, draft.output_scope(first, group, marks)));
        }
        for (fields, scope) in scopes {
            draft.add_scope(fields, scope);
        }
        let sizes = draft.resources.iter().map(|resource| len_field_size(wire::RESOURCE_ENTRY, resource.size));
        draft.size = sizes.sum();
        draft
    }

    fn output_scope(
        &mut self,
        first: &OutputSpan<'a>,
        group: &[OutputSpan<'a>],
        marks: &OutputOptions<'_>,
    ) -> OutputScope<'a> {
        let fields = if marks.record {
            Cow::Owned(scope_with_decision(first.scope, first.kept.stamp, marks))
        } else {
            Cow::Borrowed(first.scope)
        };
        let weight = marks.stamps.weight(first.kept.stamp);
        let spans: Vec<_> = group.iter().map(|piece| self.output_span(piece, weight)).collect();
        let size = fields.len() + spans.iter().map(|span| len_field_size(wire::SPAN, span.len())).sum::<usize>();
        OutputScope { fields, spans, size }
    }

    fn output_span(&mut self, piece: &OutputSpan<'a>, weight: Option<SampleWeight>) -> Cow<'a, [u8]> {
        let span = piece.span;
        let Some(weight) = weight else { return Cow::Borrowed(span) };
        match with_weight(span, weight, piece.kept.randomness) {
            Ok(written) => written.map_or(Cow::Borrowed(span), Cow::Owned),
            Err(()) => {
                self.unreadable += 1;
                Cow::Borrowed(span)
            }
        }
    }

    fn add_scope(&mut self, fields: &'a [u8], scope: OutputScope<'a>) {
        let items = scope.spans.len();
        let size = len_field_size(wire::SCOPE_ENTRY, scope.size);
        match self.resources.last_mut().filter(|last| std::ptr::eq(last.fields, fields)) {
            Some(last) => {
                last.items += items;
                last.size += size;
                last.scopes.push(scope);
            }
            None => {
                self.resources.push(OutputResource { fields, items, size: fields.len() + size, scopes: vec![scope] })
            }
        }
    }

    /// The memory that the requests will take: their bytes, and the overhead of each.
    pub(super) fn cost(&self) -> u64 {
        (self.size + self.resources.len() * PART_OVERHEAD_BYTES) as u64
    }

    /// Number of spans in the requests.
    pub(super) fn items(&self) -> usize {
        self.items
    }

    /// Number of spans whose trace state cannot be read, or contradicts the decision.
    pub(super) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Writes the requests: the bytes of each, and its number of spans.
    pub(super) fn write(&self) -> impl Iterator<Item = (Bytes, usize)> {
        let mut written = Bytes::from(self.write_all());
        self.resources.iter().map(move |resource| {
            let length = len_field_size(wire::RESOURCE_ENTRY, resource.size).min(written.len());
            (written.split_to(length), resource.items)
        })
    }

    fn write_all(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size);
        for resource in &self.resources {
            put_header(&mut out, wire::RESOURCE_ENTRY, resource.size);
            out.extend_from_slice(resource.fields);
            for scope in &resource.scopes {
                put_header(&mut out, wire::SCOPE_ENTRY, scope.size);
                out.extend_from_slice(&scope.fields);
                for span in &scope.spans {
                    put_bytes(&mut out, wire::SPAN, span);
                }
            }
        }
        out
    }
}

/// The span with its weight in its trace state; `None` if it was sampled at a higher threshold before, which it
/// keeps. Fails if the trace state cannot be read, or has a randomness by which the span would not have been
/// kept: a later sampler would drop it for that.
fn with_weight(span: &[u8], weight: SampleWeight, stated: Option<Randomness>) -> Result<Option<Vec<u8>>, ()> {
    let text = |number| WireFields::new(span).last_of(number).and_then(|field| field.as_len());
    let state = TraceState::parse(text(wire::span::TRACE_STATE).unwrap_or_default()).map_err(drop)?;
    if state.threshold().is_some_and(|before| before >= weight.threshold) {
        return Ok(None);
    }
    if state.randomness().is_some_and(|own| !weight.threshold.keeps(own)) {
        return Err(());
    }
    let id = text(wire::span::TRACE_ID).and_then(|id| id.try_into().ok()).map_or(0, u128::from_be_bytes);
    let mut new = Vec::new();
    state.write(Some(weight.threshold), weight.randomness(id, stated), &mut new);
    let mut out = Vec::with_capacity(span.len() + new.len() + 4);
    for field in WireFields::new(span).filter(|field| !field.is_len(wire::span::TRACE_STATE)) {
        out.extend_from_slice(field.raw);
    }
    put_bytes(&mut out, wire::span::TRACE_STATE, &new);
    Ok(Some(out))
}

const POLICY_ATTRIBUTE: &str = "tailsampling.policy";
const COMPOSITE_POLICY_ATTRIBUTE: &str = "tailsampling.composite_policy";
const CACHED_DECISION_ATTRIBUTE: &str = "tailsampling.cached_decision";
const OVERLOAD_DECISION_ATTRIBUTE: &str = "tailsampling.overload_decision";

/// The fields of a scope entry, with attributes that record the decision. Existing ones of these names go.
fn scope_with_decision(fields: &[u8], stamp: DecisionStamp, marks: &OutputOptions<'_>) -> Vec<u8> {
    let mut others = Vec::new();
    let mut scope = Vec::new();
    let is_ours = |attribute: &[u8]| {
        [POLICY_ATTRIBUTE, COMPOSITE_POLICY_ATTRIBUTE, CACHED_DECISION_ATTRIBUTE, OVERLOAD_DECISION_ATTRIBUTE]
            .iter()
            .any(|key| KeyValue::new(attribute).key() == key.as_bytes())
    };
    for field in WireFields::new(fields) {
        if !field.is_len(wire::SCOPE) {
            others.extend_from_slice(field.raw);
            continue;
        }
        for field in WireFields::new(field.value) {
            if !(field.is_len(wire::SCOPE_ATTRIBUTE) && is_ours(field.value)) {
                scope.extend_from_slice(field.raw);
            }
        }
    }
    if let Some(policy) = marks.stamps.policy(stamp) {
        put_attribute(&mut scope, POLICY_ATTRIBUTE, |value| put_bytes(value, 1, policy.name.as_bytes()));
        if let Some(part) = &policy.part {
            put_attribute(&mut scope, COMPOSITE_POLICY_ATTRIBUTE, |value| put_bytes(value, 1, part.as_bytes()));
        }
        if marks.late {
            put_attribute(&mut scope, CACHED_DECISION_ATTRIBUTE, |value| put_bool(value, 2, true));
        }
    } else {
        // No policy decided: there was no memory to let the trace wait for one.
        put_attribute(&mut scope, OVERLOAD_DECISION_ATTRIBUTE, |value| put_bool(value, 2, true));
    }
    let mut out = Vec::with_capacity(scope.len() + others.len() + 8);
    put_bytes(&mut out, wire::SCOPE, &scope);
    out.extend_from_slice(&others);
    out
}

fn put_attribute(scope: &mut Vec<u8>, key: &str, put_value: impl FnOnce(&mut Vec<u8>)) {
    let mut value = Vec::new();
    let mut attribute = Vec::new();
    put_value(&mut value);
    put_bytes(&mut attribute, 1, key.as_bytes());
    put_bytes(&mut attribute, 2, &value);
    put_bytes(scope, wire::SCOPE_ATTRIBUTE, &attribute);
}
