//! One call to one webhook.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request as HttpRequest, header};
use http_body_util::Full;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    Admission, Hook, Sort,
    answer::{self, Verdict},
    review::Shown,
    words,
};
use crate::{
    api::{Status, identity},
    client::{Answer, Services},
    trace::{Kind, Scope, Span},
};

/// What kube-apiserver calls itself.
const USER_AGENT: &str = "kube-apiserver-admission";
/// So much of an answer that is an error is shown.
const SHOWN: usize = 2048;
/// The port that a URL need not name.
const HTTPS_PORT: u16 = 443;
/// What Go says of a call that took too long.
const DEADLINE_EXCEEDED: &str = "context deadline exceeded";

/// Why a webhook did not let a request go on.
#[derive(Debug)]
pub enum Failure {
    /// It could not be asked, or its answer is none: its `failurePolicy` decides.
    Call(String),
    /// It refuses, or what it wants cannot be done.
    Refused(Status),
}

/// Asks a webhook. The span of the call is given back while it is open.
pub async fn ask(
    admission: &Admission,
    sort: Sort,
    hook: &Hook,
    shown: &Shown<'_>,
) -> Result<(Verdict, Span), Failure> {
    let request = shown.subject.request;
    if request.dry_run() && !hook.dry_run {
        let message = format!("admission webhook {:?} does not support dry run", hook.name);
        return Err(Failure::Refused(Status::bad_request(message)));
    }
    let uid = identity::uid();
    let version =
        hook.version.ok_or_else(|| unready("webhook does not accept known AdmissionReview versions (v1, v1beta1)"))?;
    let review = shown.review(version, &uid).map_err(|error| unready(&error.to_string()))?;
    hook.endpoint.check().map_err(|why| Failure::Call(format!("could not get REST client: {why}")))?;
    let span = open_span(sort, hook, shown, &uid);
    let answered = admission.post(hook, review.into(), &span).await;
    let answered = answered.map_err(|why| Failure::Call(format!("failed to call webhook: {why}")))?;
    span.event("Request completed");
    let verdict = answer::check(&answered, sort, version, &uid);
    let verdict = verdict.map_err(|why| Failure::Call(format!("received invalid webhook response: {why}")))?;
    verdict.warnings.iter().for_each(|warning| request.on.call.warnings.add(warning));
    match verdict.allowed {
        true => Ok((verdict, span)),
        false => Err(Failure::Refused(answer::refusal(&hook.name, verdict.status))),
    }
}

fn unready(why: &str) -> Failure {
    Failure::Call(format!("could not create admission objects: {why}"))
}

impl Failure {
    /// What the request is answered with; nothing where the failure does not matter.
    pub fn outcome(self, hook: &Hook) -> Result<(), Status> {
        match self {
            Failure::Refused(status) => Err(status),
            Failure::Call(why) => {
                let (webhook, configuration) = (&hook.name, &hook.configuration);
                tracing::warn!(%webhook, %configuration, ignored = hook.ignores_failure, "failed calling webhook: {why}");
                match hook.ignores_failure {
                    true => Ok(()),
                    false => Err(Status::internal(format!("failed calling webhook {webhook:?}: {why}"))),
                }
            }
        }
    }
}

fn open_span(sort: Sort, hook: &Hook, shown: &Shown<'_>, uid: &str) -> Span {
    let on = shown.subject.request.on;
    let span = on.span.step(match sort {
        Sort::Mutating => "Call mutating webhook",
        Sort::Validating => "Call validating webhook",
    });
    if span.is_recording() {
        let gv = &on.shown().gv;
        let resource = format!("{}/{}, Resource={}", gv.group, gv.version, on.resource.plural);
        for (key, value) in [
            ("configuration", &*hook.configuration),
            ("webhook", &hook.name),
            ("resource", &resource),
            ("subresource", &on.path.subresource),
            ("operation", shown.subject.request.operation.name()),
            ("UID", uid),
        ] {
            span.set(key, value);
        }
    }
    span
}

impl Admission {
    /// Sends a review and reads the answer.
    async fn post(&self, hook: &Hook, review: Bytes, span: &Span) -> Result<Value, String> {
        let url = hook.endpoint.url(hook.timeout.as_secs());
        let client_span = client_span(hook, &url, span);
        let request = build(&url, review, &client_span)?;
        let answer = send(hook, &*self.services, request, hook.timeout).await;
        let answer = answer.map_err(|why| {
            client_span.set("error.type", error_type(&why));
            client_span.fail(&why);
            format!("Post {url:?}: {why}")
        })?;
        describe_answer(&client_span, &answer);
        drop(client_span);
        read(&answer)
    }
}

async fn send(
    hook: &Hook,
    services: &dyn Services,
    request: HttpRequest<Full<Bytes>>,
    time: Duration,
) -> Result<Answer, String> {
    let (address, client) = hook.endpoint.client(services)?;
    match timeout(time, client.send(request)).await {
        Err(_) => Err(DEADLINE_EXCEEDED.to_owned()),
        Ok(answer) => answer.map_err(|error| words::of_transport(&error, &address)),
    }
}

fn build(url: &str, review: Bytes, span: &Span) -> Result<HttpRequest<Full<Bytes>>, String> {
    let mut request = HttpRequest::post(url).body(Full::new(review)).map_err(|error| error.to_string())?;
    let headers = request.headers_mut();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, */*"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    span.inject(headers);
    Ok(request)
}

/// The body of an answer whose status is good.
fn read(answer: &Answer) -> Result<Value, String> {
    let status = answer.head.status;
    if !(200..=206).contains(&status.as_u16()) {
        return Err(of_error(answer));
    }
    if answer.body.is_empty() {
        let kind = content_type(answer).unwrap_or_default();
        return Err(format!("0-length response with status code: {} and content type: {kind}", status.as_u16()));
    }
    answer::read(&answer.body)
}

/// What an error says: its `Status`, or what its code means.
fn of_error(answer: &Answer) -> String {
    let status: Option<Value> = serde_json::from_slice(&answer.body).ok();
    let said = status.as_ref().filter(|status| status.get("kind").and_then(Value::as_str) == Some("Status"));
    if let Some(message) = said.and_then(|status| status.get("message")).and_then(Value::as_str) {
        return message.to_owned();
    }
    let is_text = content_type(answer).is_none_or(|kind| kind.starts_with("text/"));
    let shown = answer.body.get(..answer.body.len().min(SHOWN)).unwrap_or_default();
    let text = String::from_utf8_lossy(shown);
    words::of_status(answer.head.status.as_u16(), is_text.then_some(&*text))
}

fn content_type(answer: &Answer) -> Option<&str> {
    answer.head.headers.get(header::CONTENT_TYPE)?.to_str().ok()
}

fn client_span(hook: &Hook, url: &str, parent: &Span) -> Span {
    let span = parent.child(Scope::Http, Kind::Client, "HTTP POST");
    if span.is_recording() {
        let (host, port) = hook.endpoint.server();
        span.set("http.request.method", "POST");
        span.set("url.full", url);
        span.set("server.address", host);
        if port != HTTPS_PORT {
            span.set("server.port", i64::from(port));
        }
        // Go's client says so of every request before it knows better.
        span.set("network.protocol.version", "1.1");
    }
    span
}

/// The Go type of the error of a call that had no answer, as kube-apiserver's spans name it.
fn error_type(why: &str) -> &'static str {
    match why {
        DEADLINE_EXCEEDED => "context.deadlineExceededError",
        _ if why.starts_with("dial ") || why.starts_with("read ") || why.starts_with("write ") => "*net.OpError",
        _ if why.starts_with("tls: failed to verify certificate") => "*tls.CertificateVerificationError",
        _ => "*errors.errorString",
    }
}

fn describe_answer(span: &Span, answer: &Answer) {
    if !span.is_recording() {
        return;
    }
    let status = answer.head.status;
    span.set("http.response.status_code", i64::from(status.as_u16()));
    if status.as_u16() >= 400 {
        span.set("error.type", status.as_str());
        span.fail("");
    }
}
