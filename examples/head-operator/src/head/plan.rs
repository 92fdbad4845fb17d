//! The desired children of a Head, and the status that follows from the live ones. Pure.

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use kube::ResourceExt;

use crate::{
    api::{ChildA, Head, HeadChild, HeadStatus},
    labels,
    ready::{self, ReadyReason, ReadyState},
};

/// The desired ChildA objects. The caller adds owner and context.
pub fn desired_children(head: &Head) -> Vec<ChildA> {
    head.spec.children.iter().map(|child| desired_child(head, child)).collect()
}

fn desired_child(head: &Head, child: &HeadChild) -> ChildA {
    let name = head.name_any();
    let metadata = ObjectMeta {
        name: Some(format!("{name}-{}", child.name)),
        namespace: head.namespace(),
        labels: Some(labels::object_labels(labels::HEAD_LABEL, &name)),
        ..ObjectMeta::default()
    };
    ChildA { metadata, spec: child.template.clone(), status: None }
}

/// The children that are no longer desired and not yet being deleted. Objects of other owners are left alone.
pub fn surplus_children(head: &Head, existing: &[ChildA]) -> Vec<String> {
    let wanted: Vec<String> = desired_children(head).iter().map(ChildA::name_any).collect();
    let ours = existing.iter().filter(|child| {
        let owner = child.owner_references().iter().find(|owner| owner.controller == Some(true));
        owner.is_some_and(|owner| Some(&owner.uid) == head.metadata.uid.as_ref())
    });
    let staying = ours.filter(|child| child.metadata.deletion_timestamp.is_none());
    staying.map(ChildA::name_any).filter(|name| !wanted.contains(name)).collect()
}

/// The status that follows from the live children, or from the message with which one was rejected.
pub fn head_status(head: &Head, children: Result<&[ChildA], &str>, now: Timestamp) -> HeadStatus {
    let before = head.status.clone().unwrap_or_default();
    let generation = head.metadata.generation;
    HeadStatus {
        observed_generation: generation,
        ready_children: children.map_or(before.ready_children, count_ready_children),
        conditions: ready_state(children).to_conditions(&before.conditions, generation, now),
    }
}

fn count_ready_children(children: &[ChildA]) -> i32 {
    i32::try_from(children.iter().filter(|child| is_child_ready(child)).count()).unwrap_or(i32::MAX)
}

fn ready_state(children: Result<&[ChildA], &str>) -> ReadyState {
    let children = match children {
        Ok(children) => children,
        Err(message) => return ReadyState::new(ReadyReason::ChildRefused, message),
    };
    if let Some(message) = children.iter().find_map(child_rejection) {
        return ReadyState::new(ReadyReason::ChildRefused, message);
    }
    let waiting: Vec<String> = children.iter().filter(|child| !is_child_ready(child)).map(ChildA::name_any).collect();
    match waiting.as_slice() {
        [] => ReadyState::new(ReadyReason::ChildrenReady, format!("all {} children are ready", children.len())),
        names => ReadyState::new(ReadyReason::ChildrenNotReady, format!("waiting for children {}", names.join(", "))),
    }
}

fn is_child_ready(child: &ChildA) -> bool {
    child.status.as_ref().is_some_and(|status| ready::is_ready(&status.conditions, child.metadata.generation))
}

fn child_rejection(child: &ChildA) -> Option<String> {
    let status = child.status.as_ref()?;
    let message = ready::rejection_message(&status.conditions, child.metadata.generation)?;
    Some(format!("{}: {message}", child.name_any()))
}
