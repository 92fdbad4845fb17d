//! Reading objects of a Kubernetes cluster: a small client that lists and watches.
//!
//! *Guarantees.* Only the few fields that a caller names are kept of an object. A watch goes on from where it was, begins anew when the
//! server says that it must, and comes back after any failure, ever more slowly. Whoever listens learns of every object that is
//! there, of each change, and after a new beginning also of those that went meanwhile. An answer that is larger than
//! any sensible one is refused.
//!
//! *Does not* write, and does not sign in by other programs (`exec` in a kubeconfig).

mod access;
mod client;
mod watch;

#[cfg(test)]
mod tests;

pub(crate) use access::{Access, AccessSource};
pub(crate) use client::{ApiError, Client};
#[cfg(feature = "fuzzing")]
pub(crate) use watch::reads_event;
pub(crate) use watch::{Event, Query, watch};

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// What is needed of every object's `metadata`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) creation_timestamp: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) owner_references: Vec<OwnerReference>,
}

/// Who made an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OwnerReference {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) controller: bool,
}

/// Go writes an empty list or map as `null`.
pub(crate) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

/// An object that can be watched.
pub(crate) trait Object: for<'de> Deserialize<'de> + Send {
    /// Its metadata.
    fn metadata(&self) -> &Metadata;
}
