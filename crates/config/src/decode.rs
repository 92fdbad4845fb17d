//! Decodes the tree into the model: every field is read, checked and accounted for, and every error is kept.
//!
//! This module has the readers that all settings use, and the checks that need the whole document. The settings of
//! a component are decoded beside their types: `crate::exporter::otlp_grpc`.

mod component;
mod connectors;
mod context_uses;
mod cursor;
mod document;
mod duration;
mod field_reader;
pub(crate) mod foreign_names;
pub(crate) mod id;
mod pipeline;
mod references;
mod report;
pub(crate) mod scalar;
mod suggest;
pub(crate) mod value;

#[cfg(test)]
mod tests;

pub(crate) use cursor::Cursor;
pub(crate) use document::document;
pub use duration::{DurationError, parse_duration};
pub(crate) use field_reader::FieldReader;
pub(crate) use report::{AuthUse, ConnectionSide, ContextUse, DecodeReport, DocumentFindings, StorageUse, new_finding};
