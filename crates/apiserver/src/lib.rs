//! A Kubernetes-compatible API server in one process, which traces every request as KEP-647 says.
//!
//! The layers, each using only those above it:
//! - [`api`]: names, metadata, field errors, `Status`. [`schema`]: one tree per kind.
//! - [`registry`]: which resources are served, and what is special about each.
//! - [`store`]: objects, history and watches, in memory and on disk.
//! - [`codec`]: bytes to values and back, media types, selectors, query parameters.
//! - [`patch`]: JSON patch, merge patch and strategic merge patch.
//! - [`auth`]: who is asking, and what they may do.
//! - [`registry`]: which resources are served, and what is special about each. [`kinds`]: the built-in ones.
//! - [`discovery`] and [`openapi`]: what is served, told to clients.

pub mod api;
pub mod auth;
pub mod client;
pub mod codec;
pub mod discovery;
pub mod http;
pub mod kinds;
pub mod openapi;
pub mod patch;
pub mod registry;
pub mod schema;
pub mod store;
pub mod trace;
