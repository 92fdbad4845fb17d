//! Kubewake's data plane: receivers → processors → buffer → exporters.
//!
//! * [`core`]: what flows and what it owes: batches, the memory they are charged for, refusals, links, counters.
//! * [`engine`]: builds a graph of components from a document, swaps it for another one, drains it.
//! * [`service`]: a document on disk, loaded, watched and reloaded; [`telemetry`]: what is said about all of it.
//! * [`net`]: listeners, TLS, framing and compression that several components share.
//! * `receiver`, `processor`, `exporter`, `extension`: the components. The engine names none of them;
//!   [`components`] is the one place that does.

// A build with fewer components leaves some of what they share unused.
#![cfg_attr(not(feature = "full"), allow(dead_code, unused_imports, unused_variables, unreachable_code))]

pub mod components;
pub mod core;
pub mod engine;
pub mod exporter;
pub mod extension;
#[cfg(all(feature = "fuzzing", feature = "full"))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "kubernetes")]
mod kubernetes;
pub mod net;
pub mod processor;
pub mod receiver;
pub mod service;
pub mod telemetry;
