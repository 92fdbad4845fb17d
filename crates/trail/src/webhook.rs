//! An admission webhook that puts trace context on objects, whoever writes them.
//!
//! A [`Webhook`] is a set of rules ([`stamp`]) behind an axum service ([`Webhook::router`]): for each call of an API server it decides
//! whether the object gets a context, keeps the one that its writer set, or gets back one that an update lost; and it records a span, which is the parent of all
//! that follows. [`Upkeep`](upkeep::Upkeep) makes its certificates and registers it.
//!
//! *Guaranteed*: no object is ever refused, and none waits for long: whatever is wrong, it passes as it is, and that is counted. What a caller sends is bounded.
//!
//! *Assumed*: whoever reaches the port may call. A call changes nothing but its own answer; but its `traceparent` is believed, so that a stranger could add spans
//! to a trace. Let only API servers reach the port where that matters.
//!
//! [`certificates`], [`endpoint`], [`intake`], [`registration`], [`review`], [`serve`] and [`upkeep`] know nothing of tracing: they serve any webhook,
//! validating ones, too.

use std::{fmt, sync::Arc};

use opentelemetry::global::BoxedTracer;

use crate::Options;

pub mod call;
pub mod certificates;
pub mod counters;
pub mod endpoint;
pub mod intake;
pub mod patch;
pub mod registration;
pub mod review;
mod routes;
pub mod select;
pub mod serve;
pub mod stamp;
pub mod upkeep;

pub use routes::PATH;

use counters::Counters;

/// The rules of a webhook, and what they are applied with.
pub struct Webhook {
    tracer: BoxedTracer,
    options: Options,
    counters: Arc<Counters>,
}

impl Webhook {
    /// One that records its spans with this tracer. Of the options it takes the keys, the trust and the clock.
    #[must_use]
    pub fn new(tracer: BoxedTracer, options: Options) -> Self {
        Self { tracer, options, counters: Arc::default() }
    }

    /// What it did so far.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("options", &self.options)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
