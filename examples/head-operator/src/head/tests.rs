//! The children and the status of a Head.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{OwnerReference, Time},
    jiff::Timestamp,
};
use kube::ResourceExt;

use super::plan;
use crate::{
    api::{ChildA, ChildASpec, ChildAStatus, Head, HeadChild, HeadSpec, HeadStatus},
    ready::{ReadyReason, ReadyState},
};

fn head(parts: &[&str]) -> Head {
    let template = ChildASpec { replicas: 1, image: "i".into(), ..ChildASpec::default() };
    let part = |name: &&str| HeadChild { name: (*name).into(), template: template.clone() };
    let mut head = Head::new("h", HeadSpec { children: parts.iter().map(part).collect() });
    head.metadata.uid = Some("uid".into());
    head.metadata.generation = Some(3);
    head
}

fn child(name: &str, generation: i64, reason: ReadyReason, observed: i64) -> ChildA {
    let mut child = ChildA::new(name, ChildASpec::default());
    child.metadata.generation = Some(generation);
    let conditions = ReadyState::new(reason, "so").to_conditions(&[], Some(observed), Timestamp::UNIX_EPOCH);
    child.status = Some(ChildAStatus { conditions, ..ChildAStatus::default() });
    child
}

fn told(head: &Head, children: &[ChildA]) -> (String, String, i32) {
    let HeadStatus { observed_generation, ready_children, conditions } =
        plan::head_status(head, Ok(children), Timestamp::now());
    assert_eq!((observed_generation, conditions[0].observed_generation), (Some(3), Some(3)));
    (conditions[0].status.clone(), conditions[0].reason.clone(), ready_children)
}

#[test]
fn a_head_asks_for_its_parts() {
    let children = plan::desired_children(&head(&["a", "b"]));
    assert_eq!(children.iter().map(ChildA::name_any).collect::<Vec<_>>(), ["h-a", "h-b"]);
    assert_eq!(children[0].labels()["demo.kubewake.io/head"], "h");
}

#[test]
fn what_it_owns_and_no_longer_asks_for_goes() {
    let owned = |name: &str, uid: &str| {
        let mut child = ChildA::new(name, ChildASpec::default());
        let owner = OwnerReference { uid: uid.into(), controller: Some(true), ..OwnerReference::default() };
        child.metadata.owner_references = Some(vec![owner]);
        child
    };
    let mut going = owned("h-d", "uid");
    going.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    let existing = [owned("h-a", "uid"), owned("h-b", "uid"), owned("h-c", "another"), going, ChildA::default()];
    assert_eq!(plan::surplus_children(&head(&["a"]), &existing), ["h-b"]);
}

#[test]
fn it_is_ready_when_all_are_in_their_latest_generation() {
    let head = head(&["a", "b"]);
    let ready = |name: &str| child(name, 2, ReadyReason::DeploymentAvailable, 2);
    assert_eq!(told(&head, &[ready("a"), ready("b")]), ("True".into(), "ChildrenReady".into(), 2));
    let stale = child("b", 2, ReadyReason::DeploymentAvailable, 1);
    assert_eq!(told(&head, &[ready("a"), stale]), ("False".into(), "ChildrenNotReady".into(), 1));
    assert_eq!(told(&head, &[ready("a"), ChildA::default()]), ("False".into(), "ChildrenNotReady".into(), 1));
    let refused = child("b", 2, ReadyReason::DeploymentRefused, 2);
    assert_eq!(told(&head, &[ready("a"), refused]), ("False".into(), "ChildRefused".into(), 1));
    let stale = child("b", 3, ReadyReason::DeploymentRefused, 2);
    assert_eq!(told(&head, &[ready("a"), stale]), ("False".into(), "ChildrenNotReady".into(), 1));
}

#[test]
fn the_time_of_a_condition_is_that_of_its_last_change() {
    let then = Timestamp::UNIX_EPOCH;
    let now = Timestamp::now();
    let before = ReadyState::new(ReadyReason::ChildrenNotReady, "a").to_conditions(&[], Some(1), then);
    let same = ReadyState::new(ReadyReason::ChildRefused, "b").to_conditions(&before, Some(2), now);
    assert_eq!(same[0].last_transition_time.0, then);
    let other = ReadyState::new(ReadyReason::ChildrenReady, "c").to_conditions(&same, Some(2), now);
    assert_eq!(other[0].last_transition_time.0, now);
}
