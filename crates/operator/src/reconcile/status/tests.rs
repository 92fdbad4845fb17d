use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kubewake_api::{DeliveryOutcome, Signal, SpecProblem};

use super::*;
use crate::layer::LayerFailure;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn id() -> PipelineKey {
    PipelineKey { signal: Signal::Traces, name: "backend".to_owned() }
}

fn entry(slot: Option<Slot>, problems: &[ConditionReason]) -> PipelineState {
    let problem =
        |reason: &ConditionReason| SpecProblem { path: "spec.x".into(), reason: *reason, message: "is wrong".into() };
    let problems = problems.iter().map(problem).collect();
    let owner = OwnerReference::default();
    PipelineState { owner, valid: None, problems, slot, checked: None }
}

fn rendered() -> LayerOutcome {
    let documents = BTreeSet::from(["new".to_owned()]);
    LayerOutcome { rendered: BTreeSet::from([id()]), documents, ..LayerOutcome::default() }
}

/// Health of a pipeline whose collectors have all read the document with this hash.
fn in_force(document: &str, delivery: DeliveryOutcome) -> Option<DeliveryHealth> {
    let message = "so it is".to_owned();
    let documents = BTreeSet::from([document.to_owned()]);
    Some(DeliveryHealth { uid: None, delivery, message, rollout: RolloutState::InForce, documents })
}

struct Case {
    entry: PipelineState,
    outcome: LayerOutcome,
    collectors: CollectorReadiness,
    verdict: Option<DeliveryHealth>,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            entry: entry(Some(Slot::Held), &[]),
            outcome: rendered(),
            collectors: CollectorReadiness::example(1, 2),
            verdict: in_force("new", DeliveryOutcome::Unknown),
        }
    }
}

impl Case {
    fn status_after(&self, before: Option<&PipelineStatus>, now: Timestamp) -> PipelineStatus {
        let facts = PipelineFacts {
            id: &id(),
            generation: Some(3),
            backend: "backend.example.com:4317".into(),
            pipeline: &self.entry,
            outcome: &self.outcome,
            collectors: &self.collectors,
            health: self.verdict.clone(),
            slots: 1,
            warnings: Vec::new(),
            losses: Vec::new(),
        };
        status(before, &facts, now)
    }

    /// State, reason, and the conditions in order.
    fn says(&self) -> (State, String, String) {
        let status = self.status_after(None, NOW);
        let conditions: Vec<&str> = status.conditions.iter().map(|it| it.status.as_str()).collect();
        (status.state.unwrap(), status.reason.unwrap(), conditions.join(" "))
    }
}

fn said(state: State, reason: ConditionReason, conditions: &str) -> (State, String, String) {
    (state, reason.as_str().to_owned(), conditions.to_owned())
}

#[test]
fn a_pipeline_goes_from_pending_to_ready() {
    let full = Case { entry: entry(Some(Slot::Full), &[]), outcome: LayerOutcome::default(), ..Case::default() };
    assert_eq!(full.says(), said(State::Pending, ConditionReason::Pending, "False False False Unknown"));
    let starting = Case { collectors: CollectorReadiness::example(0, 2), ..Case::default() };
    assert_eq!(starting.says(), said(State::Pending, ConditionReason::CollectorNotReady, "True True False Unknown"));
    let stuck = Case { collectors: CollectorReadiness::example(2, 2).with_stuck_collector(), ..Case::default() };
    assert_eq!(stuck.says(), said(State::Degraded, ConditionReason::CollectorNotReady, "True True False Unknown"));
    let unasked = Case { verdict: None, ..Case::default() };
    assert_eq!(unasked.says(), said(State::Pending, ConditionReason::RolloutInProgress, "True False True Unknown"));
    let starting = Case { collectors: CollectorReadiness::example(0, 2), verdict: None, ..Case::default() };
    assert_eq!(starting.says(), said(State::Pending, ConditionReason::CollectorNotReady, "True True False Unknown"));
    assert_eq!(Case::default().says(), said(State::Ready, ConditionReason::Unknown, "True True True Unknown"));
    let verdict = |delivery| in_force("new", delivery);
    let well = Case { verdict: verdict(DeliveryOutcome::Delivering), ..Case::default() };
    assert_eq!(well.says(), said(State::Ready, ConditionReason::Delivering, "True True True True"));
    let refused = Case { verdict: verdict(DeliveryOutcome::BackendRefuses), ..Case::default() };
    assert_eq!(refused.says(), said(State::Degraded, ConditionReason::BackendRefuses, "True True True False"));
}

fn failure() -> LayerFailure {
    LayerFailure::example("no")
}

#[test]
fn what_is_wrong_is_said_first() {
    let never = Case {
        entry: entry(None, &[ConditionReason::SecretMissing]),
        outcome: LayerOutcome::default(),
        ..Case::default()
    };
    assert_eq!(never.says(), said(State::Invalid, ConditionReason::SecretMissing, "False False False Unknown"));
    let kept = Case { entry: entry(Some(Slot::Held), &[ConditionReason::SecretMissing]), ..Case::default() };
    assert_eq!(kept.says(), said(State::Degraded, ConditionReason::SecretMissing, "False False True Unknown"));
    let refused =
        LayerOutcome { refused: BTreeMap::from([(id(), "exporters::x: no".into())]), ..LayerOutcome::default() };
    let refused = Case { outcome: refused, ..Case::default() };
    assert_eq!(refused.says(), said(State::Degraded, ConditionReason::DocumentRefused, "True False False Unknown"));
    let failed = Case { outcome: LayerOutcome { failure: Some(failure()), ..rendered() }, ..Case::default() };
    assert_eq!(failed.says(), said(State::Degraded, ConditionReason::ApplyFailed, "True False True Unknown"));
    let outcome = LayerOutcome { failure: Some(failure()), ..rendered() };
    let first = Case { outcome, collectors: CollectorReadiness::missing(), ..Case::default() };
    assert_eq!(first.says(), said(State::Pending, ConditionReason::ApplyFailed, "True False False Unknown"));
    assert_eq!(first.status_after(None, NOW).ready, None, "0/0 tells nobody anything");
    let paused = Case { outcome: LayerOutcome::default(), ..Case::default() };
    assert_eq!(paused.says(), said(State::Pending, ConditionReason::Paused, "True False False Unknown"));
}

#[test]
fn what_did_not_change_keeps_its_time() {
    let later = NOW + jiff::SignedDuration::from_secs(60);
    let first = Case::default().status_after(None, NOW);
    assert_eq!(Case::default().status_after(Some(&first), later), first);
    let changed =
        Case { collectors: CollectorReadiness::example(0, 2), ..Case::default() }.status_after(Some(&first), later);
    let times: Vec<Timestamp> = changed.conditions.iter().map(|it| it.last_transition_time.0).collect();
    assert_eq!(times, [NOW, NOW, later, NOW]);
    assert_eq!((changed.ready.as_deref(), changed.observed_generation), (Some("0/2"), Some(3)));
}

#[test]
fn change_is_configured_when_collectors_were_seen_to_go_by_a_document_that_has_it() {
    let before = PipelineStatus { observed_generation: Some(2), ..Case::default().status_after(None, NOW) };
    let of_generation = |generation: i64| {
        let mut before = before.clone();
        before.conditions.iter_mut().for_each(|it| it.observed_generation = Some(generation));
        before
    };
    let configured = |verdict: Option<DeliveryHealth>, generation: i64| {
        let status = Case { verdict, ..Case::default() }.status_after(Some(&of_generation(generation)), NOW);
        let found = status.conditions.iter().find(|it| it.type_ == "Configured").unwrap();
        (found.status.clone(), found.reason.clone())
    };
    let [waits, holds] = [("False", "RolloutInProgress"), ("True", "Configured")]
        .map(|(status, reason)| (status.to_owned(), reason.to_owned()));
    assert_eq!(configured(in_force("new", DeliveryOutcome::NoData), 2), holds);
    assert_eq!(configured(in_force("old", DeliveryOutcome::NoData), 2), waits, "they were asked before the change");
    let unknown =
        in_force("new", DeliveryOutcome::Unknown).map(|it| DeliveryHealth { rollout: RolloutState::Unknown, ..it });
    assert_eq!(configured(unknown.clone(), 2), waits, "none of them answers");
    assert_eq!(configured(None, 2), waits, "nobody was asked");
    for same in [in_force("old", DeliveryOutcome::NoData), unknown, None] {
        assert_eq!(configured(same, 3), holds, "it was said of this generation, and others changed the document");
    }
}

#[test]
fn what_the_collectors_said_last_holds_until_they_are_asked_again() {
    let verdict = |delivery| in_force("new", delivery);
    let before = Case { verdict: verdict(DeliveryOutcome::BackendRefuses), ..Case::default() }.status_after(None, NOW);
    assert_eq!(
        Case { verdict: None, ..Case::default() }.status_after(Some(&before), NOW),
        before,
        "an operator that was restarted says nothing new"
    );
    let silent = Case { verdict: verdict(DeliveryOutcome::Unknown), ..Case::default() };
    assert_eq!(
        silent.says(),
        said(State::Ready, ConditionReason::Unknown, "True True True Unknown"),
        "nobody says that it is bad"
    );
    let paused = Case { outcome: LayerOutcome::default(), ..Case::default() }.status_after(Some(&before), NOW);
    assert_eq!(paused.conditions[3].status, "Unknown", "nobody carries it");
}
