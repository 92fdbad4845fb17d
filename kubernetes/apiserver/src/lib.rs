//! A Kubernetes-compatible API server in one process, which traces every request as KEP-647 specifies.
//!
//! A test of a kube-rs operator needs the feature `client` and these lines:
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
//! A build with `AWS_LC_SYS_NO_JITTER_ENTROPY=1` in its environment, as in this workspace, starts a server in 5
//! ms instead of 35: the cryptographic library then takes its entropy from the kernel alone.
//!
//! The modules, in layers. Each uses only modules above it, except where the list says otherwise:
//! - [`api`]: names, metadata, field errors and `Status`. [`client`]: pooled HTTP connections to webhooks and
//!   collectors. [`metrics`]: counters and histograms under kube-apiserver's names. None of these uses another
//!   module.
//! - [`schema`]: one tree per kind. [`codec`]: JSON, YAML, protobuf, media types, selectors and query
//!   parameters (field selectors use [`registry`]).
//! - [`store`]: objects, history and watches, in memory and on disk. [`trace`]: spans and their export over
//!   OTLP.
//! - [`auth`]: authentication, authorization and certificates. [`access`]: [`auth`] on top of the store.
//! - [`registry`]: the catalog of served resources and the strategy of each kind.
//! - [`patch`]: JSON patch, merge patch and strategic merge patch. [`apply`]: field ownership and server-side
//!   apply.
//! - [`discovery`] and [`openapi`]: documents that describe the served resources.
//! - [`cel`]: CEL expressions (patterns are translated by [`crd`]). [`crd`]: CustomResourceDefinitions and the
//!   validation of custom resources. [`kinds`]: the built-in kinds.
//! - [`kubelet_client`]: container logs, which only nodes have.
//! - [`admission`], [`server_state`], [`handler`], [`http`] and [`controller`] use each other: a request
//!   arrives in [`http`] and passes the filters of [`handler`], and a write passes [`admission`] before it is
//!   stored; [`controller`] writes through [`handler`]; [`server_state`] is their shared state.
//! - [`server`]: starts and stops all of them. `fuzzing` (a feature): entry points of the fuzz targets.

pub mod access;
pub mod admission;
pub mod api;
pub mod apply;
pub mod auth;
pub mod cel;
pub mod client;
pub mod codec;
pub mod controller;
pub mod crd;
pub mod discovery;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod handler;
pub mod http;
pub mod kinds;
pub mod kubelet_client;
pub mod metrics;
pub mod openapi;
pub mod patch;
pub mod registry;
pub mod schema;
pub mod server;
pub mod server_state;
pub mod store;
pub mod trace;
