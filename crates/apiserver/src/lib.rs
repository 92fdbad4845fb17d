//! A Kubernetes-compatible API server in one process, which traces every request as KEP-647 says.
//!
//! The layers, each using only those above it:
//! - [`api`]: names, metadata, field errors, `Status`. [`schema`]: one tree per kind.
//! - [`registry`]: which resources are served, and what is special about each.
//! - [`patch`]: JSON patch, merge patch and strategic merge patch. [`apply`]: who owns which field, and server-side apply.

pub mod api;
pub mod apply;
pub mod client;
pub mod http;
pub mod patch;
pub mod registry;
pub mod schema;
pub mod trace;
