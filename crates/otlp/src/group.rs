//! Groups the spans of a request by trace.

use std::ops::Range;

use bytes::Bytes;

use crate::field_numbers::{request, resource_entry};
use crate::nesting::is_child;
use crate::view::{MessageView, Span};
use crate::wire::{WireField, WireFields};
use crate::write_plan::WritePlan;

/// The spans of one trace, as a request of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceGroup {
    /// The trace; all zeroes for spans without a trace id.
    pub trace_id: [u8; 16],
    /// The encoded request.
    pub bytes: Bytes,
    /// Number of spans in the request.
    pub items: usize,
}

/// Divides a request of traces into one per trace, in the order in which the traces first appear.
///
/// Guaranteed for bytes that [`scan`](crate::scan) accepted: every span is in exactly one group, with its
/// resource, its scope and the unknown fields around it, in its order. A request of a single trace is returned
/// unchanged. Unknown fields of the request itself go with the first group. Not done: entries without spans
/// belong to no trace and are dropped, unless there is just one trace.
///
/// A resource is repeated in each group that has a span of it, so the groups together may be far larger than
/// the request. They are written one by one, on demand; a caller that keeps them counts their bytes.
///
/// Assumed: the bytes were scanned. Other bytes do not panic; parts that are not understood are dropped. The
/// list of spans takes memory without a reservation, so that a stranger's request must not come here.
pub fn group_by_trace(bytes: &Bytes) -> TraceGroups {
    let mut map = SpanMap::from_request(bytes);
    // Stable, so that the spans of a trace stay in order.
    map.spans.sort_by_key(|span| span.trace_id);
    let mut start = 0;
    let mut groups: Vec<Range<usize>> = Vec::new();
    for spans in map.spans.chunk_by(|a, b| a.trace_id == b.trace_id) {
        groups.push(start..start + spans.len());
        start += spans.len();
    }
    groups.sort_by_key(|group| map.spans.get(group.start).map(|span| span.raw.start));
    let mut plan = WritePlan::unlimited();
    plan.extend(&map.request);
    TraceGroups { bytes: bytes.clone(), is_single: groups.len() == 1, groups: groups.into_iter(), map, plan }
}

/// The traces of a request; see [`group_by_trace`].
#[derive(Debug)]
pub struct TraceGroups {
    bytes: Bytes,
    is_single: bool,
    /// The range of the sorted spans in each group.
    groups: std::vec::IntoIter<Range<usize>>,
    map: SpanMap,
    plan: WritePlan<'static>,
}

impl Iterator for TraceGroups {
    type Item = TraceGroup;

    fn next(&mut self) -> Option<TraceGroup> {
        let spans = self.map.spans.get(self.groups.next()?)?;
        let trace_id = spans.first()?.trace_id;
        if self.is_single {
            return Some(TraceGroup { trace_id, bytes: self.bytes.clone(), items: spans.len() });
        }
        self.map.plan(&mut self.plan, spans);
        let bytes = self.plan.write(&self.bytes).ok()?;
        self.plan.clear();
        Some(TraceGroup { trace_id, bytes, items: spans.len() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.groups.size_hint()
    }
}

impl ExactSizeIterator for TraceGroups {}

#[derive(Debug, Default)]
struct SpanMap {
    spans: Vec<SpanLocation>,
    /// The fields of an entry beside its spans, by the ordinal of the entry.
    resources: Vec<Vec<Range<usize>>>,
    scopes: Vec<Vec<Range<usize>>>,
    /// Unknown fields of the request.
    request: Vec<Range<usize>>,
}

#[derive(Debug)]
struct SpanLocation {
    trace_id: [u8; 16],
    /// The span's field in its scope entry.
    raw: Range<usize>,
    resource: usize,
    scope: usize,
}

impl SpanMap {
    fn from_request(bytes: &[u8]) -> SpanMap {
        let mut map = SpanMap::default();
        for field in WireFields::new(bytes) {
            if is_child(0, &field) {
                map.resource_entry(bytes, field.value);
            } else {
                map.request.push(range(bytes, &field));
            }
        }
        map
    }

    fn resource_entry(&mut self, bytes: &[u8], content: &[u8]) {
        let mut headers = Vec::new();
        for field in WireFields::new(content) {
            if is_child(1, &field) {
                self.scope_entry(bytes, field.value);
            } else {
                headers.push(range(bytes, &field));
            }
        }
        self.resources.push(headers);
    }

    fn scope_entry(&mut self, bytes: &[u8], content: &[u8]) {
        let mut headers = Vec::new();
        for field in WireFields::new(content) {
            if is_child(2, &field) {
                self.spans.push(SpanLocation {
                    trace_id: Span::new(field.value).trace_id().try_into().unwrap_or_default(),
                    raw: range(bytes, &field),
                    resource: self.resources.len(),
                    scope: self.scopes.len(),
                });
            } else {
                headers.push(range(bytes, &field));
            }
        }
        self.scopes.push(headers);
    }

    /// Plans the spans of one trace, behind the current content of the plan.
    fn plan(&self, plan: &mut WritePlan<'_>, spans: &[SpanLocation]) {
        for of_resource in spans.chunk_by(|a, b| a.resource == b.resource) {
            plan.open(request::RESOURCE_ENTRIES);
            plan.extend(headers(&self.resources, of_resource.first().map(|span| span.resource)));
            for of_scope in of_resource.chunk_by(|a, b| a.scope == b.scope) {
                plan.open(resource_entry::SCOPE_ENTRIES);
                plan.extend(headers(&self.scopes, of_scope.first().map(|span| span.scope)));
                of_scope.iter().for_each(|span| plan.range(span.raw.start, span.raw.end));
                plan.close();
            }
            plan.close();
        }
    }
}

fn headers(all: &[Vec<Range<usize>>], ordinal: Option<usize>) -> &[Range<usize>] {
    ordinal.and_then(|ordinal| all.get(ordinal)).map(Vec::as_slice).unwrap_or_default()
}

/// The range of a field in its request.
fn range(bytes: &[u8], field: &WireField<'_>) -> Range<usize> {
    let start = field.raw.as_ptr().addr() - bytes.as_ptr().addr();
    start..start + field.raw.len()
}
