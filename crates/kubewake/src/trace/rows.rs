//! The lines of a waterfall: spans in the order of a tree, and gaps. Pure.
//!
//! *Guaranteed*: every span has one row, unless it only wraps another and that is not wanted ([`super::fold`]), whatever its parents are: those without one, or
//! with one that is not there, begin trees of their own. It costs no stack, however deep a trace is.

use std::collections::HashMap;

use super::{
    fold::wrapped,
    model::{Span, Trace},
};

/// A gap is worth a line when it takes this part of the trace, one in so many.
const WORTH: u64 = 20;
/// Levels that are shown.
const DEEPEST: usize = 40;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// A span, by its index.
    Span {
        index: usize,
        /// For each level above: whether more of that level follows below. The last is its own.
        follows: Vec<bool>,
    },
    /// Nothing was recorded between two siblings. For each level above them: whether more of it follows below.
    Gap { start: u64, end: u64, above: Vec<bool> },
}

/// What is drawn of a trace.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) rows: Vec<Row>,
    /// Spans that were left out, as they only wrap another.
    pub(super) folded: usize,
}

/// The rows of a trace.
pub(super) fn rows(trace: &Trace, fold: bool) -> Rows {
    let (mut children, mut roots) = tree(trace);
    let order = order(&children, &roots);
    let measures = measures(trace, &children, &roots);
    let ends = ends(trace, &children, &order, &measures);
    let mut folded = 0;
    if fold {
        let wraps = wrapped(trace, &children, &roots, &order);
        folded = wraps.iter().flatten().count();
        // Each stands where what it says is said.
        let inside = |index: &mut usize| *index = wraps.get(*index).copied().flatten().unwrap_or(*index);
        children.iter_mut().flatten().chain(&mut roots).for_each(inside);
    }
    let worth = (trace.duration / WORTH).max(1);
    let mut rows = Vec::with_capacity(trace.spans.len());
    let mut waiting: Vec<Row> = Vec::new();
    let push = |waiting: &mut Vec<Row>, siblings: &[usize], above: &[bool]| {
        waiting.extend(family(trace, siblings, above, &ends, &measures, worth).into_iter().rev());
    };
    push(&mut waiting, &roots, &[]);
    while let Some(row) = waiting.pop() {
        if let Row::Span { index, follows } = &row {
            push(&mut waiting, children.get(*index).map_or(&[][..], Vec::as_slice), follows);
        }
        rows.push(row);
    }
    Rows { rows, folded }
}

/// All spans, parents before their children.
fn order(children: &[Vec<usize>], roots: &[usize]) -> Vec<usize> {
    let (mut order, mut waiting) = (Vec::with_capacity(children.len()), roots.to_vec());
    while let Some(index) = waiting.pop() {
        order.push(index);
        waiting.extend(children.get(index).into_iter().flatten());
    }
    order
}

/// Which spans only say how long others took: while they last somebody may well wait.
fn measures(trace: &Trace, children: &[Vec<usize>], roots: &[usize]) -> Vec<bool> {
    let is_leaf = |index: usize| children.get(index).is_none_or(Vec::is_empty);
    let spans = trace.spans.iter().enumerate();
    let mut measures: Vec<bool> = spans.map(|(index, span)| span.measures() && is_leaf(index)).collect();
    roots.iter().for_each(|root| measures.get_mut(*root).into_iter().for_each(|it| *it = false));
    measures
}

/// The children of each span, and those that are nobody's. A span whose parents lead back to it is nobody's.
fn tree(trace: &Trace) -> (Vec<Vec<usize>>, Vec<usize>) {
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    for (index, span) in trace.spans.iter().enumerate() {
        by_id.entry(span.id.as_str()).or_insert(index);
    }
    let parent = |index: usize| -> Option<usize> {
        let parent = *by_id.get(trace.spans.get(index)?.parent.as_deref()?)?;
        (parent != index).then_some(parent)
    };
    let (mut children, mut roots) = (vec![Vec::new(); trace.spans.len()], Vec::new());
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

/// Whether the parents of a span end somewhere. What is found out is noted for all on the way.
fn leads_to_root(index: usize, parent: &impl Fn(usize) -> Option<usize>, known: &mut [Option<bool>]) -> bool {
    let (mut way, mut at) = (Vec::new(), index);
    let answer = loop {
        match known.get(at).copied().flatten() {
            Some(answer) => break answer,
            // Everybody who is on the way is marked as going round, until it is known better.
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

/// When each span and all below it were over. Those below may well be later, as in a trace of operators.
fn ends(trace: &Trace, children: &[Vec<usize>], order: &[usize], measures: &[bool]) -> Vec<u64> {
    let mut ends: Vec<u64> = trace.spans.iter().map(Span::end).collect();
    for &index in order.iter().rev() {
        let below = children.get(index).into_iter().flatten().filter(|child| measures.get(**child) == Some(&false));
        let below = below.filter_map(|child| ends.get(*child).copied()).max();
        if let (Some(end), Some(below)) = (ends.get_mut(index), below) {
            *end = (*end).max(below);
        }
    }
    ends
}

/// Siblings, and the gaps between them.
fn family(trace: &Trace, siblings: &[usize], above: &[bool], ends: &[u64], measures: &[bool], worth: u64) -> Vec<Row> {
    let mut rows = Vec::with_capacity(siblings.len());
    let mut until = None::<u64>;
    for (place, &index) in siblings.iter().enumerate() {
        let Some(span) = trace.spans.get(index) else { continue };
        if let Some(start) = until.filter(|until| span.start.saturating_sub(*until) >= worth) {
            rows.push(Row::Gap { start, end: span.start, above: above.to_vec() });
        }
        if measures.get(index) == Some(&false) {
            let end = ends.get(index).copied().unwrap_or_else(|| span.end());
            until = Some(until.map_or(end, |until| until.max(end)));
        }
        // What is deeper than anybody can follow stays where it is.
        let mut follows: Vec<bool> = above.iter().take(DEEPEST - 1).copied().collect();
        follows.push(place + 1 < siblings.len());
        rows.push(Row::Span { index, follows });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::model::Span;

    fn span(id: &str, parent: &str, start: u64, duration: u64) -> Span {
        let parent = (!parent.is_empty()).then(|| parent.to_owned());
        Span { id: id.to_owned(), parent, name: id.to_owned(), start, duration, ..Span::default() }
    }

    /// The rows as text: a span's id, indented; `~` and the length of a gap.
    fn drawn(spans: Vec<Span>) -> Vec<String> {
        let duration = spans.iter().map(Span::end).max().unwrap_or(0);
        let trace = Trace { duration, spans, ..Trace::default() };
        let text = |row: Row| match row {
            Row::Span { index, follows } => format!("{}{}", " ".repeat(follows.len() - 1), trace.spans[index].id),
            Row::Gap { start, end, above } => format!("{}~{}", " ".repeat(above.len()), end - start),
        };
        rows(&trace, false).rows.into_iter().map(text).collect()
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
            Span { name: "converge Head".to_owned(), ..span("converge", "root", 1, 99) },
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
        let trace = Trace { duration: 1, spans, ..Trace::default() };
        let (children, roots) = tree(&trace);
        assert_eq!((roots.as_slice(), children.len()), (&[99_999][..], 100_000));
        let (order, measures) = (order(&children, &roots), vec![false; 100_000]);
        assert_eq!(ends(&trace, &children, &order, &measures)[99_999], 100_000);
        assert_eq!(rows(&trace, true).rows.len(), 100_000);
    }
}
