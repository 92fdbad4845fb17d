//! A trace in one line.

use std::collections::{BTreeMap, HashSet};

use crate::store::{Object, SpanRef, Trace};

/// Numbers of `SpanKind`.
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;
/// How many objects a line names.
const OBJECTS: usize = 5;

/// A trace in one line.
#[derive(Clone, Debug)]
pub struct Summary<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// The span that it is called by.
    pub root: Option<SpanRef<'a>>,
    /// Who took part, with the number of spans; who has most comes first.
    pub services: Vec<(&'a str, usize)>,
    /// Spans whose parent is not there.
    pub orphans: usize,
    /// What it is about, the root's first.
    pub objects: Vec<&'a Object>,
    /// Whether it has a root and no orphans.
    pub complete: bool,
}

/// Sums up a trace.
pub fn summarize(trace: &Trace) -> Summary<'_> {
    let ids: HashSet<u64> = trace.spans().map(|span| span.entry.id).collect();
    let orphans = trace.spans().filter(|span| is_orphan(span, &ids)).count();
    let mut services: BTreeMap<&str, usize> = BTreeMap::new();
    trace.spans().for_each(|span| *services.entry(span.service()).or_default() += 1);
    let mut services: Vec<_> = services.into_iter().collect();
    services.sort_by_key(|(_, spans)| std::cmp::Reverse(*spans));
    let complete = orphans == 0 && trace.cut == 0 && trace.spans().any(|span| span.entry.parent == 0);
    Summary { trace, root: first(trace, &ids), services, orphans, objects: objects(trace), complete }
}

/// The span that a trace is called by: the first one without a parent, else the first one whose parent is not there, else the first one. Where that is a server's own
/// preparation, as the `authentication` of kube-apiserver is, it is the request below it.
pub fn root(trace: &Trace) -> Option<SpanRef<'_>> {
    let ids: HashSet<u64> = trace.spans().map(|span| span.entry.id).collect();
    first(trace, &ids)
}

fn first<'a>(trace: &'a Trace, ids: &HashSet<u64>) -> Option<SpanRef<'a>> {
    let root = topmost(trace, ids)?;
    // A server span is where a process is entered: what the same process has above it came before the request, and not the other way round.
    let is_request = |span: &SpanRef<'_>| {
        span.entry.kind == SERVER && span.entry.parent == root.entry.id && span.service() == root.service()
    };
    let below = || trace.spans().filter(is_request).min_by_key(|span| (span.entry.start, span.entry.id));
    Some(if root.entry.kind <= INTERNAL { below().unwrap_or(root) } else { root })
}

fn topmost<'a>(trace: &'a Trace, ids: &HashSet<u64>) -> Option<SpanRef<'a>> {
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

/// What it is about, in the order in which it was first dealt with.
fn objects(trace: &Trace) -> Vec<&Object> {
    let mut first: BTreeMap<(&str, &str, &str), (u64, &Object)> = BTreeMap::new();
    for span in trace.spans() {
        let Some(object) = span.object() else { continue };
        let key = (object.kind.as_str(), object.namespace.as_str(), object.name.as_str());
        let at = first.entry(key).or_insert((span.entry.start, object));
        at.0 = at.0.min(span.entry.start);
    }
    let mut objects: Vec<_> = first.into_values().collect();
    objects.sort_by_key(|(start, _)| *start);
    objects.into_iter().take(OBJECTS).map(|(_, object)| object).collect()
}
