//! `persistentVolumeClaimRetentionPolicy`: the owners of a claim.
//!
//! A claim that is to be deleted with its set is owned by the set; one that is to be deleted after scaling down
//! is owned by its surplus pod. The garbage collector does the rest. By default a claim has no owner and stays.

use k8s_openapi::{
    api::{
        apps::v1::StatefulSet,
        core::v1::{PersistentVolumeClaim, Pod},
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::ResourceExt;

use crate::controller::owner_reference;

/// The desired owners of a claim.
#[derive(Debug, PartialEq)]
pub enum ClaimOwners {
    /// The owners are right.
    Unchanged,
    /// The owner references to write.
    Change(Vec<OwnerReference>),
    /// The claim has another controller, so the policy does not apply.
    Foreign,
}

/// The desired owners of a pod's claim. `condemned` means that the pod is surplus.
pub fn desired_owners(set: &StatefulSet, pod: &Pod, condemned: bool, claim: &PersistentVolumeClaim) -> ClaimOwners {
    let by_set = owner_reference::controller_reference(set);
    let by_pod = owner_reference::controller_reference(pod);
    let is_ours = |held: &OwnerReference| held.uid == by_set.uid || held.uid == by_pod.uid;
    if owner_reference::controller_of(claim).is_some_and(|held| !is_ours(held)) {
        return ClaimOwners::Foreign;
    }
    let mut owners: Vec<_> = claim.owner_references().iter().filter(|held| !is_ours(held)).cloned().collect();
    let when_scaled = condemned && is_delete_policy(set, RetentionTrigger::Scaled);
    if when_scaled {
        owners.push(by_pod);
    } else if is_delete_policy(set, RetentionTrigger::Deleted) {
        owners.push(by_set);
    }
    if owners == claim.owner_references() { ClaimOwners::Unchanged } else { ClaimOwners::Change(owners) }
}

/// Whether the claim belongs to an earlier pod of the same name, and so is about to be deleted.
pub fn is_stale(claim: &PersistentVolumeClaim, pod: &str) -> bool {
    claim.metadata.deletion_timestamp.is_some()
        || claim.owner_references().iter().any(|owner| owner.kind == "Pod" && owner.name == pod)
}

#[derive(Clone, Copy)]
enum RetentionTrigger {
    Deleted,
    Scaled,
}

fn is_delete_policy(set: &StatefulSet, occasion: RetentionTrigger) -> bool {
    let policy = set.spec.as_ref().and_then(|spec| spec.persistent_volume_claim_retention_policy.as_ref());
    let word = policy.and_then(|policy| match occasion {
        RetentionTrigger::Deleted => policy.when_deleted.as_deref(),
        RetentionTrigger::Scaled => policy.when_scaled.as_deref(),
    });
    word == Some("Delete")
}
