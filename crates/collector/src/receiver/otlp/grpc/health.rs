//! `grpc.health.v1.Health`.
//!
//! The service reports whether this receiver serves. Progress of the pipelines behind it is reported by the
//! health extension: a sender can do nothing about a backend, and must not leave a collector that still buffers
//! for it.

use bytes::Bytes;

use crate::core::{Code, Refusal, RefusalKind};

/// Room for the longest service name, and to spare.
pub(super) const MAX_REQUEST_BYTES: usize = 4096;

const KNOWN_SERVICES: [&str; 4] = [
    "",
    "opentelemetry.proto.collector.trace.v1.TraceService",
    "opentelemetry.proto.collector.metrics.v1.MetricsService",
    "opentelemetry.proto.collector.logs.v1.LogsService",
];

pub(super) fn is_check(path: &str) -> bool {
    path == "/grpc.health.v1.Health/Check"
}

pub(super) fn is_watch(path: &str) -> bool {
    path == "/grpc.health.v1.Health/Watch"
}

/// A framed `HealthCheckResponse` that says `SERVING`.
fn serving() -> Bytes {
    Bytes::from_static(&[0, 0, 0, 0, 2, 0x08, 1])
}

pub(super) fn not_serving() -> Bytes {
    Bytes::from_static(&[0, 0, 0, 0, 2, 0x08, 2])
}

/// The first response of a `Watch`. By the protocol an unknown service is no error, as it may become known.
pub(super) fn first_watch_response(request: &[u8]) -> Bytes {
    check(request).unwrap_or(Bytes::from_static(&[0, 0, 0, 0, 2, 0x08, 3]))
}

/// Answers a `HealthCheckRequest`: one string field, number 1.
pub(super) fn check(request: &[u8]) -> Result<Bytes, Refusal> {
    let service = match request {
        [] => Some(""),
        // Service names are shorter than 128 bytes, so that their length is one byte.
        [0x0a, length, name @ ..] if usize::from(*length) == name.len() => std::str::from_utf8(name).ok(),
        _ => None,
    };
    match service {
        Some(service) if KNOWN_SERVICES.contains(&service) => Ok(serving()),
        _ => Err(Refusal {
            kind: RefusalKind::BadRequest,
            code: Code::NotFound,
            message: "unknown service".into(),
            retry_after: None,
        }),
    }
}
