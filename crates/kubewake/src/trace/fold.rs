//! Spans that say nothing which the only one below them does not, such as the filters of an API server around each request. Pure.
//!
//! The page folds them by the same rules (`crates/viewer/page/model.js`): inner work of one process with one child, with hardly any time of its own, and
//! with no word of its own. What is left out of a chain is judged as a whole. A root names its trace, and is left out only around a request.

use super::model::{Attribute, Span, Trace};

/// What may be hidden of a span's time: a hundredth, or this many nanoseconds where that is no more than a tenth.
const HIDDEN: u64 = 1_000_000;

/// Names of objects by the semantic conventions.
const NAMES: [&str; 6] = [
    "k8s.pod.name",
    "k8s.deployment.name",
    "k8s.statefulset.name",
    "k8s.daemonset.name",
    "k8s.job.name",
    "k8s.cronjob.name",
];

/// For each span: the one that says all that it says, if there is one. `order` has parents before their children.
pub(super) fn wrapped(trace: &Trace, children: &[Vec<usize>], roots: &[usize], order: &[usize]) -> Vec<Option<usize>> {
    let mut wraps = vec![None; trace.spans.len()];
    let mut is_root = vec![false; trace.spans.len()];
    for root in roots {
        is_root.get_mut(*root).into_iter().for_each(|it| *it = true);
    }
    for &index in order.iter().rev() {
        let Some([child]) = children.get(index).map(Vec::as_slice) else { continue };
        let core = wraps.get(*child).copied().flatten().unwrap_or(*child);
        let (Some(span), Some(below), Some(inside)) =
            (trace.spans.get(index), trace.spans.get(*child), trace.spans.get(core))
        else {
            continue;
        };
        let measures = below.measures() && children.get(*child).is_none_or(Vec::is_empty);
        let root = is_root.get(index).copied().unwrap_or_default();
        let says_nothing = span.is_inner()
            && below.resource == span.resource
            && !measures
            && is_around(span, inside)
            && (!root || (inside.kind == "server" && span.parent.is_none()))
            && !tells(span, inside);
        if says_nothing {
            wraps.get_mut(index).into_iter().for_each(|it| *it = Some(core));
        }
    }
    wraps
}

/// Whether one takes hardly longer than another, which it holds.
fn is_around(span: &Span, inside: &Span) -> bool {
    let most = (span.duration / 100).max(HIDDEN.min(span.duration / 10));
    inside.start >= span.start && inside.end() <= span.end() && span.duration.saturating_sub(inside.duration) <= most
}

/// Whether a span says what another does not.
fn tells(span: &Span, other: &Span) -> bool {
    let said = |own: &Attribute| other.attributes.contains(own);
    span.is_error()
        || span.skew.is_some()
        || !(span.warnings.is_empty() && span.events.is_empty() && span.links.is_empty())
        || names_object(&span.attributes)
        || !span.attributes.iter().all(said)
}

fn names_object(attributes: &[Attribute]) -> bool {
    let has =
        |key: &str| attributes.iter().any(|it| it.key == key && it.value.as_str().is_some_and(|it| !it.is_empty()));
    (has("k8s.object.kind") && has("k8s.object.name")) || NAMES.into_iter().any(has)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::rows::rows;

    fn span(id: &str, parent: &str, kind: &str, start: u64, duration: u64) -> Span {
        let parent = (!parent.is_empty()).then(|| parent.to_owned());
        Span { id: id.to_owned(), parent, kind: kind.to_owned(), start, duration, ..Span::default() }
    }

    fn folded(change: impl Fn(&mut Vec<Span>)) -> usize {
        let mut spans = vec![
            span("request", "", "server", 0, 1000),
            span("filter", "request", "internal", 100, 500),
            span("inner filter", "filter", "internal", 101, 498),
            span("work", "inner filter", "internal", 102, 496),
            span("step", "work", "internal", 200, 100),
        ];
        change(&mut spans);
        let trace = Trace { duration: 1000, spans, ..Trace::default() };
        let rows = rows(&trace, true);
        assert_eq!(rows.rows.len() + rows.folded, trace.spans.len(), "{rows:?}");
        rows.folded
    }

    #[test]
    fn what_only_wraps_another_is_left_out() {
        assert_eq!(folded(|_| {}), 2);
        assert_eq!(folded(|spans| spans[1].status = "error".to_owned()), 1);
        assert_eq!(folded(|spans| spans[1].resource = 1), 1, "another process");
        assert_eq!(folded(|spans| spans[3].name = "converge Head".to_owned()), 2, "it has something below it");
        assert_eq!(folded(|spans| spans[1].duration = 800), 1, "time of its own");
        let attribute = |value: &str| Attribute { key: "verb".to_owned(), value: value.into() };
        assert_eq!(folded(|spans| spans[1].attributes.push(attribute("get"))), 1);
        let both = |spans: &mut Vec<Span>| [1, 3].iter().for_each(|at| spans[*at].attributes.push(attribute("get")));
        assert_eq!(folded(both), 2, "it is said below");
    }

    #[test]
    fn a_root_is_left_out_only_around_a_request() {
        let of = |kind: &str, parent: &str| {
            let spans = vec![span("outer", parent, "internal", 0, 1000), span("inside", "outer", kind, 1, 998)];
            rows(&Trace { duration: 1000, spans, ..Trace::default() }, true).folded
        };
        assert_eq!((of("server", ""), of("internal", ""), of("server", "gone")), (1, 0, 0));
    }
}
