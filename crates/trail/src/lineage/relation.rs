//! Chooses how work relates to the context on its object: parent, links, drift.

use std::time::Duration;

use opentelemetry::{
    KeyValue,
    trace::{Link, SpanContext},
};

use crate::{
    lineage::FoundContext,
    sampler::UNTRUSTED,
    trail::{TraceMode, TrailState},
};

/// A run may have many causes, as the queue merges them. More links than this help nobody.
pub(crate) const MAX_LINKS: usize = 8;

/// A piece of work on an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TracedWork<'a> {
    /// The context on the object.
    pub(crate) found: &'a FoundContext,
    /// Whether the object was changed after the context was stamped, by a writer that left none.
    pub(crate) is_outdated: bool,
    /// Whether the object was ready for this generation.
    pub(crate) was_converged: bool,
    /// The trusted contexts of related objects that caused this work.
    pub(crate) causes: &'a [SpanContext],
}

/// The place of a run in traces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TraceRelation {
    /// The parent; none for a root.
    pub(crate) parent: Option<SpanContext>,
    pub(crate) links: Vec<Link>,
    /// Whether the run repairs an object that was ready long ago.
    pub(crate) is_drift: bool,
}

/// Chooses the parent and the links of a run, or of an operand's work; nothing else does. The converge span has a rule
/// of its own, in `converge.rs`. [`relate`] has the rules, which depend on the work, on the options of the trail, and
/// on a repair in progress.
pub(crate) fn choose_relation(trail: &TrailState, work: TracedWork<'_>) -> TraceRelation {
    let options = &trail.options;
    let repair = work.found.any().filter(|_| work.was_converged).and_then(|found| {
        trail.ongoing_repairs.find_root(found.context.trace_id(), options.clock.timestamp(), options.drift_after)
    });
    relate(RelationFacts {
        work,
        mode: options.mode,
        links_untrusted: options.trust.links_others(),
        age: trail.context_age(work.found.any()),
        drift_after: options.drift_after,
        repair_root: repair.as_ref(),
    })
}

/// All that the rules depend on.
#[derive(Clone, Copy, Debug)]
struct RelationFacts<'a> {
    work: TracedWork<'a>,
    mode: TraceMode,
    /// Whether an untrusted context is linked.
    links_untrusted: bool,
    /// The age of the context.
    age: Option<Duration>,
    drift_after: Duration,
    /// The first run of the ongoing repair.
    repair_root: Option<&'a SpanContext>,
}

/// The rules.
fn relate(facts: RelationFacts<'_>) -> TraceRelation {
    let mut relation = relate_to_context(&facts);
    let in_trace = relation.parent.as_ref().map(SpanContext::trace_id);
    for cause in facts.work.causes {
        let trace = cause.trace_id();
        let known = in_trace == Some(trace) || relation.links.iter().any(|link| link.span_context.trace_id() == trace);
        if !known && relation.links.len() < MAX_LINKS {
            relation.links.push(Link::with_context(cause.clone()));
        }
    }
    relation
}

fn relate_to_context(facts: &RelationFacts<'_>) -> TraceRelation {
    let TracedWork { found, is_outdated, was_converged, .. } = facts.work;
    let context = match found {
        FoundContext::Missing => return TraceRelation::default(),
        FoundContext::Untrusted(found) => {
            let link = Link::new(found.context.clone(), vec![KeyValue::new(UNTRUSTED, true)], 0);
            let links = facts.links_untrusted.then_some(link).into_iter().collect();
            return TraceRelation { links, ..TraceRelation::default() };
        }
        FoundContext::Trusted(found) => found.context.clone(),
    };
    let is_drift = was_converged && facts.age.is_some_and(|age| age > facts.drift_after);
    if !is_drift && !is_outdated && facts.mode == TraceMode::Tree {
        return TraceRelation { parent: Some(context), ..TraceRelation::default() };
    }
    // An outdated context means a later change of the object, which is not part of the repair.
    let repair = facts.repair_root.filter(|_| is_drift && !is_outdated).cloned();
    let (parent, also_linked) = match facts.mode {
        TraceMode::Tree => (repair, None),
        TraceMode::Links => (None, repair),
    };
    let links = [Some(context), also_linked].into_iter().flatten().map(Link::with_context).collect();
    TraceRelation { parent, links, is_drift }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        carrier::{ContextSource, ObjectContext},
        context::parse,
    };

    const HOUR: Duration = Duration::from_secs(3600);

    fn context(digit: char) -> SpanContext {
        let trace = String::from(digit).repeat(32);
        parse(&format!("00-{trace}-00f067aa0ba902b7-01"), None).unwrap()
    }

    fn object_context() -> ObjectContext {
        ObjectContext {
            context: context('a'),
            source: ContextSource::Own,
            spec: None,
            generation: None,
            stamped_at: None,
            previous: None,
        }
    }

    fn trusted() -> FoundContext {
        FoundContext::Trusted(object_context())
    }

    fn facts(found: &FoundContext) -> RelationFacts<'_> {
        RelationFacts {
            work: TracedWork { found, is_outdated: false, was_converged: false, causes: &[] },
            mode: TraceMode::Tree,
            links_untrusted: false,
            age: Some(Duration::from_secs(1)),
            drift_after: HOUR,
            repair_root: None,
        }
    }

    /// Work on an object that was ready.
    fn converged(found: &FoundContext) -> RelationFacts<'_> {
        let facts = facts(found);
        RelationFacts { work: TracedWork { was_converged: true, ..facts.work }, ..facts }
    }

    fn outdated(facts: RelationFacts<'_>) -> RelationFacts<'_> {
        RelationFacts { work: TracedWork { is_outdated: true, ..facts.work }, ..facts }
    }

    fn links(relation: &TraceRelation) -> Vec<SpanContext> {
        relation.links.iter().map(|link| link.span_context.clone()).collect()
    }

    #[test]
    fn run_without_context_is_a_root() {
        assert_eq!(relate(facts(&FoundContext::Missing)), TraceRelation::default());
    }

    #[test]
    fn run_is_a_child_of_the_context_or_linked_to_it() {
        let found = trusted();
        let child = TraceRelation { parent: Some(context('a')), ..TraceRelation::default() };
        assert_eq!(relate(facts(&found)), child);
        // Just ready, or still working after an hour: both are part of the same change.
        assert_eq!(relate(converged(&found)), child);
        assert_eq!(relate(RelationFacts { age: Some(HOUR * 2), ..facts(&found) }), child);
        let linked = relate(RelationFacts { mode: TraceMode::Links, ..facts(&found) });
        assert_eq!((linked.parent.clone(), links(&linked), linked.is_drift), (None, vec![context('a')], false));
    }

    #[test]
    fn repair_long_after_the_change_is_a_root_with_a_link() {
        let found = trusted();
        let repair = relate(RelationFacts { age: Some(HOUR * 2), ..converged(&found) });
        assert_eq!((repair.parent.clone(), links(&repair), repair.is_drift), (None, vec![context('a')], true));
    }

    #[test]
    fn later_run_of_a_repair_belongs_to_its_first_run() {
        let found = trusted();
        let first = context('b');
        let late = |facts| RelationFacts { age: Some(HOUR * 2), repair_root: Some(&first), ..facts };
        let repair = late(converged(&found));
        let next = relate(repair);
        assert_eq!((next.parent.clone(), links(&next), next.is_drift), (Some(context('b')), vec![context('a')], true));
        let linked = relate(RelationFacts { mode: TraceMode::Links, ..repair });
        assert_eq!((linked.parent.clone(), links(&linked)), (None, vec![context('a'), context('b')]));
        let changed = relate(outdated(repair));
        assert_eq!((changed.parent.clone(), links(&changed)), (None, vec![context('a')]));
        assert_eq!(relate(late(facts(&found))).parent, Some(context('a')), "the object was never ready");
    }

    #[test]
    fn change_past_the_webhook_is_a_root_with_a_link() {
        let found = trusted();
        let past = relate(outdated(facts(&found)));
        assert_eq!((past.parent.clone(), links(&past), past.is_drift), (None, vec![context('a')], false));
    }

    #[test]
    fn untrusted_context_is_never_a_parent() {
        let found = FoundContext::Untrusted(object_context());
        assert_eq!(relate(facts(&found)), TraceRelation::default());
        let linked = relate(RelationFacts { links_untrusted: true, ..facts(&found) });
        assert_eq!((linked.parent.clone(), links(&linked)), (None, vec![context('a')]));
    }

    #[test]
    fn causes_are_links_once_per_trace_and_bounded() {
        let found = trusted();
        let causes: Vec<_> = "abbcdef123456".chars().map(context).collect();
        let work = TracedWork { causes: &causes, ..facts(&found).work };
        let child = relate(RelationFacts { work, ..facts(&found) });
        assert_eq!(child.parent, Some(context('a')));
        let expected: Vec<_> = "bcdef123".chars().map(context).collect();
        assert_eq!(links(&child), expected);
    }
}
