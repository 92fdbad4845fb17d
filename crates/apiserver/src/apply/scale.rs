//! `managedFields` between a resource and its `scale`: the one field that both have is the number of replicas.
//!
//! A write to `scale` goes so: [`to_scale`] gives the Scale its entries, [`super::Owner::update`] or [`super::Owner::apply`] changes them
//! as for any object (in `autoscaling/v1`, with the subresource `scale`), and [`to_parent`] brings them back.

use serde_json::Value;

use super::{
    element::Element,
    fieldset::Set,
    managed::{self, Entry, Id, Managed, Operation},
};

/// The version of Scale.
pub const API_VERSION: &str = "autoscaling/v1";

/// Where replicas are, as an element for each step: `["spec", "replicas"]` in built-in kinds, what the CRD says in others.
fn path(steps: &[&str]) -> Vec<Element> {
    steps.iter().map(|name| Element::field(name)).collect()
}

/// The entries of the Scale of an object: of those who own its replicas. `None` if its entries cannot be read.
pub fn to_scale(parent: &Value, replicas: &[&str]) -> Option<Value> {
    let replicas = path(replicas);
    let parent = managed::decode(managed::entries(parent)).ok()?;
    let owners = parent.into_iter().filter(|(_, entry)| entry.set.has(&replicas));
    let owners = owners.map(|(id, entry)| {
        let set = Set::of(&[&["spec", "replicas"]]);
        (id, Entry { api_version: API_VERSION.to_owned(), set, time: entry.time })
    });
    Some(managed::encode(&owners.collect()))
}

/// Writes the entries of a changed Scale back into its object. Who owned the replicas and is not among them owns them no longer.
pub fn to_parent(parent: &mut Value, scale: &Value, api_version: &str, replicas: &[&str]) {
    let Ok(mut entries) = managed::decode(managed::entries(parent)) else { return };
    let Ok(owners) = managed::decode(managed::entries(scale)) else { return };
    let replicas_path = path(replicas);
    let mut owners: Managed = owners.into_iter().map(|(id, entry)| (in_version(id, api_version), entry)).collect();
    for (id, entry) in &mut entries {
        if entry.set.has(&replicas_path) && owners.remove(id).is_none() {
            entry.set = std::mem::take(&mut entry.set).difference(&Set::of(&[replicas]));
        }
    }
    entries.retain(|_, entry| !entry.set.is_empty());
    let in_scale = path(&["spec", "replicas"]);
    for (id, _) in owners.into_iter().filter(|(_, owner)| owner.set.has(&in_scale)) {
        let set = Set::of(&[replicas]);
        // kube-apiserver looks for the time where it cannot be, so that a new entry has none.
        let new = Entry { api_version: api_version.to_owned(), time: None, set: set.clone() };
        let entry = entries.entry(id).or_insert(new);
        entry.set = std::mem::take(&mut entry.set).union(&set);
    }
    managed::store(parent, &entries);
}

/// The same manager in another version.
fn in_version(id: Id, api_version: &str) -> Id {
    match id.operation {
        Operation::Apply => id,
        Operation::Update => Id { api_version: api_version.to_owned(), ..id },
    }
}
