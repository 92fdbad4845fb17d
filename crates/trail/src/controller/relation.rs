//! How a run hangs together with the context on its object. Pure.

use std::time::Duration;

use opentelemetry::{
    KeyValue,
    trace::{Link, SpanContext},
};

use crate::{carrier::Found, sampler::UNTRUSTED, trail::Mode};

/// A run may have many causes, as a queue joins them. Nobody follows more links than this.
pub(crate) const MAX_LINKS: usize = 8;

/// What is known when a run begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) mode: Mode,
    pub(crate) found: Option<&'a Found>,
    /// Whether the context is believed.
    pub(crate) believed: bool,
    /// Whether one that is not is linked.
    pub(crate) link_others: bool,
    /// Somebody changed the object after the context was stamped, and left none.
    pub(crate) outdated: bool,
    /// The object was ready for this generation.
    pub(crate) converged: bool,
    /// How old the context is.
    pub(crate) age: Option<Duration>,
    pub(crate) drift_after: Duration,
    /// The first run of the repair that is under way.
    pub(crate) repair: Option<&'a SpanContext>,
    /// Contexts of related objects that led to this run, all believed.
    pub(crate) causes: &'a [SpanContext],
}

/// Where a run stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Relation {
    /// A root has none.
    pub(crate) parent: Option<SpanContext>,
    pub(crate) links: Vec<Link>,
    /// It repairs what was in order long ago.
    pub(crate) drift: bool,
}

pub(crate) fn relation(facts: Facts<'_>) -> Relation {
    let mut relation = to_context(&facts);
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

fn to_context(facts: &Facts<'_>) -> Relation {
    let Some(found) = facts.found else { return Relation::default() };
    let context = found.context.clone();
    if !facts.believed {
        let link = Link::new(context, vec![KeyValue::new(UNTRUSTED, true)], 0);
        return Relation { links: facts.link_others.then_some(link).into_iter().collect(), ..Relation::default() };
    }
    let drift = facts.converged && facts.age.is_some_and(|age| age > facts.drift_after);
    if drift || facts.outdated || facts.mode == Mode::Links {
        // What somebody changed in between is no part of the repair.
        let repair = facts.repair.filter(|_| drift && !facts.outdated).cloned();
        let (parent, also) = if facts.mode == Mode::Links { (None, repair) } else { (repair, None) };
        let links = [Some(context), also].into_iter().flatten().map(Link::with_context).collect();
        return Relation { parent, links, drift };
    }
    Relation { parent: Some(context), ..Relation::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{carrier::Source, context::parse};

    const HOUR: Duration = Duration::from_secs(3600);

    fn context(digit: char) -> SpanContext {
        let trace = String::from(digit).repeat(32);
        parse(&format!("00-{trace}-00f067aa0ba902b7-01"), None).unwrap()
    }

    fn found() -> Found {
        let context = context('a');
        Found { context, source: Source::Own, spec: None, generation: None, changed: None, previous: None }
    }

    fn facts(found: &Found) -> Facts<'_> {
        Facts {
            mode: Mode::Tree,
            found: Some(found),
            believed: true,
            link_others: false,
            outdated: false,
            converged: false,
            age: Some(Duration::from_secs(1)),
            drift_after: HOUR,
            repair: None,
            causes: &[],
        }
    }

    fn links(relation: &Relation) -> Vec<SpanContext> {
        relation.links.iter().map(|link| link.span_context.clone()).collect()
    }

    #[test]
    fn without_a_context_a_run_is_a_root() {
        assert_eq!(relation(Facts { found: None, ..facts(&found()) }), Relation::default());
    }

    #[test]
    fn a_run_is_a_child_or_has_a_link() {
        let found = found();
        let child = Relation { parent: Some(context('a')), ..Relation::default() };
        assert_eq!(relation(facts(&found)), child);
        // Ready since a moment, or at work for an hour: still the same change.
        assert_eq!(relation(Facts { converged: true, ..facts(&found) }), child);
        assert_eq!(relation(Facts { age: Some(HOUR * 2), ..facts(&found) }), child);
        let linked = relation(Facts { mode: Mode::Links, ..facts(&found) });
        assert_eq!((linked.parent.clone(), links(&linked), linked.drift), (None, vec![context('a')], false));
    }

    #[test]
    fn a_repair_long_after_is_a_root_with_a_link() {
        let found = found();
        let repair = relation(Facts { converged: true, age: Some(HOUR * 2), ..facts(&found) });
        assert_eq!((repair.parent.clone(), links(&repair), repair.drift), (None, vec![context('a')], true));
    }

    #[test]
    fn what_follows_in_a_repair_belongs_to_its_first_run() {
        let (found, first) = (found(), context('b'));
        let repair = Facts { converged: true, age: Some(HOUR * 2), repair: Some(&first), ..facts(&found) };
        let next = relation(repair);
        assert_eq!((next.parent.clone(), links(&next), next.drift), (Some(context('b')), vec![context('a')], true));
        let linked = relation(Facts { mode: Mode::Links, ..repair });
        assert_eq!((linked.parent.clone(), links(&linked)), (None, vec![context('a'), context('b')]));
        let changed = relation(Facts { outdated: true, ..repair });
        assert_eq!((changed.parent.clone(), links(&changed)), (None, vec![context('a')]));
        assert_eq!(relation(Facts { converged: false, ..repair }).parent, Some(context('a')), "it was never in order");
    }

    #[test]
    fn a_change_past_the_webhook_is_a_root_with_a_link() {
        let found = found();
        let past = relation(Facts { outdated: true, ..facts(&found) });
        assert_eq!((past.parent.clone(), links(&past), past.drift), (None, vec![context('a')], false));
    }

    #[test]
    fn who_is_not_believed_is_not_followed() {
        let found = found();
        let alone = Facts { believed: false, ..facts(&found) };
        assert_eq!(relation(alone), Relation::default());
        let linked = relation(Facts { link_others: true, ..alone });
        assert_eq!((linked.parent.clone(), links(&linked)), (None, vec![context('a')]));
    }

    #[test]
    fn further_causes_are_links_once_each_and_not_too_many() {
        let found = found();
        let causes: Vec<_> = "abbcdef123456".chars().map(context).collect();
        let child = relation(Facts { causes: &causes, ..facts(&found) });
        assert_eq!(child.parent, Some(context('a')));
        let expected: Vec<_> = "bcdef123".chars().map(context).collect();
        assert_eq!(links(&child), expected);
    }
}
