//! What a viewer says of itself.

use serde::{Deserialize, Serialize};

use crate::{
    place::Viewer,
    web::{Error, Web},
};

/// Its `/api/v1/info`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Info {
    pub(crate) version: String,
    pub(crate) store: Store,
}

/// What it holds.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Store {
    pub(crate) traces: u64,
    pub(crate) spans: u64,
    pub(crate) bytes: u64,
    /// In bytes.
    pub(crate) limit: u64,
    /// What had to make room.
    pub(crate) dropped: Lost,
    /// What was too large for it.
    pub(crate) refused: Lost,
}

/// What is not there.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Lost {
    pub(crate) traces: u64,
    pub(crate) spans: u64,
}

/// Asks it.
pub(crate) async fn info(web: &Web, viewer: &Viewer) -> Result<Info, Error> {
    web.get(&format!("{}/api/v1/info", viewer.url)).await
}
