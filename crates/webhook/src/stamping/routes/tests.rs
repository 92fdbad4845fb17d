//! Limits of the bodies that are read.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use kubewake_trail::Options;
use opentelemetry::{global::BoxedTracer, trace::noop::NoopTracer};
use tower::Service as _;

use super::*;
use crate::body_reader::{BODY_BUDGET_KIB, MAX_BODY_BYTES};

/// A body that never arrives, with this announced length.
struct Never(Option<u64>);

impl http_body::Body for Never {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }

    fn size_hint(&self) -> SizeHint {
        self.0.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

fn webhook() -> Arc<StampWebhook> {
    Arc::new(StampWebhook::new(BoxedTracer::new(Box::new(NoopTracer::new())), Options::default()))
}

async fn send(router: &Router, body: Body) -> StatusCode {
    let request = Request::post(PATH).header(header::CONTENT_TYPE, "application/json").body(body).unwrap();
    router.clone().call(request).await.unwrap().status()
}

#[tokio::test(start_paused = true)]
async fn who_is_slow_is_not_waited_for() {
    let webhook = webhook();
    let router = webhook.router(Arc::default());
    for length in [None, Some(10)] {
        assert_eq!(send(&router, Body::new(Never(length))).await, StatusCode::REQUEST_TIMEOUT);
    }
    assert_eq!(webhook.counters().troubles(CallTrouble::TooSlow), 2);
}

#[tokio::test]
async fn what_is_too_long_is_not_read() {
    let webhook = webhook();
    let router = webhook.router(Arc::default());
    assert_eq!(send(&router, Body::new(Never(Some(MAX_BODY_BYTES as u64 + 1)))).await, StatusCode::PAYLOAD_TOO_LARGE);
    // Nor a body of unknown length.
    let long = http_body_util::StreamBody::new(futures_util::stream::repeat_with(|| {
        Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b' '; 1 << 16])))
    }));
    assert_eq!(send(&router, Body::new(long)).await, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(webhook.counters().troubles(CallTrouble::TooLarge), 2);
}

#[tokio::test(start_paused = true)]
async fn all_calls_together_hold_a_bounded_number_of_bytes() {
    let webhook = webhook();
    let body_reader = BodyReader::new(CALL_TIMEOUT);
    let budget = Arc::clone(body_reader.budget());
    let router =
        build_router(Arc::new(RouterState { webhook: Arc::clone(&webhook), body_reader, ready: Arc::default() }));
    let others = budget.acquire_many(u32::try_from(BODY_BUDGET_KIB).unwrap()).await.unwrap();
    let small = || Body::from("{}");
    assert_eq!(send(&router, small()).await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(webhook.counters().troubles(CallTrouble::Busy), 1);
    drop(others);
    assert_eq!(send(&router, small()).await, StatusCode::BAD_REQUEST);
    assert_eq!(budget.available_permits(), BODY_BUDGET_KIB, "what is answered holds nothing");
}

#[tokio::test]
async fn it_is_ready_once_it_says_so() {
    let webhook = webhook();
    let ready = Arc::new(AtomicBool::new(false));
    let router = webhook.router(Arc::clone(&ready));
    let ask = async |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        router.clone().call(request).await.unwrap().status()
    };
    assert_eq!((ask("/healthz").await, ask("/readyz").await), (StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE));
    ready.store(true, Ordering::Relaxed);
    assert_eq!((ask("/readyz").await, ask("/metrics").await), (StatusCode::OK, StatusCode::OK));
    assert_eq!(ask(PATH).await, StatusCode::METHOD_NOT_ALLOWED);
    webhook.counters().maintenance().note_registered(false);
    assert_eq!((ask("/healthz").await, ask("/readyz").await), (StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE));
    webhook.counters().maintenance().note_registered(true);
    assert_eq!(ask("/readyz").await, StatusCode::OK);
}

#[tokio::test]
async fn who_looks_is_told_what_is_selected_in_vain() {
    let webhook = webhook();
    webhook.counters().note_unserved(vec!["there is no v1/config".to_owned()]);
    let router = webhook.router(Arc::new(AtomicBool::new(true)));
    let request = Request::get("/readyz").body(Body::empty()).unwrap();
    let answer = router.clone().call(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let body = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes();
    assert_eq!(body, "ok\nwarning: there is no v1/config");
    assert!(webhook.counters().render_metrics().contains("kubewake_webhook_unserved_selections 1\n"));
}
