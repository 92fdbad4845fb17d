//! An API server with the pipelines' definitions, and operators that can be started and killed.

use std::{
    fmt::Debug,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::{Either, Pending, pending};
use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Namespace, Pod, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, PropagationPolicy},
    client::{Body, ClientBuilder},
    runtime::{conditions, wait::await_condition},
};
use kubewake_api::render::HEALTH_PORT;
use kubewake_api::v1alpha1::{LogPipeline, MetricPipeline, PipelineStatus, Telemetry, TracePipeline};
use kubewake_apiserver::server::{ApiServer, Options as ServerOptions};
use kubewake_config::fingerprint;
use kubewake_operator::{LeaseConfig, ObjectKind, Operator, OperatorError, OperatorMetrics, OperatorOptions, names};
use kubewake_trail::Trail;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};
use tower::{Layer, Service};

pub const NAMESPACE: &str = "kubewake-system";
/// Far more than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

pub struct TestCluster {
    server: ApiServer,
    pub client: Client,
}

pub struct Running {
    task: JoinHandle<Result<(), OperatorError>>,
    stop: oneshot::Sender<()>,
    is_cut: Arc<AtomicBool>,
    silent: Arc<Mutex<Option<&'static str>>>,
    asked: Arc<Mutex<Vec<String>>>,
    pub metrics: Arc<OperatorMetrics>,
    /// Requests that could have changed something, without those about the Lease.
    pub writes: Arc<AtomicU64>,
}

impl TestCluster {
    pub async fn start() -> Self {
        let server = ApiServer::start(ServerOptions::default()).await.unwrap();
        let client = server.client().unwrap();
        let definitions = Api::<CustomResourceDefinition>::all(client.clone());
        for definition in kubewake_api::crds() {
            let made = definitions.create(&PostParams::default(), &definition).await.unwrap();
            let name = made.metadata.name.unwrap();
            let established = await_condition(definitions.clone(), &name, conditions::is_crd_established());
            timeout(PATIENCE, established).await.unwrap().unwrap();
        }
        // The kinds are served a moment after their definition.
        let all = ListParams::default();
        until("pipelines are served", async || {
            Api::<TracePipeline>::all(client.clone()).list(&all).await.ok()?;
            Api::<LogPipeline>::all(client.clone()).list(&all).await.ok()?;
            Api::<MetricPipeline>::all(client.clone()).list(&all).await.ok()?;
            Api::<Telemetry>::all(client.clone()).list(&all).await.ok()
        })
        .await;
        for name in [NAMESPACE, names::AGENT_NAMESPACE] {
            let mut namespace = Namespace::default();
            namespace.metadata.name = Some(name.to_owned());
            Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        }
        Self { server, client }
    }

    pub fn operator(&self) -> Running {
        self.operator_with(|_| {})
    }

    pub fn operator_with(&self, change: impl Fn(&mut OperatorOptions)) -> Running {
        // The same identity each time, so that it leads again at once.
        self.operator_on(change, LeaseConfig { identity: "test".into(), seconds: 15 })
    }

    pub fn operator_on(&self, change: impl Fn(&mut OperatorOptions), terms: LeaseConfig) -> Running {
        let line = Line::default();
        let writes = Arc::clone(&line.writes);
        let is_cut = Arc::clone(&line.is_cut);
        let asked = Arc::clone(&line.asked);
        let silent = Arc::clone(&line.silent);
        let builder = ClientBuilder::try_from(self.server.client_config().unwrap()).unwrap();
        let client = builder.with_layer(&line).build();
        let mut options = OperatorOptions {
            namespace: NAMESPACE.into(),
            agent_namespace: names::AGENT_NAMESPACE.into(),
            image: "kubewake/collector".into(),
            resync: Duration::from_secs(300),
        };
        change(&mut options);
        let metrics = Arc::<OperatorMetrics>::default();
        let operator = Operator {
            lease_client: client.clone(),
            client,
            trail: Trail::disabled(),
            options,
            lease_config: terms,
            metrics: Arc::clone(&metrics),
        };
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(operator.run(async { drop(stopped.await) }));
        Running { task, stop, is_cut, silent, asked, metrics, writes }
    }

    pub fn of<K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>>(&self) -> Api<K> {
        Api::all(self.client.clone())
    }

    pub fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub async fn apply(&self, name: &str, spec: Value) {
        let object = json!({
            "apiVersion": "telemetry.kubewake.io/v1alpha1", "kind": "TracePipeline",
            "metadata": {"name": name}, "spec": spec,
        });
        let params = PatchParams::apply("somebody").force();
        self.of::<TracePipeline>().patch(name, &params, &Patch::Apply(&object)).await.unwrap();
    }

    pub async fn delete(&self, name: &str) {
        self.of::<TracePipeline>().delete(name, &DeleteParams::background()).await.unwrap();
    }

    /// Deletes a TracePipeline and orphans its dependents.
    pub async fn orphan(&self, name: &str) {
        let params = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
        self.of::<TracePipeline>().delete(name, &params).await.unwrap();
    }

    pub async fn exists(&self, name: &str) -> bool {
        self.of::<TracePipeline>().get_opt(name).await.unwrap().is_some()
    }

    pub async fn telemetry(&self, spec: Value) {
        let object = json!({
            "apiVersion": "telemetry.kubewake.io/v1alpha1", "kind": "Telemetry",
            "metadata": {"name": "default"}, "spec": spec,
        });
        let params = PatchParams::apply("somebody").force();
        self.of::<Telemetry>().patch("default", &params, &Patch::Apply(&object)).await.unwrap();
    }

    /// Writes a Secret with the key `value`.
    pub async fn secret(&self, name: &str, value: &str) {
        let data = json!({"value": ByteString(value.as_bytes().to_vec())});
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data});
        let api = Api::<Secret>::namespaced(self.client.clone(), "default");
        api.patch(name, &PatchParams::apply("somebody"), &Patch::Apply(&object)).await.unwrap();
    }

    pub async fn status(&self, name: &str) -> PipelineStatus {
        self.of::<TracePipeline>().get(name).await.unwrap().status.unwrap_or_default()
    }

    /// Waits until the status satisfies a condition, for the newest generation.
    pub async fn until_status(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&PipelineStatus) -> bool,
    ) -> PipelineStatus {
        let api = self.of::<TracePipeline>();
        let check = async || {
            let object = api.get(name).await.unwrap();
            let status = object.status.unwrap_or_default();
            (status.observed_generation == object.metadata.generation && holds(&status)).then_some(status)
        };
        until(&format!("{name}: {what}"), check).await
    }

    /// Waits until a pipeline is in the collectors' document.
    pub async fn until_configured(&self, name: &str) {
        let configured = |status: &PipelineStatus| condition(status, "Configured").0 == "True";
        self.until_status(name, "it is configured", configured).await;
    }

    /// Waits until the status has this reason.
    pub async fn until_reason(&self, name: &str, reason: &str) -> PipelineStatus {
        self.until_status(name, reason, |status| status.reason.as_deref() == Some(reason)).await
    }

    pub async fn document(&self, name: &str) -> Option<(String, ConfigMap)> {
        let map = self.config_maps().get_opt(name).await.unwrap()?;
        Some((map.data.clone().unwrap()["collector.yaml"].clone(), map))
    }

    /// An object of the layer.
    pub async fn object<K>(&self, name: &str) -> Option<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        Api::<K>::namespaced(self.client.clone(), NAMESPACE).get_opt(name).await.unwrap()
    }

    pub async fn made(&self) -> Vec<String> {
        let mut all = Vec::new();
        let made = ListParams::default().labels(&names::managed_selector());
        for kind in ObjectKind::REQUIRED {
            let api: Api<DynamicObject> = kind.api(&self.client, NAMESPACE);
            let list = api.list(&made).await.unwrap().items.into_iter();
            all.extend(list.map(|object| format!("{kind:?}/{}", object.metadata.name.unwrap())));
        }
        all
    }

    pub async fn until_nothing_is_left(&self) {
        until("everything is gone", async || self.made().await.is_empty().then_some(())).await;
    }
}

/// A collector that reports the document that it has read, at an address of its own.
pub struct Collector {
    pods: Api<Pod>,
    name: String,
    hash: Arc<Mutex<String>>,
    server: JoinHandle<()>,
}

impl Collector {
    /// Makes it report this document.
    pub fn reads(&self, document: &str) {
        *self.hash.lock().unwrap() = fingerprint(document);
    }

    pub async fn end(self) {
        self.server.abort();
        let params = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        self.pods.delete(&self.name, &params).await.unwrap();
    }
}

impl TestCluster {
    /// A collector of the gateway that has read no document yet.
    pub async fn gateway(&self, name: &str) -> Collector {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::SeqCst) + 2;
        // All of 127.0.0.0/8 is this machine. Concurrent runs of these tests have different addresses.
        let address = format!("127.{}.{}.{number}", 64 + std::process::id() % 128, std::process::id() / 128 % 256);
        let listener = TcpListener::bind(format!("{address}:{HEALTH_PORT}")).await.unwrap();
        let hash = Arc::<Mutex<String>>::default();
        let said = Arc::clone(&hash);
        let server = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 4096]).await;
                let body = json!({"revision": {"hash": *said.lock().unwrap()}, "pipelines": {}}).to_string();
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let pods = Api::<Pod>::namespaced(self.client.clone(), NAMESPACE);
        let pod = json!({
            "metadata": {"name": name, "labels": {
                "app.kubernetes.io/component": "collector", "app.kubernetes.io/name": "kubewake-gateway"}},
            "spec": {"automountServiceAccountToken": false, "containers": [{"name": "collector", "image": "any"}]},
        });
        pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        let status = json!({"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}});
        pods.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
        Collector { pods, name: name.to_owned(), hash, server }
    }

    /// Whether any object of the sticky tier exists.
    pub async fn has_sticky(&self) -> bool {
        self.made().await.iter().any(|it| it.contains("sticky"))
    }
}

impl Running {
    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        timeout(PATIENCE, self.task).await.expect("it ends").unwrap().unwrap();
    }

    /// Leaves all requests of the operator unanswered, or answers them again.
    pub fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::SeqCst);
    }

    /// Leaves requests for this path unanswered.
    pub fn never_answer(&self, path: &'static str) {
        *self.silent.lock().unwrap() = Some(path);
    }

    /// The URIs that it read.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// The sum of its metrics with this prefix.
    pub fn figure(&self, name: &str) -> f64 {
        let page = self.metrics.render();
        let lines = page.lines().filter(|line| line.starts_with(name));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::SeqCst)
    }
}

/// The status and reason of a condition.
pub fn condition(status: &PipelineStatus, name: &str) -> (String, String) {
    let found = status.conditions.iter().find(|it| it.type_ == name);
    found.map(|it| (it.status.clone(), it.reason.clone())).unwrap_or_default()
}

/// A spec that sends to this endpoint.
pub fn to(endpoint: &str) -> Value {
    json!({"output": {"otlp": {"endpoint": {"value": endpoint}}}})
}

/// A spec with a token from a Secret.
pub fn with_token(secret: &str) -> Value {
    let reference = json!({"secretKeyRef": {"name": secret, "namespace": "default", "key": "value"}});
    let bearer = json!({"token": {"valueFrom": reference}});
    json!({"output": {"otlp": {"endpoint": {"value": "backend.example.com:4317"}, "authentication": {"bearer": bearer}}}})
}

/// Waits until there is a value, and returns it.
pub async fn until<T>(what: &str, mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let wait = async {
        loop {
            if let Some(value) = check().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never: {what}"))
}

/// The connection to the API server. Counts requests that may change something, and can be cut.
#[derive(Clone, Default)]
struct Line {
    writes: Arc<AtomicU64>,
    is_cut: Arc<AtomicBool>,
    silent: Arc<Mutex<Option<&'static str>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
struct Counted<S>(S, Line);

impl<S> Layer<S> for Line {
    type Service = Counted<S>;
    fn layer(&self, inner: S) -> Counted<S> {
        Counted(inner, self.clone())
    }
}

impl<S: Service<http::Request<Body>>> Service<http::Request<Body>> for Counted<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = Either<S::Future, Pending<Result<S::Response, S::Error>>>;

    fn poll_ready(&mut self, context: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.method() != http::Method::GET && !request.uri().path().contains("/leases") {
            self.1.writes.fetch_add(1, Ordering::SeqCst);
        }
        if request.method() == http::Method::GET {
            self.1.asked.lock().unwrap().push(request.uri().to_string());
        }
        let is_silent = self.1.silent.lock().unwrap().is_some_and(|path| request.uri().path().contains(path));
        if is_silent || self.1.is_cut.load(Ordering::SeqCst) {
            Either::Right(pending())
        } else {
            Either::Left(self.0.call(request))
        }
    }
}
