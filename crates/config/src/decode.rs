//! From the tree to the model: every field is read, checked and accounted for, and every error is kept.

mod catalog;
mod component;
mod cursor;
mod document;
mod duration;
mod exporter;
mod extension;
mod fields;
mod id;
mod network;
mod pipeline;
mod processor;
mod receiver;
mod references;
mod report;
mod scalar;
mod suggest;
mod tail_sampling;
mod telemetry;
mod tls;

#[cfg(test)]
mod tests;

pub(crate) use document::document;
pub(crate) use report::{Findings, Report};
