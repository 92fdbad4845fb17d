//! Controllers against a real API server: every span, its parent and its links.
#![allow(missing_docs)]

mod cluster;
mod edges;
mod head;
mod stories;
