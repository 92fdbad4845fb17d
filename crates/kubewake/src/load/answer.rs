//! What a receiver said, and what the OTLP specification makes of it.

use std::{fmt, time::Duration};

use base64::{Engine, engine::general_purpose};
use http::HeaderMap;

use super::decode::{Fields, Value};

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Code {
    /// A gRPC status.
    Grpc(u16),
    /// An HTTP status.
    Http(u16),
    /// No connection could be made.
    Connect,
    /// The connection broke.
    Transport,
    /// No answer in time.
    Timeout,
}

impl Code {
    /// Whether the receiver said it, and not the connection.
    pub(crate) fn is_answer(self) -> bool {
        matches!(self, Code::Grpc(_) | Code::Http(_))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Code::Grpc(code) => match GRPC_NAMES.get(usize::from(*code)) {
                Some(name) => f.write_str(name),
                None => write!(f, "GRPC_{code}"),
            },
            Code::Http(code) => write!(f, "{code}"),
            Code::Connect => f.write_str("connect"),
            Code::Transport => f.write_str("transport"),
            Code::Timeout => f.write_str("timeout"),
        }
    }
}

/// The names of gRPC's codes, in order.
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

/// What to do about an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The receiver has it, except for so many items that it refused for good.
    Acknowledged {
        /// Items named in `partial_success`.
        rejected: u64,
    },
    /// It may be sent again, after this long if the receiver said so.
    Retryable(Option<Duration>),
    /// Sending it again would be useless.
    Failed,
}

/// A receiver's answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// How the request ended.
    pub code: Code,
    /// What follows from that.
    pub verdict: Verdict,
}

impl Answer {
    /// The connection did not bring an answer. What was sent may have arrived.
    pub(crate) fn broken(code: Code) -> Self {
        Self { code, verdict: Verdict::Retryable(None) }
    }

    /// From a gRPC status (in the headers or the trailers) and the response message.
    pub(crate) fn from_grpc(status: &HeaderMap, message: &[u8]) -> Self {
        let code = header(status, "grpc-status").unwrap_or(2);
        let hint = retry_info(status);
        let verdict = match code {
            0 => Verdict::Acknowledged { rejected: rejected_items(message) },
            1 | 4 | 10 | 11 | 14 | 15 => Verdict::Retryable(hint),
            // Only an exhaustion that ends is worth waiting for, and the hint says that it does.
            8 if hint.is_some() => Verdict::Retryable(hint),
            _ => Verdict::Failed,
        };
        Self { code: Code::Grpc(code), verdict }
    }

    /// From an HTTP status, its headers and the body.
    pub(crate) fn from_http(status: http::StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let verdict = match status.as_u16() {
            200..=299 => Verdict::Acknowledged { rejected: rejected_items(body) },
            429 | 502 | 503 | 504 => Verdict::Retryable(header(headers, "retry-after").map(Duration::from_secs)),
            _ => Verdict::Failed,
        };
        Self { code: Code::Http(status.as_u16()), verdict }
    }
}

fn header<T: std::str::FromStr>(headers: &HeaderMap, name: &str) -> Option<T> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// `partial_success.rejected_…` of an export response.
fn rejected_items(response: &[u8]) -> u64 {
    let partial = Fields(response).find_field(1).and_then(Value::bytes);
    partial.and_then(|partial| Fields(partial).find_field(1)).and_then(Value::number).unwrap_or(0)
}

/// `RetryInfo.retry_delay` in the details of a gRPC status.
fn retry_info(status: &HeaderMap) -> Option<Duration> {
    let details = status.get("grpc-status-details-bin")?.as_bytes();
    let details = details.strip_suffix(b"==").or(details.strip_suffix(b"=")).unwrap_or(details);
    let details = general_purpose::STANDARD_NO_PAD.decode(details).ok()?;
    Fields(&details).filter(|(field, _)| *field == 3).find_map(|(_, any)| {
        let any = Fields(any.bytes()?);
        let kind = any.clone().find_field(1)?.bytes()?;
        let info = any.find_field(2)?.bytes()?;
        kind.ends_with(b"google.rpc.RetryInfo").then(|| delay(info)).flatten()
    })
}

fn delay(info: &[u8]) -> Option<Duration> {
    let delay = Fields(Fields(info).find_field(1)?.bytes()?);
    let part = |field| delay.clone().find_field(field).and_then(Value::number).unwrap_or(0);
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
        let bare = Answer::from_grpc(&headers(&[("grpc-status", "8")]), &[]);
        assert_eq!(bare.verdict, Verdict::Failed);

        let status = crate::sink::reply::status_details(8, "busy", Some(Duration::from_millis(1500)));
        let status = general_purpose::STANDARD_NO_PAD.encode(status);
        let hinted = Answer::from_grpc(&headers(&[("grpc-status", "8"), ("grpc-status-details-bin", &status)]), &[]);
        assert_eq!(hinted.verdict, Verdict::Retryable(Some(Duration::from_millis(1500))));
    }

    #[test]
    fn partial_success_counts_what_was_rejected() {
        let answer = Answer::from_http(http::StatusCode::OK, &HeaderMap::new(), &[0x0a, 2, 0x08, 5]);
        assert_eq!(answer.verdict, Verdict::Acknowledged { rejected: 5 });
    }

    #[test]
    fn only_the_four_http_codes_are_retryable() {
        let verdict = |code| {
            let status = http::StatusCode::from_u16(code).unwrap();
            Answer::from_http(status, &headers(&[("retry-after", "3")]), &[]).verdict
        };
        for code in [429, 502, 503, 504] {
            assert_eq!(verdict(code), Verdict::Retryable(Some(Duration::from_secs(3))));
        }
        assert_eq!(verdict(500), Verdict::Failed);
        assert_eq!(verdict(413), Verdict::Failed);
    }
}
