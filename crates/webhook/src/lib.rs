//! Admission webhooks that issue their own certificates and register themselves.
//!
//! A webhook consists of these parts:
//!
//! - [`target`]: the address under which API servers call it;
//! - [`certificates`]: issued by the webhook itself, stored, and renewed before they expire;
//! - [`registration`]: its `MutatingWebhookConfiguration` or `ValidatingWebhookConfiguration`;
//! - [`maintenance`]: keeps certificates and registration in step for as long as the webhook runs;
//! - [`server`] and [`body_reader`]: TLS, HTTP, and the limits for clients;
//! - [`review`]: the request of an API server, and the response;
//! - [`counters`]: metrics of the maintenance.
//!
//! [`stamping`] is a webhook that stamps trace context on objects, by the conventions of `kubewake_trail`. All other
//! modules record no spans and serve any webhook, mutating or validating. Start the maintenance, then the server with
//! its certificates, then register, then run the maintenance; `crates/operator/src/admission.rs`, the operator's
//! validating webhook, is an example.
//!
//! The interface has types of axum 0.8, rustls 0.23 and [`kubewake_trail::TrailClock`].
//!
//! *Not done*: certificates issued by others, such as cert-manager; webhooks outside of the cluster that API servers
//! reach through a proxy.

pub mod body_reader;
pub mod certificates;
pub mod counters;
pub mod maintenance;
pub mod registration;
pub mod review;
pub mod server;
pub mod stamping;
pub mod target;

#[cfg(test)]
mod tests;
