//! What a stranger may send, and what happens to the server: it answers with a `Status`, and goes on.
//!
//! Every test ends with a look at the server: it is alive, and an object that was there before is as it was.

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
