//! Publishes changes of delivery health only when they last.
//!
//! One failed attempt makes a pipeline unhealthy, and one success makes it healthy. Statuses that followed
//! each of them would be written all the time, and people would stop reading them. So a change is published
//! when two rounds in a row found it, or at once if nothing was known before.

use std::collections::BTreeMap;

use kubewake_api::{ConditionReason, DeliveryOutcome};

use crate::{feedback::delivery_health::DeliveryHealth, model::pipeline_key::PipelineKey};

/// The published health of each pipeline, and changes that await confirmation.
#[derive(Debug, Default)]
pub struct HealthDebouncer {
    published: BTreeMap<PipelineKey, DebouncedHealth>,
}

#[derive(Debug)]
struct DebouncedHealth {
    reported: DeliveryHealth,
    /// The last finding, if it differs from what is published.
    candidate: Option<DeliveryHealth>,
}

impl HealthDebouncer {
    /// The health to publish after a round.
    pub fn debounce(
        &mut self,
        mut round: BTreeMap<PipelineKey, DeliveryHealth>,
    ) -> BTreeMap<PipelineKey, DeliveryHealth> {
        self.published.retain(|id, _| round.contains_key(id));
        for (id, verdict) in &mut round {
            match self.published.get_mut(id) {
                Some(spoken) if spoken.reported.uid == verdict.uid => *verdict = spoken.update(verdict.clone()),
                // Nothing was known of this pipeline, though another one may have had its name.
                _ => {
                    _ = self
                        .published
                        .insert(id.clone(), DebouncedHealth { reported: verdict.clone(), candidate: None })
                }
            }
        }
        round
    }
}

impl DebouncedHealth {
    fn update(&mut self, found: DeliveryHealth) -> DeliveryHealth {
        let is_known = !matches!(self.reported.delivery, DeliveryOutcome::Unknown | DeliveryOutcome::NoData)
            || self.reported.rollout.reason().is_some();
        // A newer document in the same rollout state is published at once: until then it would count as
        // unread.
        if found.rollout == self.reported.rollout {
            self.reported.documents.clone_from(&found.documents);
        }
        let is_second = self.candidate.as_ref().is_some_and(|next| comparison_key(next) == comparison_key(&found));
        self.candidate = None;
        if is_second || !is_known || found == self.reported {
            self.reported = found;
        } else {
            self.candidate = Some(found);
        }
        self.reported.clone()
    }
}

/// The part of a finding that counts as a change: messages may differ.
fn comparison_key(verdict: &DeliveryHealth) -> (DeliveryOutcome, Option<ConditionReason>) {
    (verdict.delivery, verdict.rollout.reason())
}

#[cfg(test)]
mod tests {
    use kubewake_api::Signal;

    use super::*;
    use crate::feedback::delivery_health::RolloutState;

    fn verdict(uid: Option<&str>, delivery: DeliveryOutcome, rollout: RolloutState, document: &str) -> DeliveryHealth {
        let uid = uid.map(str::to_owned);
        DeliveryHealth { uid, delivery, message: String::new(), rollout, documents: [document.to_owned()].into() }
    }

    fn said(rounds: &[DeliveryOutcome]) -> Vec<DeliveryOutcome> {
        let (mut steady, id) =
            (HealthDebouncer::default(), PipelineKey { signal: Signal::Traces, name: "a".to_owned() });
        let verdict = |delivery| verdict(None, delivery, RolloutState::InForce, "one");
        rounds.iter().map(|it| steady.debounce(BTreeMap::from([(id.clone(), verdict(*it))]))[&id].delivery).collect()
    }

    #[test]
    fn what_lasts_is_said() {
        use DeliveryOutcome::{
            BackendRefuses as Refuses, BackendUnreachable as Gone, Delivering as Well, NoData, Unknown,
        };
        assert_eq!(said(&[Refuses]), [Refuses], "the first is said at once");
        assert_eq!(said(&[Unknown, NoData, Well]), [Unknown, NoData, Well], "and the first after nothing was known");
        assert_eq!(said(&[Well, Gone, Gone, Well, Well]), [Well, Well, Gone, Gone, Well]);
        assert_eq!(said(&[Well, Gone, Well, Gone, Well]), [Well; 5], "one failure makes no trouble");
        assert_eq!(said(&[Well, Gone, Refuses, Refuses]), [Well, Well, Well, Refuses]);
    }

    #[test]
    fn who_has_a_name_next_does_not_wait_for_what_was_said_before() {
        let (mut steady, id) =
            (HealthDebouncer::default(), PipelineKey { signal: Signal::Traces, name: "a".to_owned() });
        let mut said = |uid: &str, delivery| {
            let verdict = verdict(Some(uid), delivery, RolloutState::InForce, "one");
            steady.debounce(BTreeMap::from([(id.clone(), verdict)]))[&id].delivery
        };
        assert_eq!(said("one", DeliveryOutcome::DataDropped), DeliveryOutcome::DataDropped);
        assert_eq!(said("two", DeliveryOutcome::Delivering), DeliveryOutcome::Delivering);
        assert_eq!(
            said("two", DeliveryOutcome::DataDropped),
            DeliveryOutcome::Delivering,
            "what is said of it changes as always"
        );
    }

    #[test]
    fn newer_document_counts_as_read_as_soon_as_it_is_in_force_and_not_before() {
        let (mut steady, id) =
            (HealthDebouncer::default(), PipelineKey { signal: Signal::Traces, name: "a".to_owned() });
        let mut said = |rollout: RolloutState, document: &str| {
            let found = verdict(None, DeliveryOutcome::Delivering, rollout, document);
            let said = steady.debounce(BTreeMap::from([(id.clone(), found)]))[&id].clone();
            (said.rollout, said.documents.into_iter().collect::<Vec<_>>().join(" "))
        };
        let waits = || RolloutState::Incomplete(ConditionReason::RolloutInProgress, "1 of 2".to_owned());
        assert_eq!(said(RolloutState::InForce, "one"), (RolloutState::InForce, "one".to_owned()));
        assert_eq!(said(RolloutState::InForce, "two"), (RolloutState::InForce, "two".to_owned()));
        assert_eq!(said(waits(), "three"), (RolloutState::InForce, "two".to_owned()), "that is not said of the third");
        assert_eq!(said(waits(), "three"), (waits(), "three".to_owned()));
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let (mut steady, id) =
            (HealthDebouncer::default(), PipelineKey { signal: Signal::Traces, name: "a".to_owned() });
        let verdict = verdict(None, DeliveryOutcome::Delivering, RolloutState::InForce, "one");
        steady.debounce(BTreeMap::from([(id, verdict)]));
        assert!(steady.debounce(BTreeMap::new()).is_empty());
        assert!(steady.published.is_empty());
    }
}
