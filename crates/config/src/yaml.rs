//! YAML as a tree in which every node knows its position in the text.
//!
//! Scalars are read as in the Collector: by the core schema of YAML 1.2, with `yes`, `no`, `on` and `off` as
//! text. Reading any text takes bounded memory and depth; see [`MAX_DOCUMENT_BYTES`], [`MAX_DEPTH`] and
//! [`MAX_NODES`].

mod node;
mod parse;
mod scalar;

#[cfg(test)]
mod tests;

pub(crate) use node::{NodeValue, TextSpan, ValueOrigin, YamlEntry, YamlKey, YamlNode};
pub(crate) use parse::{YamlFault, parse};

/// The limit of a document. A Kubernetes object holds at most 1 MiB, so this leaves room for other files.
pub const MAX_DOCUMENT_BYTES: usize = 4 << 20;

/// The limit of nesting. Real documents stay below 20; every walk over a tree is recursive.
pub(crate) const MAX_DEPTH: usize = 64;

/// The limit of nodes once aliases are expanded.
pub(crate) const MAX_NODES: usize = 200_000;
