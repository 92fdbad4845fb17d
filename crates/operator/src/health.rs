//! What the operator says of itself, over plain HTTP: `/healthz`, `/readyz`, `/metrics`.

use std::io;

use axum::{Router, http::header::CONTENT_TYPE, routing::get};
use tokio::net::TcpListener;

/// What Prometheus expects.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves until `stop`, with this page of metrics. Whoever serves is ready: that another one leads is no reason to be replaced. So who has more to do before API servers may
/// call begins with that.
///
/// # Errors
/// If the socket breaks.
pub async fn serve(
    listener: TcpListener,
    page: impl Fn() -> String + Clone + Send + Sync + 'static,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let page = move || async move { ([(CONTENT_TYPE, TEXT)], page()) };
    let well = || async { "ok\n" };
    let router = Router::new().route("/healthz", get(well)).route("/readyz", get(well)).route("/metrics", get(page));
    axum::serve(listener, router).with_graceful_shutdown(stop).await
}
