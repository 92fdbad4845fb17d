//! Receivers.

use super::{
    cursor::Cursor,
    field_reader::FieldReader,
    network,
    report::{ConnectionSide, DecodeReport},
    scalar, tls,
};
use crate::model::{CorsConfig, GrpcServer, HttpServer, OpenCensusReceiver, OtlpReceiver};

pub(crate) fn otlp(at: &Cursor<'_>, report: &DecodeReport) -> Option<OtlpReceiver> {
    let mut fields = FieldReader::new(at, report);
    let mut receiver = OtlpReceiver::default();
    let mut declared = false;
    if let Some(at) = fields.find("protocols") {
        let mut protocols = FieldReader::new(&at, report);
        let grpc = protocols.find_even_empty("grpc");
        let http = protocols.find_even_empty("http");
        declared = grpc.is_some() || http.is_some();
        receiver.grpc = grpc.and_then(|at| self::grpc(&at, report));
        receiver.http = http.and_then(|at| self::http(&at, report));
        protocols.finish();
    }
    if receiver.grpc.is_none() && receiver.http.is_none() {
        let help = if declared {
            "every protocol of the receiver is disabled"
        } else {
            "add `grpc:` or `http:` under `protocols`"
        };
        fields.require("protocols", "the receiver needs at least one protocol", Some(help.into()));
    }
    fields.finish();
    Some(receiver)
}

pub(crate) fn opencensus(at: &Cursor<'_>, report: &DecodeReport) -> Option<OpenCensusReceiver> {
    let default = OpenCensusReceiver::default();
    let mut fields = FieldReader::new(at, report);
    let server = grpc_server(&mut fields, default.server);
    let allowed_origins = fields.get("cors_allowed_origins", origins).unwrap_or_default();
    fields.finish();
    let cors =
        Some(CorsConfig { allowed_origins, ..CorsConfig::default() }).filter(|cors| !cors.allowed_origins.is_empty());
    Some(OpenCensusReceiver { server, cors })
}

fn grpc(at: &Cursor<'_>, report: &DecodeReport) -> Option<GrpcServer> {
    let mut fields = FieldReader::new(at, report);
    let enabled = fields.enabled();
    let server = grpc_server(&mut fields, GrpcServer::default());
    fields.finish();
    enabled.then_some(server)
}

fn grpc_server(fields: &mut FieldReader<'_, '_>, default: GrpcServer) -> GrpcServer {
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

fn http(at: &Cursor<'_>, report: &DecodeReport) -> Option<HttpServer> {
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
fn origins(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<String>> {
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
