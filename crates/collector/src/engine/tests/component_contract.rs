//! What the engine promises to components, shown with components that only exist here.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Condvar, Mutex as BlockingMutex},
};

use futures_util::future::BoxFuture;
use kubewake_config::model::{ConnectorConfig, ProcessorConfig, ReceiverConfig};
use kubewake_otlp::SpanTraits;
use tokio::{sync::watch, task::AbortHandle};

use super::*;
use crate::{
    components::{
        BuildError, Connector, ConnectorContext, ConnectorSite, PrepareConnector, PrepareReceiver, PreparedConnector,
        PreparedProcessor, PreparedReceiver, ProcessorContext, Receiver, ReceiverContext, ReceiverSite,
    },
    connector,
    core::{Batch, ConnectorOutput, ConsumeOutcome, OverflowPolicy, PipelineSet},
    processor, receiver,
};

/// The tables of this build, with some components replaced by those of these tests.
const TABLES: ComponentTables = ComponentTables {
    receiver: prepare_receiver,
    processor: prepare_processor,
    connector: prepare_connector,
    ..ComponentTables::COMPILED
};

fn prepare_receiver(settings: &ReceiverConfig, context: &ReceiverContext<'_>) -> Result<PreparedReceiver, BuildError> {
    match context.id.as_str() {
        "otlp/counting" => {
            Ok(PreparedReceiver::new(PreparedCounting { position: context.state_directory()?.join("next") }))
        }
        "otlp/slow" => {
            wait_for_slow_name_server();
            receiver::prepare(settings, context)
        }
        _ => receiver::prepare(settings, context),
    }
}

fn prepare_processor(
    settings: &ProcessorConfig,
    context: &ProcessorContext<'_>,
) -> Result<PreparedProcessor, BuildError> {
    match context.id.as_str() {
        "batch/broken" => Err(BuildError("failed to build".into())),
        _ => processor::prepare(settings, context),
    }
}

fn prepare_connector(
    settings: &ConnectorConfig,
    context: &ConnectorContext<'_>,
) -> Result<PreparedConnector, BuildError> {
    match context.id.as_str() {
        "forward/holding" => Ok(PreparedConnector::new(PreparedHolding)),
        _ => connector::prepare(settings, context),
    }
}

/// A connector that holds everything until it is flushed.
struct HoldingConnector {
    output: Arc<ConnectorOutput>,
    held: BlockingMutex<Vec<Batch>>,
}

struct PreparedHolding;

impl PrepareConnector for PreparedHolding {
    type Running = HoldingConnector;

    fn start(self, site: &ConnectorSite<'_>) -> Arc<HoldingConnector> {
        Arc::new(HoldingConnector { output: site.output.clone(), held: BlockingMutex::default() })
    }

    fn reconfigure(self, _: &HoldingConnector, _: &ConnectorSite<'_>) {}
}

impl Connector for HoldingConnector {
    fn pass_on(self: Arc<Self>, batch: Batch, _: OverflowPolicy) -> ConsumeOutcome {
        self.held.lock().unwrap().push(batch);
        ConsumeOutcome::Now(Ok(()))
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let held = std::mem::take(&mut *self.held.lock().unwrap());
            for batch in held {
                self.output.pass_on(batch, OverflowPolicy::Wait).wait().await.unwrap();
            }
        })
    }
}

/// A receiver that is no listener: it takes in one span after the other, and remembers across restarts which one
/// comes next.
struct CountingReceiver {
    stop: Arc<watch::Sender<bool>>,
    task: AbortHandle,
}

struct PreparedCounting {
    position: PathBuf,
}

impl PrepareReceiver for PreparedCounting {
    type Running = CountingReceiver;

    fn start(self, previous: Option<&CountingReceiver>, site: &ReceiverSite<'_>) -> CountingReceiver {
        let (stop, stopped) = watch::channel(false);
        let previous = previous.map(|previous| previous.stop.clone());
        let pipelines = site.pipelines.clone();
        let task = tokio::spawn(async move {
            // Not before the previous one has written down where it ended.
            if let Some(previous) = previous {
                previous.closed().await;
            }
            take_in_spans(&self.position, &pipelines, stopped).await;
        });
        CountingReceiver { stop: Arc::new(stop), task: task.abort_handle() }
    }
}

async fn take_in_spans(position: &Path, pipelines: &PipelineSet, mut stopped: watch::Receiver<bool>) {
    let mut next: u64 = fs::read_to_string(position).map_or(0, |text| text.parse().unwrap());
    while !*stopped.borrow() {
        let bytes = body([next]);
        if let Ok(reservation) = pipelines.reserve(Signal::Traces, bytes.len()) {
            let taken = reservation.submit(bytes, 1, SpanTraits::default(), Arc::default()).wait().await;
            next += u64::from(taken.is_ok());
        }
        let _ = tokio::time::timeout(Duration::from_millis(1), stopped.changed()).await;
    }
    fs::write(position, next.to_string()).unwrap();
}

impl Receiver for CountingReceiver {
    fn shutdown(&self) {
        self.stop.send_replace(true);
    }

    fn abort(&self) {
        self.task.abort();
    }

    fn wait_closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.stop.closed())
    }
}

/// Whether a plan waits for the name server, and whether this one has answered.
static NAME_SERVER: (BlockingMutex<(bool, bool)>, Condvar) = (BlockingMutex::new((false, false)), Condvar::new());

fn wait_for_slow_name_server() {
    let mut state = NAME_SERVER.0.lock().unwrap();
    state.0 = true;
    let _ = NAME_SERVER.1.wait_timeout_while(state, Duration::from_secs(20), |(_, answered)| !*answered).unwrap();
}

fn engine_with_tables(state_directory: Option<&Path>) -> Arc<Engine> {
    let options = EngineOptions {
        drain_limit: Duration::from_secs(20),
        default_budget: 64 << 20,
        state_directory: state_directory.map(Path::to_owned),
    };
    Engine::with_tables(options, TABLES)
}

/// A document with the receiver `otlp/counting`, whose settings are told apart by a port.
fn counting_document(sink: &Sink, port: u16) -> String {
    let pipeline = "traces: { receivers: [otlp/counting], exporters: [otlphttp/a] }";
    let receiver = format!("  otlp/counting: {{ protocols: {{ http: {{ endpoint: '127.0.0.1:{port}' }} }} }}\n");
    document(&[sink.exporter("a")], &[pipeline]).replace(RECEIVERS, &format!("receivers:\n{receiver}"))
}

#[tokio::test]
async fn processor_that_cannot_be_built_refuses_the_document_and_changes_nothing() {
    let sink = sink(true).await;
    let engine = engine_with_tables(None);
    apply(&engine, &document(&[sink.exporter("a")], &[ONE])).await.unwrap();
    let before = engine.overview();
    let broken = "traces: { receivers: [otlp], processors: [batch/broken], exporters: [otlphttp/a] }";
    let text =
        document(&[sink.exporter("a")], &[broken]).replace("  batch/quick:", "  batch/broken: {}\n  batch/quick:");
    let errors = apply(&engine, &text).await.unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].to_string(), "processors::batch/broken: failed to build");
    assert!(Arc::ptr_eq(&before, &engine.overview()));
    assert!(Sender::connect(&engine).await.send([1]).await);
    sink.gets([1]).await;
}

#[tokio::test]
async fn receiver_that_does_not_listen_continues_after_reload_and_restart_without_loss_or_repetition() {
    let state = tempfile::tempdir().unwrap();
    let sink = sink(true).await;
    let engine = engine_with_tables(Some(state.path()));
    apply(&engine, &counting_document(&sink, 1)).await.unwrap();
    assert!(engine.overview().listeners.is_empty());
    sink.gets(0..5).await;

    // The replaced one is shut down, although it has no listener: the new one waits for that.
    apply(&engine, &counting_document(&sink, 2)).await.unwrap();
    let taken = sink.seen().len() as u64;
    sink.gets(0..taken + 5).await;
    engine.stop().await;
    let taken = sink.seen().len() as u64;

    let restarted = engine_with_tables(Some(state.path()));
    apply(&restarted, &counting_document(&sink, 1)).await.unwrap();
    sink.gets(0..taken + 5).await;
    restarted.stop().await;
    let mut seen = sink.seen();
    seen.sort_unstable();
    assert_eq!(seen, (0..seen.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn receiver_that_keeps_state_is_refused_by_an_engine_without_state_directory() {
    let sink = sink(true).await;
    let errors = apply(&engine_with_tables(None), &counting_document(&sink, 1)).await.unwrap_err();
    assert_eq!(errors[0].path, "receivers::otlp/counting");
    assert!(errors[0].message.contains("needs a state directory"), "{}", errors[0]);
}

#[tokio::test]
async fn plan_that_waits_for_a_name_server_holds_up_neither_other_tasks_nor_the_end() {
    let sink = sink(true).await;
    let engine = engine_with_tables(None);
    // With a running pipeline, which the end waits for.
    apply(&engine, &document(&[sink.exporter("a")], &[ONE])).await.unwrap();
    let pipeline = "traces: { receivers: [otlp/slow], exporters: [otlphttp/a] }";
    let text = document(&[sink.exporter("a")], &[pipeline]).replace("  otlp:", "  otlp/slow:");
    let planned = tokio::spawn({
        let engine = engine.clone();
        async move { apply(&engine, &text).await }
    });
    eventually("the plan waits", || NAME_SERVER.0.lock().unwrap().0).await;
    tokio::time::timeout(Duration::from_secs(5), engine.stop()).await.expect("the end does not wait for the plan");
    NAME_SERVER.0.lock().unwrap().1 = true;
    NAME_SERVER.1.notify_all();
    assert_eq!(planned.await.unwrap().unwrap_err()[0].message, "the collector is stopping");
}

#[tokio::test]
async fn connector_that_holds_data_is_flushed_after_the_pipelines_before_it_and_before_those_behind_it() {
    let (old, new) = (sink(true).await, sink(true).await);
    let chain = [
        "traces/in: { receivers: [otlp], processors: [batch], exporters: [forward/holding] }",
        "traces/a: { receivers: [forward/holding], processors: [batch], exporters: [otlphttp/a] }",
    ];
    let text = document(&[old.exporter("a")], &chain);
    let text = text.replace("exporters:\n", "connectors: { forward/holding: }\nexporters:\n");
    let engine = engine_with_tables(None);
    apply(&engine, &text).await.unwrap();
    assert!(Sender::connect(&engine).await.send([1]).await);
    let direct = "traces: { receivers: [otlp], exporters: [otlphttp/b] }";
    apply(&engine, &document(&[new.exporter("b")], &[direct])).await.unwrap();
    old.gets([1]).await;

    apply(&engine, &text).await.unwrap();
    assert!(Sender::connect(&engine).await.send([2]).await);
    engine.stop().await;
    assert_eq!((old.seen(), new.seen()), (vec![1, 2], vec![]));
}
