//! The summary line of a trace.

use std::collections::{BTreeMap, HashSet};

use crate::store::{SpanRef, SpanSubject, StoredTrace};

const SPAN_KIND_INTERNAL: u8 = 1;
const SPAN_KIND_SERVER: u8 = 2;
/// How many objects a summary names.
const MAX_OBJECTS: usize = 5;

#[derive(Clone, Debug)]
pub struct TraceSummary<'a> {
    pub trace: &'a StoredTrace,
    /// The span that names the trace.
    pub root: Option<SpanRef<'a>>,
    /// Services with their numbers of spans, in descending order.
    pub services: Vec<(&'a str, usize)>,
    /// Spans whose parent is missing.
    pub orphans: usize,
    /// Objects of its spans, the root's first.
    pub objects: Vec<&'a SpanSubject>,
    /// Whether it has a root, no orphans, and no spans beyond the limit.
    pub complete: bool,
}

pub fn summarize(trace: &StoredTrace) -> TraceSummary<'_> {
    let ids: HashSet<u64> = trace.spans().map(|span| span.entry.id).collect();
    let orphans = trace.spans().filter(|span| is_orphan(span, &ids)).count();
    let mut services: BTreeMap<&str, usize> = BTreeMap::new();
    trace.spans().for_each(|span| *services.entry(span.service()).or_default() += 1);
    let mut services: Vec<_> = services.into_iter().collect();
    services.sort_by_key(|(_, spans)| std::cmp::Reverse(*spans));
    let complete = orphans == 0 && trace.surplus_spans == 0 && trace.spans().any(|span| span.entry.parent == 0);
    TraceSummary {
        trace,
        root: find_first(trace, &ids),
        services,
        orphans,
        objects: referenced_objects(trace),
        complete,
    }
}

/// The span that names a trace: the first one without a parent, else the first one whose parent is missing,
/// else the first one. Where that is a server's preparation, such as the `authentication` of kube-apiserver, it
/// is the request below it.
pub fn find_root(trace: &StoredTrace) -> Option<SpanRef<'_>> {
    let ids: HashSet<u64> = trace.spans().map(|span| span.entry.id).collect();
    find_first(trace, &ids)
}

fn find_first<'a>(trace: &'a StoredTrace, ids: &HashSet<u64>) -> Option<SpanRef<'a>> {
    let root = find_topmost(trace, ids)?;
    // A server span is the entry to a process. A span of the same process above it is work that precedes the
    // request, and does not cause it.
    let is_request = |span: &SpanRef<'_>| {
        span.entry.kind == SPAN_KIND_SERVER && span.entry.parent == root.entry.id && span.service() == root.service()
    };
    let below = || trace.spans().filter(is_request).min_by_key(|span| (span.entry.start, span.entry.id));
    Some(if root.entry.kind <= SPAN_KIND_INTERNAL { below().unwrap_or(root) } else { root })
}

fn find_topmost<'a>(trace: &'a StoredTrace, ids: &HashSet<u64>) -> Option<SpanRef<'a>> {
    trace.spans().min_by_key(|span| {
        let rank = match span.entry.parent {
            0 => 0,
            _ if is_orphan(span, ids) => 1,
            _ => 2,
        };
        (rank, !span.entry.has_time(), span.entry.start, span.entry.id)
    })
}

fn is_orphan(span: &SpanRef<'_>, ids: &HashSet<u64>) -> bool {
    span.entry.parent != 0 && !ids.contains(&span.entry.parent)
}

/// Objects of its spans, in order of first reference.
fn referenced_objects(trace: &StoredTrace) -> Vec<&SpanSubject> {
    let mut first: BTreeMap<(&str, &str, &str), (u64, &SpanSubject)> = BTreeMap::new();
    for span in trace.spans() {
        let Some(object) = span.object() else { continue };
        let key = (object.kind.as_str(), object.namespace.as_str(), object.name.as_str());
        let at = first.entry(key).or_insert((span.entry.start, object));
        at.0 = at.0.min(span.entry.start);
    }
    let mut objects: Vec<_> = first.into_values().collect();
    objects.sort_by_key(|(start, _)| *start);
    objects.into_iter().take(MAX_OBJECTS).map(|(_, object)| object).collect()
}
