use std::{
    fs,
    sync::{Arc, Mutex},
};

use http::{HeaderMap, Request as HttpRequest, Response};
use http_body_util::BodyExt as _;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;

use super::{authenticator::WebhookTokenAuthenticator, authorizer::WebhookAuthorizer, *};
use crate::{
    auth::{AuthorizationAttributes, AuthorizationDecision, Authorizer as _, TokenAuthenticator as _, UserInfo},
    trace::{
        InstrumentationScope, SpanOrigin, SpanPipeline, SpanSampling, SpanStart, TraceSpan, TraceSpanKind, Tracer,
    },
};

type Calls = Arc<Mutex<Vec<(HeaderMap, Value)>>>;

/// A webhook that responds to every review with this status.
async fn answering(status: Value) -> (WebhookClient, Calls) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let calls = Calls::default();
    let seen = Arc::clone(&calls);
    tokio::spawn(async move {
        loop {
            let stream = TokioIo::new(listener.accept().await.unwrap().0);
            let seen = Arc::clone(&seen);
            let status = status.clone();
            let service = service_fn(move |request: HttpRequest<Incoming>| {
                let seen = Arc::clone(&seen);
                let status = status.clone();
                async move {
                    let (head, body) = request.into_parts();
                    let mut review: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
                    seen.lock().unwrap().push((head.headers, review.clone()));
                    review["status"] = status;
                    Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from(review.to_string()))))
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(stream, service));
        }
    });
    (webhook(&format!("http://{address}/review"), "token: s3cret").unwrap(), calls)
}

fn webhook(server: &str, user: &str) -> Result<WebhookClient, WebhookConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let text = format!(
        "current-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
         clusters: [{{name: k, cluster: {{server: '{server}'}}}}]\nusers: [{{name: u, user: {{{user}}}}}]"
    );
    fs::write(&path, text).unwrap();
    WebhookClient::load(&path)
}

/// A recording span and its pipeline.
fn span() -> (TraceSpan, Arc<SpanPipeline>) {
    let pipeline = SpanPipeline::new(SpanSampling { ratio_per_million: 1_000_000, ..SpanSampling::default() });
    let tracer = Tracer::default();
    tracer.set_pipeline(Some(Arc::clone(&pipeline)));
    let start = std::time::SystemTime::now();
    let begin = SpanStart {
        scope: InstrumentationScope::Filter,
        kind: TraceSpanKind::Internal,
        name: &"authentication",
        start,
    };
    (tracer.start(&SpanOrigin::Root, begin), pipeline)
}

fn own() -> Arc<[String]> {
    ["api".to_owned()].into()
}

#[tokio::test]
async fn a_token_is_asked_for_once_with_the_context_of_the_request() {
    let user = json!({ "username": "jane", "uid": "7", "groups": ["g"], "extra": { "k": ["v"] } });
    let (webhook, calls) = answering(json!({ "authenticated": true, "user": user })).await;
    let tokens = WebhookTokenAuthenticator::new(webhook, own());
    let (span, pipeline) = span();
    let identity = outgoing::run_in_span(&span, tokens.authenticate("t", None)).await.unwrap().unwrap();
    assert_eq!(identity.user.extra["k"], ["v"]);
    assert_eq!((&*identity.user.name, &*identity.user.uid, identity.audiences), ("jane", "7", own()));
    assert!(tokens.authenticate("t", None).await.unwrap().is_some());
    let calls = calls.lock().unwrap();
    let [(headers, review)] = calls.as_slice() else { panic!("asked {} times", calls.len()) };
    assert_eq!(review["spec"], json!({ "token": "t", "audiences": ["api"] }));
    assert_eq!(headers["authorization"], "Bearer s3cret");
    let parent = headers["traceparent"].to_str().unwrap();
    assert!(parent.contains(&format!("{:?}", span.context().unwrap().trace)) && parent.ends_with("-01"));
    assert_eq!(pipeline.take().len(), 1, "the span of the call");
}

#[tokio::test]
async fn whom_a_webhook_does_not_know_nobody_knows() {
    let (webhook, _) = answering(json!({ "authenticated": false })).await;
    assert_eq!(WebhookTokenAuthenticator::new(webhook, own()).authenticate("t", None).await, Ok(None));
    let (webhook, _) = answering(json!({ "error": "down" })).await;
    assert_eq!(WebhookTokenAuthenticator::new(webhook, own()).authenticate("t", None).await, Err("down".to_owned()));
    let other = json!({ "authenticated": true, "user": { "username": "x" }, "audiences": ["elsewhere"] });
    let (webhook, _) = answering(other).await;
    assert_eq!(WebhookTokenAuthenticator::new(webhook, own()).authenticate("t", None).await, Ok(None));
}

#[tokio::test]
async fn a_webhook_allows_denies_or_has_no_opinion() {
    let user = UserInfo::new("jane", ["g"]);
    let attributes = AuthorizationAttributes::for_resource(&user, "get", "", "pods").namespace("default").name("p");
    for (status, decision) in [
        (json!({ "allowed": true }), AuthorizationDecision::allow("")),
        (json!({ "allowed": false, "denied": true, "reason": "no" }), AuthorizationDecision::deny("no")),
        (json!({ "allowed": false, "reason": "who?" }), AuthorizationDecision::no_opinion("who?")),
        (json!({ "allowed": true, "denied": true }), AuthorizationDecision::no_opinion("")),
    ] {
        let (webhook, calls) = answering(status).await;
        let access = WebhookAuthorizer::new(webhook);
        assert_eq!(access.authorize(&attributes).await, decision);
        assert_eq!(access.authorize(&attributes).await, decision);
        let calls = calls.lock().unwrap();
        assert_eq!(calls.len(), 1, "and it is remembered");
        let resource =
            json!({ "namespace": "default", "verb": "get", "version": "*", "resource": "pods", "name": "p" });
        assert_eq!(calls[0].1["spec"], json!({ "user": "jane", "groups": ["g"], "resourceAttributes": resource }));
    }
}

#[tokio::test]
async fn one_that_cannot_be_asked_has_no_opinion() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let webhook = webhook(&format!("http://{gone}"), "").unwrap();
    let user = UserInfo::new("jane", ["g"]);
    let access = WebhookAuthorizer::new(webhook.clone());
    assert_eq!(
        access.authorize(&AuthorizationAttributes::for_path(&user, "get", "/x")).await,
        AuthorizationDecision::no_opinion("")
    );
    let error = WebhookTokenAuthenticator::new(webhook, own()).authenticate("s3cret", None).await.unwrap_err();
    assert!(error.contains("refused") && !error.contains("s3cret"), "{error}");
}

#[test]
fn a_kubeconfig_that_cannot_be_used_says_why() {
    for (server, user, why) in [
        ("https://x", "client-certificate-data: '?'", "client-certificate-data: not base64"),
        ("https://x", "client-certificate: absent", "client-certificate: absent"),
        ("http://x", "tokenFile: absent", "tokenFile: absent"),
        ("/", "", "server: no host"),
    ] {
        let error = webhook(server, user).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
