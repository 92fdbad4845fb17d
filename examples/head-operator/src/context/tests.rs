//! Retry delays, and errors that are final.

use std::time::Duration;

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::{SignedDuration, Timestamp},
};
use kube::runtime::controller::Action;

use super::{rejection_message, retry_action};
use crate::{
    api::{ChildA, ChildASpec, ChildAStatus},
    ready::{ReadyReason, ReadyState},
};

/// The retry of an object whose condition has had this reason for so many seconds.
fn retry_after(reason: ReadyReason, seconds: i64) -> Action {
    let since = Timestamp::UNIX_EPOCH;
    let mut child = ChildA::new("c", ChildASpec::default());
    let conditions = ReadyState::new(reason, "").to_conditions(&[], Some(1), since);
    child.metadata.generation = Some(2);
    child.status = Some(ChildAStatus { conditions, ..ChildAStatus::default() });
    retry_action(&child, since + SignedDuration::from_secs(seconds))
}

fn failing_for(seconds: i64) -> Action {
    retry_after(ReadyReason::DeploymentRefused, seconds)
}

#[test]
fn pauses_grow_with_the_time_for_which_it_does_not_work() {
    assert_eq!(failing_for(0), Action::requeue(Duration::from_millis(500)));
    assert_eq!(failing_for(-9), Action::requeue(Duration::from_millis(500)), "another machine's clock");
    assert_eq!(failing_for(30), Action::requeue(Duration::from_secs(15)));
    assert_eq!(failing_for(3600), Action::requeue(Duration::from_secs(60)));
}

#[test]
fn ready_object_is_retried_after_the_same_delay_however_long_it_was_ready() {
    for seconds in [0, 3600] {
        assert_eq!(retry_after(ReadyReason::DeploymentAvailable, seconds), Action::requeue(Duration::from_secs(5)));
    }
}

#[test]
fn retry_delay_of_object_without_a_condition_grows_from_its_creation() {
    let mut child = ChildA::new("c", ChildASpec::default());
    let now = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(30);
    assert_eq!(retry_action(&child, now), Action::requeue(Duration::from_millis(500)));
    child.metadata.creation_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    assert_eq!(retry_action(&child, now), Action::requeue(Duration::from_secs(15)));
}

#[test]
fn only_what_the_api_server_will_say_again_is_a_refusal() {
    let answer = |code: u16| {
        let status = kube::core::Status::failure("so", "Reason").with_code(code).boxed();
        kube::Error::Api(status)
    };
    assert_eq!([400, 403, 422].map(|code| rejection_message(&answer(code)).is_some()), [true; 3]);
    assert_eq!([409, 429, 500, 503].map(|code| rejection_message(&answer(code)).is_some()), [false; 4]);
}
