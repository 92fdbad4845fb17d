//! The operator's HTTP endpoints: `/healthz`, `/readyz`, `/metrics`.

use std::io;

use axum::{Router, http::header::CONTENT_TYPE, routing::get};
use tokio::net::TcpListener;

const METRICS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves until `stop`. A replica that serves is ready: that another one leads is no reason to replace it. Work
/// that must precede the first admission call has to be done before this.
///
/// # Errors
/// If the listener fails.
pub async fn serve(
    listener: TcpListener,
    page: impl Fn() -> String + Clone + Send + Sync + 'static,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let page = move || async move { ([(CONTENT_TYPE, METRICS_CONTENT_TYPE)], page()) };
    let well = || async { "ok\n" };
    let router = Router::new().route("/healthz", get(well)).route("/readyz", get(well)).route("/metrics", get(page));
    axum::serve(listener, router).with_graceful_shutdown(stop).await
}
