//! What all requests and controllers share.

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering},
};

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    access::Access,
    admission::Admission,
    api::{GroupResource, ObjectKey, identity, meta::Meta},
    handler::{heavy::HeavyWork, in_flight::InFlightLimits},
    metrics::Metrics,
    nodes::Nodes,
    registry::Registry,
    store::{Store, Stored},
    trace::Tracer,
};

/// The server without its sockets.
#[derive(Debug)]
pub struct Core {
    /// The objects.
    pub store: Store,
    /// What is served.
    pub registry: Registry,
    /// Who may do what.
    pub access: Access,
    /// Webhooks.
    pub admission: Admission,
    /// Whoever runs the pods.
    pub nodes: Option<Arc<dyn Nodes>>,
    /// Whether pods need a ServiceAccount.
    pub service_accounts: bool,
    /// Spans.
    pub tracer: Tracer,
    /// Counts of what happened.
    pub metrics: Metrics,
    /// The clock.
    pub clock: fn() -> Timestamp,
    /// The largest body of a request.
    pub body_limit: usize,
    /// How many requests are served at once.
    pub in_flight: InFlightLimits,
    /// Places for requests that compute for long.
    pub heavy: HeavyWork,
    /// Set when the server stops.
    pub stop: watch::Sender<bool>,
    /// Where it listens, once it does.
    pub port: AtomicU16,
}

/// Becomes ready when the server stops.
#[derive(Clone, Debug)]
pub struct Stopped(watch::Receiver<bool>);

impl Stopped {
    /// Waits for it.
    pub async fn wait(&mut self) {
        // If the server is gone, it has stopped too.
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}

impl Core {
    /// The time of now, as objects carry it.
    pub fn now(&self) -> String {
        identity::time((self.clock)())
    }

    /// The time of now.
    pub fn time(&self) -> jiff::Timestamp {
        (self.clock)()
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }

    /// Says where it listens.
    pub fn set_port(&self, port: u16) {
        self.port.store(port, Ordering::Relaxed);
    }

    /// Tells when the server stops.
    pub fn stopped(&self) -> Stopped {
        Stopped(self.stop.subscribe())
    }

    /// A namespace.
    pub fn namespace(&self, name: &str) -> Option<Arc<Stored>> {
        self.store.get(&ObjectKey::new(GroupResource::new("", "namespaces"), "", name))
    }
}

/// Whether nothing keeps a deleted object any longer: neither finalizers, nor those of a namespace, nor its grace period.
pub fn is_gone(object: &Value) -> bool {
    let grace = object.meta("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    object.is_deleting() && grace == 0 && object.finalizers().next().is_none() && !has_namespace_finalizers(object)
}

/// Whether a namespace still has `spec.finalizers`.
pub fn has_namespace_finalizers(object: &Value) -> bool {
    let is_namespace = object.get("kind").and_then(Value::as_str) == Some("Namespace");
    let finalizers = object.pointer("/spec/finalizers").and_then(Value::as_array);
    is_namespace && finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}
