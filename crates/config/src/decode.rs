//! Decodes the tree into the model: every field is read, checked and accounted for, and every error is kept.

pub(crate) mod attributes;
mod component;
mod context_uses;
mod cursor;
mod document;
mod duration;
pub(crate) mod exporter;
pub(crate) mod extension;
mod field_reader;
pub(crate) mod filter;
pub(crate) mod foreign_names;
mod id;
pub(crate) mod kubernetes;
mod matching;
mod network;
mod pipeline;
pub(crate) mod processor;
pub(crate) mod receiver;
pub(crate) mod redaction;
mod references;
mod report;
pub(crate) mod sampler;
mod scalar;
mod suggest;
pub(crate) mod tail_sampling;
mod telemetry;
mod tls;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use cursor::Cursor;
pub(crate) use document::document;
pub use duration::{DurationError, parse_duration};
pub(crate) use report::{ConnectionSide, DecodeReport, DocumentFindings};
