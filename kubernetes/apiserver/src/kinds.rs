//! The built-in kinds: the table of resources, and the rules of each kind.
//!
//! [`catalog`] is the whole table. A kind with rules of its own implements [`crate::registry::Strategy`] here:
//! its defaults, the fields that a writer cannot choose, and its validation, with kube-apiserver's messages.
//! The rules for the metadata of every object, custom ones too, are in [`metadata`]; the rules for names are in
//! [`names`]; the columns of `kubectl get` are in [`table`].
//!
//! Guaranteed: nothing here does I/O, panics on any object, or recurses without bound. Assumed: an object has
//! been decoded, so the types of its fields are right (a wrong one reads as absent). Not done: controllers, and
//! admission plugins that need more than the object itself (tolerations and the built-in priorities of pods are
//! here).

mod autoscaling;
pub(crate) mod batch;
mod catalog;
mod certificates;
mod config;
mod daemonset;
mod deployment;
pub mod event;
mod field_value;
mod json_object;
pub mod jsonpath;
pub mod limits;
pub mod metadata;
pub mod names;
mod namespace;
mod network;
pub mod node;
pub mod pod;
mod quota;
mod rbac;
mod replicaset;
pub mod runtime_class;
pub mod selector;
mod service;
mod service_allocator;
mod simple_strategy;
mod small_strategies;
mod statefulset;
mod storage;
pub mod table;
mod webhook;
mod workload;

use std::sync::Arc;

use aws_lc_rs::digest;
use base64::Engine as _;

pub use self::{
    field_value::FieldValue,
    service_allocator::{AllocationLookup, ServiceAllocation, ServiceAllocator},
    simple_strategy::SimpleStrategy,
};
use crate::{api::GroupVersion, registry::Catalog};

/// Every built-in resource, with Services in `10.0.0.0/24`.
pub fn catalog() -> Catalog {
    catalog_with(&Arc::default())
}

/// Every built-in resource, with Services at the given addresses.
pub fn catalog_with(addresses: &Arc<ServiceAllocator>) -> Catalog {
    catalog::build_catalog(addresses)
}

/// The `storageVersionHash` of discovery, by which a client notices that a kind is stored in another version.
pub fn storage_version_hash(stored: &GroupVersion, kind: &str) -> Arc<str> {
    let name = format!("{}/{}/{kind}", stored.group, stored.version);
    let hash = digest::digest(&digest::SHA256, name.as_bytes());
    let first = hash.as_ref().get(..8).unwrap_or_default();
    base64::engine::general_purpose::STANDARD.encode(first).into()
}

#[cfg(test)]
mod tests;
