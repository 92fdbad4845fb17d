//! Decides how a run relates to the context on its object: parent, links, drift. Pure.

use std::time::Duration;

use opentelemetry::{
    KeyValue,
    trace::{Link, SpanContext},
};

use crate::{carrier::ObjectContext, sampler::UNTRUSTED, trail::TraceMode};

/// A run may have many causes, as the queue merges them. More links than this help nobody.
pub(crate) const MAX_LINKS: usize = 8;

/// The inputs of the decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RelationInputs<'a> {
    pub(crate) mode: TraceMode,
    pub(crate) found: Option<&'a ObjectContext>,
    /// Whether the context is trusted.
    pub(crate) is_trusted: bool,
    /// Whether an untrusted context is linked.
    pub(crate) link_others: bool,
    /// Whether the object was changed after the context was stamped, by a writer that left none.
    pub(crate) is_outdated: bool,
    /// Whether the object was ready for this generation.
    pub(crate) was_converged: bool,
    /// The age of the context.
    pub(crate) age: Option<Duration>,
    pub(crate) drift_after: Duration,
    /// The first run of the ongoing repair.
    pub(crate) repair_root: Option<&'a SpanContext>,
    /// The trusted contexts of related objects that caused this run.
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

pub(crate) fn choose_relation(facts: RelationInputs<'_>) -> TraceRelation {
    let mut relation = relate_to_context(&facts);
    let in_trace = relation.parent.as_ref().map(SpanContext::trace_id);
    for cause in facts.causes {
        let trace = cause.trace_id();
        let known = in_trace == Some(trace) || relation.links.iter().any(|link| link.span_context.trace_id() == trace);
        if !known && relation.links.len() < MAX_LINKS {
            relation.links.push(Link::with_context(cause.clone()));
        }
    }
    relation
}

fn relate_to_context(facts: &RelationInputs<'_>) -> TraceRelation {
    let Some(found) = facts.found else { return TraceRelation::default() };
    let context = found.context.clone();
    if !facts.is_trusted {
        let link = Link::new(context, vec![KeyValue::new(UNTRUSTED, true)], 0);
        return TraceRelation {
            links: facts.link_others.then_some(link).into_iter().collect(),
            ..TraceRelation::default()
        };
    }
    let drift = facts.was_converged && facts.age.is_some_and(|age| age > facts.drift_after);
    if drift || facts.is_outdated || facts.mode == TraceMode::Links {
        // An outdated context means a later change of the object, which is not part of the repair.
        let repair = facts.repair_root.filter(|_| drift && !facts.is_outdated).cloned();
        let (parent, also) = if facts.mode == TraceMode::Links { (None, repair) } else { (repair, None) };
        let links = [Some(context), also].into_iter().flatten().map(Link::with_context).collect();
        return TraceRelation { parent, links, is_drift: drift };
    }
    TraceRelation { parent: Some(context), ..TraceRelation::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{carrier::ContextSource, context::parse};

    const HOUR: Duration = Duration::from_secs(3600);

    fn context(digit: char) -> SpanContext {
        let trace = String::from(digit).repeat(32);
        parse(&format!("00-{trace}-00f067aa0ba902b7-01"), None).unwrap()
    }

    fn found() -> ObjectContext {
        let context = context('a');
        ObjectContext {
            context,
            source: ContextSource::Own,
            spec: None,
            generation: None,
            stamped_at: None,
            previous: None,
        }
    }

    fn facts(found: &ObjectContext) -> RelationInputs<'_> {
        RelationInputs {
            mode: TraceMode::Tree,
            found: Some(found),
            is_trusted: true,
            link_others: false,
            is_outdated: false,
            was_converged: false,
            age: Some(Duration::from_secs(1)),
            drift_after: HOUR,
            repair_root: None,
            causes: &[],
        }
    }

    fn links(relation: &TraceRelation) -> Vec<SpanContext> {
        relation.links.iter().map(|link| link.span_context.clone()).collect()
    }

    #[test]
    fn without_a_context_a_run_is_a_root() {
        assert_eq!(choose_relation(RelationInputs { found: None, ..facts(&found()) }), TraceRelation::default());
    }

    #[test]
    fn a_run_is_a_child_or_has_a_link() {
        let found = found();
        let child = TraceRelation { parent: Some(context('a')), ..TraceRelation::default() };
        assert_eq!(choose_relation(facts(&found)), child);
        // Just ready, or still working after an hour: both are part of the same change.
        assert_eq!(choose_relation(RelationInputs { was_converged: true, ..facts(&found) }), child);
        assert_eq!(choose_relation(RelationInputs { age: Some(HOUR * 2), ..facts(&found) }), child);
        let linked = choose_relation(RelationInputs { mode: TraceMode::Links, ..facts(&found) });
        assert_eq!((linked.parent.clone(), links(&linked), linked.is_drift), (None, vec![context('a')], false));
    }

    #[test]
    fn a_repair_long_after_is_a_root_with_a_link() {
        let found = found();
        let repair = choose_relation(RelationInputs { was_converged: true, age: Some(HOUR * 2), ..facts(&found) });
        assert_eq!((repair.parent.clone(), links(&repair), repair.is_drift), (None, vec![context('a')], true));
    }

    #[test]
    fn what_follows_in_a_repair_belongs_to_its_first_run() {
        let found = found();
        let first = context('b');
        let repair =
            RelationInputs { was_converged: true, age: Some(HOUR * 2), repair_root: Some(&first), ..facts(&found) };
        let next = choose_relation(repair);
        assert_eq!((next.parent.clone(), links(&next), next.is_drift), (Some(context('b')), vec![context('a')], true));
        let linked = choose_relation(RelationInputs { mode: TraceMode::Links, ..repair });
        assert_eq!((linked.parent.clone(), links(&linked)), (None, vec![context('a'), context('b')]));
        let changed = choose_relation(RelationInputs { is_outdated: true, ..repair });
        assert_eq!((changed.parent.clone(), links(&changed)), (None, vec![context('a')]));
        assert_eq!(
            choose_relation(RelationInputs { was_converged: false, ..repair }).parent,
            Some(context('a')),
            "it was never in order"
        );
    }

    #[test]
    fn a_change_past_the_webhook_is_a_root_with_a_link() {
        let found = found();
        let past = choose_relation(RelationInputs { is_outdated: true, ..facts(&found) });
        assert_eq!((past.parent.clone(), links(&past), past.is_drift), (None, vec![context('a')], false));
    }

    #[test]
    fn who_is_not_believed_is_not_followed() {
        let found = found();
        let alone = RelationInputs { is_trusted: false, ..facts(&found) };
        assert_eq!(choose_relation(alone), TraceRelation::default());
        let linked = choose_relation(RelationInputs { link_others: true, ..alone });
        assert_eq!((linked.parent.clone(), links(&linked)), (None, vec![context('a')]));
    }

    #[test]
    fn further_causes_are_links_once_each_and_not_too_many() {
        let found = found();
        let causes: Vec<_> = "abbcdef123456".chars().map(context).collect();
        let child = choose_relation(RelationInputs { causes: &causes, ..facts(&found) });
        assert_eq!(child.parent, Some(context('a')));
        let expected: Vec<_> = "bcdef123".chars().map(context).collect();
        assert_eq!(links(&child), expected);
    }
}
