//! Controllers against a real API server: every span, its parent and its links.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod cluster;
mod edges;
mod head;
mod repairs;
mod stories;
