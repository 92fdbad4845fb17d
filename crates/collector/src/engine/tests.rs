//! Real documents, sockets and requests: what a change leaves alone, and that it loses nothing.

mod component_contract;
#[cfg(feature = "connector-forward")]
mod connectors;

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use bytes::Bytes;
use kubewake_config::PipelineId;
use kubewake_otlp::Signal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::*;
use crate::{
    core::{
        DropReason, PART_OVERHEAD_BYTES, PipelineStats,
        testing::{numbers_in, request},
    },
    net::testing::{Backend, Reply, Speaks},
};

/// Waits for an event in another task.
async fn eventually(what: &str, happened: impl Fn() -> bool) {
    let happens = async {
        while !happened() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), happens).await.unwrap_or_else(|_| panic!("not in time: {what}"));
}

/// Items that the batch processors have passed on.
fn handed_on(engine: &Engine) -> u64 {
    engine.registry().processors().iter().map(|(_, stats)| stats.outgoing.load(Ordering::Relaxed)).sum()
}

/// Waits until this much of the default budget is in use.
async fn in_use(engine: &Engine, bytes: u64) {
    let budget = engine.running.lock().await.default_budget.clone();
    eventually("the memory is in use", || budget.used() == bytes).await;
}

/// A backend that is unavailable until it is opened.
struct Sink {
    backend: Backend,
    open: Arc<AtomicBool>,
}

async fn sink(open: bool) -> Sink {
    let open = Arc::new(AtomicBool::new(open));
    let is_open = open.clone();
    let backend = Backend::start(Speaks::Http1, None, move |_, _| {
        if is_open.load(Ordering::Relaxed) { Reply::http(200, &[], "") } else { Reply::http(503, &[], "") }
    });
    Sink { backend: backend.await, open }
}

impl Sink {
    fn open(&self) {
        self.open.store(true, Ordering::Relaxed);
    }

    /// All received spans, refused or not, in order and with repetitions.
    fn seen(&self) -> Vec<u64> {
        self.backend.seen().iter().flat_map(|seen| numbers_in(&seen.body)).collect()
    }

    /// Waits until these spans were received.
    async fn gets(&self, numbers: impl IntoIterator<Item = u64>) {
        let wanted: BTreeSet<u64> = numbers.into_iter().collect();
        eventually("everything arrives", || wanted.iter().all(|number| self.seen().contains(number))).await;
    }

    /// An exporter to this backend that retries soon when it is refused.
    fn exporter(&self, id: &str) -> String {
        format!(
            "  otlphttp/{id}: {{ endpoint: 'http://{}', compression: none, \
             retry_on_failure: {{ initial_interval: 10ms, max_interval: 20ms }} }}\n",
            self.backend.address
        )
    }
}

const RECEIVERS: &str = "receivers:\n  otlp: { protocols: { http: { endpoint: '127.0.0.1:0' } } }\n";

fn document(exporters: &[String], pipelines: &[&str]) -> String {
    let processors = "processors:\n  batch: { timeout: 60s }\n  batch/quick: { timeout: 1ms }\n";
    let pipelines: String = pipelines.iter().map(|pipeline| format!("    {pipeline}\n")).collect();
    format!("{RECEIVERS}{processors}exporters:\n{}service:\n  pipelines:\n{pipelines}", exporters.concat())
}

fn engine(drain_limit: Duration) -> Arc<Engine> {
    Engine::new(EngineOptions { drain_limit, default_budget: 64 << 20, state_directory: None })
}

async fn apply(engine: &Engine, text: &str) -> Result<(), Vec<ApplyError>> {
    engine.apply(&kubewake_config::load(text, &kubewake_config::FixedSources::new()).unwrap().document).await
}

/// A running engine with one pipeline from the receiver to `sink`.
async fn running(sink: &Sink, pipeline: &str) -> Arc<Engine> {
    let engine = engine(Duration::from_secs(20));
    apply(&engine, &document(&[sink.exporter("a")], &[pipeline])).await.unwrap();
    engine
}

struct Sender(TcpStream);

impl Sender {
    async fn connect(engine: &Engine) -> Self {
        Self(TcpStream::connect(engine.overview().listeners[0].2).await.unwrap())
    }

    /// Sends a request of spans with these numbers, and returns whether it was taken.
    async fn send(&mut self, numbers: impl IntoIterator<Item = u64>) -> bool {
        let body = body(numbers);
        self.0.write_all(&[&head(body.len()), &body[..]].concat()).await.unwrap();
        self.status().await == 200
    }

    async fn status(&mut self) -> u16 {
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(self.0.read_u8().await.expect("the connection is open"));
        }
        let answer = String::from_utf8(answer).unwrap().to_lowercase();
        let length = answer.split("content-length: ").nth(1).map_or(0, |rest| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap()
        });
        self.0.read_exact(&mut vec![0; length]).await.unwrap();
        answer[9..12].parse().unwrap()
    }
}

fn head(length: usize) -> Vec<u8> {
    let head = "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n";
    format!("{head}content-length: {length}\r\n\r\n").into_bytes()
}

/// The head of a request, and as much of its body as makes the receiver reserve memory for all of it.
fn begun(length: usize) -> Vec<u8> {
    [head(length), vec![0; length / 10]].concat()
}

fn body(numbers: impl IntoIterator<Item = u64>) -> Bytes {
    request(numbers).parts()[0].bytes.clone()
}

const ONE: &str = "traces: { receivers: [otlp], exporters: [otlphttp/a] }";

#[tokio::test]
async fn what_did_not_change_keeps_its_address_and_its_connections() {
    let sink = sink(true).await;
    let engine = running(&sink, ONE).await;
    let before = engine.overview().listeners.clone();
    let mut sender = Sender::connect(&engine).await;
    assert!(sender.send([1]).await);
    let other = "traces: { receivers: [otlp], processors: [batch/quick], exporters: [otlphttp/a] }";
    apply(&engine, &document(&[sink.exporter("a")], &[other])).await.unwrap();
    assert_eq!(engine.overview().listeners, before);
    assert!(sender.send([2]).await, "on the same connection");
    sink.gets([1, 2]).await;
}

#[tokio::test]
async fn a_receiver_with_new_settings_on_the_same_address_keeps_its_connections() {
    let sink = sink(true).await;
    let engine = running(&sink, ONE).await;
    let mut sender = Sender::connect(&engine).await;
    assert!(sender.send([1]).await);
    let text = document(&[sink.exporter("a")], &[ONE]);
    let smaller = text.replace("endpoint: '127.0.0.1:0'", "endpoint: '127.0.0.1:0', max_request_body_size: 10");
    apply(&engine, &smaller).await.unwrap();
    assert!(!sender.send([2]).await, "the new limit is in force for the next request of the same connection");
}

#[tokio::test]
async fn two_protocols_with_the_same_words_for_any_port_have_a_port_each() {
    let sink = sink(true).await;
    let text = document(&[sink.exporter("a")], &[ONE]);
    let both = text.replace("protocols: {", "protocols: { grpc: { endpoint: '127.0.0.1:0' },");
    let engine = engine(Duration::from_secs(20));
    apply(&engine, &both).await.unwrap();
    let listeners = engine.overview().listeners.clone();
    let ports: BTreeSet<u16> = listeners.iter().map(|(_, _, address)| address.port()).collect();
    assert_eq!((listeners.len(), ports.len()), (2, 2));
}

#[tokio::test]
async fn a_changed_exporter_keeps_its_queue() {
    let old = sink(false).await;
    let new = sink(true).await;
    let engine = running(&old, ONE).await;
    let mut sender = Sender::connect(&engine).await;
    for n in 0..20 {
        assert!(sender.send([n]).await);
    }
    apply(&engine, &document(&[new.exporter("a")], &[ONE])).await.unwrap();
    new.gets(0..20).await;
}

#[tokio::test]
async fn a_pipeline_that_went_is_drained() {
    let old = sink(false).await;
    let new = sink(true).await;
    let engine = running(&old, "traces: { receivers: [otlp], processors: [batch], exporters: [otlphttp/a] }").await;
    let mut sender = Sender::connect(&engine).await;
    assert!(sender.send([1]).await);
    let other = "traces/b: { receivers: [otlp], exporters: [otlphttp/b] }";
    apply(&engine, &document(&[new.exporter("b")], &[other])).await.unwrap();
    assert!(sender.send([2]).await, "the receiver stays");
    old.open();
    old.gets([1]).await;
    new.gets([2]).await;
    assert!(!old.seen().contains(&2) && !new.seen().contains(&1));
}

#[tokio::test]
async fn a_request_that_was_let_in_before_its_pipeline_went_is_delivered_also_when_the_end_follows() {
    let old = sink(true).await;
    let new = sink(true).await;
    let engine = running(&old, "traces: { receivers: [otlp], processors: [batch], exporters: [otlphttp/a] }").await;
    let mut sender = Sender::connect(&engine).await;
    let whole = body([1]);
    sender.0.write_all(&[&head(whole.len()), &whole[..10]].concat()).await.unwrap();
    in_use(&engine, PART_OVERHEAD_BYTES as u64).await;
    let other = "traces/b: { receivers: [otlp], exporters: [otlphttp/b] }";
    apply(&engine, &document(&[new.exporter("b")], &[other])).await.unwrap();
    sender.0.write_all(&whole[10..]).await.unwrap();
    assert_eq!(sender.status().await, 200);
    engine.stop().await;
    assert_eq!((old.seen(), new.seen()), (vec![1], vec![]));
}

#[tokio::test]
async fn a_document_that_cannot_bind_changes_nothing() {
    let (sink, other) = (sink(true).await, sink(true).await);
    let engine = running(&sink, ONE).await;
    let mut sender = Sender::connect(&engine).await;
    let before = engine.overview();
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = busy.local_addr().unwrap();
    let two = "traces: { receivers: [otlp, otlp/busy], exporters: [otlphttp/a] }";
    let busy = format!("{RECEIVERS}  otlp/busy: {{ protocols: {{ http: {{ endpoint: '{address}' }} }} }}\n");
    let text = document(&[other.exporter("a")], &[two]).replace(RECEIVERS, &busy);
    let errors = apply(&engine, &text).await.unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].path, "receivers::otlp/busy");
    assert!(errors[0].message.contains(&address.to_string()), "{}", errors[0]);
    assert_eq!(engine.overview().listeners, before.listeners);
    assert!(sender.send([1]).await);
    sink.gets([1]).await;
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn a_limiter_takes_a_new_limit_in_place() {
    let sink = sink(true).await;
    let engine = engine(Duration::from_secs(20));
    let limited = |mib: u32| {
        let pipeline = "traces: { receivers: [otlp], processors: [memory_limiter], exporters: [otlphttp/a] }";
        let limiter =
            format!("processors:\n  memory_limiter: {{ check_interval: 1s, limit_mib: {mib}, spike_limit_mib: 1 }}\n");
        document(&[sink.exporter("a")], &[pipeline]).replace("processors:\n", &limiter)
    };
    apply(&engine, &limited(2)).await.unwrap();
    let budget = || engine.registry().budgets().into_iter().map(|(_, budget)| budget).next().unwrap();
    let first = budget();
    let mut sender = Sender::connect(&engine).await;
    // A span takes 20 bytes.
    assert!(!sender.send(0..100_000).await, "two megabytes do not fit into one");
    apply(&engine, &limited(8)).await.unwrap();
    assert!(Arc::ptr_eq(&first, &budget()));
    assert_eq!(first.limit(), 8 << 20);
    assert!(sender.send(0..100_000).await);
    engine.stop().await;
    assert_eq!(first.used(), 0, "everything is given back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processors_that_come_and_go_under_load_lose_and_repeat_nothing() {
    let sink = sink(true).await;
    let engine = running(&sink, ONE).await;
    let next = Arc::new(AtomicU64::new(0));
    let done = Arc::new(AtomicBool::new(false));
    let senders: Vec<_> = (0..3)
        .map(|_| {
            let engine = engine.clone();
            let next = next.clone();
            let done = done.clone();
            tokio::spawn(async move {
                let mut sender = Sender::connect(&engine).await;
                let mut taken = Vec::new();
                while !done.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if sender.send([number]).await {
                        taken.push(number);
                    }
                }
                taken
            })
        })
        .collect();
    let with = |steps: &str| format!("traces: {{ receivers: [otlp], processors: [{steps}], exporters: [otlphttp/a] }}");
    for steps in ["batch", "", "batch/quick", "batch, batch/quick", "batch/quick, batch"].iter().cycle().take(40) {
        apply(&engine, &document(&[sink.exporter("a")], &[&with(steps)])).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    done.store(true, Ordering::Relaxed);
    let mut taken = Vec::new();
    for sender in senders {
        taken.extend(sender.await.unwrap());
    }
    engine.stop().await;
    let mut arrived = sink.seen();
    arrived.sort_unstable();
    taken.sort_unstable();
    assert!(taken.len() > 100, "there was a load: {} of {next:?}", taken.len());
    let (came, told): (BTreeSet<_>, BTreeSet<_>) = (arrived.iter().collect(), taken.iter().collect());
    assert_eq!(told.difference(&came).count(), 0, "nothing is lost");
    assert_eq!(came.difference(&told).count(), 0, "nothing comes that was not taken");
    assert_eq!(arrived.len(), taken.len(), "nothing comes twice");
}

#[tokio::test]
async fn a_slow_client_does_not_cost_what_is_held_its_delivery() {
    let sink = sink(true).await;
    let engine = engine(Duration::from_secs(3));
    let batched = "traces: { receivers: [otlp], processors: [batch], exporters: [otlphttp/a] }";
    apply(&engine, &document(&[sink.exporter("a")], &[batched])).await.unwrap();
    assert!(Sender::connect(&engine).await.send([1]).await);
    let mut slow = Sender::connect(&engine).await;
    let held = engine.running.lock().await.default_budget.used();
    slow.0.write_all(&begun(1000)).await.unwrap();
    in_use(&engine, held + 1000).await;
    engine.stop().await;
    assert_eq!(sink.seen(), [1]);
    assert_eq!(slow.0.read(&mut [0; 100]).await.unwrap_or(0), 0, "it is cut off");
}

#[tokio::test]
async fn at_the_end_what_a_step_still_holds_is_counted_too() {
    let sink = sink(false).await;
    let engine = engine(Duration::from_millis(300));
    let batched = "traces: { receivers: [otlp], processors: [batch], exporters: [otlphttp/a] }";
    let small = sink.exporter("a").replace("retry_on_failure", "sending_queue: { queue_size: 1 }, retry_on_failure");
    let text = document(&[small], &[batched]).replace("timeout: 60s", "timeout: 60s, send_batch_size: 1");
    apply(&engine, &text).await.unwrap();
    let mut sender = Sender::connect(&engine).await;
    let mut taken = 0;
    for n in 0..10 {
        taken += u64::from(sender.send([n]).await);
        eventually("it is where it stays", || handed_on(&engine) == taken.min(2)).await;
    }
    assert!((2..10).contains(&taken), "one is sent, one waits for room, one gathers: {taken}");
    engine.stop().await;
    let pipelines = engine.registry().pipelines();
    assert_eq!(pipelines[0].1.dropped_for(crate::core::DropReason::Shutdown), taken);
}

#[tokio::test]
async fn after_the_end_nothing_comes_into_force() {
    let sink = sink(true).await;
    let engine = running(&sink, ONE).await;
    engine.stop().await;
    assert!(apply(&engine, &document(&[sink.exporter("a")], &[ONE])).await.is_err());
    assert!(TcpStream::connect(engine.overview().listeners[0].2).await.is_err());
}

#[tokio::test]
async fn what_was_drained_is_forgotten() {
    let sink = sink(true).await;
    let with = "traces: { receivers: [otlp], processors: [batch], exporters: [otlphttp/a] }";
    let without = "traces/b: { receivers: [otlp], exporters: [otlphttp/a] }";
    let engine = running(&sink, with).await;
    let mut sender = Sender::connect(&engine).await;
    for (n, pipeline) in [without, with].into_iter().cycle().take(20).enumerate() {
        assert!(sender.send([n as u64]).await);
        apply(&engine, &document(&[sink.exporter("a")], &[pipeline])).await.unwrap();
        sink.gets([n as u64]).await;
    }
    assert!(engine.drain_tasks.lock().len() < 5);
}

#[tokio::test]
async fn a_client_that_goes_away_in_the_middle_of_a_request_leaves_no_memory_behind() {
    let sink = sink(true).await;
    let engine = running(&sink, ONE).await;
    let mut sender = Sender::connect(&engine).await;
    sender.0.write_all(&begun(1000)).await.unwrap();
    in_use(&engine, 1000).await;
    drop(sender);
    in_use(&engine, 0).await;
}

#[tokio::test]
async fn a_request_that_there_is_no_memory_for_is_refused_before_it_is_sent() {
    let sink = sink(true).await;
    let engine = Engine::new(EngineOptions {
        drain_limit: Duration::from_secs(1),
        default_budget: 10_000,
        state_directory: None,
    });
    apply(&engine, &document(&[sink.exporter("a")], &[ONE])).await.unwrap();
    let mut sender = Sender::connect(&engine).await;
    let mut other = Sender::connect(&engine).await;
    other.0.write_all(&begun(7000)).await.unwrap();
    in_use(&engine, 7000).await;
    assert!(sender.send([1]).await);
    for (spans, status, when) in [(200, 503, "while another has it"), (1000, 413, "as there never is")] {
        let long = body(0..spans);
        sender.0.write_all(&[&head(long.len()), &long[..]].concat()).await.unwrap();
        assert_eq!(sender.status().await, status, "{when}");
    }
    assert!(sender.send([2]).await, "the connection goes on");
}

#[tokio::test]
async fn what_a_step_could_not_hand_on_goes_to_the_exporter_that_replaces_a_dead_one() {
    let dead = sink(false).await;
    let alive = sink(true).await;
    let engine = engine(Duration::from_millis(200));
    let to = |id: &str| format!("traces: {{ receivers: [otlp], processors: [batch], exporters: [otlphttp/{id}] }}");
    let small = dead.exporter("a").replace("retry_on_failure", "sending_queue: { queue_size: 1 }, retry_on_failure");
    let hasty = |text: String| text.replace("timeout: 60s", "timeout: 60s, send_batch_size: 1");
    apply(&engine, &hasty(document(&[small], &[&to("a")]))).await.unwrap();
    let mut sender = Sender::connect(&engine).await;
    for n in 0..3 {
        assert!(sender.send([n]).await, "one is sent, one waits for room, one gathers");
        eventually("it is where it stays", || handed_on(&engine) == (n + 1).min(2)).await;
    }
    apply(&engine, &hasty(document(&[alive.exporter("b")], &[&to("b")]))).await.unwrap();
    alive.gets([1, 2]).await;
}

fn x() -> PipelineId {
    PipelineId { signal: Signal::Traces, name: Some("x".into()) }
}

/// The counters of the current pipeline with this id: received, delivered and lost items.
fn counted(engine: &Engine) -> (u64, u64, u64) {
    let now = engine.registry().pipeline(&x());
    (now.received(), now.delivered.load(Ordering::Relaxed), now.dropped_for(DropReason::Shutdown))
}

/// Received and lost items of all pipelines, current and former.
fn ever_counted(engine: &Engine) -> (u64, u64) {
    let all = engine.registry().pipelines();
    let sum = |of: fn(&PipelineStats) -> u64| all.iter().map(|(_, stats)| of(stats)).sum();
    (sum(PipelineStats::received), sum(|stats| stats.dropped_for(DropReason::Shutdown)))
}

#[tokio::test]
async fn another_pipeline_of_the_same_id_has_nothing_to_do_with_the_one_before() {
    let sink = sink(false).await;
    let engine = engine(Duration::from_millis(100));
    let pipeline = |uid: &str| format!("traces/x: {{ receivers: [otlp], exporters: [otlphttp/a]{uid} }}");
    let text = |uid: &str| document(&[sink.exporter("a")], &[&pipeline(uid)]);
    apply(&engine, &text("")).await.unwrap();
    let mut sender = Sender::connect(&engine).await;
    assert!(sender.send([1, 2]).await);
    apply(&engine, &text(", uid: one")).await.unwrap();
    assert!(sender.send([3]).await);
    assert_eq!(counted(&engine), (3, 0, 0), "who says which one it is may well be the one before");
    sink.gets([1, 3]).await;

    apply(&engine, &text(", uid: two")).await.unwrap();
    eventually("what the first one held is lost", || ever_counted(&engine) == (3, 3)).await;
    assert_eq!(counted(&engine), (0, 0, 0));
    let exporter = |engine: &Engine| {
        let (_, of_it) = engine.registry().destinations(&ComponentId::new("otlphttp/a"), &x()).remove(0);
        of_it.progress.snapshot().failures
    };
    assert_eq!(exporter(&engine), 0, "it has not even tried");
    sink.open();
    assert!(sender.send([4]).await, "the connection stays");
    sink.gets([4]).await;
    eventually("it is counted", || counted(&engine) == (1, 1, 0)).await;

    // After a gap, a pipeline with the same id is a different one.
    let other = "traces/y: { receivers: [otlp], exporters: [otlphttp/a] }";
    apply(&engine, &document(&[sink.exporter("a")], &[other])).await.unwrap();
    apply(&engine, &text("")).await.unwrap();
    assert_eq!(counted(&engine), (0, 0, 0));
    assert_eq!(ever_counted(&engine), (4, 3), "and nothing that was counted is forgotten");
}

#[tokio::test]
async fn whoever_had_an_id_is_counted_as_one() {
    let sink = sink(true).await;
    let engine = engine(Duration::from_secs(20));
    for uid in 0..20 {
        let pipeline = format!("traces/x: {{ receivers: [otlp], exporters: [otlphttp/a], uid: u{uid} }}");
        apply(&engine, &document(&[sink.exporter("a")], &[&pipeline])).await.unwrap();
        assert!(Sender::connect(&engine).await.send([uid]).await);
        sink.gets([uid]).await;
        let is_drained = || engine.drain_tasks.lock().iter().all(|earlier| earlier.task.is_finished());
        eventually("the one before is drained", is_drained).await;
    }
    assert!(engine.registry().pipelines().len() < 5, "they do not become ever more");
    assert_eq!(ever_counted(&engine), (20, 0));
}

#[tokio::test]
async fn what_went_is_let_go_of_without_another_change() {
    let sink = sink(true).await;
    let engine = running(&sink, "traces: { receivers: [otlp], exporters: [otlphttp/a] }").await;
    let mut sender = Sender::connect(&engine).await;
    assert!(sender.send([1]).await);
    apply(&engine, &document(&[sink.exporter("b")], &["traces: { receivers: [otlp], exporters: [otlphttp/b] }"]))
        .await
        .unwrap();
    sink.gets([1]).await;
    eventually("nothing is left of it", || engine.drain_tasks.lock().is_empty()).await;
}
