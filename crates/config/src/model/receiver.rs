//! Receivers.

use std::time::Duration;

use super::network::{CompressionType, ServerKeepalive, ServerTls};
use crate::{ComponentId, SecretString, component::ServerContext};

/// `otlp`: at least one of the two protocols is there.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OtlpReceiver {
    pub grpc: Option<GrpcServer>,
    pub http: Option<HttpServer>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GrpcServer {
    pub endpoint: String,
    pub tls: Option<ServerTls>,
    /// `max_recv_msg_size_mib`, in bytes here: the limit of one message, before and after decompression.
    pub max_message_bytes: u64,
    pub max_concurrent_streams: Option<u32>,
    pub keepalive: ServerKeepalive,
    pub auth: Option<ComponentId>,
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

impl GrpcServer {
    /// What the server knows about the sender of a request.
    pub(crate) fn context(&self) -> ServerContext {
        ServerContext { sender_identity: self.auth.is_some(), metadata: self.include_metadata }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct HttpServer {
    pub endpoint: String,
    pub tls: Option<ServerTls>,
    pub cors: Option<CorsConfig>,
    pub auth: Option<ComponentId>,
    /// `max_request_body_size`, before and after decompression.
    pub max_body_bytes: u64,
    /// `compression_algorithms`; `CompressionType::None` stands for the empty name.
    pub compression_algorithms: Vec<CompressionType>,
    pub include_metadata: bool,
    pub response_headers: Vec<(String, SecretString)>,
    pub read_header_timeout: Option<Duration>,
    pub read_timeout: Option<Duration>,
    pub write_timeout: Option<Duration>,
    /// `idle_timeout` between requests of a connection.
    pub idle_timeout: Option<Duration>,
    pub keep_alives_enabled: bool,
    pub traces_path: String,
    pub metrics_path: String,
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
                CompressionType::None,
                CompressionType::Gzip,
                CompressionType::Zstd,
                CompressionType::Zlib,
                CompressionType::Snappy,
                CompressionType::Lz4,
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
    pub cors: Option<CorsConfig>,
}

impl Default for OpenCensusReceiver {
    fn default() -> Self {
        Self { server: GrpcServer { endpoint: "localhost:55678".into(), ..GrpcServer::default() }, cors: None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CorsConfig {
    /// Origins, each with at most one `*`.
    pub allowed_origins: Vec<String>,
    /// Request headers beyond the safe-listed ones; `*` for any.
    pub allowed_headers: Vec<String>,
    /// Answer headers that a page may read.
    pub exposed_headers: Vec<String>,
    /// `max_age` of a preflight answer, in seconds; 0 leaves it to the browser.
    pub max_age: u32,
}
