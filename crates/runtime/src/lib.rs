//! What every server and client of the workspace needs, once.
//!
//! * [`listener`]: accepts connections within bounds, drains them, aborts them.
//! * [`tls`]: the base of TLS settings of servers and clients, handshakes with a deadline, and the verifier that
//!   accepts every certificate.
//! * [`http_client`]: one HTTP request, bounded in time and memory.
//! * [`prometheus`]: metrics in Prometheus' text format.
//! * [`label_enum!`]: enums whose variants are labels of metrics.
//! * [`lock`]: locks without poisoning.
//!
//! The crate is a leaf: it depends on no other crate of the workspace, and knows nothing of telemetry or
//! Kubernetes.

pub mod http_client;
mod label_enum;
pub mod listener;
pub mod lock;
pub mod prometheus;
pub mod tls;
