//! Objects that may well be missing.

use std::fmt::Debug;

use kube::{Api, api::ListParams};
use serde::de::DeserializeOwned;

/// An object as it is now, if it is there. It is listed by its name: to get one that is missing is an error to all who look at requests, in traces and in an API server's
/// metrics, and nothing is wrong.
///
/// # Errors
/// What the API server says.
pub async fn find<K>(api: &Api<K>, name: &str) -> kube::Result<Option<K>>
where
    K: Clone + Debug + DeserializeOwned,
{
    let named = ListParams::default().fields(&format!("metadata.name={name}"));
    Ok(api.list(&named).await?.items.into_iter().next())
}
