//! Spans that were kept, written as requests.
//!
//! *Guarantees.* Spans of one resource and scope that are written together share one entry, so that what is written is not larger than
//! what came, whoever chose the size of a resource. Spans are copied as they are, but for `th` and `rv` in their trace state. Each
//! resource is a request of its own, so that no two senders' spans are in one, and a backend that refuses one sender's can be
//! given the others. All requests are slices of one allocation. *Assumes* that equal headers are the same bytes in memory, as
//! they are for spans that came together, and for no others.

use std::borrow::Cow;

use bytes::Bytes;
use kubewake_otlp::{
    TraceState,
    probability::Randomness,
    view::{KeyValue, View},
    wire::{Fields, len_field_size, put_bool, put_bytes, put_header},
};

use super::{
    policy::{Stamp, Stamps, Weight},
    wire,
};
use crate::core::PART_BYTES;

/// A span to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    /// The fields of its resource entry, without scopes.
    pub(super) resource: &'a [u8],
    /// The fields of its scope entry, without spans.
    pub(super) scope: &'a [u8],
    /// The content of the span.
    pub(super) span: &'a [u8],
    pub(super) kept: Kept,
}

/// How a trace was kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) stamp: Stamp,
    /// The randomness that spans of it carry, if any does and that is known.
    pub(super) randomness: Option<Randomness>,
}

/// How decisions are written down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks<'a> {
    pub(super) stamps: &'a Stamps,
    /// Scopes say which policy kept their spans.
    pub(super) record: bool,
    /// The decision was there before the spans.
    pub(super) late: bool,
}

/// Requests whose size is known.
pub(super) struct Draft<'a> {
    resources: Vec<Resource<'a>>,
    items: usize,
    unreadable: u64,
    size: usize,
}

struct Resource<'a> {
    fields: &'a [u8],
    scopes: Vec<Scope<'a>>,
    items: usize,
    size: usize,
}

struct Scope<'a> {
    fields: Cow<'a, [u8]>,
    spans: Vec<Cow<'a, [u8]>>,
    size: usize,
}

impl<'a> Draft<'a> {
    /// Puts spans in order.
    pub(super) fn new(mut pieces: Vec<Piece<'a>>, marks: &Marks<'_>) -> Self {
        // Empty headers of different entries may be at one place, so that both count.
        pieces.sort_by_key(|piece| {
            (piece.resource.as_ptr(), piece.resource.len(), piece.scope.as_ptr(), piece.kept.stamp, piece.span.as_ptr())
        });
        let mut draft = Self { resources: Vec::new(), items: pieces.len(), unreadable: 0, size: 0 };
        let mut scopes: Vec<(&[u8], Scope<'_>)> = Vec::new();
        let same = |a: &Piece<'_>, b: &Piece<'_>| {
            std::ptr::eq(a.resource, b.resource) && std::ptr::eq(a.scope, b.scope) && a.kept.stamp == b.kept.stamp
        };
        for group in pieces.chunk_by(same) {
            let Some(first) = group.first() else { continue };
            scopes.push((first.resource, draft.scope(first, group, marks)));
        }
        for (fields, scope) in scopes {
            draft.add(fields, scope);
        }
        let sizes = draft.resources.iter().map(|resource| len_field_size(wire::RESOURCE_ENTRY, resource.size));
        draft.size = sizes.sum();
        draft
    }

    fn scope(&mut self, first: &Piece<'a>, group: &[Piece<'a>], marks: &Marks<'_>) -> Scope<'a> {
        let fields = match marks.record {
            true => Cow::Owned(recorded(first.scope, first.kept.stamp, marks)),
            false => Cow::Borrowed(first.scope),
        };
        let weight = marks.stamps.weight(first.kept.stamp);
        let spans: Vec<_> = group.iter().map(|piece| self.span(piece, weight)).collect();
        let size = fields.len() + spans.iter().map(|span| len_field_size(wire::SPAN, span.len())).sum::<usize>();
        Scope { fields, spans, size }
    }

    fn span(&mut self, piece: &Piece<'a>, weight: Option<Weight>) -> Cow<'a, [u8]> {
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

    fn add(&mut self, fields: &'a [u8], scope: Scope<'a>) {
        let (items, size) = (scope.spans.len(), len_field_size(wire::SCOPE_ENTRY, scope.size));
        match self.resources.last_mut().filter(|last| std::ptr::eq(last.fields, fields)) {
            Some(last) => {
                last.items += items;
                last.size += size;
                last.scopes.push(scope);
            }
            None => self.resources.push(Resource { fields, items, size: fields.len() + size, scopes: vec![scope] }),
        }
    }

    /// What the requests will take: their bytes, and what is known of each.
    pub(super) fn cost(&self) -> u64 {
        (self.size + self.resources.len() * PART_BYTES) as u64
    }

    /// How many spans are in them.
    pub(super) fn items(&self) -> usize {
        self.items
    }

    /// How many of these have a trace state that nobody can read, or that contradicts the decision.
    pub(super) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Writes them: their bytes, and how many spans are in each.
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

/// The span with its weight in its trace state; `None` if it was sampled at a higher threshold before, which it keeps. Fails if the trace
/// state cannot be read, and if it has a randomness by which the span would not have been kept: whoever samples next would drop it for that.
fn with_weight(span: &[u8], weight: Weight, stated: Option<Randomness>) -> Result<Option<Vec<u8>>, ()> {
    let text = |number| Fields::new(span).last_of(number).and_then(|field| field.as_len());
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
    for field in Fields::new(span).filter(|field| !field.is_len(wire::span::TRACE_STATE)) {
        out.extend_from_slice(field.raw);
    }
    put_bytes(&mut out, wire::span::TRACE_STATE, &new);
    Ok(Some(out))
}

const POLICY: &str = "tailsampling.policy";
const COMPOSITE: &str = "tailsampling.composite_policy";
const CACHED: &str = "tailsampling.cached_decision";
const OVERLOAD: &str = "tailsampling.overload_decision";

/// The fields of a scope entry, with attributes that say who decided. Attributes of these names that were there go.
fn recorded(fields: &[u8], stamp: Stamp, marks: &Marks<'_>) -> Vec<u8> {
    let (mut others, mut scope) = (Vec::new(), Vec::new());
    let is_ours = |attribute: &[u8]| {
        [POLICY, COMPOSITE, CACHED, OVERLOAD].iter().any(|key| KeyValue::new(attribute).key() == key.as_bytes())
    };
    for field in Fields::new(fields) {
        if !field.is_len(wire::SCOPE) {
            others.extend_from_slice(field.raw);
            continue;
        }
        for field in Fields::new(field.value) {
            if !(field.is_len(wire::SCOPE_ATTRIBUTE) && is_ours(field.value)) {
                scope.extend_from_slice(field.raw);
            }
        }
    }
    if let Some(policy) = marks.stamps.policy(stamp) {
        put_attribute(&mut scope, POLICY, |value| put_bytes(value, 1, policy.name.as_bytes()));
        if let Some(part) = &policy.part {
            put_attribute(&mut scope, COMPOSITE, |value| put_bytes(value, 1, part.as_bytes()));
        }
        if marks.late {
            put_attribute(&mut scope, CACHED, |value| put_bool(value, 2, true));
        }
    } else {
        // No policy was asked: there was no memory to wait for one.
        put_attribute(&mut scope, OVERLOAD, |value| put_bool(value, 2, true));
    }
    let mut out = Vec::with_capacity(scope.len() + others.len() + 8);
    put_bytes(&mut out, wire::SCOPE, &scope);
    out.extend_from_slice(&others);
    out
}

fn put_attribute(scope: &mut Vec<u8>, key: &str, put_value: impl FnOnce(&mut Vec<u8>)) {
    let (mut value, mut attribute) = (Vec::new(), Vec::new());
    put_value(&mut value);
    put_bytes(&mut attribute, 1, key.as_bytes());
    put_bytes(&mut attribute, 2, &value);
    put_bytes(scope, wire::SCOPE_ATTRIBUTE, &attribute);
}
