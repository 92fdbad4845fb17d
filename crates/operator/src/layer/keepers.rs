//! For whom the layer is there. Pure.
//!
//! It is there for the pipelines that hold a slot, and goes with the last of them. Unless another one waits for a slot: that one takes over what is there, and senders
//! keep their address. So those who wait keep it, too, as owners of the anchor, whether an operator sees the last holder go or not.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::desk::{Entry, Id};

/// So many of those who wait. They have to be deleted while no operator runs, all of them, before that makes a difference to the others.
const MAX_WAITING: usize = 16;

/// The pipelines that keep the layer: those that hold a slot, and some that would take one.
pub(super) fn of(entries: &BTreeMap<Id, Arc<Entry>>, holders: &BTreeMap<Id, Arc<Entry>>) -> Vec<OwnerReference> {
    let waits = |(id, entry): &(&Id, &Arc<Entry>)| {
        !holders.contains_key(id) && entry.valid.is_some() && entry.problems.is_empty()
    };
    let waiting = entries.iter().filter(waits).take(MAX_WAITING).map(|(_, entry)| entry);
    holders.values().chain(waiting).map(|entry| entry.owner.clone()).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kubewake_api::{Pipeline, Problem, Reason, Resolved, Signal, v1alpha1::TracePipeline, validate};
    use serde_json::json;

    use super::*;

    fn entry(name: &str) -> (Id, Entry) {
        let spec = json!({"output": {"otlp": {"endpoint": {"value": "backend:4317"}}}});
        let mut object = TracePipeline::new(name, serde_json::from_value(spec).unwrap());
        (object.metadata.uid, object.metadata.generation) = (Some(name.to_owned()), Some(1));
        let valid = validate(&Pipeline::from(&object), &Resolved::new(), Timestamp::UNIX_EPOCH).unwrap();
        let owner = OwnerReference { uid: name.to_owned(), ..OwnerReference::default() };
        let entry = Entry { owner, valid: Some(Arc::new(valid)), problems: Vec::new(), slot: None, checked: None };
        (Id { signal: Signal::Traces, name: name.to_owned() }, entry)
    }

    fn all(entries: impl IntoIterator<Item = (Id, Entry)>) -> BTreeMap<Id, Arc<Entry>> {
        entries.into_iter().map(|(id, entry)| (id, Arc::new(entry))).collect()
    }

    fn uids(keepers: Vec<OwnerReference>) -> Vec<String> {
        keepers.into_iter().map(|keeper| keeper.uid).collect()
    }

    #[test]
    fn who_holds_a_slot_and_who_would_take_one_keep_the_layer() {
        let (mut broken, mut never) = (entry("broken"), entry("never"));
        broken.1.problems.push(Problem { path: "spec".into(), reason: Reason::SpecInvalid, message: "no".into() });
        (never.1.valid, never.1.problems) = (None, broken.1.problems.clone());
        let entries = all([entry("holds"), entry("waits"), broken.clone(), never]);
        let holders = all([entry("holds")]);
        assert_eq!(uids(of(&entries, &holders)), ["holds", "waits"]);
        assert_eq!(uids(of(&entries, &all([broken]))), ["broken", "holds", "waits"], "it goes on as it was");
        assert_eq!(uids(of(&entries, &BTreeMap::new())), ["holds", "waits"]);
    }

    #[test]
    fn not_everybody_who_waits_does() {
        let entries = all((0..1000).map(|n| entry(&format!("p{n}"))));
        assert_eq!(of(&entries, &BTreeMap::new()).len(), MAX_WAITING);
        assert_eq!(of(&entries, &entries).len(), 1000, "those who hold a slot do");
    }
}
