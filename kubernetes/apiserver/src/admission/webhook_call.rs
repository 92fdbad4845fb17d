//! One call to one webhook.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request as HttpRequest, header};
use http_body_util::Full;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    AdmissionChain, AdmissionWebhook, WebhookType, call_errors,
    response::{self, AdmissionDecision},
    review::VersionedAttributes,
};
use crate::{
    api::{StatusError, identity},
    client::{BufferedResponse, ServiceAddressResolver},
    trace::{InstrumentationScope, TraceSpan, TraceSpanKind},
};

const USER_AGENT: &str = "kube-apiserver-admission";
/// How much of an error response is shown.
const MAX_ERROR_BODY_BYTES: usize = 2048;
/// The default port of a URL.
const HTTPS_PORT: u16 = 443;
/// Go's message about a timeout.
const DEADLINE_EXCEEDED: &str = "context deadline exceeded";

/// Why a webhook did not admit a request.
#[derive(Debug)]
pub enum WebhookFailure {
    /// The call failed, or its response is invalid: the `failurePolicy` decides.
    Call(String),
    /// The webhook refused, or its patch cannot be applied.
    Refused(StatusError),
}

/// Calls a webhook. Returns the span of the call while it is open.
pub async fn ask(
    admission: &AdmissionChain,
    sort: WebhookType,
    hook: &AdmissionWebhook,
    shown: &VersionedAttributes<'_>,
) -> Result<(AdmissionDecision, TraceSpan), WebhookFailure> {
    let request = shown.subject.request;
    if request.dry_run() && !hook.dry_run {
        let message = format!("admission webhook {:?} does not support dry run", hook.name);
        return Err(WebhookFailure::Refused(StatusError::bad_request(message)));
    }
    let uid = identity::uid();
    let version = hook
        .version
        .ok_or_else(|| call_failure("webhook does not accept known AdmissionReview versions (v1, v1beta1)"))?;
    let review = shown.review(version, &uid).map_err(|error| call_failure(&error.to_string()))?;
    hook.endpoint.check_config().map_err(|why| WebhookFailure::Call(format!("could not get REST client: {why}")))?;
    let span = start_webhook_span(sort, hook, shown, &uid);
    let answered = admission.post_review(hook, review.into(), &span).await;
    let answered = answered.map_err(|why| WebhookFailure::Call(format!("failed to call webhook: {why}")))?;
    span.add_event("Request completed");
    let verdict = response::check_response(&answered, sort, version, &uid);
    let verdict = verdict.map_err(|why| WebhookFailure::Call(format!("received invalid webhook response: {why}")))?;
    verdict.warnings.iter().for_each(|warning| request.on.call.warnings.add(warning));
    if verdict.allowed {
        Ok((verdict, span))
    } else {
        Err(WebhookFailure::Refused(response::denied_status(&hook.name, verdict.status)))
    }
}

fn call_failure(why: &str) -> WebhookFailure {
    WebhookFailure::Call(format!("could not create admission objects: {why}"))
}

impl WebhookFailure {
    /// The error that the request is answered with; none if the failure is ignored.
    pub fn apply_failure_policy(self, hook: &AdmissionWebhook) -> Result<(), StatusError> {
        match self {
            WebhookFailure::Refused(status) => Err(status),
            WebhookFailure::Call(why) => {
                let webhook = &hook.name;
                let configuration = &hook.configuration;
                tracing::warn!(%webhook, %configuration, ignored = hook.ignores_failure, "failed calling webhook: {why}");
                if hook.ignores_failure {
                    Ok(())
                } else {
                    Err(StatusError::internal(format!("failed calling webhook {webhook:?}: {why}")))
                }
            }
        }
    }
}

fn start_webhook_span(
    sort: WebhookType,
    hook: &AdmissionWebhook,
    shown: &VersionedAttributes<'_>,
    uid: &str,
) -> TraceSpan {
    let on = shown.subject.request.on;
    let span = on.span.component_child(match sort {
        WebhookType::Mutating => "Call mutating webhook",
        WebhookType::Validating => "Call validating webhook",
    });
    if span.is_recording() {
        let gv = &on.served_resource().gv;
        let resource = format!("{}/{}, Resource={}", gv.group, gv.version, on.resource.plural);
        for (key, value) in [
            ("configuration", &*hook.configuration),
            ("webhook", &hook.name),
            ("resource", &resource),
            ("subresource", &on.path.subresource),
            ("operation", shown.subject.request.operation.name()),
            ("UID", uid),
        ] {
            span.set_attribute(key, value);
        }
    }
    span
}

impl AdmissionChain {
    /// Sends a review and reads the answer.
    async fn post_review(&self, hook: &AdmissionWebhook, review: Bytes, span: &TraceSpan) -> Result<Value, String> {
        let url = hook.endpoint.url(hook.timeout.as_secs());
        let client_span = client_span(hook, &url, span);
        let request = build_request(&url, review, &client_span)?;
        let answer = send_review(hook, &*self.services, request, hook.timeout).await;
        let answer = answer.map_err(|why| {
            client_span.set_attribute("error.type", error_type(&why));
            client_span.set_error(&why);
            format!("Post {url:?}: {why}")
        })?;
        record_response(&client_span, &answer);
        drop(client_span);
        read_review(&answer)
    }
}

async fn send_review(
    hook: &AdmissionWebhook,
    services: &dyn ServiceAddressResolver,
    request: HttpRequest<Full<Bytes>>,
    time: Duration,
) -> Result<BufferedResponse, String> {
    let (address, client) = hook.endpoint.client(services)?;
    match timeout(time, client.send(request)).await {
        Err(_) => Err(DEADLINE_EXCEEDED.to_owned()),
        Ok(answer) => answer.map_err(|error| call_errors::transport_error(&error, &address)),
    }
}

fn build_request(url: &str, review: Bytes, span: &TraceSpan) -> Result<HttpRequest<Full<Bytes>>, String> {
    let mut request = HttpRequest::post(url).body(Full::new(review)).map_err(|error| error.to_string())?;
    let headers = request.headers_mut();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, */*"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    span.inject(headers);
    Ok(request)
}

/// The review in a successful response.
fn read_review(answer: &BufferedResponse) -> Result<Value, String> {
    let status = answer.head.status;
    if !(200..=206).contains(&status.as_u16()) {
        return Err(error_message(answer));
    }
    if answer.body.is_empty() {
        let kind = content_type(answer).unwrap_or_default();
        return Err(format!("0-length response with status code: {} and content type: {kind}", status.as_u16()));
    }
    response::decode_review(&answer.body)
}

/// The message of an error response: that of its `Status`, or that of its status code.
fn error_message(answer: &BufferedResponse) -> String {
    let status: Option<Value> = serde_json::from_slice(&answer.body).ok();
    let said = status.as_ref().filter(|status| status.get("kind").and_then(Value::as_str) == Some("Status"));
    if let Some(message) = said.and_then(|status| status.get("message")).and_then(Value::as_str) {
        return message.to_owned();
    }
    let is_text = content_type(answer).is_none_or(|kind| kind.starts_with("text/"));
    let shown = answer.body.get(..answer.body.len().min(MAX_ERROR_BODY_BYTES)).unwrap_or_default();
    let text = String::from_utf8_lossy(shown);
    call_errors::status_error(answer.head.status.as_u16(), is_text.then_some(&*text))
}

fn content_type(answer: &BufferedResponse) -> Option<&str> {
    answer.head.headers.get(header::CONTENT_TYPE)?.to_str().ok()
}

fn client_span(hook: &AdmissionWebhook, url: &str, parent: &TraceSpan) -> TraceSpan {
    let span = parent.child(InstrumentationScope::Http, TraceSpanKind::Client, "HTTP POST");
    if span.is_recording() {
        let (host, port) = hook.endpoint.server();
        span.set_attribute("http.request.method", "POST");
        span.set_attribute("url.full", url);
        span.set_attribute("server.address", host);
        if port != HTTPS_PORT {
            span.set_attribute("server.port", i64::from(port));
        }
        // Go's client records this before it knows the protocol.
        span.set_attribute("network.protocol.version", "1.1");
    }
    span
}

/// The Go type of the error of a call without a response, as kube-apiserver's spans name it.
fn error_type(why: &str) -> &'static str {
    match why {
        DEADLINE_EXCEEDED => "context.deadlineExceededError",
        _ if why.starts_with("dial ") || why.starts_with("read ") || why.starts_with("write ") => "*net.OpError",
        _ if why.starts_with("tls: failed to verify certificate") => "*tls.CertificateVerificationError",
        _ => "*errors.errorString",
    }
}

fn record_response(span: &TraceSpan, answer: &BufferedResponse) {
    if !span.is_recording() {
        return;
    }
    let status = answer.head.status;
    span.set_attribute("http.response.status_code", i64::from(status.as_u16()));
    if status.as_u16() >= 400 {
        span.set_attribute("error.type", status.as_str());
        span.set_error("");
    }
}
