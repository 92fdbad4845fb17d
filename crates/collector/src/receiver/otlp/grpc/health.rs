//! `grpc.health.v1.Health`.
//!
//! It says whether this receiver serves. Whether the pipelines behind it make progress is the health extension's to
//! say: a sender can do nothing about a backend, and must not turn away from a collector that still buffers for it.

use bytes::Bytes;

use crate::core::{Code, Refusal, RefusalKind};

/// A service name, with room to spare.
pub(super) const MAX_REQUEST: usize = 4096;

const SERVICES: [&str; 4] = [
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

/// One that says `NOT_SERVING`.
pub(super) fn not_serving() -> Bytes {
    Bytes::from_static(&[0, 0, 0, 0, 2, 0x08, 2])
}

/// What a watcher hears first. A service that is not known may become so, by the protocol, and is no error.
pub(super) fn first(request: &[u8]) -> Bytes {
    check(request).unwrap_or(Bytes::from_static(&[0, 0, 0, 0, 2, 0x08, 3]))
}

/// Answers a `HealthCheckRequest`: one string field, number 1.
pub(super) fn check(request: &[u8]) -> Result<Bytes, Refusal> {
    let service = match request {
        [] => Some(""),
        // Names of services are shorter than 128 bytes, so that their length is one byte.
        [0x0a, length, name @ ..] if usize::from(*length) == name.len() => std::str::from_utf8(name).ok(),
        _ => None,
    };
    match service {
        Some(service) if SERVICES.contains(&service) => Ok(serving()),
        _ => Err(Refusal {
            kind: RefusalKind::BadRequest,
            code: Code::NotFound,
            message: "unknown service".into(),
            retry_after: None,
        }),
    }
}
