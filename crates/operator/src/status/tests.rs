use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kubewake_api::{Delivery, Problem, Signal};

use super::*;
use crate::{cause::Cause, layer::Failure};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn id() -> Id {
    Id { signal: Signal::Traces, name: "backend".to_owned() }
}

fn entry(slot: Option<Slot>, problems: &[Reason]) -> Entry {
    let problem = |reason: &Reason| Problem { path: "spec.x".into(), reason: *reason, message: "is wrong".into() };
    let (problems, owner) = (problems.iter().map(problem).collect(), OwnerReference::default());
    Entry { owner, valid: None, problems, slot, checked: None }
}

fn rendered() -> Outcome {
    let documents = BTreeSet::from(["new".to_owned()]);
    Outcome { rendered: BTreeSet::from([id()]), documents, ..Outcome::default() }
}

/// That all collectors go by the document of this hash.
fn in_force(document: &str, delivery: Delivery) -> Option<Verdict> {
    let (message, document) = ("so it is".to_owned(), document.to_owned());
    Some(Verdict { uid: None, delivery, message, rollout: Rollout::InForce, document })
}

struct Case {
    entry: Entry,
    outcome: Outcome,
    collectors: Collectors,
    verdict: Option<Verdict>,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            entry: entry(Some(Slot::Held), &[]),
            outcome: rendered(),
            collectors: Collectors::example(1, 2),
            verdict: in_force("new", Delivery::Unknown),
        }
    }
}

impl Case {
    fn status_after(&self, before: Option<&PipelineStatus>, now: Timestamp) -> PipelineStatus {
        let facts = Facts {
            id: &id(),
            generation: Some(3),
            backend: "backend.example.com:4317".into(),
            entry: &self.entry,
            outcome: &self.outcome,
            collectors: &self.collectors,
            verdict: self.verdict.clone(),
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

fn said(state: State, reason: Reason, conditions: &str) -> (State, String, String) {
    (state, reason.as_str().to_owned(), conditions.to_owned())
}

#[test]
fn a_pipeline_goes_from_pending_to_ready() {
    let full = Case { entry: entry(Some(Slot::Full), &[]), outcome: Outcome::default(), ..Case::default() };
    assert_eq!(full.says(), said(State::Pending, Reason::Pending, "False False False Unknown"));
    let starting = Case { collectors: Collectors::example(0, 2), ..Case::default() };
    assert_eq!(starting.says(), said(State::Pending, Reason::CollectorNotReady, "True True False Unknown"));
    let stuck = Case { collectors: Collectors::example(2, 2).stuck(), ..Case::default() };
    assert_eq!(stuck.says(), said(State::Degraded, Reason::CollectorNotReady, "True True False Unknown"));
    let unasked = Case { verdict: None, ..Case::default() };
    assert_eq!(unasked.says(), said(State::Pending, Reason::RolloutInProgress, "True False True Unknown"));
    let starting = Case { collectors: Collectors::example(0, 2), verdict: None, ..Case::default() };
    assert_eq!(starting.says(), said(State::Pending, Reason::CollectorNotReady, "True True False Unknown"));
    assert_eq!(Case::default().says(), said(State::Ready, Reason::Unknown, "True True True Unknown"));
    let verdict = |delivery| in_force("new", delivery);
    let well = Case { verdict: verdict(Delivery::Delivering), ..Case::default() };
    assert_eq!(well.says(), said(State::Ready, Reason::Delivering, "True True True True"));
    let refused = Case { verdict: verdict(Delivery::BackendRefuses), ..Case::default() };
    assert_eq!(refused.says(), said(State::Degraded, Reason::BackendRefuses, "True True True False"));
}

fn failure() -> Failure {
    Failure { words: "no".into(), cause: Cause::Invalid }
}

#[test]
fn what_is_wrong_is_said_first() {
    let never = Case { entry: entry(None, &[Reason::SecretMissing]), outcome: Outcome::default(), ..Case::default() };
    assert_eq!(never.says(), said(State::Invalid, Reason::SecretMissing, "False False False Unknown"));
    let kept = Case { entry: entry(Some(Slot::Held), &[Reason::SecretMissing]), ..Case::default() };
    assert_eq!(kept.says(), said(State::Degraded, Reason::SecretMissing, "False False True Unknown"));
    let refused = Outcome { refused: BTreeMap::from([(id(), "exporters::x: no".into())]), ..Outcome::default() };
    let refused = Case { outcome: refused, ..Case::default() };
    assert_eq!(refused.says(), said(State::Degraded, Reason::DocumentRefused, "True False False Unknown"));
    let failed = Case { outcome: Outcome { failure: Some(failure()), ..rendered() }, ..Case::default() };
    assert_eq!(failed.says(), said(State::Degraded, Reason::ApplyFailed, "True False True Unknown"));
    let outcome = Outcome { failure: Some(failure()), ..rendered() };
    let first = Case { outcome, collectors: Collectors::missing(), ..Case::default() };
    assert_eq!(first.says(), said(State::Pending, Reason::ApplyFailed, "True False False Unknown"));
    assert_eq!(first.status_after(None, NOW).ready, None, "0/0 tells nobody anything");
    let paused = Case { outcome: Outcome::default(), ..Case::default() };
    assert_eq!(paused.says(), said(State::Pending, Reason::Paused, "True False False Unknown"));
}

#[test]
fn what_did_not_change_keeps_its_time() {
    let later = NOW + jiff::SignedDuration::from_secs(60);
    let first = Case::default().status_after(None, NOW);
    assert_eq!(Case::default().status_after(Some(&first), later), first);
    let changed = Case { collectors: Collectors::example(0, 2), ..Case::default() }.status_after(Some(&first), later);
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
    let configured = |verdict: Option<Verdict>, generation: i64| {
        let status = Case { verdict, ..Case::default() }.status_after(Some(&of_generation(generation)), NOW);
        let found = status.conditions.iter().find(|it| it.type_ == "Configured").unwrap();
        (found.status.clone(), found.reason.clone())
    };
    let [waits, holds] = [("False", "RolloutInProgress"), ("True", "Configured")]
        .map(|(status, reason)| (status.to_owned(), reason.to_owned()));
    assert_eq!(configured(in_force("new", Delivery::NoData), 2), holds);
    assert_eq!(configured(in_force("old", Delivery::NoData), 2), waits, "they were asked before the change");
    let unknown = in_force("new", Delivery::Unknown).map(|it| Verdict { rollout: Rollout::Unknown, ..it });
    assert_eq!(configured(unknown.clone(), 2), waits, "none of them answers");
    assert_eq!(configured(None, 2), waits, "nobody was asked");
    for same in [in_force("old", Delivery::NoData), unknown, None] {
        assert_eq!(configured(same, 3), holds, "it was said of this generation, and others changed the document");
    }
}

#[test]
fn what_the_collectors_said_last_holds_until_they_are_asked_again() {
    let verdict = |delivery| in_force("new", delivery);
    let before = Case { verdict: verdict(Delivery::BackendRefuses), ..Case::default() }.status_after(None, NOW);
    assert_eq!(
        Case { verdict: None, ..Case::default() }.status_after(Some(&before), NOW),
        before,
        "an operator that was restarted says nothing new"
    );
    let silent = Case { verdict: verdict(Delivery::Unknown), ..Case::default() };
    assert_eq!(
        silent.says(),
        said(State::Ready, Reason::Unknown, "True True True Unknown"),
        "nobody says that it is bad"
    );
    let paused = Case { outcome: Outcome::default(), ..Case::default() }.status_after(Some(&before), NOW);
    assert_eq!(paused.conditions[3].status, "Unknown", "nobody carries it");
}
