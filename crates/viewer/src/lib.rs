//! A local backend for traces, with a page that shows them.
//!
//! * [`store`]: traces, bounded in bytes. [`receive`]: OTLP into it.
//! * [`query`]: what is asked of a snapshot of the store: search, one trace, objects, dependencies. Pure.
//! * `api`: our own JSON. `jaeger`: Jaeger's, so that its UI and Grafana can be used. `serve`: HTTP, and the page.
//! * `cluster`: what a cluster says of its pipelines and objects, if there is one.
//!
//! Nothing here depends on the operator or on the API server: what is shown of a cluster is asked of it as any client would.

mod api;
mod cluster;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod jaeger;
mod json;
mod metrics;
mod page;
pub mod query;
pub mod receive;
mod serve;
pub mod store;
#[cfg(test)]
mod testing;
mod viewer;

pub use viewer::{Addresses, Error, Options, Viewer};
