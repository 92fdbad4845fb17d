//! Receivers.

use std::time::Duration;

use kubewake_otlp::Signal;

use super::network::{Compression, ServerKeepalive, ServerTls};
use crate::{ComponentId, Secret};

/// A configured receiver.
#[derive(Clone, Debug, PartialEq)]
pub enum Receiver {
    /// `otlp`
    Otlp(Box<OtlpReceiver>),
    /// `opencensus`
    OpenCensus(Box<OpenCensusReceiver>),
}

impl Receiver {
    /// What it can receive.
    pub fn signals(&self) -> &'static [Signal] {
        match self {
            Self::Otlp(_) => &Signal::ALL,
            Self::OpenCensus(_) => &[Signal::Traces],
        }
    }
}

/// `otlp`: at least one of the two protocols is there.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OtlpReceiver {
    /// `protocols: grpc`
    pub grpc: Option<GrpcServer>,
    /// `protocols: http`
    pub http: Option<HttpServer>,
}

/// `protocols: grpc`
#[derive(Clone, Debug, PartialEq)]
pub struct GrpcServer {
    /// Where it listens: `host:port`.
    pub endpoint: String,
    /// `tls`
    pub tls: Option<ServerTls>,
    /// `max_recv_msg_size_mib`, in bytes here: the limit of one message, before and after decompression.
    pub max_message_bytes: u64,
    /// `max_concurrent_streams` of one connection.
    pub max_concurrent_streams: Option<u32>,
    /// `keepalive: server_parameters`
    pub keepalive: ServerKeepalive,
    /// `auth: authenticator`
    pub auth: Option<ComponentId>,
    /// `include_metadata`
    pub include_metadata: bool,
}

impl Default for GrpcServer {
    fn default() -> Self {
        Self {
            endpoint: "localhost:4317".into(),
            tls: None,
            // grpc-go's default, which the Collector keeps.
            max_message_bytes: 4 << 20,
            max_concurrent_streams: None,
            keepalive: ServerKeepalive::default(),
            auth: None,
            include_metadata: false,
        }
    }
}

/// `protocols: http`
#[derive(Clone, Debug, PartialEq)]
pub struct HttpServer {
    /// Where it listens: `host:port`.
    pub endpoint: String,
    /// `tls`
    pub tls: Option<ServerTls>,
    /// `cors`
    pub cors: Option<Cors>,
    /// `auth: authenticator`
    pub auth: Option<ComponentId>,
    /// `max_request_body_size`, before and after decompression.
    pub max_body_bytes: u64,
    /// `compression_algorithms`; `Compression::None` stands for the empty name.
    pub compression_algorithms: Vec<Compression>,
    /// `include_metadata`
    pub include_metadata: bool,
    /// `response_headers`
    pub response_headers: Vec<(String, Secret)>,
    /// `read_header_timeout`
    pub read_header_timeout: Option<Duration>,
    /// `read_timeout`: the whole request.
    pub read_timeout: Option<Duration>,
    /// `write_timeout`
    pub write_timeout: Option<Duration>,
    /// `idle_timeout` between requests of a connection.
    pub idle_timeout: Option<Duration>,
    /// `keep_alives_enabled`
    pub keep_alives_enabled: bool,
    /// `traces_url_path`
    pub traces_path: String,
    /// `metrics_url_path`
    pub metrics_path: String,
    /// `logs_url_path`
    pub logs_path: String,
}

impl Default for HttpServer {
    fn default() -> Self {
        Self {
            endpoint: "localhost:4318".into(),
            tls: None,
            cors: None,
            auth: None,
            // The Collector's default, and what the OTLP specification recommends.
            max_body_bytes: 20 << 20,
            compression_algorithms: vec![
                Compression::None,
                Compression::Gzip,
                Compression::Zstd,
                Compression::Zlib,
                Compression::Snappy,
                Compression::Lz4,
            ],
            include_metadata: false,
            response_headers: Vec::new(),
            read_header_timeout: Some(Duration::from_secs(60)),
            read_timeout: None,
            write_timeout: Some(Duration::from_secs(30)),
            idle_timeout: Some(Duration::from_secs(60)),
            keep_alives_enabled: true,
            traces_path: "/v1/traces".into(),
            metrics_path: "/v1/metrics".into(),
            logs_path: "/v1/logs".into(),
        }
    }
}

/// `opencensus`: gRPC and JSON over HTTP, both on one address.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCensusReceiver {
    /// Its settings are those of a gRPC server.
    pub server: GrpcServer,
    /// `cors_allowed_origins`
    pub cors: Option<Cors>,
}

impl Default for OpenCensusReceiver {
    fn default() -> Self {
        Self { server: GrpcServer { endpoint: "localhost:55678".into(), ..GrpcServer::default() }, cors: None }
    }
}

/// `cors`
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Cors {
    /// Origins, each with at most one `*`.
    pub allowed_origins: Vec<String>,
    /// Request headers beyond the safe-listed ones; `*` for any.
    pub allowed_headers: Vec<String>,
    /// Answer headers that a page may read.
    pub exposed_headers: Vec<String>,
    /// `max_age` of a preflight answer, in seconds; 0 leaves it to the browser.
    pub max_age: u32,
}
