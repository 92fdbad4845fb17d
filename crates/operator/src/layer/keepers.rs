//! For whom the layer is there. Pure.
//!
//! It is there for the pipelines that hold a slot, and goes with the last of them. Unless another one waits for a slot: that one takes over what is there, and senders
//! keep their address. So those who wait keep it, too, as owners of the anchor, whether an operator sees the last holder go or not.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kubewake_api::Settings;

use crate::desk::{Entry, Id};

/// So many of those who wait. They have to be deleted while no operator runs, all of them, before that makes a difference to the others.
const MAX_WAITING: usize = 16;

/// The pipelines that keep the layer: those that hold a slot, and some that would take one.
pub(super) fn of(
    entries: &BTreeMap<Id, Arc<Entry>>,
    holders: &BTreeMap<Id, Arc<Entry>>,
    settings: &Settings,
) -> Vec<OwnerReference> {
    let waits = |(id, entry): &(&Id, &Arc<Entry>)| {
        !holders.contains_key(id) && entry.valid.is_some() && entry.problems.is_empty() && settings.slots(id.signal) > 0
    };
    let waiting = entries.iter().filter(waits).take(MAX_WAITING).map(|(_, entry)| entry);
    holders.values().chain(waiting).map(|entry| entry.owner.clone()).collect()
}
