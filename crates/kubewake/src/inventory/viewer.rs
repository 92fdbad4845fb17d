//! The status of a viewer.

use serde::{Deserialize, Serialize};

use crate::{
    discovery::ViewerLocation,
    http_client::{JsonHttpClient, JsonHttpError},
};

/// The document at `/api/v1/info`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ViewerInfo {
    pub(crate) version: String,
    pub(crate) store: StoreInfo,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct StoreInfo {
    pub(crate) traces: u64,
    pub(crate) spans: u64,
    pub(crate) bytes: u64,
    /// In bytes.
    pub(crate) limit: u64,
    /// Evicted traces and spans.
    pub(crate) dropped: LostCounts,
    /// Traces and spans that did not fit.
    pub(crate) refused: LostCounts,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct LostCounts {
    pub(crate) traces: u64,
    pub(crate) spans: u64,
}

pub(crate) async fn fetch_info(web: &JsonHttpClient, viewer: &ViewerLocation) -> Result<ViewerInfo, JsonHttpError> {
    web.get(&format!("{}/api/v1/info", viewer.url)).await
}
