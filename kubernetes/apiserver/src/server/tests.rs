//! Tracing between a server and a collector.

use std::{fs, path::Path};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::{
    client::{AddressConnector, DialAddress, HttpClient, TlsClientConfig},
    trace::testing::Collector,
};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

struct Setup {
    server: ApiServer,
    client: HttpClient,
    folder: TempDir,
}

impl Setup {
    async fn new(gates: &str, document: Option<String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = document.map(|document| write(folder.path(), &document));
        let options =
            Options { tracing_config_file: file, feature_gates: gates.parse().unwrap(), ..Options::default() };
        let server = ApiServer::start(options).await.unwrap();
        let kubeconfig = server.kubeconfig();
        let ClientCredentials::Certificate(pair) = &kubeconfig.credentials else { panic!("no certificate") };
        let ca = kubeconfig.certificate_authority.as_deref().map(str::as_bytes);
        let identity = Some((pair.chain.as_bytes(), pair.key.as_bytes()));
        let trust = TlsClientConfig::new(ca, "127.0.0.1", identity, &[b"h2"]).unwrap();
        let address = DialAddress::Tcp("127.0.0.1".into(), server.address().port());
        let client = HttpClient::new(AddressConnector::new(address, Some(trust)), true, 1 << 20);
        Self { server, client, folder }
    }

    async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &Value) -> (u16, Bytes) {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.server.url()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let answer = self.client.send(request.body(Full::new(body)).unwrap()).await.unwrap();
        (answer.head.status.as_u16(), answer.body)
    }

    async fn create(&self, name: &str) {
        let object = json!({ "metadata": { "name": name } });
        let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
        let headers = [("content-type", "application/json"), ("traceparent", &*parent)];
        assert_eq!(self.send(Method::POST, MAPS, &headers, &object).await.0, 201);
    }

    async fn metric(&self, name: &str) -> f64 {
        let page = self.send(Method::GET, "/metrics", &[], &Value::Null).await.1;
        let page = String::from_utf8(page.into()).unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
    }
}

fn write(folder: &Path, document: &str) -> PathBuf {
    let file = folder.join("tracing.yaml");
    fs::write(&file, format!("apiVersion: apiserver.config.k8s.io/v1\n{document}")).unwrap();
    file
}

fn to(address: &str, ratio: u32) -> String {
    format!("kind: TracingConfiguration\nendpoint: {address}\nsamplingRatePerMillion: {ratio}")
}

/// `parent > name` of each span of one request, without those of filters.
async fn shape_of_request(method: Method, path: &str, body: &Value) -> (Vec<String>, Vec<Span>) {
    let (mut collector, address) = Collector::on_tcp(true, &[]).await;
    let setup = Setup::new("", Some(to(&address, 0))).await;
    let kept = json!({ "metadata": { "name": "kept", "finalizers": ["example.com/hold"] } });
    assert_eq!(setup.send(Method::POST, MAPS, &[("content-type", "application/json")], &kept).await.0, 201);
    let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
    let headers = [("content-type", "application/json"), ("traceparent", &*parent)];
    setup.send(method, path, &headers, body).await;
    setup.server.stop().await;
    let mut spans = Vec::new();
    while let Some((_, request)) = collector.requests.recv().await {
        let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        spans.extend(scopes.flat_map(|scope| scope.spans));
        if spans.iter().any(|span: &Span| span.name.contains('/') && span.parent_span_id.len() == 8) {
            break;
        }
    }
    let filters = ["authentication", "audit", "impersonation", "priorityandfairness", "authorization"];
    let inner = spans.iter().filter(|span| !filters.contains(&&*span.name) && !span.name.contains(' '));
    let shape = inner.map(|span| {
        let parent = spans.iter().find(|parent| parent.span_id == span.parent_span_id);
        format!("{} > {}", parent.map_or("", |parent| &parent.name), span.name)
    });
    (shape.collect(), spans)
}

/// All spans up to the one of this name, in the order of their arrival.
async fn spans_until(collector: &mut Collector, name: &str) -> Vec<Span> {
    let mut all = Vec::new();
    while !all.iter().any(|span: &Span| span.name == name) {
        let request = collector.requests.recv().await.unwrap().1;
        let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        all.extend(scopes.flat_map(|scope| scope.spans));
    }
    all
}

const SERVER: &str = "POST /api/v1/namespaces/{:namespace}/configmaps";

#[tokio::test]
async fn the_last_spans_arrive_when_the_server_stops() {
    let (mut collector, address) = Collector::on_tcp(true, &[]).await;
    let setup = Setup::new("", Some(to(&address, 0))).await;
    setup.create("a").await;
    setup.server.stop().await;
    let spans = spans_until(&mut collector, SERVER).await;
    let server = spans.iter().find(|span| span.name == SERVER).unwrap();
    assert_eq!(server.parent_span_id, 0xb7ad_6b71_6920_3331_u64.to_be_bytes());
    let traced = |span: &&Span| span.trace_id == u128::from_str_radix(TRACE, 16).unwrap().to_be_bytes();
    assert_eq!(spans.iter().filter(traced).count(), spans.len(), "without a ratio only the caller's trace is recorded");
}

#[tokio::test]
async fn with_the_gate_closed_or_without_a_file_nothing_is_sent() {
    let (mut collector, address) = Collector::on_tcp(true, &[]).await;
    for setup in [
        Setup::new("APIServerTracing=false", Some(to(&address, 1_000_000))).await,
        Setup::new("APIServerTracing=true", None).await,
    ] {
        setup.create("a").await;
        assert_eq!(setup.metric("kubewake_apiserver_spans_exported").await, 0.0);
        setup.server.stop().await;
    }
    assert!(collector.requests.try_recv().is_err());
}

#[tokio::test]
async fn a_bad_file_keeps_the_server_from_starting_with_all_that_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "kind: TracingConfiguration\nendpoint: ftp://x\nsamplingRatePerMillion: -1");
    let options = Options { tracing_config_file: Some(file), ..Options::default() };
    let error = ApiServer::start(options).await.unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("unsupported scheme: ftp") && source.contains("must be positive"), "{source}");
}

#[tokio::test]
async fn a_reload_sends_spans_elsewhere() {
    let (mut first, one) = Collector::on_tcp(true, &[]).await;
    let (mut second, two) = Collector::on_tcp(true, &[]).await;
    let setup = Setup::new("", Some(to(&one, 0))).await;
    setup.create("a").await;
    spans_until(&mut first, SERVER).await;
    write(setup.folder.path(), &to(&two, 0));
    setup.server.reload();
    setup.create("b").await;
    tokio::select! {
        _ = spans_until(&mut second, SERVER) => {}
        // Spans in flight before the reload go to the previous collector.
        _ = spans_until(&mut first, SERVER) => {
            setup.create("c").await;
            spans_until(&mut second, SERVER).await;
        }
    }
}

#[tokio::test]
async fn a_service_of_the_cluster_may_be_the_collector() {
    let (mut collector, address) = Collector::on_tcp(true, &[]).await;
    let port: u16 = address.rsplit_once(':').unwrap().1.parse().unwrap();
    let to = format!("kind: OpenTelemetryClientConfiguration\nservice: {{namespace: default, name: c, port: {port}}}");
    let setup = Setup::new("", Some(to)).await;
    let service = json!({
        "metadata": { "name": "c" },
        "spec": { "type": "ExternalName", "externalName": "localhost", "ports": [{ "port": port }] },
    });
    let json = [("content-type", "application/json")];
    let (status, body) = setup.send(Method::POST, "/api/v1/namespaces/default/services", &json, &service).await;
    assert_eq!(status, 201, "{body:?}");
    setup.create("a").await;
    spans_until(&mut collector, SERVER).await;
}

#[tokio::test]
async fn every_event_that_a_watcher_gets_is_measured_once_and_old_ones_are_not() {
    let (mut collector, address) = Collector::on_tcp(true, &[]).await;
    let setup = Setup::new("", Some(to(&address, 0))).await;
    setup.create("old").await;
    let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
    let headers = [("traceparent", &*parent)];
    let path = format!("{MAPS}?watch=1&timeoutSeconds=4");
    let before = setup.metric("apiserver_longrunning_requests").await;
    let none = Value::Null;
    let watching = setup.send(Method::GET, &path, &headers, &none);
    let writing = async {
        // Wait until the watch is open.
        while setup.metric("apiserver_longrunning_requests").await <= before {}
        for name in ["a", "b", "c"] {
            setup.create(name).await;
        }
    };
    let ((status, body), ()) = tokio::join!(watching, writing);
    assert_eq!((status, body.iter().filter(|byte| **byte == b'\n').count()), (200, 4));
    assert_eq!(setup.metric("kubewake_apiserver_watch_delivery_seconds_count").await, 3.0);
    let all = spans_until(&mut collector, "GET /api/v1/namespaces/{:namespace}/configmaps").await;
    let named = |name: &str| all.iter().find(|span| span.name == name).unwrap();
    let server = named("GET /api/v1/namespaces/{:namespace}/configmaps");
    assert!(server.end_time_unix_nano - server.start_time_unix_nano > 1_000_000_000, "it lasts as long as the stream");
    let events: Vec<&str> = named("cacher.Watch").events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(events, ["watchCache locked acquired", "watchCache fresh enough"]);
    // A watch without bookmarks has no end of its initial list.
    assert!(all.iter().all(|span| !["WatchList", "WatchServer.HandleHTTP"].contains(&span.name.as_str())));
}

#[tokio::test]
async fn a_list_that_is_refused_before_it_begins_has_no_span_of_its_own() {
    let path = "/apis/apps/v1/namespaces/default/deployments?limit=x";
    let (shape, spans) = shape_of_request(Method::GET, path, &Value::Null).await;
    assert_eq!(shape, ["authorization > SerializeObject"]);
    let serialize = spans.iter().find(|span| span.name == "SerializeObject").unwrap();
    let encoder = serialize.attributes.iter().find(|attribute| attribute.key == "encoder");
    assert!(format!("{encoder:?}").contains("apps/v1"), "{encoder:?}");
}

#[tokio::test]
async fn a_list_that_the_cache_cannot_look_up_has_no_span_there() {
    let (shape, _) = shape_of_request(Method::GET, &format!("{MAPS}?continue=x"), &Value::Null).await;
    assert_eq!(shape, ["List > SerializeObject", "authorization > List"]);
}

#[tokio::test]
async fn deletion_of_an_object_with_finalizers_is_an_update_in_its_trace() {
    let options = json!({ "propagationPolicy": "Background" });
    let (_, spans) = shape_of_request(Method::DELETE, &format!("{MAPS}/kept"), &options).await;
    let update = spans.iter().find(|span| span.name == "GuaranteedUpdate etcd3").unwrap();
    let events = |span: &Span| span.events.iter().map(|event| event.name.clone()).collect::<Vec<_>>();
    assert_eq!(events(update).first().unwrap(), "initial value restored");
    let delete = spans.iter().find(|span| span.name == "Delete").unwrap();
    assert_eq!(
        events(delete)[..3],
        ["limitedReadBody succeeded", "Decoded delete options", "Recorded the audit event"]
    );
}
