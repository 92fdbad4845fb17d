use serde_json::json;

use super::*;
use crate::api::RefusedConfiguration;

fn scheduler(running: Option<RunningScheduler>) -> Scheduler {
    let mut scheduler = Scheduler::new("demo", serde_json::from_value(json!({})).unwrap());
    scheduler.metadata.generation = Some(2);
    scheduler.status =
        Some(SchedulerStatus { running, revision: Some("old".to_owned()), ..SchedulerStatus::default() });
    scheduler
}

fn running(revision: &str, refused: Option<&str>) -> Option<RunningScheduler> {
    let refused = refused
        .map(|revision| RefusedConfiguration { revision: revision.to_owned(), reason: "unknown plugin".to_owned() });
    let since = Time(Timestamp::UNIX_EPOCH);
    Some(RunningScheduler { revision: Some(revision.to_owned()), pod: "p".to_owned(), since, refused })
}

/// Status and reason of `Accepted` and `Ready`.
fn told(running: Option<RunningScheduler>, findings: &ReconcileFindings) -> Vec<(String, String)> {
    let status = scheduler_status(&scheduler(running), findings, Timestamp::now());
    assert_eq!(status.observed_generation, Some(2));
    status.conditions.into_iter().map(|it| (it.status, it.reason)).collect()
}

fn given(available: bool) -> ReconcileFindings {
    ReconcileFindings::Configured { revision: "new".to_owned(), available, probe: ProbeResult::NotRequested }
}

fn probed(probe: ProbeResult) -> ReconcileFindings {
    ReconcileFindings::Configured { revision: "new".to_owned(), available: true, probe }
}

fn pairs(expected: [(&str, &str); 2]) -> Vec<(String, String)> {
    expected.map(|(status, reason)| (status.to_owned(), reason.to_owned())).into()
}

#[test]
fn it_is_ready_when_the_scheduler_says_so_and_is_there() {
    let progressing = pairs([("True", "Accepted"), ("False", "Progressing")]);
    assert_eq!(told(None, &given(false)), progressing);
    assert_eq!(told(running("old", None), &given(true)), progressing);
    assert_eq!(told(running("new", None), &given(false)), progressing);
    assert_eq!(told(running("new", None), &given(true)), pairs([("True", "Accepted"), ("True", "Running")]));
}

#[test]
fn a_refusal_says_what_is_wrong_and_keeps_the_old() {
    let findings = ReconcileFindings::refused(&[ConfigurationProblem::new("spec.filters[0]", "no")]);
    let status = scheduler_status(&scheduler(running("old", None)), &findings, Timestamp::now());
    let messages: Vec<&str> = status.conditions.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(messages, ["spec.filters[0]: no", "the scheduler continues with revision old"]);
    assert_eq!(status.revision.as_deref(), Some("old"));
    assert_eq!(told(None, &findings), pairs([("False", "Refused"), ("False", "Refused")]));
}

#[test]
fn what_the_scheduler_refuses_is_told() {
    let told = told(running("old", Some("new")), &given(true));
    assert_eq!(told, pairs([("True", "Accepted"), ("False", "RefusedByScheduler")]));
}

#[test]
fn the_time_of_a_condition_is_that_of_its_last_change() {
    let first = Timestamp::UNIX_EPOCH;
    let second = Timestamp::now();
    let mut scheduler = scheduler(None);
    scheduler.status = Some(scheduler_status(&scheduler, &given(false), first));
    let again = scheduler_status(&scheduler, &given(false), second);
    assert_eq!(scheduler.status.as_ref(), Some(&again), "nothing is written when nothing changed");
    scheduler.status = Some(SchedulerStatus { running: running("new", None), ..again });
    let ready = scheduler_status(&scheduler, &given(true), second);
    let times: Vec<Timestamp> = ready.conditions.iter().map(|it| it.last_transition_time.0).collect();
    assert_eq!(times, [first, second]);
}

#[test]
fn a_probe_must_get_a_node() {
    let told = |probe: ProbeResult| told(running("new", None), &probed(probe)).remove(1);
    let pair = |status: &str, reason: &str| (status.to_owned(), reason.to_owned());
    assert_eq!(told(ProbeResult::Waiting), pair("False", "Progressing"));
    assert_eq!(told(ProbeResult::Unschedulable("full".to_owned())), pair("False", "ProbeUnschedulable"));
    assert_eq!(told(ProbeResult::Bound("one".to_owned())), pair("True", "Running"));
    let status = scheduler_status(
        &scheduler(running("new", None)),
        &probed(ProbeResult::Bound("one".to_owned())),
        Timestamp::now(),
    );
    assert_eq!(status.probed, Some(ProbedConfiguration { revision: "new".to_owned(), node: "one".to_owned() }));
}
