//! `persistentVolumeClaimRetentionPolicy`: who takes a claim along when it goes.
//!
//! A claim that is to go with its set belongs to the set; one that is to go because its pod is one too many belongs to
//! that pod. The garbage collector does the rest. By default a claim belongs to nobody, and stays.

use k8s_openapi::{
    api::{
        apps::v1::StatefulSet,
        core::v1::{PersistentVolumeClaim, Pod},
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::ResourceExt;

use crate::controller::owner;

/// Whose a claim shall be.
#[derive(Debug, PartialEq)]
pub enum Owners {
    /// It is as it shall be.
    Right,
    /// These, instead of those that it has.
    Change(Vec<OwnerReference>),
    /// Somebody else looks after it: the policy says nothing.
    Taken,
}

/// Whose the claim of a pod shall be. `condemned` if the pod is one too many.
pub fn owners(set: &StatefulSet, pod: &Pod, condemned: bool, claim: &PersistentVolumeClaim) -> Owners {
    let (by_set, by_pod) = (owner::reference(set), owner::reference(pod));
    let is_ours = |held: &OwnerReference| held.uid == by_set.uid || held.uid == by_pod.uid;
    if owner::controller_of(claim).is_some_and(|held| !is_ours(held)) {
        return Owners::Taken;
    }
    let mut owners: Vec<_> = claim.owner_references().iter().filter(|held| !is_ours(held)).cloned().collect();
    let when_scaled = condemned && deletes(set, Occasion::Scaled);
    if when_scaled {
        owners.push(by_pod);
    } else if deletes(set, Occasion::Deleted) {
        owners.push(by_set);
    }
    if owners == claim.owner_references() { Owners::Right } else { Owners::Change(owners) }
}

/// Whether the claim belongs to an earlier pod of the same name, and so is about to go.
pub fn is_stale(claim: &PersistentVolumeClaim, pod: &str) -> bool {
    claim.metadata.deletion_timestamp.is_some()
        || claim.owner_references().iter().any(|owner| owner.kind == "Pod" && owner.name == pod)
}

#[derive(Clone, Copy)]
enum Occasion {
    Deleted,
    Scaled,
}

fn deletes(set: &StatefulSet, occasion: Occasion) -> bool {
    let policy = set.spec.as_ref().and_then(|spec| spec.persistent_volume_claim_retention_policy.as_ref());
    let word = policy.and_then(|policy| match occasion {
        Occasion::Deleted => policy.when_deleted.as_deref(),
        Occasion::Scaled => policy.when_scaled.as_deref(),
    });
    word == Some("Delete")
}
