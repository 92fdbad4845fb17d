//! What a Head asks for, and what it has come to. Pure.

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use kube::ResourceExt;

use crate::{
    api::{ChildA, Head, HeadStatus, Part},
    labels,
    ready::{self, Ready, Reason},
};

/// The ChildA objects that it asks for. Owner and context are for whoever creates them.
pub fn children(head: &Head) -> Vec<ChildA> {
    head.spec.children.iter().map(|part| child(head, part)).collect()
}

fn child(head: &Head, part: &Part) -> ChildA {
    let name = head.name_any();
    let metadata = ObjectMeta {
        name: Some(format!("{name}-{}", part.name)),
        namespace: head.namespace(),
        labels: Some(labels::of(labels::HEAD, &name)),
        ..ObjectMeta::default()
    };
    ChildA { metadata, spec: part.template.clone(), status: None }
}

/// Those of the children that it no longer asks for and that are not on their way out. What somebody else owns is left alone.
pub fn superfluous(head: &Head, existing: &[ChildA]) -> Vec<String> {
    let wanted: Vec<String> = children(head).iter().map(ChildA::name_any).collect();
    let ours = existing.iter().filter(|child| {
        let owner = child.owner_references().iter().find(|owner| owner.controller == Some(true));
        owner.is_some_and(|owner| Some(&owner.uid) == head.metadata.uid.as_ref())
    });
    let staying = ours.filter(|child| child.metadata.deletion_timestamp.is_none());
    staying.map(ChildA::name_any).filter(|name| !wanted.contains(name)).collect()
}

/// The status that follows from its children as they are, or from the words with which one was refused.
pub fn status(head: &Head, children: Result<&[ChildA], &str>, now: Timestamp) -> HeadStatus {
    let before = head.status.clone().unwrap_or_default();
    let generation = head.metadata.generation;
    HeadStatus {
        observed_generation: generation,
        ready_children: children.map_or(before.ready_children, ready_children),
        conditions: state(children).conditions(&before.conditions, generation, now),
    }
}

fn ready_children(children: &[ChildA]) -> i32 {
    i32::try_from(children.iter().filter(|child| is_ready(child)).count()).unwrap_or(i32::MAX)
}

fn state(children: Result<&[ChildA], &str>) -> Ready {
    let children = match children {
        Ok(children) => children,
        Err(words) => return Ready::because(Reason::ChildRefused, words),
    };
    if let Some(words) = children.iter().find_map(refusal) {
        return Ready::because(Reason::ChildRefused, words);
    }
    let waiting: Vec<String> = children.iter().filter(|child| !is_ready(child)).map(ChildA::name_any).collect();
    match waiting.as_slice() {
        [] => Ready::because(Reason::ChildrenReady, format!("all {} children are ready", children.len())),
        names => Ready::because(Reason::ChildrenNotReady, format!("waiting for {}", names.join(", "))),
    }
}

fn is_ready(child: &ChildA) -> bool {
    child.status.as_ref().is_some_and(|status| ready::is_ready(&status.conditions, child.metadata.generation))
}

fn refusal(child: &ChildA) -> Option<String> {
    let status = child.status.as_ref()?;
    let words = ready::refusal(&status.conditions, child.metadata.generation)?;
    Some(format!("{}: {words}", child.name_any()))
}
