//! Kubewake's data plane: receivers → processors → buffer → exporters.
//!
//! * [`core`]: the types that flow through a pipeline (batches, memory charges, refusals), queues, and
//!   counters.
//! * [`engine`]: builds a graph of components from a document, replaces it by the graph of another document,
//!   and drains it.
//! * [`service`]: loads a document from disk, watches and reloads it. [`telemetry`]: metrics and status of the
//!   process.
//! * [`net`]: listeners, TLS, framing and compression that several components share.
//! * `receiver`, `processor`, `exporter`, `connector`, `extension`: the components, and the table of each kind. The
//!   engine names none of them; it knows the traits of [`components`].

pub mod components;
pub mod connector;
pub mod core;
pub mod engine;
pub mod exporter;
pub mod extension;
#[cfg(all(feature = "fuzzing", feature = "full"))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "kubernetes")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "a component uses the part that it needs"))]
mod kubernetes;
pub mod net;
pub mod processor;
pub mod receiver;
pub mod service;
pub mod telemetry;
