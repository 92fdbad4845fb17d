//! Takes a slot for a pipeline, or finds out whether it holds one.

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{Api, Client};
use kubewake_api::Signal;
use tokio::sync::Mutex;

use crate::{
    model::object_kind::ObjectKind,
    objects::object_cache::ObjectCacheWriter,
    pipeline::{
        settings::SettingsCache,
        slot_lock::{self, Slot, SlotLock, SlotLockError},
    },
};

/// What a pipeline may do about its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotClaim {
    /// It takes a free slot if it holds none.
    TakeFree,
    /// It keeps the slot that it holds, and takes none.
    KeepHeld,
}

pub struct SlotStep {
    client: Client,
    namespace: String,
    settings: SettingsCache,
    /// Records the responses to writes of locks.
    objects: ObjectCacheWriter,
    /// One attempt at a time, as concurrent attempts of one operator would only conflict with each other.
    turn: Mutex<()>,
}

impl SlotStep {
    pub fn new(client: Client, namespace: &str, settings: SettingsCache, objects: ObjectCacheWriter) -> Self {
        Self { client, namespace: namespace.to_owned(), settings, objects, turn: Mutex::default() }
    }

    /// The slot of the pipeline with this owner reference; `None` if it holds none and claims none.
    ///
    /// # Errors
    /// If it is not known whether the pipeline holds a slot.
    pub async fn acquire(
        &self,
        signal: Signal,
        owner: &OwnerReference,
        claim: SlotClaim,
    ) -> Result<Option<Slot>, SlotLockError> {
        let _turn = self.turn.lock().await;
        let slots = self.settings.current().slots(signal);
        let known = self.objects.get(ObjectKind::ConfigMap, slot_lock::name(signal));
        let known = known.and_then(|lock| serde_json::from_value::<ConfigMap>((*lock).clone()).ok());
        match known.and_then(|lock| slot_lock::slot_state(&lock, &owner.uid, slots)) {
            Some(Slot::Held) => Ok(Some(Slot::Held)),
            _ if claim == SlotClaim::KeepHeld => Ok(None),
            Some(Slot::Full) => Ok(Some(Slot::Full)),
            None => {
                let api = Api::namespaced(self.client.clone(), &self.namespace);
                let taken = Box::pin(SlotLock::new(api, signal).take(owner, slots)).await?;
                taken.lock.iter().for_each(|lock| self.objects.record_response(ObjectKind::ConfigMap, lock));
                Ok(Some(taken.slot))
            }
        }
    }
}
