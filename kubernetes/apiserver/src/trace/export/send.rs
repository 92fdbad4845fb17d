//! Sends one export request, and interprets its response.

use std::{fmt, str::FromStr as _, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use tokio::time::timeout;

use super::request;
use crate::{
    client::{AddressConnector, BufferedResponse, DialAddress, HttpClient, ServiceAddressResolver, TlsClientConfig},
    trace::config::{TracingConfiguration, TracingDestination, TracingProtocol},
};

const GRPC_PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// A response is a few bytes; an error page of a proxy may be more.
const MAX_RESPONSE_BYTES: usize = 64 << 10;
/// The gRPC codes that OTLP calls retryable: cancelled, deadline exceeded, aborted, out of range, unavailable,
/// data loss.
const RETRYABLE_GRPC_CODES: [&str; 6] = ["1", "4", "10", "11", "14", "15"];
/// Resource exhausted is retryable only if the response has a delay.
const RESOURCE_EXHAUSTED_CODE: &str = "8";

/// The destination of spans and its protocol.
#[derive(Clone)]
pub struct SpanExportTarget {
    egress: SpanExportEgress,
    trust: Option<TlsClientConfig>,
    uri: Uri,
    protocol: TracingProtocol,
    headers: HeaderMap,
}

/// The egress of the destination.
#[derive(Clone, Debug)]
enum SpanExportEgress {
    Direct(DialAddress),
    Service { services: Arc<dyn ServiceAddressResolver>, namespace: String, name: String, port: u16 },
}

impl SpanExportTarget {
    /// The target of a configuration; Services are resolved by `services`.
    ///
    /// # Errors
    /// If its address is not valid in a request.
    pub fn new(
        config: &TracingConfiguration,
        trust: Option<TlsClientConfig>,
        services: &Arc<dyn ServiceAddressResolver>,
    ) -> Result<Self, http::Error> {
        let (egress, path) = match &config.destination {
            TracingDestination::Direct(endpoint) => {
                (SpanExportEgress::Direct(endpoint.address.clone()), endpoint.path.as_str())
            }
            TracingDestination::Service { namespace, name, port } => {
                let namespace = namespace.clone();
                let name = name.clone();
                (
                    SpanExportEgress::Service { services: Arc::clone(services), namespace, name, port: *port },
                    "/v1/traces",
                )
            }
        };
        let scheme = if trust.is_some() { "https" } else { "http" };
        let path = if config.protocol == TracingProtocol::Grpc { GRPC_PATH } else { path };
        let uri = Uri::from_str(&format!("{scheme}://{}{path}", config.authority()))?;
        Ok(Self { egress, trust, uri, protocol: config.protocol, headers: config.headers.clone() })
    }

    fn address(&self) -> Result<DialAddress, String> {
        match &self.egress {
            SpanExportEgress::Direct(address) => Ok(address.clone()),
            SpanExportEgress::Service { services, namespace, name, port } => services.resolve(namespace, name, *port),
        }
    }

    fn request(&self, body: Bytes) -> http::Result<Request<Full<Bytes>>> {
        let request = Request::builder().method(Method::POST).uri(self.uri.clone());
        let (content_type, body) = match self.protocol {
            TracingProtocol::Grpc => ("application/grpc", request::grpc_frame(&body)),
            TracingProtocol::HttpProtobuf => ("application/x-protobuf", body),
        };
        let mut request = request.header(header::CONTENT_TYPE, content_type).body(Full::new(body))?;
        if self.protocol == TracingProtocol::Grpc {
            request.headers_mut().insert(header::TE, HeaderValue::from_static("trailers"));
        }
        request.headers_mut().extend(self.headers.clone());
        Ok(request)
    }
}

/// Omits the headers, which are secret.
impl fmt::Debug for SpanExportTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("uri", &self.uri).field("egress", &self.egress).finish_non_exhaustive()
    }
}

/// Why a batch was not accepted.
#[derive(Debug)]
pub(super) struct SpanExportError {
    pub(super) why: String,
    /// Whether a retry may succeed, and after which delay if the response has one.
    pub(super) retry: Option<Option<Duration>>,
}

/// The connection to a target.
pub(super) struct SpanExportConnection {
    target: SpanExportTarget,
    client: Option<(DialAddress, HttpClient)>,
}

impl SpanExportConnection {
    pub(super) fn new(target: SpanExportTarget) -> Self {
        Self { target, client: None }
    }

    /// The address, for messages.
    pub(super) fn authority(&self) -> &str {
        self.target.uri.authority().map_or("", |authority| authority.as_str())
    }

    /// Sends a batch. Returns how many of its spans were rejected.
    pub(super) async fn send(&mut self, body: Bytes, patience: Duration) -> Result<u64, SpanExportError> {
        let later = |why: String| SpanExportError { why, retry: Some(None) };
        let client = self.client().map_err(later)?;
        let request =
            self.target.request(body).map_err(|error| SpanExportError { why: error.to_string(), retry: None })?;
        let answer = match timeout(patience, client.send(request)).await {
            Ok(answer) => answer.map_err(|error| later(error.to_string()))?,
            Err(_) => return Err(later(format!("no response within {} s", patience.as_secs()))),
        };
        match self.target.protocol {
            TracingProtocol::Grpc => grpc_outcome(&answer),
            TracingProtocol::HttpProtobuf => http_outcome(&answer),
        }
    }

    /// A client for the target's current address: a Service may have moved.
    fn client(&mut self) -> Result<HttpClient, String> {
        let address = self.target.address()?;
        match &self.client {
            Some((known, client)) if *known == address => Ok(client.clone()),
            _ => {
                let connector = AddressConnector::new(address.clone(), self.target.trust.clone());
                let client =
                    HttpClient::new(connector, self.target.protocol == TracingProtocol::Grpc, MAX_RESPONSE_BYTES);
                self.client = Some((address, client.clone()));
                Ok(client)
            }
        }
    }
}

fn http_outcome(answer: &BufferedResponse) -> Result<u64, SpanExportError> {
    let status = answer.head.status;
    if status.is_success() {
        return Ok(request::rejected_spans(&answer.body));
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
    Err(SpanExportError { why: format!("status {status}"), retry: retryable.then_some(after) })
}

fn grpc_outcome(answer: &BufferedResponse) -> Result<u64, SpanExportError> {
    let trailer = |name: &str| {
        let in_trailers = answer.trailers.as_ref().and_then(|trailers| trailers.get(name));
        in_trailers.or_else(|| answer.head.headers.get(name)).and_then(|value| value.to_str().ok())
    };
    match trailer("grpc-status") {
        // The frame header has five bytes.
        Some("0") => Ok(request::rejected_spans(answer.body.get(5..).unwrap_or_default())),
        Some(code) => {
            let says_when = trailer("grpc-status-details-bin").is_some();
            let retryable = RETRYABLE_GRPC_CODES.contains(&code) || (code == RESOURCE_EXHAUSTED_CODE && says_when);
            let message = trailer("grpc-message").unwrap_or_default();
            Err(SpanExportError { why: format!("gRPC status {code} {message}"), retry: retryable.then_some(None) })
        }
        // The response is from a proxy, or from a server that does not speak gRPC.
        None => http_outcome(answer)
            .and(Err(SpanExportError { why: "the response is not a gRPC response".to_owned(), retry: None })),
    }
}
