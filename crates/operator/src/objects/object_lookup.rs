//! Lookup of objects that may be missing.

use std::fmt::Debug;

use kube::{Api, api::ListParams};
use serde::de::DeserializeOwned;

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
