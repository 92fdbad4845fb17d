//! A Kubernetes-compatible API server in one process, which traces every request as KEP-647 says.
//!
//! In a test of a kube-rs operator, with the feature `client`, this is all that it takes:
//!
//! ```
//! # #[cfg(feature = "client")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use k8s_openapi::api::core::v1::Namespace;
//! use kube::{Api, api::ListParams};
//! use kubewake_apiserver::server::{ApiServer, Options};
//!
//! let server = ApiServer::start(Options::default()).await?;
//! let namespaces: Api<Namespace> = Api::all(server.client()?);
//! assert_eq!(namespaces.list(&ListParams::default()).await?.items.len(), 4);
//!
//! // Somebody who may do nothing yet.
//! let namespaces: Api<Namespace> = Api::all(server.client_as("ann", &["gardeners"])?);
//! assert!(namespaces.list(&ListParams::default()).await.is_err());
//! server.stop().await;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "client"))]
//! # fn main() {}
//! ```
//!
//! A build with `AWS_LC_SYS_NO_JITTER_ENTROPY=1` in its environment, as in this workspace, starts a server in 5 ms instead of 35: the
//! cryptographic library then takes its entropy from the kernel alone.
//!
//! The layers, each using only those above it:
//! - [`api`]: names, metadata, field errors, `Status`. [`schema`]: one tree per kind.
//! - [`store`]: objects, history and watches, in memory and on disk.
//! - [`codec`]: bytes to values and back, media types, selectors, query parameters.
//! - [`auth`]: who is asking, and what they may do.
//! - [`registry`]: which resources are served, and what is special about each. [`kinds`]: the built-in ones.
//! - [`patch`]: JSON patch, merge patch and strategic merge patch. [`apply`]: who owns which field, and server-side apply.
//! - [`crd`]: CustomResourceDefinitions and the validation of custom resources. [`cel`]: expressions.
//! - [`discovery`] and [`openapi`]: what is served, told to clients.

pub mod access;
pub mod admission;
pub mod api;
pub mod apply;
pub mod auth;
pub mod cel;
pub mod client;
pub mod codec;
pub mod controller;
pub mod core;
pub mod crd;
pub mod discovery;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod handler;
pub mod http;
pub mod kinds;
pub mod metrics;
pub mod nodes;
pub mod openapi;
pub mod patch;
pub mod registry;
pub mod schema;
pub mod server;
pub mod store;
pub mod trace;
