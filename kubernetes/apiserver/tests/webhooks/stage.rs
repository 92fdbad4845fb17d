//! A server, a webhook on the network, a collector, and a client.

use std::{
    convert::Infallible,
    fs, io,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kubewake_apiserver::{
    client::{AddressConnector, DialAddress, HttpClient, ServiceAddressResolver, TlsClientConfig},
    server::{ApiServer, Options},
};
use opentelemetry_proto::tonic::{collector::trace::v1::ExportTraceServiceRequest, trace::v1::Span};
use prost::Message;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_rustls::TlsAcceptor;

/// The name of the Service in front of the webhook.
pub const SERVICE: (&str, &str) = ("hooks", "hook");

/// How often a condition is polled.
const TRIES: usize = 2_000;

pub struct Stage {
    server: Option<ApiServer>,
    client: HttpClient,
    pub hook: Hook,
    collector: Collector,
    _files: tempfile::TempDir,
}

/// A webhook. Its response depends on the path: see [`respond`].
pub struct Hook {
    port: u16,
    bundle: String,
    calls: Arc<Mutex<Vec<Call>>>,
    api: Arc<Mutex<Option<(HttpClient, String)>>>,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub target: String,
    pub headers: HeaderMap,
    pub review: Value,
}

struct Collector {
    spans: mpsc::UnboundedReceiver<Span>,
    address: String,
}

/// Resolves every Service to the webhook.
#[derive(Debug)]
struct AtHook(u16);

impl ServiceAddressResolver for AtHook {
    fn resolve(&self, namespace: &str, name: &str, port: u16) -> Result<DialAddress, String> {
        match (namespace, name, port) {
            (namespace, name, 443) if (namespace, name) == SERVICE => Ok(DialAddress::Tcp("127.0.0.1".into(), self.0)),
            _ => Err(format!("service {name:?} not found")),
        }
    }
}

impl Stage {
    /// Starts all of them. Without `traced` nothing is exported.
    pub async fn start(traced: bool) -> Self {
        let files = tempfile::tempdir().unwrap();
        let hook = Hook::start().await;
        let collector = Collector::start().await;
        let write = |name: &str, text: String| -> PathBuf {
            let path = files.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let tokens = write("tokens", "t,admin,u,\"system:masters\"\n".into());
        let tracing = write(
            "tracing.yaml",
            format!(
                "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nprotocol: http/protobuf\n\
                 endpoint: http://{}\nsamplingRatePerMillion: 1000000\n",
                collector.address
            ),
        );
        let options = Options {
            token_file: Some(tokens),
            tracing_config_file: traced.then_some(tracing),
            services: Some(Arc::new(AtHook(hook.port))),
            ..Options::default()
        };
        let server = ApiServer::start(options).await.unwrap();
        let ca = server.kubeconfig().certificate_authority.unwrap();
        let trust = TlsClientConfig::new(Some(ca.as_bytes()), "127.0.0.1", None, &[b"http/1.1"]).unwrap();
        let address = DialAddress::Tcp("127.0.0.1".into(), server.address().port());
        let client = HttpClient::new(AddressConnector::new(address, Some(trust)), false, 1 << 20);
        *hook.api.lock().unwrap() = Some((client.clone(), server.url()));
        Self { server: Some(server), client, hook, collector, _files: files }
    }

    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &HeaderMap,
        body: Option<Value>,
    ) -> (u16, HeaderMap, Value) {
        let url = format!("{}{path}", self.server.as_ref().unwrap().url());
        let request = request(method, &url, headers.clone(), body);
        let answer = self.client.send(request).await.unwrap();
        let value = serde_json::from_slice(&answer.body).unwrap_or_default();
        (answer.head.status.as_u16(), answer.head.headers, value)
    }

    /// Writes a configuration with one webhook.
    pub async fn configure(&self, kind: &str, path: &str, more: Value) {
        self.configure_at(kind, json!({ "url": self.hook.url(path), "caBundle": self.hook.bundle }), more).await;
    }

    /// Writes a configuration with one webhook at an address.
    pub async fn configure_at(&self, kind: &str, place: Value, more: Value) {
        let rule = json!({ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "DELETE"] });
        let mut hook = json!({
            "name": "hook.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": place,
            "rules": [rule],
        });
        hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let collection = kind.to_lowercase() + "s";
        let body = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": { "name": "c" }, "webhooks": [hook],
        });
        let path = format!("/apis/admissionregistration.k8s.io/v1/{collection}");
        let (code, _, answer) = self.ask(Method::POST, &path, &HeaderMap::new(), Some(body)).await;
        assert_eq!(code, 201, "{answer}");
    }

    pub async fn create(&self, name: &str, headers: &HeaderMap) -> (u16, HeaderMap, Value) {
        let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
        self.ask(Method::POST, "/api/v1/namespaces/default/configmaps", headers, Some(body)).await
    }

    /// Retries until a written configuration is active, which takes a moment: its webhook is called.
    pub async fn in_force(&self) {
        let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
        let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "probe" } });
        for _ in 0..TRIES {
            let (code, ..) = self.ask(Method::POST, path, &HeaderMap::new(), Some(body.clone())).await;
            if code != 201 || !self.hook.take().is_empty() {
                self.hook.take();
                return;
            }
        }
        panic!("the configuration is not in force");
    }

    /// Stops the server, which exports its last spans, and returns those of a trace.
    pub async fn spans_of(mut self, trace: &str) -> Vec<Span> {
        self.server.take().unwrap().stop().await;
        let mut spans = Vec::new();
        while let Ok(span) = self.collector.spans.try_recv() {
            if hex(&span.trace_id) == trace {
                spans.push(span);
            }
        }
        spans
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn request(method: Method, url: &str, mut headers: HeaderMap, body: Option<Value>) -> Request<Full<Bytes>> {
    headers.insert("authorization", "Bearer t".parse().unwrap());
    headers.insert("content-type", "application/json".parse().unwrap());
    let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
    let mut request = Request::builder().method(method).uri(url).body(Full::new(body)).unwrap();
    request.headers_mut().extend(headers);
    request
}

impl Hook {
    /// With a self-signed certificate, as many webhooks have.
    async fn start() -> Self {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned(), "hook.hooks.svc".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hook = Self {
            port: listener.local_addr().unwrap().port(),
            bundle: STANDARD.encode(certificate.pem()),
            calls: Arc::default(),
            api: Arc::default(),
        };
        let calls = Arc::clone(&hook.calls);
        let api = Arc::clone(&hook.api);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, acceptor.clone(), Arc::clone(&calls), Arc::clone(&api)));
            }
        });
        hook
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    pub fn bundle(&self) -> &str {
        &self.bundle
    }

    /// The calls since the last time.
    pub fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

type Api = Arc<Mutex<Option<(HttpClient, String)>>>;

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, calls: Arc<Mutex<Vec<Call>>>, api: Api) -> io::Result<()> {
    let stream = acceptor.accept(stream).await?;
    let answer = |request: Request<Incoming>| {
        let calls = Arc::clone(&calls);
        let api = Arc::clone(&api);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let review: Value = serde_json::from_slice(&body).unwrap();
            let call = Call { target: head.uri.to_string(), headers: head.headers, review };
            calls.lock().unwrap().push(call.clone());
            let text = respond(&call, &api).await;
            let answer =
                Response::builder().header("content-type", "application/json").body(Full::new(Bytes::from(text)));
            Ok::<_, Infallible>(answer.unwrap())
        }
    };
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
    Ok(())
}

async fn respond(call: &Call, api: &Api) -> String {
    let path = call.target.split('?').next().unwrap_or_default();
    let mut response = json!({ "uid": call.review["request"]["uid"], "allowed": true });
    match path {
        "/mutate" => {
            let patch = json!([{ "op": "add", "path": "/data", "value": { "added": "by-webhook" } }, { "op": "add", "path": "/odd", "value": 1 }]);
            response["patch"] = STANDARD.encode(patch.to_string()).into();
            response["patchType"] = "JSONPatch".into();
            response["warnings"] = json!(["have a look"]);
        }
        "/deny" => {
            response["allowed"] = false.into();
            response["status"] = json!({ "code": 403, "reason": "Closed", "message": "not today" });
        }
        // The object does not change.
        "/keep" if call.review["request"]["operation"] == "UPDATE" => {
            let spec = &call.review["request"]["oldObject"]["spec"];
            let patch = json!([{ "op": "replace", "path": "/spec", "value": spec }]);
            response["patch"] = STANDARD.encode(patch.to_string()).into();
            response["patchType"] = "JSONPatch".into();
        }
        "/hang" => std::future::pending().await,
        "/garbage" => return "<html>".to_owned(),
        "/back" => call_back(call, api).await,
        _ => {}
    }
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response }).to_string()
}

/// A webhook without an SDK, which only passes the trace header on.
async fn call_back(call: &Call, api: &Api) {
    let (client, url) = api.lock().unwrap().clone().unwrap();
    let passed =
        call.headers.get("traceparent").map(|parent| (http::HeaderName::from_static("traceparent"), parent.clone()));
    let url = format!("{url}/api/v1/namespaces/default/secrets/absent");
    let answer = client.send(request(Method::GET, &url, passed.into_iter().collect(), None)).await.unwrap();
    assert_eq!(answer.head.status, 404);
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, spans) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let sender = sender.clone();
                let take = move |request: Request<Incoming>| take(request, sender.clone());
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(take)));
            }
        });
        Self { spans, address }
    }
}

async fn take(
    request: Request<Incoming>,
    sender: mpsc::UnboundedSender<Span>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let batch = ExportTraceServiceRequest::decode(body).unwrap();
    let scopes = batch.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    for span in scopes.flat_map(|scope| scope.spans) {
        let _ = sender.send(span);
    }
    Ok(Response::new(Full::default()))
}
