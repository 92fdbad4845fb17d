//! HTTP: who may ask, and what is answered.
//!
//! There is no sign-in, and so the page is for those who can reach its address, this machine alone unless it is told otherwise. A page of another site that a browser has open must not
//! read traces either: its requests carry its own name as the host (that is how a name that suddenly points here, DNS rebinding, is seen), or are not
//! allowed by the browser, as no answer permits another origin. Nor must it ask anything for the asking's sake, as a picture whose address is a question: browsers say
//! where a request comes from, and the API answers none of another site.

mod connections;

use std::{net::IpAddr, path::PathBuf, sync::Arc};

use axum::{
    Router,
    extract::{self, Request},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};

use self::connections::Bounds;
use crate::{
    Addresses, Options, api,
    cluster::Cluster,
    jaeger, metrics, page,
    store::{Keeper, Store},
};

/// What the page may do: load its own files and ask its own server.
const POLICY: &str =
    "default-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'self'";

/// Streams at the same time: a quarter of the connections that are served.
const MAX_STREAMS: usize = 128;

/// What requests share.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) store: Arc<Store>,
    pub(crate) keeper: Keeper,
    pub(crate) addresses: Addresses,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) cluster: Option<Cluster>,
    /// A file is large while it is read: one at a time.
    pub(crate) importing: Arc<Semaphore>,
    /// Streams that may begin: they last, and must leave connections for pages.
    pub(crate) streams: Arc<Semaphore>,
    hosts: Arc<[String]>,
    /// Whether streams are to end.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl State {
    pub(crate) fn new(
        store: Arc<Store>,
        keeper: Keeper,
        addresses: Addresses,
        options: &Options,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let cluster = options.kubeconfig.clone().map(|file| Cluster::new(file, &options.namespace));
        let importing = Arc::new(Semaphore::new(1));
        let streams = Arc::new(Semaphore::new(MAX_STREAMS));
        let hosts = options.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        let data_dir = options.data_dir.clone();
        Self { store, keeper, addresses, data_dir, cluster, importing, streams, hosts, stopping }
    }
}

/// Serves until it is told to stop.
pub(crate) async fn run(listener: TcpListener, state: State, stopping: watch::Receiver<bool>) {
    connections::serve(listener, routes(state), Bounds::default(), stopping).await;
}

fn routes(state: State) -> Router {
    Router::new()
        .nest("/api/v1", api::routes())
        .nest("/api", jaeger::routes())
        .route("/metrics", get(metrics::metrics))
        .route("/healthz", get(async || "ok"))
        .fallback(fallback)
        .layer(middleware::from_fn_with_state(state.clone(), guard))
        .with_state(state)
}

async fn fallback(method: Method, uri: Uri) -> Response {
    if is_api(&uri) {
        return api::refuse(StatusCode::NOT_FOUND, "there is no such path");
    }
    match method {
        Method::GET | Method::HEAD => page::file(uri.path()),
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

async fn guard(extract::State(state): extract::State<State>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).or(request.uri().host());
    let mut response = if !host.is_some_and(|host| is_known(host, &state.hosts)) {
        api::refuse(StatusCode::FORBIDDEN, "this host name is not served here; --allow-host adds one")
    } else if is_api(request.uri()) && is_of_another_site(&request) {
        api::refuse(StatusCode::FORBIDDEN, "a page of another site may not ask; open this address by itself")
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

fn is_api(uri: &Uri) -> bool {
    uri.path().starts_with("/api/")
}

/// Whether a browser says so. Links of other sites to the page are not meant: they lead to no API.
fn is_of_another_site(request: &Request) -> bool {
    request.headers().get("sec-fetch-site").is_some_and(|site| site == "cross-site")
}

/// Whether somebody may ask by this name: an address, this machine, or a name that was given. Whoever controls another name could make it point here.
pub(crate) fn is_known(host: &str, hosts: &[String]) -> bool {
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
        let known = |host| is_known(host, &hosts);
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
