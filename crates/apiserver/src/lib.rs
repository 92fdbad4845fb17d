//! A Kubernetes-compatible API server in one process, which traces every request as KEP-647 says.
//!
//! The layers, each using only those above it:
//! - [`api`]: names, metadata, field errors, `Status`. [`schema`]: one tree per kind.
//! - [`registry`]: which resources are served, and what is special about each. [`kinds`]: the built-in ones.

pub mod api;
pub mod kinds;
pub mod registry;
pub mod schema;
