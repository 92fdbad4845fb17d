//! What ReplicaSets remember in annotations: the number of their revision, and the Deployment's size when they were last scaled.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::ResourceExt;

use super::limits::Limits;

/// The number of a revision, on the ReplicaSet and on the Deployment.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MOST: &str = "deployment.kubernetes.io/max-replicas";
/// What is not copied from the Deployment to its ReplicaSets.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MOST,
    "deprecated.deployment.rollback.to",
];
/// About a hundred revisions.
const LONGEST_HISTORY: usize = 2000;

/// Its number; 0 if it has none that can be read.
pub(super) fn of(set: &ReplicaSet) -> i64 {
    set.annotations().get(REVISION).and_then(|revision| revision.parse().ok()).unwrap_or(0)
}

/// The Deployment's size when this set was last scaled.
pub(super) fn desired(set: &ReplicaSet) -> Option<i64> {
    size(set, DESIRED)
}

/// With the surge, likewise.
pub(super) fn most(set: &ReplicaSet) -> Option<i64> {
    size(set, MOST)
}

fn size(set: &ReplicaSet, annotation: &str) -> Option<i64> {
    set.annotations().get(annotation)?.parse::<u32>().ok().map(i64::from)
}

/// The annotations that say how large the Deployment is, where they differ from what the set has.
pub(super) fn sizes(set: &ReplicaSet, limits: &Limits) -> BTreeMap<String, String> {
    let sizes = [(DESIRED, limits.replicas.to_string()), (MOST, limits.most().to_string())];
    let changed = sizes.into_iter().filter(|(name, value)| set.annotations().get(*name) != Some(value));
    changed.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The annotations that make this set the newest, which differ from what it has: the Deployment's own, and a number above those of
/// all others. A set that was newest before remembers the numbers it had.
pub(super) fn newest(set: &ReplicaSet, deployment: &Deployment, highest_other: i64) -> BTreeMap<String, String> {
    let held = set.annotations();
    let copied = deployment.annotations().iter().filter(|(name, _)| !NOT_COPIED.contains(&name.as_str()));
    let changed = copied.filter(|(name, value)| held.get(*name) != Some(value));
    let mut changes: BTreeMap<_, _> = changed.map(|(name, value)| (name.clone(), value.clone())).collect();
    let number = highest_other.saturating_add(1);
    match held.get(REVISION) {
        // Somebody wrote something else there: it is theirs.
        Some(revision) if revision.parse::<i64>().is_err() && !revision.is_empty() => return changes,
        Some(revision) if of(set) < number && !revision.is_empty() => {
            changes.extend(remember(held.get(HISTORY), revision).map(|history| (HISTORY.to_owned(), history)));
        }
        _ => {}
    }
    if of(set) < number {
        changes.insert(REVISION.to_owned(), number.to_string());
    }
    changes
}

/// The history with one more, without the oldest if it would be too long.
fn remember(history: Option<&String>, revision: &str) -> Option<String> {
    let held = history.map(String::as_str).unwrap_or_default();
    let mut revisions: Vec<&str> = held.split(',').filter(|revision| !revision.is_empty()).collect();
    revisions.push(revision);
    let length = |revisions: &[&str]| revisions.iter().map(|revision| revision.len() + 1).sum::<usize>();
    let mut kept = revisions.as_slice();
    while let Some((_, rest)) = kept.split_first()
        && length(kept) > LONGEST_HISTORY
    {
        kept = rest;
    }
    Some(kept.join(",")).filter(|history| !history.is_empty())
}

#[cfg(test)]
mod tests;
