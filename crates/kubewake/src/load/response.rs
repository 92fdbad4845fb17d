//! Responses of a receiver, interpreted by the OTLP specification.

use std::{fmt, time::Duration};

use base64::{Engine, engine::general_purpose};
use http::HeaderMap;

use super::decode::{WireFieldIter, WireValue};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ResponseCode {
    Grpc(u16),
    Http(u16),
    /// No connection could be established.
    Connect,
    Transport,
    Timeout,
}

impl ResponseCode {
    /// Whether the code is the receiver's, rather than a failure of the connection.
    pub(crate) fn is_response(self) -> bool {
        matches!(self, ResponseCode::Grpc(_) | ResponseCode::Http(_))
    }
}

impl fmt::Display for ResponseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResponseCode::Grpc(code) => match GRPC_NAMES.get(usize::from(*code)) {
                Some(name) => f.write_str(name),
                None => write!(f, "GRPC_{code}"),
            },
            ResponseCode::Http(code) => write!(f, "{code}"),
            ResponseCode::Connect => f.write_str("connect"),
            ResponseCode::Transport => f.write_str("transport"),
            ResponseCode::Timeout => f.write_str("timeout"),
        }
    }
}

/// The names of gRPC's status codes, in order.
pub(crate) const GRPC_NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// What a response means for its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseDisposition {
    /// The receiver accepted the request, except for this number of rejected items.
    Acknowledged { rejected: u64 },
    /// The request may be retried, after this delay if the receiver requested one.
    Retryable(Option<Duration>),
    /// A retry would be useless.
    Failed,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ExportResponse {
    pub code: ResponseCode,
    pub disposition: ResponseDisposition,
}

impl ExportResponse {
    /// There is no response. The request may have arrived.
    pub(crate) fn from_connection_failure(code: ResponseCode) -> Self {
        Self { code, disposition: ResponseDisposition::Retryable(None) }
    }

    /// From a gRPC status, in the headers or the trailers, and the response message.
    pub(crate) fn from_grpc(status: &HeaderMap, message: &[u8]) -> Self {
        let code = parse_header(status, "grpc-status").unwrap_or(2);
        let hint = parse_retry_info(status);
        let disposition = match code {
            0 => ResponseDisposition::Acknowledged { rejected: parse_rejected_items(message) },
            1 | 4 | 10 | 11 | 14 | 15 => ResponseDisposition::Retryable(hint),
            // RESOURCE_EXHAUSTED is retryable only with `RetryInfo`.
            8 if hint.is_some() => ResponseDisposition::Retryable(hint),
            _ => ResponseDisposition::Failed,
        };
        Self { code: ResponseCode::Grpc(code), disposition }
    }

    /// From an HTTP status, its headers and the body.
    pub(crate) fn from_http(status: http::StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let disposition = match status.as_u16() {
            200..=299 => ResponseDisposition::Acknowledged { rejected: parse_rejected_items(body) },
            429 | 502 | 503 | 504 => {
                ResponseDisposition::Retryable(parse_header(headers, "retry-after").map(Duration::from_secs))
            }
            _ => ResponseDisposition::Failed,
        };
        Self { code: ResponseCode::Http(status.as_u16()), disposition }
    }
}

fn parse_header<T: std::str::FromStr>(headers: &HeaderMap, name: &str) -> Option<T> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// `partial_success.rejected_…` of an export response.
fn parse_rejected_items(response: &[u8]) -> u64 {
    let partial = WireFieldIter(response).find_field(1).and_then(WireValue::bytes);
    partial.and_then(|partial| WireFieldIter(partial).find_field(1)).and_then(WireValue::number).unwrap_or(0)
}

/// `RetryInfo.retry_delay` in the details of a gRPC status.
fn parse_retry_info(status: &HeaderMap) -> Option<Duration> {
    let details = status.get("grpc-status-details-bin")?.as_bytes();
    let details = details.strip_suffix(b"==").or(details.strip_suffix(b"=")).unwrap_or(details);
    let details = general_purpose::STANDARD_NO_PAD.decode(details).ok()?;
    WireFieldIter(&details).filter(|(field, _)| *field == 3).find_map(|(_, any)| {
        let any = WireFieldIter(any.bytes()?);
        let kind = any.clone().find_field(1)?.bytes()?;
        let info = any.find_field(2)?.bytes()?;
        kind.ends_with(b"google.rpc.RetryInfo").then(|| parse_retry_delay(info)).flatten()
    })
}

fn parse_retry_delay(info: &[u8]) -> Option<Duration> {
    let delay = WireFieldIter(WireFieldIter(info).find_field(1)?.bytes()?);
    let part = |field| delay.clone().find_field(field).and_then(WireValue::number).unwrap_or(0);
    Some(Duration::from_secs(part(1)) + Duration::from_nanos(part(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn exhaustion_is_retryable_only_with_a_hint() {
        let bare = ExportResponse::from_grpc(&headers(&[("grpc-status", "8")]), &[]);
        assert_eq!(bare.disposition, ResponseDisposition::Failed);

        let status = crate::sink::response::status_details(8, "busy", Some(Duration::from_millis(1500)));
        let status = general_purpose::STANDARD_NO_PAD.encode(status);
        let hinted =
            ExportResponse::from_grpc(&headers(&[("grpc-status", "8"), ("grpc-status-details-bin", &status)]), &[]);
        assert_eq!(hinted.disposition, ResponseDisposition::Retryable(Some(Duration::from_millis(1500))));
    }

    #[test]
    fn partial_success_counts_what_was_rejected() {
        let answer = ExportResponse::from_http(http::StatusCode::OK, &HeaderMap::new(), &[0x0a, 2, 0x08, 5]);
        assert_eq!(answer.disposition, ResponseDisposition::Acknowledged { rejected: 5 });
    }

    #[test]
    fn only_the_four_http_codes_are_retryable() {
        let verdict = |code| {
            let status = http::StatusCode::from_u16(code).unwrap();
            ExportResponse::from_http(status, &headers(&[("retry-after", "3")]), &[]).disposition
        };
        for code in [429, 502, 503, 504] {
            assert_eq!(verdict(code), ResponseDisposition::Retryable(Some(Duration::from_secs(3))));
        }
        assert_eq!(verdict(500), ResponseDisposition::Failed);
        assert_eq!(verdict(413), ResponseDisposition::Failed);
    }
}
