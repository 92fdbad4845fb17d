//! Hostile requests: the server answers with a `Status`, and continues to work.
//!
//! Every test ends with a check of the server: it responds, and an object from before is unchanged.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

#[path = "hostile/bodies.rs"]
mod bodies;
#[path = "hostile/connections.rs"]
mod connections;
#[path = "hostile/paths.rs"]
mod paths;
#[path = "support/raw.rs"]
mod raw;
#[path = "hostile/victim.rs"]
mod victim;
