//! The state that all requests and controllers share.

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering},
};

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    access::AccessControl,
    admission::AdmissionChain,
    api::{GroupResource, ObjectKey, identity, meta::MetaAccessor},
    handler::{heavy_work::HeavyWork, in_flight::InFlightLimits},
    kubelet_client::KubeletClient,
    metrics::ApiServerMetrics,
    registry::Registry,
    store::{ObjectStore, Stored},
    trace::Tracer,
};

/// The server without its listeners.
#[derive(Debug)]
pub struct ServerState {
    pub store: ObjectStore,
    pub registry: Registry,
    pub access: AccessControl,
    pub admission: AdmissionChain,
    pub nodes: Option<Arc<dyn KubeletClient>>,
    pub service_accounts: bool,
    pub tracer: Tracer,
    pub metrics: ApiServerMetrics,
    pub clock: fn() -> Timestamp,
    /// The limit of request bodies, in bytes.
    pub body_limit: usize,
    /// The limits of concurrent requests.
    pub in_flight: InFlightLimits,
    /// The limit of concurrent heavy requests.
    pub heavy: HeavyWork,
    /// Becomes true when the server stops.
    pub stop: watch::Sender<bool>,
    /// The port of the listener, once there is one.
    pub port: AtomicU16,
}

/// Resolves when the server stops.
#[derive(Clone, Debug)]
pub struct ServerStopSignal(watch::Receiver<bool>);

impl ServerStopSignal {
    pub async fn wait(&mut self) {
        // A dropped sender means that the server has stopped, too.
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}

impl ServerState {
    /// The current time in the format of objects.
    pub fn now(&self) -> String {
        identity::time((self.clock)())
    }

    pub fn time(&self) -> jiff::Timestamp {
        (self.clock)()
    }

    pub fn port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }

    pub fn set_port(&self, port: u16) {
        self.port.store(port, Ordering::Relaxed);
    }

    pub fn stop_signal(&self) -> ServerStopSignal {
        ServerStopSignal(self.stop.subscribe())
    }

    pub fn namespace(&self, name: &str) -> Option<Arc<Stored>> {
        self.store.get(&ObjectKey::new(GroupResource::new("", "namespaces"), "", name))
    }
}

/// Whether nothing keeps a deleted object: neither finalizers, nor those of a namespace, nor its grace period.
pub fn is_ready_to_remove(object: &Value) -> bool {
    let grace = object.meta("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    object.is_deleting() && grace == 0 && object.finalizers().next().is_none() && !has_namespace_finalizers(object)
}

pub fn has_namespace_finalizers(object: &Value) -> bool {
    let is_namespace = object.get("kind").and_then(Value::as_str) == Some("Namespace");
    let finalizers = object.pointer("/spec/finalizers").and_then(Value::as_array);
    is_namespace && finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}
