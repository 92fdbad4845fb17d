//! `managedFields` of a resource and its `scale`: the only shared field is the number of replicas.
//!
//! A write to `scale` has three steps: [`to_scale`] derives the entries of the Scale,
//! [`super::FieldManager::update`] or [`super::FieldManager::apply`] changes them as for any object (in
//! `autoscaling/v1`, with the subresource `scale`), and [`to_parent`] transfers them back.

use serde_json::Value;

use super::{
    element::PathElement,
    fieldset::FieldSet,
    managed_fields::{self, ManagedFields, ManagedFieldsEntry, ManagedFieldsOperation, ManagerIdentifier},
};

pub const SCALE_API_VERSION: &str = "autoscaling/v1";

/// The path of the replicas: `["spec", "replicas"]` in built-in kinds, that of the CRD in others.
fn path(steps: &[&str]) -> Vec<PathElement> {
    steps.iter().map(|name| PathElement::field(name)).collect()
}

/// The entries of the Scale of an object: those of the owners of its replicas. `None` if its entries cannot be
/// decoded.
pub fn to_scale(parent: &Value, replicas: &[&str]) -> Option<Value> {
    let replicas = path(replicas);
    let parent = managed_fields::decode(managed_fields::managed_fields_value(parent)).ok()?;
    let owners = parent.into_iter().filter(|(_, entry)| entry.set.has(&replicas));
    let owners = owners.map(|(id, entry)| {
        let set = FieldSet::from_paths(&[&["spec", "replicas"]]);
        (id, ManagedFieldsEntry { api_version: SCALE_API_VERSION.to_owned(), set, time: entry.time })
    });
    Some(managed_fields::encode(&owners.collect()))
}

/// Transfers the entries of a changed Scale to its object. Owners of the replicas that are not among them lose
/// the field.
pub fn to_parent(parent: &mut Value, scale: &Value, api_version: &str, replicas: &[&str]) {
    let Ok(mut entries) = managed_fields::decode(managed_fields::managed_fields_value(parent)) else { return };
    let Ok(owners) = managed_fields::decode(managed_fields::managed_fields_value(scale)) else { return };
    let replicas_path = path(replicas);
    let mut owners: ManagedFields =
        owners.into_iter().map(|(id, entry)| (in_version(id, api_version), entry)).collect();
    for (id, entry) in &mut entries {
        if entry.set.has(&replicas_path) && owners.remove(id).is_none() {
            entry.set = std::mem::take(&mut entry.set).difference(&FieldSet::from_paths(&[replicas]));
        }
    }
    entries.retain(|_, entry| !entry.set.is_empty());
    let in_scale = path(&["spec", "replicas"]);
    for (id, _) in owners.into_iter().filter(|(_, owner)| owner.set.has(&in_scale)) {
        let set = FieldSet::from_paths(&[replicas]);
        // kube-apiserver reads the time from a field that has none, so that a new entry has no time.
        let new = ManagedFieldsEntry { api_version: api_version.to_owned(), time: None, set: set.clone() };
        let entry = entries.entry(id).or_insert(new);
        entry.set = std::mem::take(&mut entry.set).union(&set);
    }
    managed_fields::write_managed_fields(parent, &entries);
}

/// The manager's identity in another version.
fn in_version(id: ManagerIdentifier, api_version: &str) -> ManagerIdentifier {
    match id.operation {
        ManagedFieldsOperation::Apply => id,
        ManagedFieldsOperation::Update => ManagerIdentifier { api_version: api_version.to_owned(), ..id },
    }
}
