//! Decodes the tree into the model: every field is read, checked and accounted for, and every error is kept.

mod attributes;
mod catalog;
mod component;
mod context_uses;
mod cursor;
mod document;
mod duration;
mod exporter;
mod extension;
mod field_reader;
mod filter;
mod id;
mod kubernetes;
mod matching;
mod network;
mod pipeline;
mod processor;
mod receiver;
mod redaction;
mod references;
mod report;
mod sampler;
mod scalar;
mod suggest;
mod tail_sampling;
mod telemetry;
mod tls;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use document::document;
pub use duration::{DurationError, parse_duration};
pub(crate) use report::{DecodeReport, DocumentFindings};
