//! A local backend for traces, with a page that shows them.
//!
//! * [`store`]: traces, bounded in bytes. [`receive`]: OTLP into it.
//! * `log_tail`: log records for readers who follow them; they are not stored.
//! * [`query`]: pure functions on a snapshot of the store: search, one trace, objects, dependencies.
//! * `api`: the viewer's own JSON. `jaeger`: Jaeger's API, for its UI and Grafana. `serve`: HTTP, and the page.
//! * `cluster`: pipelines and objects of a cluster, if there is one.
//!
//! The crate depends neither on the operator nor on the API server: it reads a cluster as any client would.

mod api;
mod cluster;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod jaeger;
mod json;
mod log_tail;
mod metrics;
mod page;
pub mod query;
pub mod receive;
mod serve;
pub mod store;
#[cfg(test)]
mod testing;
mod viewer;

pub use viewer::{Viewer, ViewerAddresses, ViewerError, ViewerOptions};
