//! One schema tree per kind: its fields, and how each of them is merged, defaulted and owned.
//!
//! Trees are built from the committed table of built-in kinds and from CustomResourceDefinitions. All code that
//! depends on an object's shape walks such a tree: type checks, pruning, defaulting, strategic merge, the field
//! sets of server-side apply, protobuf, OpenAPI.

pub mod builtin;
pub mod decode;
pub mod defaults;
mod node;
pub mod prune;
pub mod quantity;
#[cfg(test)]
mod testing;

pub use self::node::{
    LazyNode, ListType, MapType, PatchStrategy, ScalarType, Schema, SchemaNode, SchemaShape, ValueValidation,
};
