//! Outgoing requests as part of the current span.

use std::future::Future;

use bytes::Bytes;
use http::{Request, Version, uri::Scheme};
use http_body_util::Full;

use super::{InstrumentationScope, TraceSpan, TraceSpanKind};
use crate::client::{BufferedResponse, HttpClient, HttpClientError};

tokio::task_local! {
    /// The current span, for callees behind traits without a span parameter.
    static CURRENT: TraceSpan;
}

/// Runs a future in a span, which [`current_span`] then returns.
pub async fn run_in_span<T>(span: &TraceSpan, work: impl Future<Output = T>) -> T {
    CURRENT.scope(span.clone(), work).await
}

/// The span of the current task.
pub fn current_span() -> TraceSpan {
    CURRENT.try_with(TraceSpan::clone).unwrap_or_default()
}

/// Sends a request in a span of its own, whose context it propagates.
pub async fn send_traced(
    parent: &TraceSpan,
    client: &HttpClient,
    mut request: Request<Full<Bytes>>,
) -> Result<BufferedResponse, HttpClientError> {
    let span = parent.child(InstrumentationScope::Http, TraceSpanKind::Client, &format!("HTTP {}", request.method()));
    span.inject(request.headers_mut());
    if span.is_recording() {
        let uri = request.uri();
        let default = if uri.scheme() == Some(&Scheme::HTTP) { 80 } else { 443 };
        span.set_attribute("http.request.method", request.method().as_str());
        span.set_attribute("url.full", &uri.to_string());
        span.set_attribute("server.address", uri.host().unwrap_or_default());
        span.set_attribute("server.port", i64::from(uri.port_u16().unwrap_or(default)));
    }
    let answer = client.send(request).await;
    if span.is_recording() {
        describe(&span, &answer);
    }
    answer
}

fn describe(span: &TraceSpan, answer: &Result<BufferedResponse, HttpClientError>) {
    match answer {
        Ok(answer) => {
            let status = answer.head.status;
            let version = if answer.head.version == Version::HTTP_2 { "2" } else { "1.1" };
            span.set_attribute("network.protocol.version", version);
            span.set_attribute("http.response.status_code", i64::from(status.as_u16()));
            if status.as_u16() >= 400 {
                span.set_attribute("error.type", status.as_str());
                span.set_error("");
            }
        }
        Err(error) => span.set_error(&error.to_string()),
    }
}
