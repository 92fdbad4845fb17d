//! Calls to others as part of what is going on here.

use std::future::Future;

use bytes::Bytes;
use http::{Request, Version, uri::Scheme};
use http_body_util::Full;

use super::{Kind, Scope, Span};
use crate::client::{Answer, Client, Error};

tokio::task_local! {
    /// What is going on, for those who are called through traits that know nothing of spans.
    static CURRENT: Span;
}

/// Does work as part of a span, which [`current`] then gives.
pub async fn within<T>(span: &Span, work: impl Future<Output = T>) -> T {
    CURRENT.scope(span.clone(), work).await
}

/// The span that the work of now is part of.
pub fn current() -> Span {
    CURRENT.try_with(Span::clone).unwrap_or_default()
}

/// Sends a request with a span of its own, whose context goes along.
pub async fn send(parent: &Span, client: &Client, mut request: Request<Full<Bytes>>) -> Result<Answer, Error> {
    let span = parent.child(Scope::Http, Kind::Client, &format!("HTTP {}", request.method()));
    span.inject(request.headers_mut());
    if span.is_recording() {
        let uri = request.uri();
        let default = if uri.scheme() == Some(&Scheme::HTTP) { 80 } else { 443 };
        span.set("http.request.method", request.method().as_str());
        span.set("url.full", &uri.to_string());
        span.set("server.address", uri.host().unwrap_or_default());
        span.set("server.port", i64::from(uri.port_u16().unwrap_or(default)));
    }
    let answer = client.send(request).await;
    if span.is_recording() {
        describe(&span, &answer);
    }
    answer
}

fn describe(span: &Span, answer: &Result<Answer, Error>) {
    match answer {
        Ok(answer) => {
            let status = answer.head.status;
            let version = if answer.head.version == Version::HTTP_2 { "2" } else { "1.1" };
            span.set("network.protocol.version", version);
            span.set("http.response.status_code", i64::from(status.as_u16()));
            if status.as_u16() >= 400 {
                span.set("error.type", status.as_str());
                span.fail("");
            }
        }
        Err(error) => span.fail(&error.to_string()),
    }
}
