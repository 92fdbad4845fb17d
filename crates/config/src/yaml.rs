//! YAML as a tree whose every node knows where it stands in the text.
//!
//! Scalars are read as the Collector reads them: the core schema of YAML 1.2, with `yes`, `no`, `on` and `off` as
//! text. Whatever a text holds, reading it takes bounded memory and depth; see [`MAX_BYTES`], [`MAX_DEPTH`] and
//! [`MAX_NODES`].

mod node;
mod parse;
mod scalar;

#[cfg(test)]
mod tests;

pub(crate) use node::{Entry, Key, Node, Origin, Span, Value};
pub(crate) use parse::{Fault, parse};

/// A document may be this long. A Kubernetes object holds at most 1 MiB, so this leaves room for files of other kinds.
pub(crate) const MAX_BYTES: usize = 4 << 20;

/// Nodes may be nested this deep. Real documents stay below 20; every walk over a tree is recursive.
pub(crate) const MAX_DEPTH: usize = 64;

/// A document may hold this many nodes once its aliases are written out.
pub(crate) const MAX_NODES: usize = 200_000;
