//! Owner references.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};

use crate::key::NamespacedKey;

/// The reference that makes `owner` the controller of an object.
pub fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.name_any(),
        uid: owner.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

pub fn controller_of(object: &impl ResourceExt) -> Option<&OwnerReference> {
    object.owner_references().iter().find(|owner| owner.controller == Some(true))
}

/// Whether `owner` is the controller of the object.
pub fn is_controlled_by(object: &impl ResourceExt, owner: &impl ResourceExt) -> bool {
    controller_of(object).is_some_and(|reference| Some(&reference.uid) == owner.uid().as_ref())
}

/// The key of the object's controller, if it is of kind `K`.
pub fn key_of_controller<K: Resource<DynamicType = ()>>(object: &impl ResourceExt) -> Option<NamespacedKey> {
    let owner =
        controller_of(object).filter(|owner| owner.kind == K::kind(&()) && owner.api_version == K::api_version(&()))?;
    Some(NamespacedKey::new(object.namespace().unwrap_or_default(), &owner.name))
}
