//! The nodes of a cluster: one request to one of them.
//!
//! *Guarantees.* Requests go to the nodes in turns. A node that cannot be reached, or says that it is not available, is
//! passed over for the next one, until each was asked once. Each node gets the time limit of an attempt.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE},
    response::Parts,
};
use kubewake_config::model::{BulkIndexConfig, BulkLogin};
use serde::Deserialize;

use super::answer::{AnswerFault, BulkAnswer, DocumentStatus};
use crate::{
    components::BuildError,
    core::{BackendStatus, Code, DestinationLabels, ErrorClass, SendError},
    extension::ClientAuth,
    net::{
        compress::BodyEncoder,
        http_destination::HttpDestination,
        http_error::{message_text, status_error},
        request::{self, BoundedResponse},
        response_status::clip_message,
    },
};

const NDJSON: &str = "application/x-ndjson";

/// What the answer has: everything else costs bandwidth and is not read.
const FILTER_PATH: &str = "filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason";

/// The answer to a request.
pub(super) struct ClusterAnswer {
    pub(super) statuses: Vec<DocumentStatus>,
    pub(super) rejection: Option<String>,
    pub(super) congestion: Option<String>,
}

/// The nodes of a cluster.
pub(super) struct Cluster {
    nodes: Vec<HttpDestination>,
    next_node: AtomicUsize,
    encoder: Option<BodyEncoder>,
    timeout: Option<Duration>,
}

impl Cluster {
    pub(super) fn new(settings: &BulkIndexConfig, auth: Option<&Arc<dyn ClientAuth>>) -> Result<Self, BuildError> {
        let pipeline = settings.pipeline.as_deref().map(|name| format!("&pipeline={}", percent_encoded(name)));
        let query = format!("{FILTER_PATH}{}", pipeline.unwrap_or_default());
        let login = settings.login.as_ref().map(login_header).transpose()?;
        let nodes = settings.endpoints.iter().map(|endpoint| {
            let url = format!("{}/_bulk?{query}", endpoint.trim_end_matches('/'));
            let headers = [(CONTENT_TYPE, HeaderValue::from_static(NDJSON))].into_iter().chain(login.clone());
            HttpDestination::new(&url, &settings.http, headers, auth.cloned())
        });
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        if nodes.is_empty() {
            return Err(BuildError("the exporter has no endpoint".into()));
        }
        let encoder = BodyEncoder::http(settings.http.compression);
        Ok(Self { nodes, next_node: AtomicUsize::new(0), encoder, timeout: settings.http.timeout })
    }

    /// The first node, for labels.
    pub(super) fn labels(&self) -> DestinationLabels {
        self.nodes.first().map(HttpDestination::labels).unwrap_or_default()
    }

    pub(super) fn compresses(&self) -> bool {
        self.encoder.is_some()
    }

    /// Sends so many documents.
    pub(super) async fn send(
        &self,
        body: Bytes,
        documents: usize,
        may_compress: bool,
    ) -> Result<ClusterAnswer, SendError> {
        let (body, headers) = self.compress(body, may_compress).await?;
        let first = self.next_node.fetch_add(1, Ordering::Relaxed);
        let mut result = Err(SendError::connection("the exporter has no endpoint"));
        for offset in 0..self.nodes.len() {
            let Some(node) = self.nodes.get(first.wrapping_add(offset) % self.nodes.len()) else { break };
            result = self.attempt(node, &body, &headers, documents).await;
            if !result.as_ref().is_err_and(is_unavailable) {
                break;
            }
        }
        result
    }

    async fn compress(&self, body: Bytes, may_compress: bool) -> Result<(Bytes, HeaderMap), SendError> {
        let Some(encoder) = self.encoder.as_ref().filter(|_| may_compress) else { return Ok((body, HeaderMap::new())) };
        let packed = encoder.encode(std::iter::once(&body), 0).await;
        let packed =
            packed.map_err(|error| SendError::local(format!("{} compression failed: {error}", encoder.name())))?;
        let headers = HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(encoder.name()))]);
        Ok((packed.into(), headers))
    }

    async fn attempt(
        &self,
        node: &HttpDestination,
        body: &Bytes,
        headers: &HeaderMap,
        documents: usize,
    ) -> Result<ClusterAnswer, SendError> {
        let mut answer = BulkAnswer::for_documents(documents);
        let mut read = |bytes: &[u8]| {
            answer.feed(bytes);
            if answer.is_useless() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let send = node.send_and_read(headers, || body.clone().into(), interpret, &mut read);
        match self.timeout {
            None => send.await?,
            Some(limit) => match tokio::time::timeout(limit, send).await {
                Ok(result) => result?,
                Err(_) => return Err(SendError::timeout(limit)),
            },
        }
        let statuses = answer.finish(documents).map_err(|fault| useless_answer(node, fault))?;
        Ok(ClusterAnswer { statuses, rejection: answer.rejection, congestion: answer.congestion })
    }
}

/// Whether another node may take the request.
fn is_unavailable(error: &SendError) -> bool {
    match error.backend_status {
        Some(BackendStatus::Http(status)) => matches!(status.as_u16(), 502..=504),
        _ => error.class == ErrorClass::Connection,
    }
}

/// The documents may be stored or not; they have ids, so that it is right to send them again.
fn useless_answer(node: &HttpDestination, fault: AnswerFault) -> SendError {
    SendError {
        code: Code::Unavailable,
        class: ErrorClass::Protocol,
        ..SendError::connection(format!("{}: {fault}", node.url()))
    }
}

fn interpret(head: &Parts, answer: &BoundedResponse) -> Result<(), SendError> {
    if head.status.is_success() {
        return Ok(());
    }
    let retryable = head.status.as_u16() == 429 || head.status.is_server_error();
    Err(status_error(head, &error_message(answer), retryable))
}

/// The answer to a request that failed as a whole.
#[derive(Deserialize)]
struct FailedRequest {
    error: FailureCause,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FailureCause {
    Exception {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        reason: Option<String>,
    },
    Text(String),
}

fn error_message(answer: &BoundedResponse) -> String {
    match serde_json::from_slice::<FailedRequest>(&answer.bytes) {
        Ok(FailedRequest { error: FailureCause::Exception { kind, reason } }) => {
            clip_message(&format!("{kind}: {}", reason.unwrap_or_default()))
        }
        Ok(FailedRequest { error: FailureCause::Text(text) }) => clip_message(&text),
        Err(_) => message_text(answer),
    }
}

fn login_header(login: &BulkLogin) -> Result<(HeaderName, HeaderValue), BuildError> {
    let value = match login {
        BulkLogin::Basic { user, password } => {
            format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.reveal())))
        }
        BulkLogin::ApiKey(key) => format!("ApiKey {}", key.reveal()),
    };
    let value = request::sensitive_value(&value);
    let value =
        value.ok_or_else(|| BuildError("the credentials contain characters that a header cannot have".into()))?;
    Ok((AUTHORIZATION, value))
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
