//! How the cluster's parts reach the API server: all requests and watches of one part share one connection.
//!
//! kube's own client speaks HTTP/1.1, where every request that is under way takes a connection, and so does every watch. Both ends
//! of them are in this process, and cost some hundred KiB together: a hundred pods that start at once took twenty MiB.
//! *Assumes* that the API server speaks HTTP/2, as every Kubernetes does.

use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config, Result,
    client::{Body, ConfigExt},
};
use tower::{BoxError, ServiceBuilder, limit::ConcurrencyLimitLayer};

/// As many requests of one part are under way, so that a burst of work does not become a burst of memory. A watch counts only until it is answered.
const REQUESTS: usize = 16;

/// A client with one connection.
pub(crate) fn connect(config: &Config) -> Result<Client> {
    let mut tls = config.rustls_client_config()?;
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let http = HttpClient::builder(TokioExecutor::new())
        .http2_only(true)
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .build::<_, Body>(HttpsConnector::from((tcp, tls)));
    let service = ServiceBuilder::new()
        .layer(ConcurrencyLimitLayer::new(REQUESTS))
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace.clone()))
}
