//! Whom an object belongs to: a controller takes orphans that its selector matches, and lets go of those that it no longer matches.
//!
//! *Guarantees.* What belongs to another controller is never touched. Nothing is taken for an owner that is being deleted: before
//! the first orphan is taken the API server is asked, since garbage collection may be orphaning its pods at this moment.

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

use super::{MANAGER, owner};
use crate::{
    error::{Error, Result},
    key::Key,
    view::{Change, View},
};

/// A selector, which is checked when it is read: the API server lets no wrong one in.
pub fn selector(of: &LabelSelector) -> Result<Selector> {
    of.clone().try_into().map_err(|error| Error::Object(format!("the label selector is wrong: {error}")))
}

/// Whether a selector that selects at all matches the object's labels: an empty one would take everything.
pub fn selects(selector: &Selector, object: &impl ResourceExt) -> bool {
    !selector.selects_all() && selector.matches(object.labels())
}

/// The owners that a change of an object concerns: who controls it and who did, and, if it is an orphan that is new or has
/// changed its labels, everyone who might take it.
pub fn concerned<O, C>(change: &Change<C>, owners: &Weak<View<O>>, might_take: impl Fn(&O, &C) -> bool) -> Vec<Key>
where
    O: Resource<DynamicType = ()>,
    C: ResourceExt,
{
    let controllers =
        [&change.old, &change.new].map(|object| object.as_deref().and_then(owner::key_of_controller::<O>));
    let mut keys: Vec<Key> = controllers.into_iter().flatten().collect();
    keys.dedup();
    if let Some(orphan) = change.new.as_deref().filter(|object| owner::controller_of(*object).is_none())
        && change
            .old
            .as_deref()
            .is_none_or(|old| old.labels() != orphan.labels() || owner::controller_of(old).is_some())
        && let Some(owners) = owners.upgrade()
    {
        let owners = owners.within(&orphan.namespace().unwrap_or_default());
        keys.extend(owners.iter().filter(|owner| might_take(owner, orphan)).map(|owner| Key::of(&**owner)));
    }
    keys
}

/// Takes and releases on behalf of one owner.
pub struct Claim<'a, O> {
    client: &'a Client,
    owner: &'a O,
}

impl<O: Debug> Debug for Claim<'_, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl<'a, O> Claim<'a, O>
where
    O: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    /// For this owner.
    pub fn new(client: &'a Client, owner: &'a O) -> Self {
        Self { client, owner }
    }

    /// Those of the objects that are the owner's, after it has taken what `is_wanted` and released what is not. All are tried
    /// before the first failure is reported.
    pub async fn of<C>(
        &self,
        view: &View<C>,
        objects: impl IntoIterator<Item = Arc<C>>,
        is_wanted: impl Fn(&C) -> bool,
    ) -> Result<Vec<Arc<C>>>
    where
        C: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let (mut ours, mut failed, mut may_adopt) = (Vec::new(), None, None);
        for object in objects {
            let wanted = is_wanted(&object);
            let outcome = match self.relation(&*object) {
                Relation::Ours if wanted => Ok(Some(object)),
                Relation::Ours if !self.is_going() => self.release(view, &*object).await.map(|()| None),
                Relation::Orphan if wanted && !self.is_going() => self.adopt(view, &*object, &mut may_adopt).await,
                _ => Ok(None),
            };
            match outcome {
                Ok(object) => ours.extend(object),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(ours), Err)
    }

    fn relation(&self, object: &impl ResourceExt) -> Relation {
        match owner::controller_of(object) {
            Some(_) if owner::is_controlled_by(object, self.owner) => Relation::Ours,
            Some(_) => Relation::Anothers,
            None if object.meta().deletion_timestamp.is_some() => Relation::Anothers,
            None => Relation::Orphan,
        }
    }

    fn is_going(&self) -> bool {
        self.owner.meta().deletion_timestamp.is_some()
    }

    async fn adopt<C>(&self, view: &View<C>, object: &C, may: &mut Option<bool>) -> Result<Option<Arc<C>>>
    where
        C: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let may = match *may {
            Some(may) => may,
            None => *may.insert(self.is_still_there().await?),
        };
        if !may {
            return Ok(None);
        }
        let references = json!([owner::reference(self.owner)]);
        match self.refer(object, references).await {
            Ok(adopted) => Ok(Some(view.note(adopted))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn release<C>(&self, view: &View<C>, object: &C) -> Result<()>
    where
        C: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let references = json!([{ "$patch": "delete", "uid": self.owner.uid() }]);
        match self.refer(object, references).await {
            Ok(released) => drop(view.note(released)),
            // Gone, or made again under the same name, or released by somebody else.
            Err(error) if error.is_not_found() || error.is_invalid() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The uid is a precondition: something else under the same name is left alone.
    async fn refer<C>(&self, object: &C, references: Value) -> Result<C>
    where
        C: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let api: Api<C> = Api::namespaced(self.client.clone(), &object.namespace().unwrap_or_default());
        let patch = json!({ "metadata": { "uid": object.uid(), "ownerReferences": references } });
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        Ok(api.patch(&object.name_any(), &params, &Patch::Strategic(patch)).await?)
    }

    async fn is_still_there(&self) -> Result<bool> {
        let api: Api<O> = Api::namespaced(self.client.clone(), &self.owner.namespace().unwrap_or_default());
        let now = api.get_opt(&self.owner.name_any()).await?;
        Ok(now.is_some_and(|now| now.uid() == self.owner.uid() && now.meta().deletion_timestamp.is_none()))
    }
}

/// What an object is to an owner.
enum Relation {
    Ours,
    /// Another controller's, or on its way out with none.
    Anothers,
    Orphan,
}

#[cfg(test)]
mod tests;
