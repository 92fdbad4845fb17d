//! A receiver with files in a temporary directory, and pipelines that end in scripted backends.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use kubewake_config::{
    ComponentId, FixedSources, PipelineId,
    model::{QueueConfig, ReceiverConfig, RetryConfig},
};
use kubewake_otlp::Signal;
use opentelemetry_proto::tonic::{
    collector::logs::v1::ExportLogsServiceRequest,
    common::v1::{AnyValue, KeyValue, any_value::Value},
};
use prost::Message;
use tokio::{sync::Notify, time::Instant};

use crate::{
    components::{Receiver, ReceiverContext, ReceiverSite},
    core::{
        Allowance, Batch, Budget, Consumer, DropReason, Exporter, ExporterQueue, ExporterQueueSettings, ExporterStats,
        Pipeline, PipelineSet, SendError, SendFuture, SendSuccess, StatsRegistry,
    },
    net::listener_pool::ListenerPool,
    receiver::file_log,
};

/// How long a test waits for something that has to happen. It is never waited for in vain.
const TEST_LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mood {
    #[default]
    Takes,
    /// It does not answer until its mood changes.
    Hangs,
    /// It asks to come back.
    IsBusy,
    /// It takes the request, and the answer is lost.
    LosesAnswers,
    /// It refuses for good.
    Refuses,
}

/// A backend that records what it took.
#[derive(Default)]
pub(super) struct Backend {
    mood: Mutex<Mood>,
    changed: Notify,
    requests: Mutex<Vec<ExportLogsServiceRequest>>,
    attempts: Mutex<usize>,
}

impl Backend {
    pub(super) fn set_mood(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
        self.changed.notify_waiters();
    }

    fn mood(&self) -> Mood {
        *self.mood.lock().unwrap()
    }

    /// The bodies of all records, in the order of their arrival.
    pub(super) fn bodies(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let logs = requests.iter().flat_map(|request| &request.resource_logs);
        let records = logs.flat_map(|logs| &logs.scope_logs).flat_map(|logs| &logs.log_records);
        records.map(|record| record.body.as_ref().map(text).unwrap_or_default()).collect()
    }

    /// The attributes of the resources that it got.
    pub(super) fn resources(&self) -> Vec<BTreeMap<String, String>> {
        let requests = self.requests.lock().unwrap();
        let resources = requests.iter().flat_map(|request| &request.resource_logs).filter_map(|l| l.resource.as_ref());
        resources.map(|resource| attributes(&resource.attributes)).collect()
    }

    /// The attributes of the records that it got.
    pub(super) fn record_attributes(&self) -> Vec<BTreeMap<String, String>> {
        let requests = self.requests.lock().unwrap();
        let logs = requests.iter().flat_map(|request| &request.resource_logs);
        let records = logs.flat_map(|logs| &logs.scope_logs).flat_map(|logs| &logs.log_records);
        records.map(|record| attributes(&record.attributes)).collect()
    }

    pub(super) fn attempts(&self) -> usize {
        *self.attempts.lock().unwrap()
    }

    pub(super) async fn wait_for_attempts(&self, attempts: usize) {
        wait_until("attempts", || self.attempts() >= attempts).await;
    }

    /// Waits until it has exactly these bodies, in this order.
    pub(super) async fn wait_for_bodies(&self, expected: &[&str]) {
        wait_until("bodies", || self.bodies().len() >= expected.len()).await;
        assert_eq!(self.bodies(), expected);
    }

    pub(super) async fn wait_for_count(&self, count: usize) {
        wait_until("records", || self.bodies().len() >= count).await;
    }
}

impl Exporter for Backend {
    fn send<'a>(&'a self, batch: &'a Batch) -> SendFuture<'a> {
        Box::pin(async move {
            *self.attempts.lock().unwrap() += 1;
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                let mood = self.mood();
                if matches!(mood, Mood::Takes | Mood::LosesAnswers) {
                    let parts = batch.parts().iter();
                    let requests = parts.map(|part| ExportLogsServiceRequest::decode(&*part.bytes).unwrap());
                    self.requests.lock().unwrap().extend(requests);
                }
                match mood {
                    Mood::Takes => return Ok(SendSuccess::default()),
                    Mood::LosesAnswers => return Err(SendError::connection("the answer was lost")),
                    Mood::IsBusy => return Err(SendError::connection("busy")),
                    Mood::Refuses => return Err(SendError::malformed("refused")),
                    Mood::Hangs => changed.await,
                }
            }
        })
    }
}

fn text(value: &AnyValue) -> String {
    match &value.value {
        Some(Value::StringValue(text)) => text.clone(),
        other => format!("{other:?}"),
    }
}

fn attributes(list: &[KeyValue]) -> BTreeMap<String, String> {
    list.iter().map(|pair| (pair.key.clone(), pair.value.as_ref().map(text).unwrap_or_default())).collect()
}

/// Waits until something holds that another thread brings about.
pub(super) async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A pipeline without processors.
pub(super) struct TestPipeline {
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) queues: Vec<Arc<ExporterQueue>>,
    pub(super) budget: Arc<Budget>,
}

pub(super) struct Fixture {
    directory: tempfile::TempDir,
    settings: String,
    include: String,
    /// Where positions are kept; none with `without_state`.
    has_state: bool,
    backends: BTreeMap<String, Arc<Backend>>,
    pub(super) queue: QueueConfig,
    pub(super) memory: u64,
    pub(super) set: Arc<PipelineSet>,
    pub(super) pipelines: Vec<TestPipeline>,
    registry: Arc<StatsRegistry>,
    receiver: Option<Arc<dyn Receiver>>,
}

impl Fixture {
    /// The receiver reads `*.log` in its directory, with further settings.
    pub(super) fn new(settings: &str) -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            settings: settings.to_owned(),
            include: "*.log".to_owned(),
            has_state: true,
            backends: BTreeMap::new(),
            queue: QueueConfig { num_consumers: 1, queue_size: 1000, ..QueueConfig::default() },
            memory: 64 << 20,
            set: Arc::default(),
            pipelines: Vec::new(),
            registry: Arc::default(),
            receiver: None,
        }
    }

    pub(super) fn without_state(mut self) -> Self {
        self.has_state = false;
        self
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("logs").join(name)
    }

    pub(super) fn set_settings(&mut self, settings: &str) {
        self.settings = settings.to_owned();
    }

    pub(super) fn registry(&self) -> &StatsRegistry {
        &self.registry
    }

    pub(super) fn set_include(&mut self, pattern: &str) {
        self.include = pattern.to_owned();
    }

    /// Waits until positions of the output with this name are stored.
    pub(super) async fn wait_until_stored(&self, output: &str) {
        let has_name = |value: &[u8]| value.windows(output.len()).any(|window| window == output.as_bytes());
        wait_until("positions", || self.stored_positions().is_some_and(|(_, value)| has_name(&value))).await;
    }

    /// Appends to a file.
    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    pub(super) fn backend(&mut self, name: &str) -> Arc<Backend> {
        self.backends.entry(name.to_owned()).or_default().clone()
    }

    /// A pipeline `logs/NAME` that ends in these backends, which keep what they have.
    pub(super) fn add_pipeline(&mut self, name: &str, exporters: &[&str]) {
        let id = PipelineId { signal: Signal::Logs, name: Some(name.into()) };
        let budget = Budget::new(self.memory, 0);
        let allowance = Allowance { member: budget.join(), limiter: None };
        let stats = self.registry.pipeline(&id);
        let pipeline = Pipeline::new(id, allowance, stats);
        self.pipelines.push(TestPipeline { pipeline, queues: Vec::new(), budget });
        self.set_exporters(self.pipelines.len() - 1, exporters);
        self.connect();
    }

    /// Replaces the exporters of a pipeline. Those that stay keep their queues.
    pub(super) fn set_exporters(&mut self, at: usize, exporters: &[&str]) {
        let known: BTreeMap<String, Arc<ExporterQueue>> = {
            let pipeline = &self.pipelines[at];
            let names = pipeline.pipeline.outputs();
            names.iter().map(ToString::to_string).zip(pipeline.queues.iter().cloned()).collect()
        };
        let id = self.pipelines[at].pipeline.id().clone();
        let stats = self.registry.pipeline(&id);
        let mut queues = Vec::new();
        for name in exporters {
            let settings = ExporterQueueSettings {
                exporter: self.backend(name),
                timeout: None,
                retry: Some(quick_retry()),
                queue: Some(self.queue.clone()),
                stats: Arc::<ExporterStats>::default(),
            };
            let new = || ExporterQueue::new(ComponentId::new(name), id.clone(), stats.clone(), settings);
            queues.push(known.get(*name).cloned().unwrap_or_else(new));
        }
        let ids: Vec<ComponentId> = exporters.iter().map(ComponentId::new).collect();
        let pipeline = &mut self.pipelines[at];
        pipeline.pipeline.set_outputs(ids.clone());
        let consumers = queues.iter().map(|queue| queue.clone() as Arc<dyn Consumer>);
        pipeline.pipeline.head().set_exporters(&id, ids.into_iter().zip(consumers).collect());
        pipeline.queues = queues;
    }

    fn connect(&self) {
        let pipelines = self.pipelines.iter().map(|pipeline| pipeline.pipeline.clone());
        self.set.set_pipelines(Signal::Logs, pipelines.collect());
    }

    /// Starts a receiver, or a successor of the one that runs.
    pub(super) fn start_receiver(&mut self) {
        let include = self.path(&self.include);
        let text = format!(
            "
receivers: {{file_log: {{include: ['{}'], {}}}}}
exporters: {{nop: }}
service: {{pipelines: {{logs: {{receivers: [file_log], exporters: [nop]}}}}}}",
            include.display(),
            self.settings
        );
        let document = kubewake_config::load(&text, &FixedSources::new()).unwrap().document;
        let id = ComponentId::new("file_log");
        let Some(ReceiverConfig::FileLog(settings)) = document.receivers.get(&id) else { panic!("{text}") };
        let claims = ListenerPool::default().claims();
        let root = self.directory.path().join("state");
        let previous = self.receiver.take();
        let context = ReceiverContext {
            id: &id,
            auth: &|_| Err(crate::components::BuildError("it authenticates nobody".into())),
            claims: &claims,
            previous: previous.as_deref(),
            state_root: self.has_state.then_some(root.as_path()),
        };
        let prepared = file_log::prepare(settings, &context).unwrap();
        let site = ReceiverSite { id: &id, pipelines: &self.set, registry: &self.registry };
        let receiver = prepared.start(previous.as_deref(), &site);
        if let Some(previous) = previous {
            previous.shutdown();
        }
        self.receiver = Some(receiver);
    }

    /// A receiver that feeds one pipeline with these exporters.
    pub(super) fn start(&mut self, exporters: &[&str]) {
        self.add_pipeline("a", exporters);
        self.start_receiver();
    }

    /// Ends as the engine does: the receiver, the queues within the limit, and the receiver's state.
    pub(super) async fn stop_within(&mut self, limit: Duration) {
        let receiver = self.receiver.take().unwrap();
        receiver.shutdown();
        receiver.wait_closed().await;
        self.set.set_pipelines(Signal::Logs, Vec::new());
        for pipeline in self.pipelines.drain(..) {
            let gone = pipeline.pipeline.watch_gone();
            drop(pipeline.pipeline);
            gone.wait().await;
            for queue in pipeline.queues {
                queue.drain(Instant::now() + limit).await;
            }
        }
        receiver.finish().await;
    }

    pub(super) async fn stop(&mut self) {
        self.stop_within(TEST_LIMIT).await;
    }

    /// Ends without any order, as if the process were killed; positions are those that were stored before.
    pub(super) fn kill(&mut self) {
        let stored = self.stored_positions();
        self.receiver.take();
        self.set.set_pipelines(Signal::Logs, Vec::new());
        self.pipelines.clear();
        self.set = Arc::default();
        if let Some((path, value)) = stored {
            self.directory_write(&path, &value);
        }
    }

    fn stored_positions(&self) -> Option<(PathBuf, Vec<u8>)> {
        let directory = self.directory.path().join("state/receivers/file_log");
        let entry = fs::read_dir(directory).ok()?.filter_map(Result::ok).next()?;
        Some((entry.path(), fs::read(entry.path()).ok()?))
    }

    fn directory_write(&self, path: &Path, value: &[u8]) {
        fs::write(path, value).unwrap();
    }

    /// Items that the pipelines have counted as dropped.
    pub(super) fn dropped(&self) -> u64 {
        let of = |stats: &Arc<crate::core::PipelineStats>| -> u64 {
            DropReason::ALL.iter().map(|reason| stats.dropped_for(*reason)).sum()
        };
        self.registry.pipelines().iter().map(|(_, stats)| of(stats)).sum()
    }
}

fn quick_retry() -> RetryConfig {
    RetryConfig {
        initial_interval: Duration::from_millis(5),
        randomization_factor: 0.0,
        multiplier: 1.0,
        max_interval: Duration::from_millis(5),
        max_elapsed_time: Some(Duration::from_millis(50)),
    }
}
