//! Who links to a trace.

use crate::store::{LINK, Snapshot, TraceId, mark};

/// What a page lists; the link of a trace that everything links to is no way to find anything.
const MOST: usize = 200;

/// A span of another trace that links to a span of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkFrom {
    /// The other trace.
    pub trace: TraceId,
    /// The span in it.
    pub span: u64,
    /// The span here.
    pub to: u64,
    /// What the other trace is called.
    pub root: String,
    /// The service of the span in it.
    pub service: String,
}

/// Links from other traces to this one, those that came last first.
pub fn linked_from(snapshot: &Snapshot, to: TraceId) -> Vec<LinkFrom> {
    let mark = mark(LINK, &to.0);
    let mut links = Vec::new();
    for trace in snapshot.traces.iter().rev().filter(|trace| trace.id != to) {
        let mut root = None;
        for span in trace.chunks.iter().filter(|chunk| chunk.may_have(mark)).flat_map(|chunk| chunk.spans()) {
            for link in span.view().links().filter(|link| link.trace_id() == to.0) {
                let root = root.get_or_insert_with(|| super::root(trace).map_or("", |root| root.name()).to_owned());
                links.push(LinkFrom {
                    trace: trace.id,
                    span: span.entry.id,
                    to: link.span_id().try_into().map_or(0, u64::from_be_bytes),
                    root: root.clone(),
                    service: span.service().to_owned(),
                });
                if links.len() == MOST {
                    return links;
                }
            }
        }
    }
    links
}
