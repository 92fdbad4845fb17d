//! A small Kubernetes client that lists and watches objects.
//!
//! *Guaranteed*: only the few fields that a caller names are kept of an object. A watch resumes where it ended,
//! lists again when the server requires it, and recovers from any failure with increasing backoff. The caller
//! learns of every existing object, of each change, and after a new list also of the objects that were deleted
//! meanwhile. A response that is larger than any sensible one is refused.
//!
//! *Not done*: writes, and credentials from other programs (`exec` in a kubeconfig).

mod access;
mod client;
mod watch;

#[cfg(test)]
mod tests;

pub(crate) use access::{AccessSource, ClusterAccess};
pub(crate) use client::{ApiClient, ApiError};
#[cfg(feature = "fuzzing")]
pub(crate) use watch::reads_event;
pub(crate) use watch::{ObjectEvent, WatchQuery, watch};

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// The part of an object's `metadata` that is needed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ObjectMetadata {
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

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OwnerReference {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) controller: bool,
}

/// Reads `null` as the default value: Go writes an empty list or map as `null`.
pub(crate) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

/// An object type that can be watched.
pub(crate) trait WatchedObject: for<'de> Deserialize<'de> + Send {
    fn metadata(&self) -> &ObjectMetadata;
}
