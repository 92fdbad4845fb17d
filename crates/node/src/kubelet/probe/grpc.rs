//! `grpc.health.v1.Health/Check`, framed by hand: one call with one field, and an answer with one number.

use std::{net::IpAddr, time::Duration};

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{task::JoinSet, time::timeout};

use super::{ANSWER, USER_AGENT, dial};

/// How an answer names what it says of a service.
const STATES: [&str; 4] = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
const SERVING: usize = 1;

/// The names of gRPC's codes, from 0 on.
const CODES: [&str; 17] = [
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

/// Whether the service says that it serves.
pub(super) async fn check(ip: IpAddr, port: u16, service: &str, limit: Duration) -> Result<(), String> {
    let address = dial::join(&ip.to_string(), port);
    let call = async {
        let stream = dial::connect(&ip.to_string(), port).await;
        let stream = stream.map_err(|error| format!("error: failed to connect service at {address:?}: {error}"))?;
        ask(TokioIo::new(stream), &address, service).await.map_err(|failure| failure.words(limit))
    };
    let late = |_| Err(format!("timeout: health rpc did not complete within {limit:?}"));
    match timeout(limit, call).await.unwrap_or_else(late)? {
        SERVING => Ok(()),
        other => Err(format!("service unhealthy (responded with {:?})", STATES.get(other).unwrap_or(&"UNKNOWN"))),
    }
}

/// A call that did not end well.
struct Failure {
    code: usize,
    message: String,
}

impl Failure {
    fn unavailable(error: &hyper::Error) -> Self {
        Self { code: 14, message: error.to_string() }
    }

    fn words(&self, limit: Duration) -> String {
        let message = &self.message;
        match self.code {
            UNIMPLEMENTED => format!(
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {message}"
            ),
            DEADLINE_EXCEEDED => format!("timeout: health rpc did not complete within {limit:?}"),
            code => {
                let name = CODES.get(code).map_or_else(|| format!("Code({code})"), |name| (*name).to_owned());
                format!("error: health rpc probe failed: rpc error: code = {name} desc = {message}")
            }
        }
    }
}

/// The number that stands for what the server says of the service.
async fn ask<I>(io: I, address: &str, service: &str) -> Result<usize, Failure>
where
    I: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
{
    let handshake = http2::Builder::new(TokioExecutor::new()).handshake(io);
    let (mut sender, connection) = handshake.await.map_err(|error| Failure::unavailable(&error))?;
    // Dropped with this call, and the connection with it.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let request = Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .header(header::USER_AGENT, USER_AGENT)
        .body(Full::new(question(service)))
        .map_err(|error| Failure { code: 13, message: error.to_string() })?;
    let response = sender.send_request(request).await.map_err(|error| Failure::unavailable(&error))?;
    let (head, body) = response.into_parts();
    if head.status != http::StatusCode::OK {
        let code = if head.status == http::StatusCode::NOT_FOUND { UNIMPLEMENTED } else { UNKNOWN };
        return Err(Failure {
            code,
            message: format!("unexpected HTTP status code received from server: {}", head.status),
        });
    }
    let collected = Limited::new(body, ANSWER).collect().await;
    let collected = collected.map_err(|error| Failure { code: 14, message: error.to_string() })?;
    let trailers = collected.trailers().cloned().unwrap_or_default();
    // An answer without a message has everything in its head.
    succeeded(if head.headers.contains_key("grpc-status") { &head.headers } else { &trailers })?;
    Ok(state(&collected.to_bytes()))
}

fn question(service: &str) -> Bytes {
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

fn succeeded(headers: &HeaderMap) -> Result<(), Failure> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status").map(str::parse) {
        Some(Ok(0)) => Ok(()),
        Some(Ok(code)) => Err(Failure { code, message: text("grpc-message").unwrap_or_default().to_owned() }),
        _ => Err(Failure { code: UNKNOWN, message: "the answer has no grpc-status".to_owned() }),
    }
}

/// A message may leave out a field that is 0.
pub(crate) fn state(framed: &[u8]) -> usize {
    match framed {
        [0, _, _, _, _, 0x08, state, ..] => usize::from(*state),
        _ => 0,
    }
}
