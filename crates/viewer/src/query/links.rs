//! Links from other traces.

use crate::store::{LINK_MARK_KEY, StoreSnapshot, TraceId, attribute_mark};

/// How many links a page lists. A longer list would be no use: such a trace is linked from everywhere.
const MAX_LINKS: usize = 200;

/// A span of another trace that links to a span of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingLink {
    pub trace: TraceId,
    pub span: u64,
    pub to: u64,
    /// Name of the other trace's root.
    pub root: String,
    /// Service of the span that has the link.
    pub service: String,
}

/// Links from other traces to this one, the latest first.
pub fn find_incoming_links(snapshot: &StoreSnapshot, to: TraceId) -> Vec<IncomingLink> {
    let mark = attribute_mark(LINK_MARK_KEY, &to.0);
    let mut links = Vec::new();
    for trace in snapshot.traces.iter().rev().filter(|trace| trace.id != to) {
        let mut root = None;
        for span in trace.chunks.iter().filter(|chunk| chunk.may_have(mark)).flat_map(|chunk| chunk.spans()) {
            for link in span.view().links().filter(|link| link.trace_id() == to.0) {
                let root =
                    root.get_or_insert_with(|| super::find_root(trace).map_or("", |root| root.name()).to_owned());
                links.push(IncomingLink {
                    trace: trace.id,
                    span: span.entry.id,
                    to: link.span_id().try_into().map_or(0, u64::from_be_bytes),
                    root: root.clone(),
                    service: span.service().to_owned(),
                });
                if links.len() == MAX_LINKS {
                    return links;
                }
            }
        }
    }
    links
}
