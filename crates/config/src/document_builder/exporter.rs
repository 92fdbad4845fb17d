//! `exporters`

use std::{path::PathBuf, time::Duration};

use super::{
    TextSource,
    yaml::{YamlMap, YamlValue},
};

#[derive(Clone, Debug, PartialEq)]
pub enum ExporterSection {
    Grpc(OtlpGrpcSection),
    Http(OtlpHttpSection),
    LoadBalancing(LoadBalancingSection),
}

#[derive(Clone, Debug, PartialEq)]
pub struct OtlpGrpcSection {
    pub endpoint: TextSource,
    pub client: ClientSection,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OtlpHttpSection {
    /// The field of the endpoint: `endpoint`, or one such as `traces_endpoint`, to which no path is added.
    pub field: &'static str,
    pub endpoint: TextSource,
    pub client: ClientSection,
}

/// `load_balancing` of traces, over the ready pods of a Service.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadBalancingSection {
    /// `resolver: k8s: service`, as `name.namespace`.
    pub service: String,
    /// `resolver: k8s: ports`
    pub port: u16,
    pub client: ClientSection,
    /// `sending_queue: queue_size` in bytes: data that may wait until a peer has room. Without it none may.
    pub waiting_bytes: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientSection {
    pub tls: Option<ClientTlsSection>,
    pub compression: Option<&'static str>,
    pub headers: Vec<(String, TextSource)>,
    pub authenticator: Option<String>,
    pub timeout: Option<Duration>,
    pub retry: Option<RetrySection>,
    pub queue: Option<QueueSection>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientTlsSection {
    pub insecure: bool,
    pub insecure_skip_verify: bool,
    pub ca_file: Option<PathBuf>,
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    pub server_name_override: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RetrySection {
    Off,
    On {
        initial_interval: Duration,
        max_interval: Duration,
        /// `max_elapsed_time`; zero: never gives up.
        max_elapsed_time: Duration,
    },
}

/// `sending_queue`, sized in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSection {
    pub bytes: i64,
    pub consumers: Option<i32>,
    pub batch: QueueBatchSection,
}

/// `sending_queue: batch`, sized in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueBatchSection {
    pub flush_timeout: Duration,
    pub min_bytes: i64,
    pub max_bytes: i64,
}

impl ExporterSection {
    pub(super) fn to_value(&self) -> YamlValue {
        match self {
            Self::Grpc(grpc) => grpc.client.fields(YamlMap::default().with_field("endpoint", &grpc.endpoint)),
            Self::Http(http) => http.client.fields(YamlMap::default().with_field(http.field, &http.endpoint)),
            Self::LoadBalancing(balancing) => {
                let k8s = YamlMap::default()
                    .with_field("service", &balancing.service)
                    .with_list("ports", [i64::from(balancing.port)]);
                let otlp = balancing.client.fields(YamlMap::default());
                let queue =
                    |bytes: i64| YamlMap::default().with_field("sizer", "bytes").with_field("queue_size", bytes);
                YamlMap::default()
                    .with_field("routing_key", "traceID")
                    .with_field("protocol", YamlMap::default().with_field("otlp", otlp))
                    .with_field("resolver", YamlMap::default().with_field("k8s", k8s))
                    .with_optional("sending_queue", balancing.waiting_bytes.map(queue))
            }
        }
        .into()
    }
}

impl ClientSection {
    fn fields(&self, map: YamlMap) -> YamlMap {
        let header = |(name, value): &(String, TextSource)| {
            YamlMap::default().with_field("name", name).with_field("value", value)
        };
        let auth = |id: &String| YamlMap::default().with_field("authenticator", id);
        map.with_optional("tls", self.tls.as_ref().map(ClientTlsSection::to_value))
            .with_optional("compression", self.compression)
            .with_list("headers", self.headers.iter().map(header))
            .with_optional("auth", self.authenticator.as_ref().map(auth))
            .with_optional("timeout", self.timeout)
            .with_optional("retry_on_failure", self.retry.as_ref().map(RetrySection::to_value))
            .with_optional("sending_queue", self.queue.as_ref().map(QueueSection::to_value))
    }
}

impl ClientTlsSection {
    pub(super) fn to_value(&self) -> YamlValue {
        let path = |path: &PathBuf| YamlValue::from(path.display().to_string().as_str());
        YamlMap::default()
            .with_flag("insecure", self.insecure)
            .with_flag("insecure_skip_verify", self.insecure_skip_verify)
            .with_optional("ca_file", self.ca_file.as_ref().map(path))
            .with_optional("cert_file", self.cert_file.as_ref().map(path))
            .with_optional("key_file", self.key_file.as_ref().map(path))
            .with_optional("server_name_override", self.server_name_override.as_ref())
            .into()
    }
}

impl RetrySection {
    fn to_value(&self) -> YamlValue {
        match self {
            Self::Off => YamlMap::default().with_field("enabled", false),
            Self::On { initial_interval, max_interval, max_elapsed_time } => YamlMap::default()
                .with_field("initial_interval", *initial_interval)
                .with_field("max_interval", *max_interval)
                .with_field("max_elapsed_time", *max_elapsed_time),
        }
        .into()
    }
}

impl QueueSection {
    fn to_value(&self) -> YamlValue {
        let batch = YamlMap::default()
            .with_field("flush_timeout", self.batch.flush_timeout)
            .with_field("min_size", self.batch.min_bytes)
            .with_field("max_size", self.batch.max_bytes);
        YamlMap::default()
            .with_field("sizer", "bytes")
            .with_field("queue_size", self.bytes)
            .with_optional("num_consumers", self.consumers)
            .with_field("batch", batch)
            .into()
    }
}
