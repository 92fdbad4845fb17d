//! Slots: who of the pipelines of a kind may be part of the layer.
//!
//! The lock is a ConfigMap whose owners are the pipelines that hold a slot. A pipeline that takes one adds itself to them, at the revision
//! that it read. The garbage collector removes an owner when the pipeline is deleted, and deletes the ConfigMap with its last owner,
//! whether an operator runs or not. What it leaves, since somebody wished that nothing goes with the pipeline, is released here.
//!
//! *Guaranteed*: at every revision of the lock there are at most as many owners as the takers were allowed slots, however many operators take
//! at once, and wherever one of them dies. Who holds a slot keeps it until it is deleted, also when slots become fewer.
//! *Assumed*: the API server refuses a write at a revision that is not the newest. *Not done*: an order among those who wait.

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
    find::find,
    names::{self, Part},
};

#[cfg(test)]
mod tests;

/// Each lost race means that somebody else went ahead; so many in a row are left to the next reconcile.
const ATTEMPTS: usize = 16;

/// What came of taking a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The pipeline holds one.
    Held,
    /// Others hold all of them.
    Full,
}

/// What came of taking a slot, and the lock as it was then.
#[derive(Clone, Debug)]
pub struct Taken {
    /// Whether it is held.
    pub slot: Slot,
    /// The lock.
    pub lock: Option<ConfigMap>,
}

/// Why it is not known whether a slot is held.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server did not say.
    #[error("the lock {name} cannot be read or written")]
    Api {
        /// The ConfigMap.
        name: String,
        /// What it said.
        source: Box<kube::Error>,
    },
    /// Somebody else was faster, again and again.
    #[error("the lock {0} is in demand")]
    Contended(String),
}

/// The lock of one kind of pipeline.
#[derive(Clone, Debug)]
pub struct Lock {
    api: Api<ConfigMap>,
    name: String,
}

impl Lock {
    /// The lock of the pipelines of a signal. The ConfigMaps are those of the operator's namespace.
    pub fn new(api: Api<ConfigMap>, signal: Signal) -> Self {
        Self { api, name: name(signal).to_owned() }
    }

    /// The ConfigMap as it is now.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn read(&self) -> Result<Option<ConfigMap>, Error> {
        find(&self.api, &self.name).await.map_err(|error| self.failed(error))
    }

    /// Takes a slot, if the pipeline has none and one is free.
    ///
    /// # Errors
    /// If it is not known how it ended. To take it again does no harm.
    pub async fn take(&self, pipeline: &OwnerReference, slots: usize) -> Result<Taken, Error> {
        for _ in 0..ATTEMPTS {
            let written = match self.read().await? {
                None if slots == 0 => return Ok(Taken { slot: Slot::Full, lock: None }),
                None => self.api.create(&by_us(), &self.with_owner(pipeline)).await,
                Some(lock) => match judge(&lock, &pipeline.uid, slots) {
                    Some(slot) => return Ok(Taken { slot, lock: Some(lock) }),
                    None => self.api.replace(&self.name, &by_us(), &joined(lock, pipeline)).await,
                },
            };
            match written {
                Ok(lock) => return Ok(Taken { slot: Slot::Held, lock: Some(lock) }),
                // Somebody wrote it, or deleted it, in between.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Err(Error::Contended(self.name.clone()))
    }

    /// Takes these off who are gone for good, and the ConfigMap away that nobody is left to own. Says whether that took a request.
    ///
    /// # Errors
    /// What the API server says. That somebody was faster is none: a watch will show it.
    pub async fn release(&self, gone: &BTreeSet<String>) -> Result<bool, Error> {
        let Some(lock) = self.read().await?.filter(is_ours) else { return Ok(false) };
        let before = lock.owner_references().len();
        let left = released(lock, gone);
        let written = match left.owner_references() {
            [] => self.api.delete(&self.name, &exactly(&left)).await.map(drop),
            owners if owners.len() == before => return Ok(false),
            _ => self.api.replace(&self.name, &by_us(), &left).await.map(drop),
        };
        match written {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(true),
            written => written.map(|()| true).map_err(|error| self.failed(error)),
        }
    }

    fn with_owner(&self, pipeline: &OwnerReference) -> ConfigMap {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            labels: Some(names::labels(&self.name, Part::Lock)),
            owner_references: Some(vec![pipeline.clone()]),
            ..ObjectMeta::default()
        };
        ConfigMap { metadata, ..ConfigMap::default() }
    }

    fn failed(&self, source: kube::Error) -> Error {
        Error::Api { name: self.name.clone(), source: Box::new(source) }
    }
}

/// What the lock is called.
pub fn name(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "kubewake-tracepipeline-lock",
        Signal::Logs => "kubewake-logpipeline-lock",
        Signal::Metrics => "kubewake-metricpipeline-lock",
    }
}

/// What the lock as it is says to a pipeline; nothing, if a slot is free.
pub fn judge(lock: &ConfigMap, uid: &str, slots: usize) -> Option<Slot> {
    let owners = lock.owner_references();
    if owners.iter().any(|owner| owner.uid == uid) {
        return Some(Slot::Held);
    }
    // One that is being deleted is joined by nobody, as it would take the new owner along.
    let is_full = owners.len() >= slots || lock.metadata.deletion_timestamp.is_some();
    is_full.then_some(Slot::Full)
}

fn joined(mut lock: ConfigMap, pipeline: &OwnerReference) -> ConfigMap {
    lock.metadata.owner_references.get_or_insert_default().push(pipeline.clone());
    lock
}

/// Whether it is a lock that an operator made, and that is not going already.
fn is_ours(lock: &ConfigMap) -> bool {
    let part = lock.labels().get(names::PART).map(String::as_str);
    part == Some(Part::Lock.as_str()) && lock.metadata.deletion_timestamp.is_none()
}

fn released(mut lock: ConfigMap, gone: &BTreeSet<String>) -> ConfigMap {
    lock.metadata.owner_references.get_or_insert_default().retain(|owner| !gone.contains(&owner.uid));
    lock
}

/// At the revision that was read: whoever becomes an owner meanwhile keeps it.
fn exactly(lock: &ConfigMap) -> DeleteParams {
    let preconditions = Preconditions { uid: lock.uid(), resource_version: lock.resource_version() };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() }
}

fn by_us() -> PostParams {
    PostParams { field_manager: Some(names::MANAGER.to_owned()), ..PostParams::default() }
}
