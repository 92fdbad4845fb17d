//! What of the verdicts is worth saying.
//!
//! One failed attempt makes a verdict, and one success ends it. A status that followed would be written all the time, and people would stop reading it. So what is said
//! changes when the new verdict was reached twice in a row; or at once, if nothing was known before.

use std::collections::BTreeMap;

use kubewake_api::{Delivery, Reason};

use crate::{desk::Id, verdicts::Verdict};

/// What was said, and what is about to be.
#[derive(Debug, Default)]
pub struct Steady {
    said: BTreeMap<Id, Spoken>,
}

#[derive(Debug)]
struct Spoken {
    verdict: Verdict,
    /// What was found the last time, if it was something else.
    next: Option<Verdict>,
}

impl Steady {
    /// What to say after a round.
    pub fn after(&mut self, mut round: BTreeMap<Id, Verdict>) -> BTreeMap<Id, Verdict> {
        self.said.retain(|id, _| round.contains_key(id));
        for (id, verdict) in &mut round {
            match self.said.get_mut(id) {
                Some(spoken) if spoken.verdict.uid == verdict.uid => *verdict = spoken.after(verdict.clone()),
                // Of this one nothing was known before, be it that another had its name.
                _ => _ = self.said.insert(id.clone(), Spoken { verdict: verdict.clone(), next: None }),
            }
        }
        round
    }
}

impl Spoken {
    fn after(&mut self, found: Verdict) -> Verdict {
        let is_known = !matches!(self.verdict.delivery, Delivery::Unknown | Delivery::NoData)
            || self.verdict.rollout.reason().is_some();
        // A newer document that is in force, too, is said at once: until then the newer one counts as unread.
        if found.rollout == self.verdict.rollout {
            self.verdict.document.clone_from(&found.document);
        }
        let is_second = self.next.as_ref().is_some_and(|next| kind(next) == kind(&found));
        self.next = None;
        if is_second || !is_known || found == self.verdict {
            self.verdict = found;
        } else {
            self.next = Some(found);
        }
        self.verdict.clone()
    }
}

/// What counts as the same: words may differ.
fn kind(verdict: &Verdict) -> (Delivery, Option<Reason>) {
    (verdict.delivery, verdict.rollout.reason())
}

#[cfg(test)]
mod tests {
    use kubewake_api::Signal;

    use super::*;
    use crate::verdicts::Rollout;

    fn verdict(uid: Option<&str>, delivery: Delivery, rollout: Rollout, document: &str) -> Verdict {
        let uid = uid.map(str::to_owned);
        Verdict { uid, delivery, message: String::new(), rollout, document: document.to_owned() }
    }

    fn said(rounds: &[Delivery]) -> Vec<Delivery> {
        let (mut steady, id) = (Steady::default(), Id { signal: Signal::Traces, name: "a".to_owned() });
        let verdict = |delivery| verdict(None, delivery, Rollout::InForce, "one");
        rounds.iter().map(|it| steady.after(BTreeMap::from([(id.clone(), verdict(*it))]))[&id].delivery).collect()
    }

    #[test]
    fn what_lasts_is_said() {
        use Delivery::{BackendRefuses as Refuses, BackendUnreachable as Gone, Delivering as Well, NoData, Unknown};
        assert_eq!(said(&[Refuses]), [Refuses], "the first is said at once");
        assert_eq!(said(&[Unknown, NoData, Well]), [Unknown, NoData, Well], "and the first after nothing was known");
        assert_eq!(said(&[Well, Gone, Gone, Well, Well]), [Well, Well, Gone, Gone, Well]);
        assert_eq!(said(&[Well, Gone, Well, Gone, Well]), [Well; 5], "one failure makes no trouble");
        assert_eq!(said(&[Well, Gone, Refuses, Refuses]), [Well, Well, Well, Refuses]);
    }

    #[test]
    fn who_has_a_name_next_does_not_wait_for_what_was_said_before() {
        let (mut steady, id) = (Steady::default(), Id { signal: Signal::Traces, name: "a".to_owned() });
        let mut said = |uid: &str, delivery| {
            let verdict = verdict(Some(uid), delivery, Rollout::InForce, "one");
            steady.after(BTreeMap::from([(id.clone(), verdict)]))[&id].delivery
        };
        assert_eq!(said("one", Delivery::DataDropped), Delivery::DataDropped);
        assert_eq!(said("two", Delivery::Delivering), Delivery::Delivering);
        assert_eq!(said("two", Delivery::DataDropped), Delivery::Delivering, "what is said of it changes as always");
    }

    #[test]
    fn newer_document_counts_as_read_as_soon_as_it_is_in_force_and_not_before() {
        let (mut steady, id) = (Steady::default(), Id { signal: Signal::Traces, name: "a".to_owned() });
        let mut said = |rollout: Rollout, document: &str| {
            let found = verdict(None, Delivery::Delivering, rollout, document);
            let said = steady.after(BTreeMap::from([(id.clone(), found)]))[&id].clone();
            (said.rollout, said.document)
        };
        let waits = || Rollout::Incomplete(Reason::RolloutInProgress, "1 of 2".to_owned());
        assert_eq!(said(Rollout::InForce, "one"), (Rollout::InForce, "one".to_owned()));
        assert_eq!(said(Rollout::InForce, "two"), (Rollout::InForce, "two".to_owned()));
        assert_eq!(said(waits(), "three"), (Rollout::InForce, "two".to_owned()), "that is not said of the third");
        assert_eq!(said(waits(), "three"), (waits(), "three".to_owned()));
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let (mut steady, id) = (Steady::default(), Id { signal: Signal::Traces, name: "a".to_owned() });
        let verdict = verdict(None, Delivery::Delivering, Rollout::InForce, "one");
        steady.after(BTreeMap::from([(id, verdict)]));
        assert!(steady.after(BTreeMap::new()).is_empty());
        assert!(steady.said.is_empty());
    }
}
