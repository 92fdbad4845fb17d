//! Slots: which pipelines of a kind may be part of the layer.
//!
//! The lock is a ConfigMap owned by the pipelines that hold a slot. A pipeline takes a slot by adding itself to
//! the owners, at the revision that was read. The garbage collector removes an owner when its pipeline is
//! deleted, and deletes the ConfigMap with its last owner, whether an operator runs or not. Owners that it
//! leaves, after a deletion that orphans dependents, are released here.
//!
//! *Guaranteed*: at every revision of the lock there are at most as many owners as its writers were allowed
//! slots, however many operators write at once, and wherever one of them dies. A pipeline that holds a slot
//! keeps it until it is deleted, also when slots become fewer. *Assumed*: the API server refuses a write at a
//! revision that is not the newest. *Not done*: waiting pipelines have no order.

use std::collections::BTreeSet;

use k8s_openapi::{
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, PostParams, Preconditions},
};

use kubewake_api::Signal;

use crate::{
    model::names::{self, ManagedPart},
    objects::object_lookup::find_object,
};

#[cfg(test)]
mod tests;

/// Each conflict means that another pipeline made progress. After this many in a row the next reconcile tries
/// again.
const MAX_WRITE_ATTEMPTS: usize = 16;

/// Whether a pipeline holds a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    Held,
    /// Other pipelines hold all slots.
    Full,
}

/// The result of an attempt to take a slot, and the lock at that time.
#[derive(Clone, Debug)]
pub struct SlotAttempt {
    pub slot: Slot,
    pub lock: Option<ConfigMap>,
}

/// Why it is not known whether a slot is held.
#[derive(Debug, thiserror::Error)]
pub enum SlotLockError {
    /// The API server refused a request, or did not answer.
    #[error("failed to read or write lock ConfigMap {name}")]
    Api { name: String, source: Box<kube::Error> },
    /// Every attempt met a write conflict.
    #[error(
        "too many write conflicts on lock ConfigMap {0}, giving up after {max} attempts",
        max = MAX_WRITE_ATTEMPTS
    )]
    Contended(String),
}

/// The lock of one kind of pipeline.
#[derive(Clone, Debug)]
pub struct SlotLock {
    api: Api<ConfigMap>,
    name: String,
}

impl SlotLock {
    /// The lock for pipelines of a signal; `api` is that of the operator's namespace.
    pub fn new(api: Api<ConfigMap>, signal: Signal) -> Self {
        Self { api, name: name(signal).to_owned() }
    }

    /// The current ConfigMap.
    ///
    /// # Errors
    /// The API server's refusal.
    pub async fn read(&self) -> Result<Option<ConfigMap>, SlotLockError> {
        find_object(&self.api, &self.name).await.map_err(|error| self.api_error(error))
    }

    /// Takes a slot if the pipeline has none and one is free.
    ///
    /// # Errors
    /// If the result is not known. Another attempt does no harm.
    pub async fn take(&self, pipeline: &OwnerReference, slots: usize) -> Result<SlotAttempt, SlotLockError> {
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let written = match self.read().await? {
                None if slots == 0 => return Ok(SlotAttempt { slot: Slot::Full, lock: None }),
                None => self.api.create(&post_params(), &self.with_owner(pipeline)).await,
                Some(lock) => match slot_state(&lock, &pipeline.uid, slots) {
                    Some(slot) => return Ok(SlotAttempt { slot, lock: Some(lock) }),
                    None => self.api.replace(&self.name, &post_params(), &with_added_owner(lock, pipeline)).await,
                },
            };
            match written {
                Ok(lock) => return Ok(SlotAttempt { slot: Slot::Held, lock: Some(lock) }),
                // Somebody wrote or deleted the lock since it was read.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => return Err(self.api_error(error)),
            }
        }
        Err(SlotLockError::Contended(self.name.clone()))
    }

    /// Removes deleted pipelines from the owners, and the ConfigMap if no owner is left. Returns whether that
    /// took a request.
    ///
    /// # Errors
    /// The API server's refusal. A write conflict is none: a watch event will trigger another attempt.
    pub async fn release_owners(&self, gone: &BTreeSet<String>) -> Result<bool, SlotLockError> {
        let Some(lock) = self.read().await?.filter(is_ours) else { return Ok(false) };
        let before = lock.owner_references().len();
        let left = without_owners(lock, gone);
        let written = match left.owner_references() {
            [] => self.api.delete(&self.name, &exact_delete_params(&left)).await.map(drop),
            owners if owners.len() == before => return Ok(false),
            _ => self.api.replace(&self.name, &post_params(), &left).await.map(drop),
        };
        match written {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(true),
            written => written.map(|()| true).map_err(|error| self.api_error(error)),
        }
    }

    fn with_owner(&self, pipeline: &OwnerReference) -> ConfigMap {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            labels: Some(names::managed_labels(&self.name, ManagedPart::Lock)),
            owner_references: Some(vec![pipeline.clone()]),
            ..ObjectMeta::default()
        };
        ConfigMap { metadata, ..ConfigMap::default() }
    }

    fn api_error(&self, source: kube::Error) -> SlotLockError {
        SlotLockError::Api { name: self.name.clone(), source: Box::new(source) }
    }
}

pub fn name(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "kubewake-tracepipeline-lock",
        Signal::Logs => "kubewake-logpipeline-lock",
        Signal::Metrics => "kubewake-metricpipeline-lock",
    }
}

/// Whether a pipeline holds a slot by this lock; `None` if it does not and a slot is free.
pub fn slot_state(lock: &ConfigMap, uid: &str, slots: usize) -> Option<Slot> {
    let owners = lock.owner_references();
    if owners.iter().any(|owner| owner.uid == uid) {
        return Some(Slot::Held);
    }
    // A lock that is being deleted counts as full: the deletion would take a new owner along.
    let is_full = owners.len() >= slots || lock.metadata.deletion_timestamp.is_some();
    is_full.then_some(Slot::Full)
}

fn with_added_owner(mut lock: ConfigMap, pipeline: &OwnerReference) -> ConfigMap {
    lock.metadata.owner_references.get_or_insert_default().push(pipeline.clone());
    lock
}

/// Whether an operator created the lock, and it is not being deleted.
fn is_ours(lock: &ConfigMap) -> bool {
    let part = lock.labels().get(names::PART_LABEL).map(String::as_str);
    part == Some(ManagedPart::Lock.as_str()) && lock.metadata.deletion_timestamp.is_none()
}

fn without_owners(mut lock: ConfigMap, gone: &BTreeSet<String>) -> ConfigMap {
    lock.metadata.owner_references.get_or_insert_default().retain(|owner| !gone.contains(&owner.uid));
    lock
}

/// Deletes only the revision that was read, so that a pipeline that takes a slot meanwhile keeps it.
fn exact_delete_params(lock: &ConfigMap) -> DeleteParams {
    let preconditions = Preconditions { uid: lock.uid(), resource_version: lock.resource_version() };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() }
}

fn post_params() -> PostParams {
    PostParams { field_manager: Some(names::FIELD_MANAGER.to_owned()), ..PostParams::default() }
}
