//! The built-in kinds: which resources there are, and the rules of each.
//!
//! [`catalog`] is the table of all of them. A kind with rules of its own has a [`crate::registry::Strategy`] here: its defaults, what a
//! writer cannot choose, and what is refused, in kube-apiserver's words. What holds for the metadata of every object, custom ones
//! too, is in [`metadata`]; what names may look like in [`names`]; what `kubectl get` shows in [`table`].
//!
//! Guaranteed: nothing here does I/O, panics on any object, or recurses without bound. Assumed: an object has been decoded, so the
//! types of its fields are right (a wrong one reads as absent). Not done: controllers, and admission plugins beyond what an object
//! itself tells (tolerations and priority of pods).

mod addresses;
mod at;
mod autoscaling;
pub(crate) mod batch;
mod catalog;
mod certificates;
mod config;
mod daemonset;
mod deployment;
pub mod event;
pub mod jsonpath;
pub mod metadata;
pub mod names;
mod namespace;
mod network;
pub mod node;
mod object;
pub mod pod;
mod rbac;
mod replicaset;
mod rules;
pub mod selector;
mod service;
mod small;
mod statefulset;
mod storage;
pub mod table;
mod webhook;
mod workload;

use std::sync::Arc;

use aws_lc_rs::digest;
use base64::Engine as _;

pub use self::{
    addresses::{Addresses, Claim, Holder},
    at::At,
    rules::Simple,
};
use crate::{api::GroupVersion, registry::Catalog};

/// Every built-in resource, with Services in `10.0.0.0/24`.
pub fn catalog() -> Catalog {
    catalog_with(&Arc::default())
}

/// Every built-in resource, with Services at these addresses.
pub fn catalog_with(addresses: &Arc<Addresses>) -> Catalog {
    catalog::build(addresses)
}

/// As in discovery: it tells a client when a kind is stored in another version.
pub fn storage_version_hash(stored: &GroupVersion, kind: &str) -> Arc<str> {
    let name = format!("{}/{}/{kind}", stored.group, stored.version);
    let hash = digest::digest(&digest::SHA256, name.as_bytes());
    let first = hash.as_ref().get(..8).unwrap_or_default();
    base64::engine::general_purpose::STANDARD.encode(first).into()
}

#[cfg(test)]
mod tests;
