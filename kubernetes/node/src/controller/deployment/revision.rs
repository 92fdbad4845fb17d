//! Annotations of ReplicaSets: the number of their revision, and the Deployment's size when they were last
//! scaled.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::ResourceExt;

use super::limits::RolloutLimits;

/// The number of a revision, on the ReplicaSet and on the Deployment.
pub(super) const REVISION_ANNOTATION: &str = "deployment.kubernetes.io/revision";
const REVISION_HISTORY_ANNOTATION: &str = "deployment.kubernetes.io/revision-history";
const DESIRED_REPLICAS_ANNOTATION: &str = "deployment.kubernetes.io/desired-replicas";
const MAX_REPLICAS_ANNOTATION: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations that are not copied from the Deployment to its ReplicaSets.
const UNCOPIED_ANNOTATIONS: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION_ANNOTATION,
    REVISION_HISTORY_ANNOTATION,
    DESIRED_REPLICAS_ANNOTATION,
    MAX_REPLICAS_ANNOTATION,
    "deprecated.deployment.rollback.to",
];
const MAX_HISTORY_BYTES: usize = 2000;

/// The number of the revision; 0 if it is missing or invalid.
pub(super) fn revision_number(set: &ReplicaSet) -> i64 {
    set.annotations().get(REVISION_ANNOTATION).and_then(|revision| revision.parse().ok()).unwrap_or(0)
}

/// The Deployment's size when this set was last scaled.
pub(super) fn desired_replicas(set: &ReplicaSet) -> Option<i64> {
    parse_size(set, DESIRED_REPLICAS_ANNOTATION)
}

pub(super) fn max_replicas(set: &ReplicaSet) -> Option<i64> {
    parse_size(set, MAX_REPLICAS_ANNOTATION)
}

fn parse_size(set: &ReplicaSet, annotation: &str) -> Option<i64> {
    set.annotations().get(annotation)?.parse::<u32>().ok().map(i64::from)
}

/// The annotations with the size of the Deployment, where they differ from those of the set.
pub(super) fn size_annotations(set: &ReplicaSet, limits: &RolloutLimits) -> BTreeMap<String, String> {
    let sizes = [
        (DESIRED_REPLICAS_ANNOTATION, limits.replicas.to_string()),
        (MAX_REPLICAS_ANNOTATION, limits.max_total().to_string()),
    ];
    let changed = sizes.into_iter().filter(|(name, value)| set.annotations().get(*name) != Some(value));
    changed.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The annotations that mark this set as the newest, where they differ from those of the set: the Deployment's
/// own, and a revision number above all others. A set that was the newest before keeps its former numbers.
pub(super) fn newest_annotations(
    set: &ReplicaSet,
    deployment: &Deployment,
    highest_other: i64,
) -> BTreeMap<String, String> {
    let held = set.annotations();
    let copied = deployment.annotations().iter().filter(|(name, _)| !UNCOPIED_ANNOTATIONS.contains(&name.as_str()));
    let changed = copied.filter(|(name, value)| held.get(*name) != Some(value));
    let mut changes: BTreeMap<_, _> = changed.map(|(name, value)| (name.clone(), value.clone())).collect();
    let number = highest_other.saturating_add(1);
    match held.get(REVISION_ANNOTATION) {
        // An invalid number was written by somebody else and is left alone.
        Some(revision) if revision.parse::<i64>().is_err() && !revision.is_empty() => return changes,
        Some(revision) if revision_number(set) < number && !revision.is_empty() => {
            changes.extend(
                append_to_history(held.get(REVISION_HISTORY_ANNOTATION), revision)
                    .map(|history| (REVISION_HISTORY_ANNOTATION.to_owned(), history)),
            );
        }
        _ => {}
    }
    if revision_number(set) < number {
        changes.insert(REVISION_ANNOTATION.to_owned(), number.to_string());
    }
    changes
}

/// Appends a revision to the history and drops the oldest ones if it would be too long.
fn append_to_history(history: Option<&String>, revision: &str) -> Option<String> {
    let held = history.map(String::as_str).unwrap_or_default();
    let mut revisions: Vec<&str> = held.split(',').filter(|revision| !revision.is_empty()).collect();
    revisions.push(revision);
    let length = |revisions: &[&str]| revisions.iter().map(|revision| revision.len() + 1).sum::<usize>();
    let mut kept = revisions.as_slice();
    while let Some((_, rest)) = kept.split_first()
        && length(kept) > MAX_HISTORY_BYTES
    {
        kept = rest;
    }
    Some(kept.join(",")).filter(|history| !history.is_empty())
}

#[cfg(test)]
mod tests;
