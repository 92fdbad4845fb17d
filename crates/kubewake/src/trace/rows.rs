//! The rows of a waterfall: spans in tree order, and gaps. Pure.
//!
//! *Guaranteed*: every span has one row, unless it is folded ([`super::fold`]), whatever its parents are: spans
//! without a parent, or with a missing one, are roots. The depth of a trace costs no stack.

use std::collections::HashMap;

use super::{
    fold::find_wrapper_spans,
    model::{SpanDocument, TraceDocument},
};

/// A gap has a row of its own if it takes at least one in this many parts of the trace.
const GAP_SHARE_DIVISOR: u64 = 20;
const MAX_DEPTH: usize = 40;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WaterfallRow {
    /// A span, by its index.
    Span {
        index: usize,
        /// For each level above: whether it continues below. The last one is the span's own level.
        has_next_sibling: Vec<bool>,
    },
    /// A gap between two siblings, in which nothing was recorded. For each level above them: whether it
    /// continues below.
    Gap { start: u64, end: u64, above: Vec<bool> },
}

#[derive(Debug)]
pub(super) struct WaterfallRows {
    pub(super) rows: Vec<WaterfallRow>,
    pub(super) folded: usize,
}

pub(super) fn build_rows(trace: &TraceDocument, fold: bool) -> WaterfallRows {
    let (mut children, mut roots) = build_tree(trace);
    let order = parents_first(&children, &roots);
    let measures = duration_only_spans(trace, &children, &roots);
    let ends = subtree_end_times(trace, &children, &order, &measures);
    let mut folded = 0;
    if fold {
        let wraps = find_wrapper_spans(trace, &children, &roots, &order);
        folded = wraps.iter().flatten().count();
        // A folded span is replaced by the span that it wraps.
        let inside = |index: &mut usize| *index = wraps.get(*index).copied().flatten().unwrap_or(*index);
        children.iter_mut().flatten().chain(&mut roots).for_each(inside);
    }
    let worth = (trace.duration / GAP_SHARE_DIVISOR).max(1);
    let mut rows = Vec::with_capacity(trace.spans.len());
    let mut waiting: Vec<WaterfallRow> = Vec::new();
    let push = |waiting: &mut Vec<WaterfallRow>, siblings: &[usize], above: &[bool]| {
        waiting.extend(sibling_rows(trace, siblings, above, &ends, &measures, worth).into_iter().rev());
    };
    push(&mut waiting, &roots, &[]);
    while let Some(row) = waiting.pop() {
        if let WaterfallRow::Span { index, has_next_sibling: follows } = &row {
            push(&mut waiting, children.get(*index).map_or(&[][..], Vec::as_slice), follows);
        }
        rows.push(row);
    }
    WaterfallRows { rows, folded }
}

/// All spans, parents before their children.
fn parents_first(children: &[Vec<usize>], roots: &[usize]) -> Vec<usize> {
    let mut order = Vec::with_capacity(children.len());
    let mut waiting = roots.to_vec();
    while let Some(index) = waiting.pop() {
        order.push(index);
        waiting.extend(children.get(index).into_iter().flatten());
    }
    order
}

/// Which spans only measure the duration of others: time inside them may still be a gap.
fn duration_only_spans(trace: &TraceDocument, children: &[Vec<usize>], roots: &[usize]) -> Vec<bool> {
    let is_leaf = |index: usize| children.get(index).is_none_or(Vec::is_empty);
    let spans = trace.spans.iter().enumerate();
    let mut measures: Vec<bool> = spans.map(|(index, span)| span.is_duration_only() && is_leaf(index)).collect();
    roots.iter().for_each(|root| measures.get_mut(*root).into_iter().for_each(|it| *it = false));
    measures
}

/// Children of each span, and roots. Spans whose parents form a cycle are roots.
fn build_tree(trace: &TraceDocument) -> (Vec<Vec<usize>>, Vec<usize>) {
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    for (index, span) in trace.spans.iter().enumerate() {
        by_id.entry(span.id.as_str()).or_insert(index);
    }
    let parent = |index: usize| -> Option<usize> {
        let parent = *by_id.get(trace.spans.get(index)?.parent.as_deref()?)?;
        (parent != index).then_some(parent)
    };
    let mut children = vec![Vec::new(); trace.spans.len()];
    let mut roots = Vec::new();
    let mut is_rooted = vec![None::<bool>; trace.spans.len()];
    for index in 0..trace.spans.len() {
        match parent(index).filter(|_| leads_to_root(index, &parent, &mut is_rooted)) {
            Some(parent) => children.get_mut(parent).into_iter().for_each(|its: &mut Vec<usize>| its.push(index)),
            None => roots.push(index),
        }
    }
    let start = |index: &usize| trace.spans.get(*index).map(|span| (span.start, *index));
    children.iter_mut().for_each(|its| its.sort_by_key(start));
    roots.sort_by_key(start);
    (children, roots)
}

/// Whether the ancestors of a span end at a root. The result is recorded for all of them.
fn leads_to_root(index: usize, parent: &impl Fn(usize) -> Option<usize>, known: &mut [Option<bool>]) -> bool {
    let mut way = Vec::new();
    let mut at = index;
    let answer = loop {
        match known.get(at).copied().flatten() {
            Some(answer) => break answer,
            // Spans on the current path count as a cycle until a root is found.
            None => known.get_mut(at).into_iter().for_each(|it| *it = Some(false)),
        }
        way.push(at);
        match parent(at) {
            Some(next) => at = next,
            None => break true,
        }
    };
    for index in way {
        known.get_mut(index).into_iter().for_each(|it| *it = Some(answer));
    }
    answer
}

/// The end of each span and its descendants, which may be later, as in traces of operators.
fn subtree_end_times(trace: &TraceDocument, children: &[Vec<usize>], order: &[usize], measures: &[bool]) -> Vec<u64> {
    let mut ends: Vec<u64> = trace.spans.iter().map(SpanDocument::end).collect();
    for &index in order.iter().rev() {
        let below = children.get(index).into_iter().flatten().filter(|child| measures.get(**child) == Some(&false));
        let below = below.filter_map(|child| ends.get(*child).copied()).max();
        if let (Some(end), Some(below)) = (ends.get_mut(index), below) {
            *end = (*end).max(below);
        }
    }
    ends
}

/// The rows of siblings, with the gaps between them.
fn sibling_rows(
    trace: &TraceDocument,
    siblings: &[usize],
    above: &[bool],
    ends: &[u64],
    measures: &[bool],
    worth: u64,
) -> Vec<WaterfallRow> {
    let mut rows = Vec::with_capacity(siblings.len());
    let mut until = None::<u64>;
    for (place, &index) in siblings.iter().enumerate() {
        let Some(span) = trace.spans.get(index) else { continue };
        if let Some(start) = until.filter(|until| span.start.saturating_sub(*until) >= worth) {
            rows.push(WaterfallRow::Gap { start, end: span.start, above: above.to_vec() });
        }
        if measures.get(index) == Some(&false) {
            let end = ends.get(index).copied().unwrap_or_else(|| span.end());
            until = Some(until.map_or(end, |until| until.max(end)));
        }
        // Deeper levels are not indented further.
        let mut follows: Vec<bool> = above.iter().take(MAX_DEPTH - 1).copied().collect();
        follows.push(place + 1 < siblings.len());
        rows.push(WaterfallRow::Span { index, has_next_sibling: follows });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::model::SpanDocument;

    fn span(id: &str, parent: &str, start: u64, duration: u64) -> SpanDocument {
        let parent = (!parent.is_empty()).then(|| parent.to_owned());
        SpanDocument { id: id.to_owned(), parent, name: id.to_owned(), start, duration, ..SpanDocument::default() }
    }

    /// The rows as text: a span's id, indented; `~` and the length of a gap.
    fn drawn(spans: Vec<SpanDocument>) -> Vec<String> {
        let duration = spans.iter().map(SpanDocument::end).max().unwrap_or(0);
        let trace = TraceDocument { duration, spans, ..TraceDocument::default() };
        let text = |row: WaterfallRow| match row {
            WaterfallRow::Span { index, has_next_sibling: follows } => {
                format!("{}{}", " ".repeat(follows.len() - 1), trace.spans[index].id)
            }
            WaterfallRow::Gap { start, end, above } => format!("{}~{}", " ".repeat(above.len()), end - start),
        };
        build_rows(&trace, false).rows.into_iter().map(text).collect()
    }

    #[test]
    fn children_are_below_their_parents_and_waiting_is_between_siblings() {
        let spans = vec![
            span("root", "", 0, 10),
            span("late", "root", 60, 40),
            span("early", "root", 1, 5),
            span("below", "early", 2, 30),
            span("next", "root", 33, 2),
        ];
        assert_eq!(drawn(spans), ["root", " early", "  below", " next", " ~25", " late"]);
    }

    #[test]
    fn what_measures_the_waiting_does_not_hide_it() {
        let spans = vec![
            span("root", "", 0, 10),
            SpanDocument { name: "converge Head".to_owned(), ..span("converge", "root", 1, 99) },
            span("first", "root", 2, 8),
            span("last", "root", 60, 40),
        ];
        assert_eq!(drawn(spans), ["root", " converge", " first", " ~50", " last"]);
    }

    #[test]
    fn every_span_has_a_row_whatever_its_parents_are() {
        let spans = vec![
            span("a", "b", 0, 1),
            span("b", "a", 1, 1),
            span("c", "b", 2, 1),
            span("self", "self", 3, 1),
            span("orphan", "gone", 4, 1),
            span("twice", "orphan", 5, 1),
            span("twice", "orphan", 6, 1),
            span("child", "twice", 7, 1),
        ];
        let mut rows = drawn(spans);
        assert_eq!(rows.iter().filter(|row| !row.contains('~')).count(), 8, "{rows:?}");
        rows.retain(|row| row.starts_with(' '));
        assert_eq!(rows, [" twice", "  child", " twice"]);
    }

    #[test]
    fn depth_costs_no_stack() {
        let spans = (0..100_000).map(|i| span(&i.to_string(), &(i + 1).to_string(), i, 1)).collect::<Vec<_>>();
        let trace = TraceDocument { duration: 1, spans, ..TraceDocument::default() };
        let (children, roots) = build_tree(&trace);
        assert_eq!((roots.as_slice(), children.len()), (&[99_999][..], 100_000));
        let order = parents_first(&children, &roots);
        let measures = vec![false; 100_000];
        assert_eq!(subtree_end_times(&trace, &children, &order, &measures)[99_999], 100_000);
        assert_eq!(build_rows(&trace, true).rows.len(), 100_000);
    }
}
