//! Adoption and release: a controller adopts orphans that its selector matches, and releases objects that it no
//! longer matches.
//!
//! *Guaranteed*: objects of another controller are never touched. An owner that is being deleted adopts
//! nothing: before the first adoption the API server is asked, since garbage collection may be orphaning its
//! pods at this moment.

use std::{
    fmt::Debug,
    sync::{Arc, Weak},
};

use k8s_openapi::{NamespaceResourceScope, apimachinery::pkg::apis::meta::v1::LabelSelector};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
    core::{Selector, SelectorExt},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{FIELD_MANAGER, owner_reference};
use crate::{
    error::{ClusterError, Result},
    informer::{InformerChange, SharedInformer},
    key::NamespacedKey,
};

/// Parses a selector; the API server admits only valid ones.
pub fn parse_selector(of: &LabelSelector) -> Result<Selector> {
    of.clone().try_into().map_err(|error| ClusterError::Object(format!("invalid label selector: {error}")))
}

/// Whether a non-empty selector matches the object's labels. An empty one would match everything.
pub fn selects(selector: &Selector, object: &impl ResourceExt) -> bool {
    !selector.selects_all() && selector.matches(object.labels())
}

/// The owners that a change of an object concerns: its current and its previous controller and, for an orphan
/// that is new or has changed its labels, every owner that might adopt it.
pub fn affected_owners<O, C>(
    change: &InformerChange<C>,
    owners: &Weak<SharedInformer<O>>,
    might_take: impl Fn(&O, &C) -> bool,
) -> Vec<NamespacedKey>
where
    O: Resource<DynamicType = ()>,
    C: ResourceExt,
{
    let controllers =
        [&change.old, &change.new].map(|object| object.as_deref().and_then(owner_reference::key_of_controller::<O>));
    let mut keys: Vec<NamespacedKey> = controllers.into_iter().flatten().collect();
    keys.dedup();
    if let Some(orphan) = change.new.as_deref().filter(|object| owner_reference::controller_of(*object).is_none())
        && change
            .old
            .as_deref()
            .is_none_or(|old| old.labels() != orphan.labels() || owner_reference::controller_of(old).is_some())
        && let Some(owners) = owners.upgrade()
    {
        let owners = owners.in_namespace(&orphan.namespace().unwrap_or_default());
        keys.extend(
            owners.iter().filter(|owner| might_take(owner, orphan)).map(|owner| NamespacedKey::from_object(&**owner)),
        );
    }
    keys
}

/// Adopts and releases objects for one owner.
pub struct ControllerRefManager<'a, O> {
    client: &'a Client,
    owner: &'a O,
}

impl<O: Debug> Debug for ControllerRefManager<'_, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl<'a, O> ControllerRefManager<'a, O>
where
    O: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    pub fn new(client: &'a Client, owner: &'a O) -> Self {
        Self { client, owner }
    }

    /// Adopts objects that are `is_wanted`, releases others, and returns the objects that belong to the owner.
    /// All are tried before the first error is returned.
    pub async fn claim_objects<C>(
        &self,
        view: &SharedInformer<C>,
        objects: impl IntoIterator<Item = Arc<C>>,
        is_wanted: impl Fn(&C) -> bool,
    ) -> Result<Vec<Arc<C>>>
    where
        C: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let mut ours = Vec::new();
        let mut failed = None;
        let mut may_adopt = None;
        for object in objects {
            let wanted = is_wanted(&object);
            let outcome = match self.relation_to(&*object) {
                ControllerRelation::Ours if wanted => Ok(Some(object)),
                ControllerRelation::Ours if !self.is_being_deleted() => {
                    self.release(view, &*object).await.map(|()| None)
                }
                ControllerRelation::Orphan if wanted && !self.is_being_deleted() => {
                    self.adopt(view, &*object, &mut may_adopt).await
                }
                _ => Ok(None),
            };
            match outcome {
                Ok(object) => ours.extend(object),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(ours), Err)
    }

    fn relation_to(&self, object: &impl ResourceExt) -> ControllerRelation {
        match owner_reference::controller_of(object) {
            Some(_) if owner_reference::is_controlled_by(object, self.owner) => ControllerRelation::Ours,
            Some(_) => ControllerRelation::Foreign,
            None if object.meta().deletion_timestamp.is_some() => ControllerRelation::Foreign,
            None => ControllerRelation::Orphan,
        }
    }

    fn is_being_deleted(&self) -> bool {
        self.owner.meta().deletion_timestamp.is_some()
    }

    async fn adopt<C>(&self, view: &SharedInformer<C>, object: &C, may: &mut Option<bool>) -> Result<Option<Arc<C>>>
    where
        C: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let may = match *may {
            Some(may) => may,
            None => *may.insert(self.can_adopt().await?),
        };
        if !may {
            return Ok(None);
        }
        let references = json!([owner_reference::controller_reference(self.owner)]);
        match self.patch_owner_references(object, references).await {
            Ok(adopted) => Ok(Some(view.record_write(adopted))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn release<C>(&self, view: &SharedInformer<C>, object: &C) -> Result<()>
    where
        C: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let references = json!([{ "$patch": "delete", "uid": self.owner.uid() }]);
        match self.patch_owner_references(object, references).await {
            Ok(released) => drop(view.record_write(released)),
            // The object is gone, was created again under the same name, or was released by somebody else.
            Err(error) if error.is_not_found() || error.is_invalid() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The uid is a precondition: another object of the same name is not changed.
    async fn patch_owner_references<C>(&self, object: &C, references: Value) -> Result<C>
    where
        C: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let api: Api<C> = Api::namespaced(self.client.clone(), &object.namespace().unwrap_or_default());
        let patch = json!({ "metadata": { "uid": object.uid(), "ownerReferences": references } });
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        Ok(api.patch(&object.name_any(), &params, &Patch::Strategic(patch)).await?)
    }

    async fn can_adopt(&self) -> Result<bool> {
        let api: Api<O> = Api::namespaced(self.client.clone(), &self.owner.namespace().unwrap_or_default());
        let now = api.get_opt(&self.owner.name_any()).await?;
        Ok(now.is_some_and(|now| now.uid() == self.owner.uid() && now.meta().deletion_timestamp.is_none()))
    }
}

/// The relation of an object to an owner.
enum ControllerRelation {
    Ours,
    /// Controlled by another owner, or an orphan that is being deleted.
    Foreign,
    Orphan,
}

#[cfg(test)]
mod tests;
