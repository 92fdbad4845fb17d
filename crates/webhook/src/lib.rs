//! Admission webhooks that issue their own certificates and register themselves.
//!
//! A webhook consists of parts that each serve any webhook, mutating or validating:
//!
//! - [`target`]: the address under which API servers call it;
//! - [`certificates`]: issued by the webhook itself, stored, and renewed before they expire;
//! - [`registration`]: its `MutatingWebhookConfiguration` or `ValidatingWebhookConfiguration`;
//! - [`maintenance`]: keeps certificates and registration in step for as long as the webhook runs;
//! - [`server`] and [`body_reader`]: TLS, HTTP, and the limits for clients;
//! - [`review`]: the request of an API server, and the response;
//! - [`counters`]: metrics of the maintenance.
//!
//! The operator's validating webhook is made of these parts. [`stamping`] is the other webhook of the project: it
//! stamps trace context on objects, by the conventions of `kubewake_trail`. No other module knows of traces.
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
