//! An admission webhook that stamps trace context on objects, whoever writes them.
//!
//! A [`StampWebhook`] is a set of rules ([`decision`]) behind an axum service ([`StampWebhook::router`]). For each
//! call of an API server it decides whether the object gets a new context, keeps the one that its writer set,
//! or gets back one that an update lost. Each call is recorded as a span, the parent of all later work.
//! [`WebhookMaintenance`](crate::maintenance::WebhookMaintenance) issues the certificates and registers the webhook.
//!
//! *Guaranteed*: no object is ever refused, and none waits for long: an object whose call fails passes
//! unchanged, and the failure is counted. The input of a caller is bounded.
//!
//! *Assumed*: everybody who can reach the port may call. A call changes nothing but its own response, but its
//! `traceparent` is trusted, so that any caller could add spans to a trace. Where that matters, let only API
//! servers reach the port.

use std::{fmt, sync::Arc};

use kubewake_trail::Options;
use opentelemetry::global::BoxedTracer;

pub mod call;
pub mod counters;
pub mod decision;
pub mod patch;
mod routes;
pub mod selection;

pub use routes::PATH;

use counters::StampCounters;

/// The stamping rules and their state.
pub struct StampWebhook {
    tracer: BoxedTracer,
    options: Options,
    counters: Arc<StampCounters>,
}

impl StampWebhook {
    /// Creates a webhook that records its spans with this tracer. It uses the keys, trust and clock of the
    /// options.
    #[must_use]
    pub fn new(tracer: BoxedTracer, options: Options) -> Self {
        Self { tracer, options, counters: Arc::default() }
    }

    /// The counters of this webhook.
    #[must_use]
    pub fn counters(&self) -> &Arc<StampCounters> {
        &self.counters
    }
}

impl fmt::Debug for StampWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StampWebhook")
            .field("options", &self.options)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
