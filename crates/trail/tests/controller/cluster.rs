//! An API server, an exporter in memory, and a controller that can be restarted.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt as _;
use k8s_openapi::{
    api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt as _,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    runtime::{conditions, wait::await_condition, watcher},
};
use kubewake_apiserver::server::{ApiServer, Options as ServerOptions};
use kubewake_trail::{Controller, DeferredSpanProcessor, FollowLinks, Options, Trail, context};
use opentelemetry::trace::SpanContext;
use opentelemetry_sdk::trace::{InMemorySpanExporter, Sampler, SdkTracerProvider, SimpleSpanProcessor, SpanData};
use serde_json::json;
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

use crate::head::{Head, HeadSpec, Work, error_policy, reconcile};

pub const NAMESPACE: &str = "default";
/// A context that is not sampled.
const UNSAMPLED: &str = "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-00";
/// Far more than any wait takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Cluster {
    pub server: ApiServer,
    /// An untraced client.
    pub client: Client,
}

impl Cluster {
    pub async fn start() -> Self {
        let server = ApiServer::start(ServerOptions::default()).await.unwrap();
        let client = server.client().unwrap();
        let definitions = Api::<CustomResourceDefinition>::all(client.clone());
        definitions.create(&PostParams::default(), &Head::crd()).await.unwrap();
        let name = Head::crd_name();
        let established = await_condition(definitions, name, conditions::is_crd_established());
        timeout(PATIENCE, established).await.unwrap().unwrap();
        Self { server, client }
    }

    pub fn heads(&self) -> Api<Head> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub fn children(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Creates a Head, with a context or without one.
    pub async fn create(&self, name: &str, context: Option<&str>) -> Head {
        let stamp: Vec<_> = context.map(|text| ("tracing.k8s.io/traceparent", text.to_owned())).into_iter().collect();
        self.create_with(name, stamp).await
    }

    /// Creates a Head with a stamp as the webhook writes it, including its time.
    pub async fn create_stamped(&self, name: &str, context: &str) -> Head {
        let now = k8s_openapi::jiff::Timestamp::now().to_string();
        let context = ("tracing.k8s.io/traceparent", context.to_owned());
        let generation = ("trail.kubewake.io/generation", "1".to_owned());
        self.create_with(name, vec![context, generation, ("trail.kubewake.io/changed", now)]).await
    }

    async fn create_with(&self, name: &str, stamp: Vec<(&str, String)>) -> Head {
        let annotations = Some(stamp.into_iter().map(|(key, value)| (key.to_owned(), value)).collect());
        let metadata = ObjectMeta { name: Some(name.to_owned()), annotations, ..ObjectMeta::default() };
        let head = Head { metadata, spec: HeadSpec { size: 1 }, status: None };
        self.heads().create(&PostParams::default(), &head).await.unwrap()
    }

    /// Changes a Head, with a new context or without one.
    pub async fn change(&self, name: &str, size: i32, context: Option<&str>) -> Head {
        let mut patch = json!({"spec": {"size": size}});
        if let Some(context) = context {
            patch["metadata"]["annotations"]["tracing.k8s.io/traceparent"] = json!(context);
        }
        self.heads().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap()
    }
}

/// A context of another writer.
pub fn somebody(digit: char) -> (String, SpanContext) {
    let text = format!("00-{}-{}-01", String::from(digit).repeat(32), String::from(digit).repeat(16));
    let context = context::parse(&text, None).unwrap();
    (text, context)
}

/// A process with a controller.
pub struct Process {
    pub trail: Trail,
    pub exporter: InMemorySpanExporter,
    pub work: Arc<Work>,
    resync: mpsc::UnboundedSender<()>,
    controller: JoinHandle<()>,
    _provider: SdkTracerProvider,
}

pub struct Settings {
    pub options: Options,
    pub sampler: Sampler,
    pub completes: bool,
    pub fails: bool,
    pub refused: bool,
    pub busy: bool,
    /// Disables tracing.
    pub off: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let options = Options::default();
        let sampler = Sampler::AlwaysOn;
        Self { options, sampler, completes: true, fails: false, refused: false, busy: false, off: false }
    }
}

impl Process {
    pub fn start(cluster: &Cluster, settings: Settings) -> Self {
        let exporter = InMemorySpanExporter::default();
        let hold = DeferredSpanProcessor::new(SimpleSpanProcessor::new(exporter.clone()));
        let provider = SdkTracerProvider::builder()
            .with_sampler(FollowLinks::new(settings.sampler))
            .with_span_processor(hold.clone())
            .build();
        let trail = if settings.off { Trail::disabled() } else { Trail::new(&provider, hold, settings.options) };
        let client = trail.client(cluster.server.client_config().unwrap()).unwrap();
        let work = Arc::new(Work {
            trail: trail.clone(),
            client: client.clone(),
            runs: AtomicU32::new(0),
            begun: AtomicU32::new(0),
            ended: Mutex::default(),
            fails: AtomicBool::new(settings.fails),
            refused: AtomicBool::new(settings.refused),
            talks: AtomicBool::new(false),
            busy: AtomicBool::new(settings.busy),
            events: trail.events(client.clone(), "head-operator"),
            completes: AtomicBool::new(settings.completes),
        });
        let (resync, mut asked) = mpsc::unbounded_channel();
        let resyncs = futures_util::stream::poll_fn(move |task| asked.poll_recv(task));
        let controller = Controller::new(Api::<Head>::all(client.clone()), watcher::Config::default())
            .owns(Api::<ConfigMap>::all(client), watcher::Config::default())
            .reconcile_all_on(resyncs)
            .run(trail.clone(), reconcile, error_policy, Arc::clone(&work));
        let controller = tokio::spawn(controller.for_each(|_| async {}));
        Self { trail, exporter, work, resync, controller, _provider: provider }
    }

    /// Starts a process and waits until its controller has reconciled an object that is not sampled.
    pub async fn start_and_watch(cluster: &Cluster, settings: Settings) -> Self {
        let process = Self::start(cluster, settings);
        cluster.create("fence", Some(UNSAMPLED)).await;
        process.until("the fence", |it| it.work.runs.load(Ordering::SeqCst) > 0).await;
        assert!(process.spans().is_empty());
        process
    }

    pub fn spans(&self) -> Vec<SpanData> {
        self.exporter.get_finished_spans().unwrap()
    }

    /// Waits until a condition holds.
    pub async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let wait = async {
            while !holds(self) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if timeout(PATIENCE, wait).await.is_err() {
            panic!("never: {what}; spans {:#?}", self.spans().iter().map(|span| &span.name).collect::<Vec<_>>());
        }
    }

    pub async fn until_span(&self, name: &str, count: usize) {
        self.until(name, |it| it.spans().iter().filter(|span| span.name == name).count() >= count).await;
    }

    /// Reconciles all objects several times. Runs that were in progress before have ended afterwards.
    pub async fn resync(&self, times: u32) {
        for _ in 0..times {
            let before = self.work.runs.load(Ordering::SeqCst);
            self.resync.send(()).unwrap();
            self.until("resync", |it| it.work.runs.load(Ordering::SeqCst) > before).await;
        }
    }

    /// Reconciles all objects and waits for a run of this Head that began afterwards. No earlier run is then in
    /// progress.
    pub async fn rerun(&self, name: &str) {
        let begun = self.work.begun.load(Ordering::SeqCst);
        self.resync.send(()).unwrap();
        let is_over = |it: &Self| it.work.ended.lock().unwrap().get(name).is_some_and(|number| *number >= begun);
        self.until("another run", is_over).await;
    }

    pub async fn stop(self) -> Vec<SpanData> {
        self.controller.abort();
        let _ = self.controller.await;
        self.exporter.get_finished_spans().unwrap()
    }
}
