//! `grpc.health.v1.Health/Check`, encoded by hand: a request with one field, and a response with one number.

use std::{net::IpAddr, time::Duration};

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{task::JoinSet, time::timeout};

use super::{MAX_RESPONSE_BYTES, USER_AGENT, dial};

/// The names of the health states, by number.
const HEALTH_STATE_NAMES: [&str; 4] = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
const SERVING: usize = 1;

/// The names of gRPC status codes, by number.
const GRPC_CODE_NAMES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];
const UNKNOWN: usize = 2;
const DEADLINE_EXCEEDED: usize = 4;
const UNIMPLEMENTED: usize = 12;

/// Whether the health state is `SERVING`.
pub(super) async fn check_health(ip: IpAddr, port: u16, service: &str, limit: Duration) -> Result<(), String> {
    let address = dial::join_host_port(&ip.to_string(), port);
    let call = async {
        let stream = dial::connect_tcp(&ip.to_string(), port).await;
        let stream = stream.map_err(|error| format!("error: failed to connect service at {address:?}: {error}"))?;
        call_health(TokioIo::new(stream), &address, service).await.map_err(|failure| failure.message_within(limit))
    };
    let late = |_| Err(format!("timeout: health rpc did not complete within {limit:?}"));
    match timeout(limit, call).await.unwrap_or_else(late)? {
        SERVING => Ok(()),
        other => {
            Err(format!("service unhealthy (responded with {:?})", HEALTH_STATE_NAMES.get(other).unwrap_or(&"UNKNOWN")))
        }
    }
}

/// A failed call.
struct HealthCallError {
    code: usize,
    message: String,
}

impl HealthCallError {
    fn from_transport_error(error: &hyper::Error) -> Self {
        Self { code: 14, message: error.to_string() }
    }

    fn message_within(&self, limit: Duration) -> String {
        let message = &self.message;
        match self.code {
            UNIMPLEMENTED => format!(
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {message}"
            ),
            DEADLINE_EXCEEDED => format!("timeout: health rpc did not complete within {limit:?}"),
            code => {
                let name = GRPC_CODE_NAMES.get(code).map_or_else(|| format!("Code({code})"), |name| (*name).to_owned());
                format!("error: health rpc probe failed: rpc error: code = {name} desc = {message}")
            }
        }
    }
}

/// The health state that the server reports.
async fn call_health<I>(io: I, address: &str, service: &str) -> Result<usize, HealthCallError>
where
    I: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
{
    let handshake = http2::Builder::new(TokioExecutor::new()).handshake(io);
    let (mut sender, connection) = handshake.await.map_err(|error| HealthCallError::from_transport_error(&error))?;
    // Aborted on drop, together with the connection.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let request = Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .header(header::USER_AGENT, USER_AGENT)
        .body(Full::new(health_request(service)))
        .map_err(|error| HealthCallError { code: 13, message: error.to_string() })?;
    let response = sender.send_request(request).await.map_err(|error| HealthCallError::from_transport_error(&error))?;
    let (head, body) = response.into_parts();
    if head.status != http::StatusCode::OK {
        let code = if head.status == http::StatusCode::NOT_FOUND { UNIMPLEMENTED } else { UNKNOWN };
        return Err(HealthCallError {
            code,
            message: format!("unexpected HTTP status code received from server: {}", head.status),
        });
    }
    let collected = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
    let collected = collected.map_err(|error| HealthCallError { code: 14, message: error.to_string() })?;
    let trailers = collected.trailers().cloned().unwrap_or_default();
    // A response without a message has its status in the headers.
    check_grpc_status(if head.headers.contains_key("grpc-status") { &head.headers } else { &trailers })?;
    Ok(parse_health_state(&collected.to_bytes()))
}

fn health_request(service: &str) -> Bytes {
    let name = service.as_bytes();
    let mut message = BytesMut::new();
    if !name.is_empty() {
        message.put_u8(0x0a);
        let mut length = name.len();
        while length >= 0x80 {
            message.put_u8((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        message.put_u8(length as u8);
        message.put_slice(name);
    }
    let mut framed = BytesMut::with_capacity(5 + message.len());
    framed.put_u8(0);
    framed.put_u32(message.len() as u32);
    framed.put(message);
    framed.freeze()
}

fn check_grpc_status(headers: &HeaderMap) -> Result<(), HealthCallError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status").map(str::parse) {
        Some(Ok(0)) => Ok(()),
        Some(Ok(code)) => Err(HealthCallError { code, message: text("grpc-message").unwrap_or_default().to_owned() }),
        _ => Err(HealthCallError { code: UNKNOWN, message: "the response has no grpc-status".to_owned() }),
    }
}

/// A field with the value 0 may be omitted.
pub(crate) fn parse_health_state(framed: &[u8]) -> usize {
    match framed {
        [0, _, _, _, _, 0x08, state, ..] => usize::from(*state),
        _ => 0,
    }
}
