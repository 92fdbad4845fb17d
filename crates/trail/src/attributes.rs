//! The names of all spans and attributes.
//!
//! They follow OpenTelemetry's semantic conventions where there are any (`k8s.namespace.name`, `http.*`,
//! `server.*`, `error.type`). The conventions have nothing for objects of any kind; `k8s.object.*` is our own.

use kube::Resource;
use opentelemetry::KeyValue;

/// The namespace of an object.
pub const NAMESPACE: &str = "k8s.namespace.name";
/// The kind of an object.
pub const KIND: &str = "k8s.object.kind";
pub(crate) const API_VERSION: &str = "k8s.object.api_version";
/// The name of an object.
pub const NAME: &str = "k8s.object.name";
/// The `generateName` of an object whose name is not assigned before admission. It does not identify the
/// object.
pub const GENERATE_NAME: &str = "k8s.object.generate_name";
pub(crate) const UID: &str = "k8s.object.uid";
pub(crate) const GENERATION: &str = "k8s.object.generation";
pub(crate) const RESOURCE_VERSION: &str = "k8s.object.resource_version";

pub(crate) const REASON: &str = "trail.reason";
pub(crate) const RELATED: &str = "trail.related";
pub(crate) const ATTEMPT: &str = "trail.attempt";
pub(crate) const QUEUE_WAIT_MS: &str = "trail.queue_wait_ms";
pub(crate) const REQUEUE: &str = "trail.requeue";
/// The outcome of an operation of this project: a run, a stamp.
pub const OUTCOME: &str = "trail.outcome";
pub(crate) const WRITES: &str = "trail.writes";
pub(crate) const DRIFT: &str = "trail.drift";
pub(crate) const SOURCE: &str = "trail.source";

/// The class of an error, as OpenTelemetry's conventions define it.
pub const ERROR_TYPE: &str = "error.type";
pub(crate) const METHOD: &str = "http.request.method";
pub(crate) const STATUS_CODE: &str = "http.response.status_code";
pub(crate) const URL_PATH: &str = "url.path";
pub(crate) const SERVER_ADDRESS: &str = "server.address";
pub(crate) const SERVER_PORT: &str = "server.port";

/// The attributes that identify an object.
pub(crate) fn object_attributes<K: Resource>(object: &K, kind: &K::DynamicType) -> Vec<KeyValue> {
    let meta = object.meta();
    let text = |key: &'static str, value: &Option<String>| value.clone().map(|value| KeyValue::new(key, value));
    let mut attributes = Vec::with_capacity(14);
    attributes.push(KeyValue::new(KIND, K::kind(kind).into_owned()));
    attributes.push(KeyValue::new(API_VERSION, K::api_version(kind).into_owned()));
    attributes.extend(text(NAMESPACE, &meta.namespace));
    attributes.extend(text(NAME, &meta.name));
    attributes.extend(text(UID, &meta.uid));
    attributes.extend(meta.generation.map(|generation| KeyValue::new(GENERATION, generation)));
    attributes.extend(text(RESOURCE_VERSION, &meta.resource_version));
    attributes
}
