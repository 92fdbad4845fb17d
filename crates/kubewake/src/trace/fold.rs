//! Folds spans that add nothing to their only child, such as the filters of an API server around each request.
//! Pure.
//!
//! The page folds by the same rules (`crates/viewer/page/model.js`): internal spans of one process with one
//! child, hardly any time of their own, and no information of their own. A chain of folded spans is judged as a
//! whole. A root names its trace, and is folded only around a request.

use super::model::{AttributeDocument, SpanDocument, TraceDocument};

/// The limit of hidden time: a hundredth of the span, or this many nanoseconds where that is no more than a
/// tenth.
const MAX_HIDDEN_NANOS: u64 = 1_000_000;

/// Attributes with names of objects in the semantic conventions.
const OBJECT_NAME_ATTRIBUTES: [&str; 6] = [
    "k8s.pod.name",
    "k8s.deployment.name",
    "k8s.statefulset.name",
    "k8s.daemonset.name",
    "k8s.job.name",
    "k8s.cronjob.name",
];

/// For each folded span, the descendant that replaces it. `order` has parents before their children.
pub(super) fn find_wrapper_spans(
    trace: &TraceDocument,
    children: &[Vec<usize>],
    roots: &[usize],
    order: &[usize],
) -> Vec<Option<usize>> {
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
        let measures = below.is_duration_only() && children.get(*child).is_none_or(Vec::is_empty);
        let root = is_root.get(index).copied().unwrap_or_default();
        let says_nothing = span.is_internal()
            && below.resource == span.resource
            && !measures
            && closely_encloses(span, inside)
            && (!root || (inside.kind == "server" && span.parent.is_none()))
            && !has_own_information(span, inside);
        if says_nothing {
            wraps.get_mut(index).into_iter().for_each(|it| *it = Some(core));
        }
    }
    wraps
}

/// Whether a span contains another one and takes hardly longer.
fn closely_encloses(span: &SpanDocument, inside: &SpanDocument) -> bool {
    let most = (span.duration / 100).max(MAX_HIDDEN_NANOS.min(span.duration / 10));
    inside.start >= span.start && inside.end() <= span.end() && span.duration.saturating_sub(inside.duration) <= most
}

/// Whether a span has information that another one lacks.
fn has_own_information(span: &SpanDocument, other: &SpanDocument) -> bool {
    let said = |own: &AttributeDocument| other.attributes.contains(own);
    span.is_error()
        || span.skew.is_some()
        || !(span.warnings.is_empty() && span.events.is_empty() && span.links.is_empty())
        || names_object(&span.attributes)
        || !span.attributes.iter().all(said)
}

fn names_object(attributes: &[AttributeDocument]) -> bool {
    let has =
        |key: &str| attributes.iter().any(|it| it.key == key && it.value.as_str().is_some_and(|it| !it.is_empty()));
    (has("k8s.object.kind") && has("k8s.object.name")) || OBJECT_NAME_ATTRIBUTES.into_iter().any(has)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::rows::build_rows;

    fn span(id: &str, parent: &str, kind: &str, start: u64, duration: u64) -> SpanDocument {
        let parent = (!parent.is_empty()).then(|| parent.to_owned());
        SpanDocument { id: id.to_owned(), parent, kind: kind.to_owned(), start, duration, ..SpanDocument::default() }
    }

    fn folded(change: impl Fn(&mut Vec<SpanDocument>)) -> usize {
        let mut spans = vec![
            span("request", "", "server", 0, 1000),
            span("filter", "request", "internal", 100, 500),
            span("inner filter", "filter", "internal", 101, 498),
            span("work", "inner filter", "internal", 102, 496),
            span("step", "work", "internal", 200, 100),
        ];
        change(&mut spans);
        let trace = TraceDocument { duration: 1000, spans, ..TraceDocument::default() };
        let rows = build_rows(&trace, true);
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
        let attribute = |value: &str| AttributeDocument { key: "verb".to_owned(), value: value.into() };
        assert_eq!(folded(|spans| spans[1].attributes.push(attribute("get"))), 1);
        let both =
            |spans: &mut Vec<SpanDocument>| [1, 3].iter().for_each(|at| spans[*at].attributes.push(attribute("get")));
        assert_eq!(folded(both), 2, "it is said below");
    }

    #[test]
    fn a_root_is_left_out_only_around_a_request() {
        let of = |kind: &str, parent: &str| {
            let spans = vec![span("outer", parent, "internal", 0, 1000), span("inside", "outer", kind, 1, 998)];
            build_rows(&TraceDocument { duration: 1000, spans, ..TraceDocument::default() }, true).folded
        };
        assert_eq!((of("server", ""), of("internal", ""), of("server", "gone")), (1, 0, 0));
    }
}
