//! The objects that the operator made: the cache of them, and server-side apply where they differ.
//!
//! *Guaranteed*: only labelled objects of a closed set of kinds are read, and an object that matches its desired
//! state is not written. Uses `runtime` and `model`.

use std::fmt::Debug;

use kube::{Api, api::ListParams};
use serde::de::DeserializeOwned;

pub mod apply;
pub mod collector_pods;
pub mod object_cache;
pub mod pod_monitors;

/// Finds an object by a list with its name. A `get` of a missing object would appear as an error in traces and
/// in the API server's metrics, although nothing is wrong.
///
/// # Errors
/// The API server's refusal.
pub async fn find_object<K>(api: &Api<K>, name: &str) -> kube::Result<Option<K>>
where
    K: Clone + Debug + DeserializeOwned,
{
    let named = ListParams::default().fields(&format!("metadata.name={name}"));
    Ok(api.list(&named).await?.items.into_iter().next())
}
