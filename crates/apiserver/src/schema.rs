//! One schema tree per kind: what its fields are, and how each of them merges, defaults and is owned.
//!
//! Trees are built from the committed table of built-in kinds and from CustomResourceDefinitions. Everything that must know an
//! object's shape walks such a tree: decoding checks, pruning, defaulting, strategic merge, the sets of server-side apply,
//! protobuf, OpenAPI.

pub mod builtin;
pub mod decode;
pub mod defaults;
mod node;
pub mod prune;
pub mod quantity;
#[cfg(test)]
mod testing;

pub use self::node::{LazyNode, ListType, MapType, Node, PatchStrategy, Rules, Scalar, Schema, Shape};
