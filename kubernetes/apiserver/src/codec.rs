//! Decoding and encoding: [`Value`]s, and the textual parts of a request (media types, selectors, query
//! parameters).
//!
//! Guaranteed: decoding any input takes memory in proportion to its length and bounded depth, and ends in a
//! value or in a [`StatusError`] with kube-apiserver's message. Nothing here knows the schema of a kind: values
//! are checked against it elsewhere.

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
use crate::api::StatusError;
#[cfg(doc)]
use serde_json::Value;

pub use self::body::{Body, decode};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaType {
    Json,
    Yaml,
    Protobuf,
}

impl MediaType {
    pub fn name(self) -> &'static str {
        match self {
            MediaType::Json => "application/json",
            MediaType::Yaml => "application/yaml",
            MediaType::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}
