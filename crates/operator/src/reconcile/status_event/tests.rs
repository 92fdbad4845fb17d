use serde_json::json;

use super::*;

fn news(state: State, reason: ConditionReason, words: &str) -> StatusEvent<'_> {
    StatusEvent { state: Some(state), reason: Some(reason.as_str()), message: Some(words), is_stuck: false }
}

/// Whether a change of a condition's message from `before` to `now` causes an event.
fn is_told(state: State, reason: ConditionReason, before: &str, now: &str) -> bool {
    !news(state, reason, now).is_already_reported(news(state, reason, before))
}

#[test]
fn another_reason_for_the_same_trouble_is_told() {
    let [before, now] = ["http:401", "http:403"].map(|code| format!("the backend refuses the credentials ({code})"));
    assert!(is_told(State::Degraded, ConditionReason::BackendRefuses, &before, &now));
    assert!(!is_told(State::Degraded, ConditionReason::BackendRefuses, &now, &now));
    let [before, now] = ["n/token", "n/password"].map(|name| format!("the Secret {name} is not there"));
    assert!(is_told(State::Invalid, ConditionReason::SecretMissing, &before, &now));
    let [before, now] = ["Insufficient cpu", "Insufficient memory"].map(|why| format!("1 of 2 are ready ({why})"));
    assert!(is_told(State::Degraded, ConditionReason::CollectorNotReady, &before, &now));
}

#[test]
fn figures_and_what_is_well_are_not() {
    let [before, now] =
        ["1 of 2 are ready (0/3 nodes)", "2 of 2 are ready (0/4 nodes)"].map(|words| format!("{words}, 80 % full"));
    assert!(!is_told(State::Degraded, ConditionReason::CollectorNotReady, &before, &now));
    assert!(!is_told(State::Ready, ConditionReason::CollectorReady, "all is well", "all is very well"));
}

#[test]
fn another_state_or_reason_is_told_in_whatever_words() {
    let ready = news(State::Ready, ConditionReason::NoData, "the same");
    assert!(!news(State::Ready, ConditionReason::Delivering, "the same").is_already_reported(ready));
    assert!(!news(State::Pending, ConditionReason::NoData, "the same").is_already_reported(ready));
    assert!(ready.is_already_reported(ready));
}

#[test]
fn the_condition_that_decides_has_the_words() {
    let conditions = [("Valid", "all right"), ("BackendSlow", "too slow")].map(|(reason, message)| {
        let (type_, time) = ("Any", "2026-01-01T00:00:00Z");
        let value =
            json!({"type": type_, "status": "False", "reason": reason, "message": message, "lastTransitionTime": time});
        serde_json::from_value(value).unwrap()
    });
    let event = StatusEvent::new(Some(State::Degraded), Some("BackendSlow"), &conditions).into_event();
    assert_eq!((event.reason.as_str(), event.note.as_deref()), ("BackendSlow", Some("too slow")));
    assert!(matches!(event.type_, EventType::Warning));
}

#[test]
fn collectors_that_cannot_start_are_a_warning_also_while_the_state_is_pending() {
    let waiting = news(State::Pending, ConditionReason::CollectorNotReady, "0 of 2 collectors are ready");
    assert_eq!(waiting.into_event().type_, EventType::Normal);
    assert_eq!(waiting.with_stuck(true).into_event().type_, EventType::Warning);
    let well = news(State::Ready, ConditionReason::Delivering, "all is well");
    assert_eq!(well.with_stuck(true).into_event().type_, EventType::Normal);
}
