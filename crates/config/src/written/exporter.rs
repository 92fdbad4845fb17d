//! `exporters`

use std::{path::PathBuf, time::Duration};

use super::{
    Text,
    yaml::{Map, Value},
};

/// An exporter.
#[derive(Clone, Debug, PartialEq)]
pub enum Exporter {
    /// `otlp_grpc`
    Grpc(Grpc),
    /// `otlp_http`
    Http(Http),
    /// `load_balancing`
    LoadBalancing(LoadBalancing),
}

/// `otlp_grpc`
#[derive(Clone, Debug, PartialEq)]
pub struct Grpc {
    /// `endpoint`
    pub endpoint: Text,
    /// Everything else.
    pub client: Client,
}

/// `otlp_http`, for one signal.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    /// The name of the field for the endpoint: `endpoint`, or `traces_endpoint` and its like, to which nothing is added.
    pub field: &'static str,
    /// The endpoint.
    pub endpoint: Text,
    /// Everything else.
    pub client: Client,
}

/// `load_balancing` of traces, over the ready pods of a Service.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadBalancing {
    /// `resolver: k8s: service`, as `name.namespace`.
    pub service: String,
    /// `resolver: k8s: ports`
    pub port: u16,
    /// `protocol: otlp`
    pub client: Client,
    /// `sending_queue: queue_size`, counted in bytes: what may wait for a peer that has room. Without it nothing may.
    pub waiting_bytes: Option<i64>,
}

/// What all clients have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Client {
    /// `tls`
    pub tls: Option<Tls>,
    /// `compression`
    pub compression: Option<&'static str>,
    /// `headers`, in their order.
    pub headers: Vec<(String, Text)>,
    /// `auth: authenticator`
    pub authenticator: Option<String>,
    /// `timeout`
    pub timeout: Option<Duration>,
    /// `retry_on_failure`
    pub retry: Option<Retry>,
    /// `sending_queue`
    pub queue: Option<Queue>,
}

/// `tls` of a client
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tls {
    /// `insecure`
    pub insecure: bool,
    /// `insecure_skip_verify`
    pub insecure_skip_verify: bool,
    /// `ca_file`
    pub ca_file: Option<PathBuf>,
    /// `cert_file`
    pub cert_file: Option<PathBuf>,
    /// `key_file`
    pub key_file: Option<PathBuf>,
    /// `server_name_override`
    pub server_name_override: Option<String>,
}

/// `retry_on_failure`
#[derive(Clone, Debug, PartialEq)]
pub enum Retry {
    /// `enabled: false`
    Off,
    /// With these times.
    On {
        /// `initial_interval`
        initial_interval: Duration,
        /// `max_interval`
        max_interval: Duration,
        /// `max_elapsed_time`; zero: never gives up.
        max_elapsed_time: Duration,
    },
}

/// `sending_queue`, counted in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// `queue_size`
    pub bytes: i64,
    /// `num_consumers`
    pub consumers: Option<i32>,
    /// `batch`
    pub batch: QueueBatch,
}

/// `sending_queue: batch`, counted in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueBatch {
    /// `flush_timeout`
    pub flush_timeout: Duration,
    /// `min_size`
    pub min_bytes: i64,
    /// `max_size`
    pub max_bytes: i64,
}

impl Exporter {
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Grpc(grpc) => grpc.client.fields(Map::default().with("endpoint", &grpc.endpoint)),
            Self::Http(http) => http.client.fields(Map::default().with(http.field, &http.endpoint)),
            Self::LoadBalancing(balancing) => {
                let k8s = Map::default().with("service", &balancing.service).list("ports", [i64::from(balancing.port)]);
                let otlp = balancing.client.fields(Map::default());
                let queue = |bytes: i64| Map::default().with("sizer", "bytes").with("queue_size", bytes);
                Map::default()
                    .with("routing_key", "traceID")
                    .with("protocol", Map::default().with("otlp", otlp))
                    .with("resolver", Map::default().with("k8s", k8s))
                    .maybe("sending_queue", balancing.waiting_bytes.map(queue))
            }
        }
        .into()
    }
}

impl Client {
    fn fields(&self, map: Map) -> Map {
        let header = |(name, value): &(String, Text)| Map::default().with("name", name).with("value", value);
        let auth = |id: &String| Map::default().with("authenticator", id);
        map.maybe("tls", self.tls.as_ref().map(Tls::to_value))
            .maybe("compression", self.compression)
            .list("headers", self.headers.iter().map(header))
            .maybe("auth", self.authenticator.as_ref().map(auth))
            .maybe("timeout", self.timeout)
            .maybe("retry_on_failure", self.retry.as_ref().map(Retry::to_value))
            .maybe("sending_queue", self.queue.as_ref().map(Queue::to_value))
    }
}

impl Tls {
    pub(super) fn to_value(&self) -> Value {
        let path = |path: &PathBuf| Value::from(path.display().to_string().as_str());
        Map::default()
            .flag("insecure", self.insecure)
            .flag("insecure_skip_verify", self.insecure_skip_verify)
            .maybe("ca_file", self.ca_file.as_ref().map(path))
            .maybe("cert_file", self.cert_file.as_ref().map(path))
            .maybe("key_file", self.key_file.as_ref().map(path))
            .maybe("server_name_override", self.server_name_override.as_ref())
            .into()
    }
}

impl Retry {
    fn to_value(&self) -> Value {
        match self {
            Self::Off => Map::default().with("enabled", false),
            Self::On { initial_interval, max_interval, max_elapsed_time } => Map::default()
                .with("initial_interval", *initial_interval)
                .with("max_interval", *max_interval)
                .with("max_elapsed_time", *max_elapsed_time),
        }
        .into()
    }
}

impl Queue {
    fn to_value(&self) -> Value {
        let batch = Map::default()
            .with("flush_timeout", self.batch.flush_timeout)
            .with("min_size", self.batch.min_bytes)
            .with("max_size", self.batch.max_bytes);
        Map::default()
            .with("sizer", "bytes")
            .with("queue_size", self.bytes)
            .maybe("num_consumers", self.consumers)
            .with("batch", batch)
            .into()
    }
}
