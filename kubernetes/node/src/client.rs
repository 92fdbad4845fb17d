//! Clients for the cluster's components: all requests and watches of a component share one connection.
//!
//! kube's own client speaks HTTP/1.1, where every request in flight and every watch needs a connection. Both
//! ends of a connection are in this process and take some hundred KiB together: a hundred pods that started at
//! once took 20 MiB. *Assumed*: the API server speaks HTTP/2, as every Kubernetes API server does.

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

/// The limit of requests in flight per component, so that a burst of work is no burst of memory. A watch counts
/// only until its response begins.
const MAX_REQUESTS_IN_FLIGHT: usize = 16;

/// A trace context that is not sampled: without it, leases, status updates and Events would be most of the
/// traces.
const UNSAMPLED_TRACEPARENT: &str = "00-6b75626577616b656b75626577616b65-6b75626577616b65-00";

/// Creates a client with one connection. A quiet client starts no traces, except for the pods that it creates,
/// as these may be traced by somebody.
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
        .layer(ConcurrencyLimitLayer::new(MAX_REQUESTS_IN_FLIGHT))
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_request(move |request| if quiet { add_unsampled_context(request) } else { request })
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace.clone()))
}

fn add_unsampled_context(mut request: Request<Body>) -> Request<Body> {
    let creates_pod = request.method() == Method::POST && request.uri().path().ends_with("/pods");
    if !creates_pod {
        request.headers_mut().insert("traceparent", HeaderValue::from_static(UNSAMPLED_TRACEPARENT));
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
            !add_unsampled_context(request).headers().contains_key("traceparent")
        };
        assert!(is_recorded(Method::POST, "https://a/api/v1/namespaces/shop/pods?x=y"));
        assert!(!is_recorded(Method::POST, "/api/v1/namespaces/shop/pods/web/binding"));
        assert!(!is_recorded(Method::GET, "/api/v1/namespaces/shop/pods"));
        assert!(!is_recorded(Method::PATCH, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1"));
    }
}
