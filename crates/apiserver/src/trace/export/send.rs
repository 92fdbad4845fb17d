//! One request with spans, and what its answer means.

use std::{fmt, str::FromStr as _, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use tokio::time::timeout;

use super::request;
use crate::{
    client::{Address, Answer, Client, Connector, Services, Trust},
    trace::config::{Config, Destination, Protocol},
};

const GRPC_PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// An answer is a few bytes; an error page of a proxy may be more.
const ANSWER: usize = 64 << 10;
/// gRPC's codes that OTLP calls retryable: cancelled, deadline exceeded, aborted, out of range, unavailable, data loss.
const RETRYABLE: [&str; 6] = ["1", "4", "10", "11", "14", "15"];
/// Resource exhausted is retryable only where the answer says when.
const EXHAUSTED: &str = "8";

/// Where spans go, and how.
#[derive(Clone)]
pub struct Target {
    egress: Egress,
    trust: Option<Trust>,
    uri: Uri,
    protocol: Protocol,
    headers: HeaderMap,
}

/// Each destination by its own way.
#[derive(Clone, Debug)]
enum Egress {
    Direct(Address),
    Service { services: Arc<dyn Services>, namespace: String, name: String, port: u16 },
}

impl Target {
    /// Where a configuration says; a Service is found by `services`.
    ///
    /// # Errors
    /// If its address cannot stand in a request.
    pub fn new(config: &Config, trust: Option<Trust>, services: &Arc<dyn Services>) -> Result<Self, http::Error> {
        let (egress, path) = match &config.destination {
            Destination::Direct(endpoint) => (Egress::Direct(endpoint.address.clone()), endpoint.path.as_str()),
            Destination::Service { namespace, name, port } => {
                let (namespace, name) = (namespace.clone(), name.clone());
                (Egress::Service { services: Arc::clone(services), namespace, name, port: *port }, "/v1/traces")
            }
        };
        let scheme = if trust.is_some() { "https" } else { "http" };
        let path = if config.protocol == Protocol::Grpc { GRPC_PATH } else { path };
        let uri = Uri::from_str(&format!("{scheme}://{}{path}", config.authority()))?;
        Ok(Self { egress, trust, uri, protocol: config.protocol, headers: config.headers.clone() })
    }

    fn address(&self) -> Result<Address, String> {
        match &self.egress {
            Egress::Direct(address) => Ok(address.clone()),
            Egress::Service { services, namespace, name, port } => services.resolve(namespace, name, *port),
        }
    }

    fn request(&self, body: Bytes) -> http::Result<Request<Full<Bytes>>> {
        let request = Request::builder().method(Method::POST).uri(self.uri.clone());
        let (content_type, body) = match self.protocol {
            Protocol::Grpc => ("application/grpc", request::framed(&body)),
            Protocol::HttpProtobuf => ("application/x-protobuf", body),
        };
        let mut request = request.header(header::CONTENT_TYPE, content_type).body(Full::new(body))?;
        if self.protocol == Protocol::Grpc {
            request.headers_mut().insert(header::TE, HeaderValue::from_static("trailers"));
        }
        request.headers_mut().extend(self.headers.clone());
        Ok(request)
    }
}

/// Without the headers: they are secret.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("uri", &self.uri).field("egress", &self.egress).finish_non_exhaustive()
    }
}

/// Why a batch was not taken.
#[derive(Debug)]
pub(super) struct Failure {
    /// For people.
    pub(super) why: String,
    /// Whether it may be taken later, and when if the answer says so.
    pub(super) retry: Option<Option<Duration>>,
}

/// The way to a target, with its connections.
pub(super) struct Line {
    target: Target,
    client: Option<(Address, Client)>,
}

impl Line {
    pub(super) fn new(target: Target) -> Self {
        Self { target, client: None }
    }

    /// Where it leads, for people.
    pub(super) fn place(&self) -> &str {
        self.target.uri.authority().map_or("", |authority| authority.as_str())
    }

    /// Sends a batch. Gives how many spans of it were not wanted.
    pub(super) async fn send(&mut self, body: Bytes, patience: Duration) -> Result<u64, Failure> {
        let later = |why: String| Failure { why, retry: Some(None) };
        let client = self.client().map_err(later)?;
        let request = self.target.request(body).map_err(|error| Failure { why: error.to_string(), retry: None })?;
        let answer = match timeout(patience, client.send(request)).await {
            Ok(answer) => answer.map_err(|error| later(error.to_string()))?,
            Err(_) => return Err(later(format!("no answer within {} s", patience.as_secs()))),
        };
        match self.target.protocol {
            Protocol::Grpc => grpc_outcome(&answer),
            Protocol::HttpProtobuf => http_outcome(&answer),
        }
    }

    /// The client for where the target is now: a Service may have moved.
    fn client(&mut self) -> Result<Client, String> {
        let address = self.target.address()?;
        match &self.client {
            Some((known, client)) if *known == address => Ok(client.clone()),
            _ => {
                let connector = Connector::new(address.clone(), self.target.trust.clone());
                let client = Client::new(connector, self.target.protocol == Protocol::Grpc, ANSWER);
                self.client = Some((address, client.clone()));
                Ok(client)
            }
        }
    }
}

fn http_outcome(answer: &Answer) -> Result<u64, Failure> {
    let status = answer.head.status;
    if status.is_success() {
        return Ok(request::rejected(&answer.body));
    }
    let retryable = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    );
    let after = answer.head.headers.get(header::RETRY_AFTER).and_then(|after| after.to_str().ok());
    let after = after.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    Err(Failure { why: format!("status {status}"), retry: retryable.then_some(after) })
}

fn grpc_outcome(answer: &Answer) -> Result<u64, Failure> {
    let trailer = |name: &str| {
        let in_trailers = answer.trailers.as_ref().and_then(|trailers| trailers.get(name));
        in_trailers.or_else(|| answer.head.headers.get(name)).and_then(|value| value.to_str().ok())
    };
    match trailer("grpc-status") {
        // Five bytes are the frame.
        Some("0") => Ok(request::rejected(answer.body.get(5..).unwrap_or_default())),
        Some(code) => {
            let says_when = trailer("grpc-status-details-bin").is_some();
            let retryable = RETRYABLE.contains(&code) || (code == EXHAUSTED && says_when);
            let message = trailer("grpc-message").unwrap_or_default();
            Err(Failure { why: format!("gRPC status {code} {message}"), retry: retryable.then_some(None) })
        }
        // Somebody in between answered, or nobody who speaks gRPC.
        None => http_outcome(answer).and(Err(Failure { why: "an answer that is not gRPC".to_owned(), retry: None })),
    }
}
