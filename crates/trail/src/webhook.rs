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
//! [`certificates`], [`registration`], [`serve`] and [`upkeep`] know nothing of tracing: they serve any webhook.

use std::{error::Error, fmt, sync::Arc};

use opentelemetry::global::BoxedTracer;

use crate::carrier::Keys;

pub mod call;
pub mod certificates;
pub mod clock;
pub mod counters;
pub mod patch;
pub mod registration;
pub mod review;
mod routes;
pub mod select;
pub mod serve;
pub mod stamp;
pub mod upkeep;

pub use routes::PATH;

use clock::Clock;
use counters::Counters;

/// The rules of a webhook, and what they are applied with.
pub struct Webhook {
    keys: Keys,
    tracer: BoxedTracer,
    believes: Box<dyn Fn(&str) -> bool + Send + Sync>,
    clock: Clock,
    counters: Arc<Counters>,
}

impl Webhook {
    /// One that records its spans with this tracer, and believes every writer.
    pub fn new(tracer: BoxedTracer, keys: Keys) -> Self {
        let (clock, counters) = (Clock::default(), Arc::default());
        Self { keys, tracer, believes: Box::new(|_| true), clock, counters }
    }

    /// Believes the contexts of writers only in these namespaces.
    #[must_use]
    pub fn believe(mut self, namespaces: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.believes = Box::new(namespaces);
        self
    }

    /// With another clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// What it did so far.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("keys", &self.keys).field("counters", &self.counters).finish_non_exhaustive()
    }
}

/// An error with everything that led to it, in one line.
struct Chain<'a>(&'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}
