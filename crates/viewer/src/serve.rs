//! The HTTP server: access checks and routes.
//!
//! There is no authentication: the page is for everybody who can reach its address, which is this machine alone
//! by default. Pages of other sites in the same browser must not read traces. Their requests either carry
//! another host name, which reveals DNS rebinding, or are blocked by the browser, since no response permits
//! another origin. Nor must they trigger queries, such as by an image whose URL is one: browsers send the
//! origin of a request, and the API rejects cross-site requests.

mod connections;

use std::{io, net::IpAddr, path::PathBuf, sync::Arc};

use axum::{
    Router,
    extract::{self, Request},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use kubewake_runtime::listener::ConnectionListener;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};

use self::connections::ServerLimits;
use crate::{
    ViewerAddresses, ViewerOptions, api,
    cluster::ClusterReader,
    jaeger,
    log_tail::LogTail,
    metrics, page,
    store::{StoreWriter, TraceStore},
};

/// The page may load its own files and connect to its own server.
const CONTENT_SECURITY_POLICY_VALUE: &str =
    "default-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'self'";

/// Concurrent streams: a quarter of the connections.
const MAX_STREAMS: usize = 128;

#[derive(Clone, Debug)]
pub(crate) struct ViewerState {
    pub(crate) store: Arc<TraceStore>,
    pub(crate) keeper: StoreWriter,
    pub(crate) logs: Arc<LogTail>,
    pub(crate) addresses: ViewerAddresses,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) cluster: Option<ClusterReader>,
    /// One import at a time, because a file takes much memory while it is read.
    pub(crate) importing: Arc<Semaphore>,
    /// Permits for streams, which are long-lived and must leave connections for pages.
    pub(crate) streams: Arc<Semaphore>,
    hosts: Arc<[String]>,
    /// Becomes true when streams are to end.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl ViewerState {
    pub(crate) fn new(
        store: Arc<TraceStore>,
        keeper: StoreWriter,
        logs: Arc<LogTail>,
        addresses: ViewerAddresses,
        options: &ViewerOptions,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let cluster = options.kubeconfig.clone().map(|file| ClusterReader::new(file, &options.namespace));
        let importing = Arc::new(Semaphore::new(1));
        let streams = Arc::new(Semaphore::new(MAX_STREAMS));
        let hosts = options.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        let data_dir = options.data_dir.clone();
        Self { store, keeper, logs, addresses, data_dir, cluster, importing, streams, hosts, stopping }
    }
}

/// Starts to serve on a bound socket.
pub(crate) fn start(listener: TcpListener, state: ViewerState) -> io::Result<ConnectionListener> {
    connections::start(listener, routes(state), ServerLimits::default())
}

fn routes(state: ViewerState) -> Router {
    Router::new()
        .nest("/api/v1", api::routes())
        .nest("/api", jaeger::routes())
        .route("/metrics", get(metrics::metrics))
        .route("/healthz", get(async || "ok"))
        .fallback(fallback)
        .layer(middleware::from_fn_with_state(state.clone(), check_request))
        .with_state(state)
}

async fn fallback(method: Method, uri: Uri) -> Response {
    if is_api(&uri) {
        return api::error_response(StatusCode::NOT_FOUND, "path not found");
    }
    match method {
        Method::GET | Method::HEAD => page::serve_file(uri.path()),
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

async fn check_request(extract::State(state): extract::State<ViewerState>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).or(request.uri().host());
    let mut response = if !host.is_some_and(|host| is_known_host(host, &state.hosts)) {
        api::error_response(StatusCode::FORBIDDEN, "host name not allowed; add it with --allow-host")
    } else if is_api(request.uri()) && is_cross_site(&request) {
        api::error_response(StatusCode::FORBIDDEN, "cross-site requests are not allowed; open this address directly")
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY_VALUE));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

fn is_api(uri: &Uri) -> bool {
    uri.path().starts_with("/api/")
}

/// Whether the browser marks the request as cross-site. Links from other sites to the page pass: they lead to
/// no API.
fn is_cross_site(request: &Request) -> bool {
    request.headers().get("sec-fetch-site").is_some_and(|site| site == "cross-site")
}

/// Whether requests may use this host: an address, this machine, or a configured name. Whoever controls another
/// name could make it resolve to this machine.
pub(crate) fn is_known_host(host: &str, hosts: &[String]) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name.parse::<IpAddr>().is_ok() || name == "localhost" || name.ends_with(".localhost") || hosts.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_others_control_are_not_served() {
        let hosts = ["viewer.example".to_owned()];
        let known = |host| is_known_host(host, &hosts);
        for host in
            ["127.0.0.1", "127.0.0.1:16686", "[::1]:16686", "localhost:1", "LOCALHOST", "viewer.example:80", "10.0.0.7"]
        {
            assert!(known(host), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:16686", ""] {
            assert!(!known(host), "{host}");
        }
    }
}
