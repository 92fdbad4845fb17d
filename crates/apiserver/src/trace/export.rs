//! Takes finished spans to the collector, in batches, beside the requests and never in their path.

use std::{collections::BTreeMap, time::Duration};

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderValue, Method, Request, header};
use http_body_util::Full;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};

use super::{Attribute, Finished, Scope, encode};
use crate::client::{Answer, Client};

/// kube-apiserver's own numbers: at most so many spans at once, after so long, with so much patience.
const BATCH: usize = 512;
const DELAY: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(10);
/// When the server stops, what waits is sent within this time.
const LAST: Duration = Duration::from_secs(3);
const GRPC_PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Where spans go, and how.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The client for it.
    pub client: Client,
    /// `http://host:port` or `https://…`, and for OTLP over HTTP the path.
    pub url: http::Uri,
    /// OTLP over HTTP instead of gRPC.
    pub over_http: bool,
}

/// The resource of all spans.
#[derive(Clone, Debug)]
pub struct Resource {
    /// `service.instance.id`
    pub instance: String,
}

/// Sends what comes until it is stopped.
#[derive(Debug)]
pub struct Exporter {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Exporter {
    /// Begins to export.
    pub fn start(destination: Destination, resource: Resource, finished: mpsc::Receiver<Finished>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(run(destination, encode_resource(&resource), finished, stopped));
        Self { stop, task }
    }

    /// Sends what is there and ends.
    pub async fn stop(self) {
        // If nobody listens it has ended already.
        let _ = self.stop.send(true);
        if timeout(LAST, self.task).await.is_err() {
            tracing::warn!("the last spans were not taken in time");
        }
    }
}

async fn run(
    destination: Destination,
    resource: Bytes,
    mut finished: mpsc::Receiver<Finished>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut failing = false;
    loop {
        let mut batch = Vec::new();
        let open = gather(&mut finished, &mut batch, &mut stopped).await;
        if !batch.is_empty() {
            let count = batch.len();
            let outcome = timeout(PATIENCE, send(&destination, request(&resource, batch))).await;
            let outcome = outcome.unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs())));
            report(outcome, count, &mut failing);
        }
        if !open {
            return;
        }
    }
}

/// Waits for a full batch, or for the time after the first span. False when this was the last.
async fn gather(
    finished: &mut mpsc::Receiver<Finished>,
    batch: &mut Vec<Finished>,
    stopped: &mut watch::Receiver<bool>,
) -> bool {
    let deadline = Instant::now() + DELAY;
    while batch.len() < BATCH {
        tokio::select! {
            biased;
            received = finished.recv_many(batch, BATCH) => if received == 0 {
                return false;
            },
            () = sleep_until(deadline) => return true,
            _ = stopped.wait_for(|stopped| *stopped) => {
                finished.close();
            }
        }
    }
    true
}

/// Says once that it fails, and once that it works again.
fn report(outcome: Result<(), String>, spans: usize, failing: &mut bool) {
    match &outcome {
        Ok(()) if *failing => tracing::info!("spans are taken again"),
        Err(error) if !*failing => tracing::warn!(%error, spans, "spans are not taken, and lost"),
        _ => {}
    }
    *failing = outcome.is_err();
}

async fn send(destination: &Destination, body: Bytes) -> Result<(), String> {
    let request = if destination.over_http { http_request(destination, body) } else { grpc_request(destination, body) };
    let request = request.map_err(|error| error.to_string())?;
    let answer = destination.client.send(request).await.map_err(|error| error.to_string())?;
    let taken = if destination.over_http { answer.head.status.is_success() } else { grpc_status(&answer) == Some("0") };
    match taken {
        true => Ok(()),
        false => Err(format!("status {}, grpc-status {}", answer.head.status, grpc_status(&answer).unwrap_or("none"))),
    }
}

fn http_request(destination: &Destination, body: Bytes) -> http::Result<Request<Full<Bytes>>> {
    let request = Request::builder().method(Method::POST).uri(destination.url.clone());
    request.header(header::CONTENT_TYPE, "application/x-protobuf").body(Full::new(body))
}

fn grpc_request(destination: &Destination, body: Bytes) -> http::Result<Request<Full<Bytes>>> {
    let mut uri = destination.url.clone().into_parts();
    uri.path_and_query = Some(http::uri::PathAndQuery::from_static(GRPC_PATH));
    let mut framed = BytesMut::with_capacity(body.len() + 5);
    framed.put_u8(0);
    framed.put_u32(u32::try_from(body.len()).unwrap_or(u32::MAX));
    framed.extend_from_slice(&body);
    let request = Request::builder().method(Method::POST).uri(http::Uri::from_parts(uri)?);
    request
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, HeaderValue::from_static("trailers"))
        .body(Full::new(framed.freeze()))
}

fn grpc_status(answer: &Answer) -> Option<&str> {
    let in_trailers = answer.trailers.as_ref().and_then(|trailers| trailers.get("grpc-status"));
    in_trailers.or_else(|| answer.head.headers.get("grpc-status")).and_then(|status| status.to_str().ok())
}

/// `ExportTraceServiceRequest` with one resource and its spans by scope.
fn request(resource: &[u8], batch: Vec<Finished>) -> Bytes {
    let mut scopes: BTreeMap<Scope, Vec<u8>> = BTreeMap::new();
    for finished in batch {
        let spans = scopes.entry(finished.scope).or_insert_with(|| encode_scope(finished.scope));
        encode::bytes(spans, 2, &finished.bytes);
    }
    let mut spans = Vec::new();
    encode::bytes(&mut spans, 1, resource);
    scopes.values().for_each(|scope| encode::bytes(&mut spans, 2, scope));
    let mut request = Vec::with_capacity(spans.len() + 8);
    encode::bytes(&mut request, 1, &spans);
    request.into()
}

/// `ScopeSpans` with its scope and no spans yet.
fn encode_scope(scope: Scope) -> Vec<u8> {
    let (name, version) = scope.names();
    let mut inner = Vec::new();
    encode::bytes(&mut inner, 1, name.as_bytes());
    if !version.is_empty() {
        encode::bytes(&mut inner, 2, version.as_bytes());
    }
    let mut spans = Vec::new();
    encode::bytes(&mut spans, 1, &inner);
    spans
}

fn encode_resource(resource: &Resource) -> Bytes {
    let mut bytes = Vec::new();
    encode::attribute(&mut bytes, 1, "service.name", &Attribute::Text("apiserver"));
    encode::attribute(&mut bytes, 1, "service.instance.id", &Attribute::Text(&resource.instance));
    bytes.into()
}
