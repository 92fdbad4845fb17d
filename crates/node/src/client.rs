//! How the cluster's parts reach the API server: all requests and watches of one part share one connection.
//!
//! kube's own client speaks HTTP/1.1, where every request that is under way takes a connection, and so does every watch. Both ends
//! of them are in this process, and cost some hundred KiB together: a hundred pods that start at once took twenty MiB.
//! *Assumes* that the API server speaks HTTP/2, as every Kubernetes does.

use http::{HeaderValue, Method, Request};
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

/// A context of a trace that nobody records: leases, status and events would be most of what is seen otherwise.
const UNRECORDED: &str = "00-6b75626577616b656b75626577616b65-6b75626577616b65-00";

/// A client with one connection. A quiet one begins no traces, but for those of pods that it creates: they may be somebody's to follow.
pub(crate) fn connect(config: &Config, quiet: bool) -> Result<Client> {
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
        .map_request(move |request| if quiet { unrecorded(request) } else { request })
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace.clone()))
}

fn unrecorded(mut request: Request<Body>) -> Request<Body> {
    let creates_pod = request.method() == Method::POST && request.uri().path().ends_with("/pods");
    if !creates_pod {
        request.headers_mut().insert("traceparent", HeaderValue::from_static(UNRECORDED));
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_creation_of_a_pod_begins_a_trace() {
        let is_recorded = |method, path: &str| {
            let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
            !unrecorded(request).headers().contains_key("traceparent")
        };
        assert!(is_recorded(Method::POST, "https://a/api/v1/namespaces/shop/pods?x=y"));
        assert!(!is_recorded(Method::POST, "/api/v1/namespaces/shop/pods/web/binding"));
        assert!(!is_recorded(Method::GET, "/api/v1/namespaces/shop/pods"));
        assert!(!is_recorded(Method::PATCH, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1"));
    }
}
