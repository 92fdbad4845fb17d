//! Servers over gRPC and HTTP, as several receivers have them.

use std::time::Duration;

use super::{CompressionType, ServerKeepalive, ServerTls, tls};
use crate::{
    ComponentId, ConfigText, SecretString,
    component::ServerContext,
    decode::{ConnectionSide, Cursor, DecodeReport, FieldReader, scalar},
    encode::{YamlMap, YamlValue},
    network,
};

#[derive(Clone, Debug, PartialEq)]
pub struct GrpcServer {
    pub endpoint: ConfigText,
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
    pub endpoint: ConfigText,
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

pub(crate) fn grpc(at: &Cursor<'_>, report: &DecodeReport) -> Option<GrpcServer> {
    let mut fields = FieldReader::new(at, report);
    let enabled = fields.enabled();
    let server = grpc_server(&mut fields, GrpcServer::default());
    fields.finish();
    enabled.then_some(server)
}

pub(crate) fn grpc_server(fields: &mut FieldReader<'_, '_>, default: GrpcServer) -> GrpcServer {
    /// The Collector multiplies without a check for overflow; it supports no larger limit either.
    const MAX_MESSAGE_MIB: i64 = i64::MAX >> 20;
    let size =
        fields.get("max_recv_msg_size_mib", |at, report| scalar::integer_in_range(at, report, 0, MAX_MESSAGE_MIB));
    let streams = fields.get("max_concurrent_streams", scalar::u32);
    fields.accept_without_effect(&["read_buffer_size", "write_buffer_size"], |at, report| {
        scalar::integer_in_range(at, report, 0, i64::MAX)
    });
    fields.unsupported(&["middlewares"]);
    GrpcServer {
        endpoint: network::listen(fields, &default.endpoint),
        tls: fields.get("tls", tls::server),
        max_message_bytes: match size {
            None | Some(0) => default.max_message_bytes,
            Some(mib) => mib.unsigned_abs() << 20,
        },
        max_concurrent_streams: streams.filter(|streams| *streams > 0),
        keepalive: fields.get("keepalive", network::server_keepalive).unwrap_or_default(),
        auth: network::auth(fields, ConnectionSide::Server),
        include_metadata: fields.flag("include_metadata"),
    }
}

pub(crate) fn http(at: &Cursor<'_>, report: &DecodeReport) -> Option<HttpServer> {
    let default = HttpServer::default();
    let mut fields = FieldReader::new(at, report);
    let enabled = fields.enabled();
    fields.unsupported(&["middlewares"]);
    // As in the Collector, values of zero and below mean the default.
    let size = fields.get("max_request_body_size", scalar::integer).filter(|size| *size > 0);
    let timeouts = timeouts(&mut fields, &default);
    let server = HttpServer {
        endpoint: network::listen(&mut fields, &default.endpoint),
        tls: fields.get("tls", tls::server),
        cors: fields.get("cors", cors),
        auth: network::auth(&mut fields, ConnectionSide::Server),
        max_body_bytes: size.map_or(default.max_body_bytes, i64::unsigned_abs),
        compression_algorithms: fields
            .get("compression_algorithms", network::compression_algorithms)
            .unwrap_or(default.compression_algorithms),
        include_metadata: fields.flag("include_metadata"),
        response_headers: fields.get("response_headers", network::headers).unwrap_or_default(),
        read_header_timeout: timeouts.read_header,
        read_timeout: timeouts.read,
        write_timeout: timeouts.write,
        idle_timeout: timeouts.idle,
        keep_alives_enabled: fields.get_or("keep_alives_enabled", default.keep_alives_enabled, scalar::boolean),
        traces_path: fields.get_or("traces_url_path", default.traces_path, path),
        metrics_path: fields.get_or("metrics_url_path", default.metrics_path, path),
        logs_path: fields.get_or("logs_url_path", default.logs_path, path),
    };
    fields.finish();
    enabled.then_some(server)
}

struct ServerTimeouts {
    read_header: Option<std::time::Duration>,
    read: Option<std::time::Duration>,
    write: Option<std::time::Duration>,
    idle: Option<std::time::Duration>,
}

/// Values of zero and below mean "none".
fn timeouts(fields: &mut FieldReader<'_, '_>, default: &HttpServer) -> ServerTimeouts {
    let mut timeout = |name, default: Option<_>| match fields.get(name, scalar::loose_duration) {
        Some(timeout) => Some(timeout).filter(|timeout| !timeout.is_zero()),
        None => default,
    };
    ServerTimeouts {
        read_header: timeout("read_header_timeout", default.read_header_timeout),
        read: timeout("read_timeout", default.read_timeout),
        write: timeout("write_timeout", default.write_timeout),
        idle: timeout("idle_timeout", default.idle_timeout),
    }
}

fn cors(at: &Cursor<'_>, report: &DecodeReport) -> Option<CorsConfig> {
    let mut fields = FieldReader::new(at, report);
    let enabled = fields.enabled();
    let cors = CorsConfig {
        allowed_origins: fields.get("allowed_origins", origins).unwrap_or_default(),
        allowed_headers: fields.get("allowed_headers", scalar::texts).unwrap_or_default(),
        exposed_headers: fields.get("exposed_headers", scalar::texts).unwrap_or_default(),
        max_age: fields.get_or("max_age", 0, scalar::u32),
    };
    fields.finish();
    // Without origins there is nothing to allow, and the Collector disables CORS.
    Some(cors).filter(|cors| enabled && !cors.allowed_origins.is_empty())
}

/// Origins, each with at most one `*`.
pub(crate) fn origins(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<String>> {
    let origins = scalar::texts(at, report)?;
    for origin in origins.iter().filter(|origin| origin.matches('*').count() > 1) {
        report.error(at, format!("the origin {} has more than one `*`", at.quote(origin)), None);
    }
    Some(origins)
}

/// The path of requests; a leading `/` is added if it is missing.
fn path(at: &Cursor<'_>, report: &DecodeReport) -> Option<String> {
    let text = scalar::text(at, report)?;
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        report.error(at, format!("the path {} has spaces or control characters in it", at.quote(&text)), None);
        return None;
    }
    let path = text.split(['?', '#']).next().unwrap_or_default();
    Some(if path.starts_with('/') { path.to_owned() } else { format!("/{path}") })
}

impl GrpcServer {
    /// The fields of a server whose default endpoint is that of `default`.
    pub(crate) fn encode(&self, default: &Self) -> YamlMap {
        YamlMap::default()
            .with_changed("endpoint", &self.endpoint, &default.endpoint)
            .with_optional("tls", self.tls.as_ref().map(ServerTls::encode))
            .with_changed("max_recv_msg_size_mib", self.max_message_bytes >> 20, default.max_message_bytes >> 20)
            .with_optional("max_concurrent_streams", self.max_concurrent_streams)
            .with_section("keepalive", self.keepalive.encode())
            .with_optional("auth", self.auth.as_ref().map(network::encode_auth))
            .with_flag("include_metadata", self.include_metadata)
    }
}

impl HttpServer {
    pub(crate) fn encode(&self) -> YamlMap {
        let default = Self::default();
        let timeout = |timeout: Option<Duration>| timeout.unwrap_or_default();
        let algorithms = Some(&self.compression_algorithms).filter(|list| **list != default.compression_algorithms);
        let algorithms = algorithms.map(|list| list.iter().map(|one| one.name().into()).collect());
        YamlMap::default()
            .with_changed("endpoint", &self.endpoint, &default.endpoint)
            .with_optional("tls", self.tls.as_ref().map(ServerTls::encode))
            .with_optional("cors", self.cors.as_ref().map(CorsConfig::encode))
            .with_optional("auth", self.auth.as_ref().map(network::encode_auth))
            .with_changed("max_request_body_size", self.max_body_bytes, default.max_body_bytes)
            .with_optional("compression_algorithms", algorithms.map(YamlValue::List))
            .with_flag("include_metadata", self.include_metadata)
            .with_list("response_headers", network::encode_headers(&self.response_headers))
            .with_changed(
                "read_header_timeout",
                timeout(self.read_header_timeout),
                timeout(default.read_header_timeout),
            )
            .with_changed("read_timeout", timeout(self.read_timeout), timeout(default.read_timeout))
            .with_changed("write_timeout", timeout(self.write_timeout), timeout(default.write_timeout))
            .with_changed("idle_timeout", timeout(self.idle_timeout), timeout(default.idle_timeout))
            .with_changed("keep_alives_enabled", self.keep_alives_enabled, default.keep_alives_enabled)
            .with_changed("traces_url_path", &self.traces_path, &default.traces_path)
            .with_changed("metrics_url_path", &self.metrics_path, &default.metrics_path)
            .with_changed("logs_url_path", &self.logs_path, &default.logs_path)
    }
}

impl CorsConfig {
    pub(crate) fn encode(&self) -> YamlMap {
        YamlMap::default()
            .with_list("allowed_origins", &self.allowed_origins)
            .with_list("allowed_headers", &self.allowed_headers)
            .with_list("exposed_headers", &self.exposed_headers)
            .with_changed("max_age", self.max_age, 0)
    }
}
