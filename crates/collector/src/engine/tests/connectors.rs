//! Pipelines that connectors join: real documents, sockets and requests.

use super::*;

const IN: &str = "traces/in: { receivers: [otlp], exporters: [forward] }";
const TO_A: &str = "traces/a: { receivers: [forward], exporters: [otlphttp/a] }";
const TO_B: &str = "traces/b: { receivers: [forward], exporters: [otlphttp/b] }";

/// A document with the connectors `forward` and `forward/2`.
fn connected(exporters: &[String], pipelines: &[&str]) -> String {
    document(exporters, pipelines).replace("exporters:\n", "connectors: { forward: , forward/2: }\nexporters:\n")
}

/// The exporter with a queue of one request.
fn with_small_queue(exporter: &str) -> String {
    exporter.replace("retry_on_failure", "sending_queue: { queue_size: 1, num_consumers: 1 }, retry_on_failure")
}

fn stats_of(engine: &Engine, name: &str) -> Arc<PipelineStats> {
    engine.registry().pipeline(&PipelineId { signal: Signal::Traces, name: Some(name.into()) })
}

/// Received and delivered items of the pipeline `traces/NAME`.
fn flow_of(engine: &Engine, name: &str) -> (u64, u64) {
    let stats = stats_of(engine, name);
    (stats.received(), stats.delivered.load(Ordering::Relaxed))
}

fn sorted(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    numbers
}

#[tokio::test]
async fn data_reaches_every_pipeline_behind_a_connector_and_is_counted_in_each() {
    let (a, b) = (sink(true).await, sink(true).await);
    for processors in ["", "processors: [batch/quick], "] {
        let engine = engine(Duration::from_secs(20));
        let before = IN.replace("exporters", &format!("{processors}exporters"));
        apply(&engine, &connected(&[a.exporter("a"), b.exporter("b")], &[&before, TO_A, TO_B])).await.unwrap();
        assert!(Sender::connect(&engine).await.send([1, 2]).await);
        engine.stop().await;
        for name in ["in", "a", "b"] {
            assert_eq!(flow_of(&engine, name), (2, 2), "{name}");
        }
        assert_eq!(engine.running.lock().await.default_budget.used(), 0);
    }
    assert_eq!((a.seen(), b.seen()), (vec![1, 2, 1, 2], vec![1, 2, 1, 2]));
}

#[tokio::test]
async fn sender_is_refused_when_no_pipeline_behind_a_connector_has_room() {
    let (a, b) = (sink(false).await, sink(true).await);
    let engine = engine(Duration::from_secs(20));
    let small = with_small_queue(&a.exporter("a"));
    apply(&engine, &connected(std::slice::from_ref(&small), &[IN, TO_A])).await.unwrap();
    let mut sender = Sender::connect(&engine).await;
    let mut taken = 0;
    while sender.send([taken]).await {
        taken += 1;
        assert!(taken < 10, "the queue is small");
    }
    assert_eq!((flow_of(&engine, "in").1, flow_of(&engine, "a").0), (taken, taken), "the refused one is not counted");

    apply(&engine, &connected(&[small, b.exporter("b")], &[IN, TO_A, TO_B])).await.unwrap();
    assert!(sender.send([100]).await, "one pipeline has room");
    b.gets([100]).await;
    let lost = |name| stats_of(&engine, name).dropped_for(DropReason::QueueFull);
    assert_eq!((lost("in"), lost("a"), lost("b")), (0, 1, 0));
    a.open();
    a.gets(0..taken).await;
    engine.stop().await;
    assert!(!a.seen().contains(&100));
}

#[tokio::test]
async fn pipeline_behind_a_connector_refuses_what_its_own_memory_limit_does_not_allow() {
    let (a, b) = (sink(true).await, sink(true).await);
    let engine = engine(Duration::from_secs(20));
    let limiter = "processors:\n  memory_limiter: { check_interval: 1s, limit_mib: 2, spike_limit_mib: 1 }\n";
    let limited = TO_A.replace("exporters", "processors: [memory_limiter], exporters");
    let text = |pipelines: &[&str]| {
        connected(&[a.exporter("a"), b.exporter("b")], pipelines).replace("processors:\n", limiter)
    };
    apply(&engine, &text(&[IN, &limited])).await.unwrap();
    let mut sender = Sender::connect(&engine).await;
    // A span takes 20 bytes.
    assert!(!sender.send(0..100_000).await, "two megabytes do not fit into one");
    assert!(sender.send(0..10_000).await);
    apply(&engine, &text(&[IN, &limited, TO_B])).await.unwrap();
    assert!(sender.send(0..100_000).await, "the other pipeline has memory");
    engine.stop().await;
    assert_eq!(stats_of(&engine, "a").dropped_for(DropReason::MemoryLimit), 100_000);
    assert_eq!((a.seen().len(), b.seen().len()), (10_000, 100_000));
    assert!(engine.registry().budgets().iter().all(|(_, budget)| budget.used() == 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pipelines_behind_a_connector_that_come_and_go_under_load_lose_and_repeat_nothing() {
    let (a, b) = (sink(true).await, sink(true).await);
    let engine = engine(Duration::from_secs(20));
    let exporters = [a.exporter("a"), b.exporter("b")];
    apply(&engine, &connected(&exporters, &[IN, TO_A])).await.unwrap();
    let next = Arc::new(AtomicU64::new(0));
    let done = Arc::new(AtomicBool::new(false));
    let senders: Vec<_> = (0..3)
        .map(|_| {
            let (engine, next, done) = (engine.clone(), next.clone(), done.clone());
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
    let batched = IN.replace("exporters", "processors: [batch/quick], exporters");
    let slow = TO_A.replace("exporters", "processors: [batch], exporters");
    let second = ["traces/in: { receivers: [otlp], exporters: [forward/2] }", &TO_B.replace("forward", "forward/2")];
    let direct = "traces/in: { receivers: [otlp], processors: [batch/quick], exporters: [otlphttp/a] }";
    let changes: [&[&str]; 7] = [
        &[IN, TO_A, TO_B],
        &[&batched, TO_B],
        &[&batched, TO_A],
        &second,
        &[&batched, &slow],
        &[direct],
        &["traces/in: { receivers: [otlp], exporters: [forward] }", &slow, TO_B],
    ];
    for pipelines in changes.iter().cycle().take(42) {
        apply(&engine, &connected(&exporters, pipelines)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    done.store(true, Ordering::Relaxed);
    let mut taken = BTreeSet::new();
    for sender in senders {
        taken.extend(sender.await.unwrap());
    }
    engine.stop().await;
    assert!(taken.len() > 100, "there was a load: {} of {next:?}", taken.len());
    let (at_a, at_b) = (a.seen(), b.seen());
    let came: BTreeSet<u64> = at_a.iter().chain(&at_b).copied().collect();
    assert_eq!(taken.difference(&came).collect::<Vec<_>>(), Vec::<&u64>::new(), "nothing is lost");
    assert_eq!(came.difference(&taken).count(), 0, "nothing comes that was not taken");
    for seen in [at_a, at_b] {
        let count = seen.len();
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>().len(), count, "nothing comes twice");
    }
}

/// Three pipelines in a row, each of which holds what comes to it.
fn chain() -> [&'static str; 3] {
    [
        // The names do not have the order of the flow.
        "traces/z: { receivers: [otlp], processors: [batch], exporters: [forward] }",
        "traces/b: { receivers: [forward], processors: [batch], exporters: [forward/2] }",
        "traces/m: { receivers: [forward/2], processors: [batch], exporters: [otlphttp/a] }",
    ]
}

#[tokio::test]
async fn stop_delivers_what_a_chain_of_two_connectors_holds() {
    let sink = sink(true).await;
    let engine = engine(Duration::from_secs(60));
    apply(&engine, &connected(&[sink.exporter("a")], &chain())).await.unwrap();
    let mut sender = Sender::connect(&engine).await;
    for number in 0..20 {
        assert!(sender.send([number]).await);
    }
    assert!(sink.seen().is_empty());
    let begin = std::time::Instant::now();
    engine.stop().await;
    assert!(begin.elapsed() < Duration::from_secs(10), "nothing waits for the drain limit: {:?}", begin.elapsed());
    assert_eq!(sorted(sink.seen()), (0..20).collect::<Vec<_>>());
    for name in ["z", "b", "m"] {
        assert_eq!(flow_of(&engine, name), (20, 20), "{name}");
    }
    assert_eq!(engine.running.lock().await.default_budget.used(), 0);
}

#[tokio::test]
async fn removed_chain_is_drained_in_the_background_and_released() {
    let (old, new) = (sink(true).await, sink(true).await);
    let engine = engine(Duration::from_secs(60));
    apply(&engine, &connected(&[old.exporter("a")], &chain())).await.unwrap();
    let mut sender = Sender::connect(&engine).await;
    assert!(sender.send([1]).await);
    let other = "traces: { receivers: [otlp], exporters: [otlphttp/b] }";
    apply(&engine, &connected(&[new.exporter("b")], &[other])).await.unwrap();
    assert!(sender.send([2]).await);
    old.gets([1]).await;
    new.gets([2]).await;
    eventually("nothing is left of it", || engine.drain_tasks.lock().is_empty()).await;
    assert_eq!((old.seen(), new.seen()), (vec![1], vec![2]));
}

#[tokio::test]
async fn connector_that_goes_stays_until_pipelines_that_went_earlier_are_drained() {
    let (a, b) = (sink(false).await, sink(true).await);
    let engine = engine(Duration::from_secs(60));
    let small = with_small_queue(&a.exporter("a"));
    let begin = "traces/in: { receivers: [otlp], processors: [batch], exporters: [forward] }";
    let hasty = |text: String| text.replace("timeout: 60s", "timeout: 60s, send_batch_size: 1");
    apply(&engine, &hasty(connected(std::slice::from_ref(&small), &[begin, TO_A]))).await.unwrap();
    let mut sender = Sender::connect(&engine).await;
    for number in 0..3 {
        assert!(sender.send([number]).await, "one is sent, one waits for room, one gathers");
        eventually("it is where it stays", || handed_on(&engine) == (number + 1).min(2)).await;
    }
    let other = "traces/other: { receivers: [otlp], exporters: [forward] }";
    apply(&engine, &hasty(connected(&[small], &[other, TO_A]))).await.unwrap();
    let direct = "traces/b: { receivers: [otlp], exporters: [otlphttp/b] }";
    apply(&engine, &hasty(connected(&[b.exporter("b")], &[direct]))).await.unwrap();
    assert_eq!(engine.drain_tasks.lock().len(), 2);
    tokio::time::sleep(Duration::from_millis(100)).await;
    a.open();
    a.gets(0..3).await;
    assert!(sender.send([3]).await);
    engine.stop().await;
    assert_eq!(b.seen(), [3]);
    let dropped = engine.registry().pipelines().iter().map(|(_, s)| s.dropped_for(DropReason::Shutdown)).sum::<u64>();
    assert_eq!(dropped, 0);
}

#[tokio::test]
async fn stop_counts_once_what_a_chain_cannot_deliver() {
    let sink = sink(false).await;
    let engine = engine(Duration::from_millis(300));
    let text = connected(&[with_small_queue(&sink.exporter("a"))], &chain());
    apply(&engine, &text.replace("timeout: 60s", "timeout: 60s, send_batch_size: 1")).await.unwrap();
    let mut sender = Sender::connect(&engine).await;
    for number in 0..20 {
        assert!(sender.send([number]).await);
        // So that each pipeline holds some.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    engine.stop().await;
    let pipelines = engine.registry().pipelines();
    let dropped: u64 = pipelines.iter().map(|(_, stats)| stats.dropped_for(DropReason::Shutdown)).sum();
    assert_eq!(dropped, 20);
    assert_eq!(engine.running.lock().await.default_budget.used(), 0);
}

#[tokio::test]
async fn request_to_a_pipeline_that_goes_while_it_is_sent_passes_its_connector() {
    let (old, new) = (sink(true).await, sink(true).await);
    let engine = engine(Duration::from_secs(20));
    apply(&engine, &connected(&[old.exporter("a")], &[IN, TO_A])).await.unwrap();
    let mut sender = Sender::connect(&engine).await;
    let whole = body([1]);
    sender.0.write_all(&[&head(whole.len()), &whole[..10]].concat()).await.unwrap();
    in_use(&engine, PART_OVERHEAD_BYTES as u64).await;
    let other = "traces: { receivers: [otlp], exporters: [otlphttp/b] }";
    apply(&engine, &connected(&[new.exporter("b")], &[other])).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    sender.0.write_all(&whole[10..]).await.unwrap();
    assert_eq!(sender.status().await, 200);
    engine.stop().await;
    assert_eq!((old.seen(), new.seen()), (vec![1], vec![]));
}
