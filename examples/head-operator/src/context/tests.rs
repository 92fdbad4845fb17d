//! Retry delays, and errors that are final.

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::runtime::controller::Action;

use super::{rejection_message, retry_action};
use crate::{
    api::{ChildA, ChildASpec, ChildAStatus},
    ready::{ReadyReason, ReadyState},
};

fn failing_for(seconds: i64) -> Action {
    let since = Timestamp::UNIX_EPOCH;
    let mut child = ChildA::new("c", ChildASpec::default());
    let conditions = ReadyState::new(ReadyReason::DeploymentRefused, "no").to_conditions(&[], None, since);
    child.status = Some(ChildAStatus { conditions, ..ChildAStatus::default() });
    retry_action(&child, since + SignedDuration::from_secs(seconds))
}

#[test]
fn pauses_grow_with_the_time_for_which_it_does_not_work() {
    assert_eq!(failing_for(0), Action::requeue(Duration::from_millis(500)));
    assert_eq!(failing_for(-9), Action::requeue(Duration::from_millis(500)), "another machine's clock");
    assert_eq!(failing_for(30), Action::requeue(Duration::from_secs(15)));
    assert_eq!(failing_for(3600), Action::requeue(Duration::from_secs(60)));
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
