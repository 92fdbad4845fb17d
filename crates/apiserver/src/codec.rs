//! Bytes to [`Value`] and back, and what else of a request is text: media types, selectors, query parameters.
//!
//! Whatever a client sends, reading it takes memory in proportion to its length and bounded depth, and ends in a value or in a
//! [`Status`] with kube-apiserver's words. Nothing here knows a kind's schema: a value is checked against one elsewhere.

pub mod accept;
pub mod body;
pub mod content_type;
pub mod json;
pub mod protobuf;
pub mod query;
pub mod selector;
pub mod yaml;

#[cfg(test)]
mod tests;

#[cfg(doc)]
use crate::api::Status;
#[cfg(doc)]
use serde_json::Value;

pub use self::body::{Body, decode};

/// How objects travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Media {
    Json,
    Yaml,
    Protobuf,
}

impl Media {
    /// As in headers.
    pub fn name(self) -> &'static str {
        match self {
            Media::Json => "application/json",
            Media::Yaml => "application/yaml",
            Media::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}
