//! Objects that were ready and are no longer: each converges once, and its repair long after is one trace.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams},
    runtime::{controller::Action, watcher},
};
use kubewake_trail::{Controller, Options, Trail, TrailClock};
use opentelemetry_sdk::trace::SpanData;
use serde_json::json;

use crate::{
    cluster::{Cluster, Process, Settings, somebody},
    edges::Edges,
    head::Head,
};

/// Longer than `drift_after`.
const HOUR: u64 = 3600;

/// Sets the Head's condition to not ready, since this time.
async fn lose(cluster: &Cluster, name: &str, since: SystemTime) {
    let since = k8s_openapi::jiff::Timestamp::try_from(since).unwrap();
    let condition = json!({
        "type": "Ready", "status": "False", "reason": "Lost", "message": "", "lastTransitionTime": since, "observedGeneration": 1,
    });
    let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    cluster.heads().patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}

async fn ready_again(cluster: &Cluster, name: &str) {
    let ready = |head: Option<&Head>| {
        let conditions = head.and_then(|head| head.status.as_ref()).map(|status| status.conditions.as_slice());
        conditions.unwrap_or_default().iter().any(|condition| condition.status == "True")
    };
    let again = kube::runtime::wait::await_condition(cluster.heads(), name, ready);
    tokio::time::timeout(Duration::from_secs(60), again).await.unwrap().unwrap();
}

fn converged(spans: &[SpanData]) -> usize {
    spans.iter().filter(|span| span.name == "converge Head").count()
}

#[tokio::test]
async fn what_was_ready_for_a_generation_does_not_converge_again() {
    let cluster = Cluster::start().await;
    let first = Process::start_and_watch(&cluster, Settings::default()).await;
    cluster.create("one", Some(&somebody('a').0)).await;
    first.until_span("converge Head", 1).await;
    lose(&cluster, "one", SystemTime::now()).await;
    ready_again(&cluster, "one").await;
    first.resync(3).await;
    assert_eq!(converged(&first.stop().await), 1);

    let second = Process::start(&cluster, Settings::default());
    second.resync(3).await;
    lose(&cluster, "one", SystemTime::now()).await;
    ready_again(&cluster, "one").await;
    second.resync(3).await;
    assert_eq!(converged(&second.stop().await), 0, "it was ready before this one began");

    // This time it is lost while no process runs, long after the change.
    lose(&cluster, "one", SystemTime::now() + Duration::from_secs(HOUR)).await;
    let third = Process::start(&cluster, Settings::default());
    ready_again(&cluster, "one").await;
    third.resync(3).await;
    assert_eq!(converged(&third.spans()), 0, "what turned so late was ready before");
    cluster.change("one", 2, Some(&somebody('b').0)).await;
    third.until_span("converge Head", 1).await;
}

/// A clock that is some seconds ahead.
fn clock(ahead: &Arc<AtomicU64>) -> TrailClock {
    let ahead = Arc::clone(ahead);
    TrailClock::new(move || SystemTime::now() + Duration::from_secs(ahead.load(Ordering::SeqCst)))
}

async fn break_child(cluster: &Cluster, how: &str) {
    let broken = Patch::Merge(json!({"data": {"size": how}}));
    cluster.children().patch("one-child", &PatchParams::default(), &broken).await.unwrap();
}

/// Resets the spans once no run is in progress. A run that repairs something before a watch has shown that it
/// was broken takes the newer revision for the work of another writer, and leaves no span.
async fn settle(process: &Process) {
    process.rerun("one").await;
    process.exporter.reset();
}

#[tokio::test]
async fn all_runs_of_a_repair_are_one_trace() {
    let cluster = Cluster::start().await;
    let ahead = Arc::new(AtomicU64::new(0));
    let options = Options { clock: clock(&ahead), ..Options::default() };
    let process = Process::start_and_watch(&cluster, Settings { options, ..Settings::default() }).await;
    let (text, context) = somebody('a');
    cluster.create_stamped("one", &text).await;
    process.until_span("converge Head", 1).await;
    process.resync(3).await;

    ahead.store(HOUR, Ordering::SeqCst);
    process.resync(20).await;
    settle(&process).await;
    break_child(&cluster, "broken").await;
    process.until_span("reconcile Head", 1).await;
    process.resync(3).await;
    lose(&cluster, "one", SystemTime::now()).await;
    process.until_span("reconcile Head", 2).await;
    process.resync(3).await;
    let repair = process.spans();
    let edges = Edges::default().knows("the user", &context);
    let lines = edges.of(&repair);
    assert_eq!(
        lines.iter().filter(|line| !line.starts_with("PATCH")).collect::<Vec<_>>(),
        [
            "apply ConfigMap < reconcile Head",
            "reconcile Head < nothing ~ the user",
            "reconcile Head < reconcile Head ~ the user",
            "status Head < reconcile Head",
        ]
    );
    let trace = repair[0].span_context.trace_id();
    assert!(repair.iter().all(|span| span.span_context.trace_id() == trace) && trace != context.trace_id());
    let is_drift = |span: &&SpanData| span.attributes.iter().any(|it| it.key.as_str() == "trail.drift");
    assert_eq!(repair.iter().filter(is_drift).count(), 2);

    ahead.store(2 * HOUR, Ordering::SeqCst);
    settle(&process).await;
    break_child(&cluster, "broken again").await;
    process.until_span("reconcile Head", 1).await;
    let next = process.spans();
    assert!(edges.of(&next).contains(&"reconcile Head < nothing ~ the user".to_owned()), "{:?}", edges.of(&next));
    assert_ne!(next[0].span_context.trace_id(), trace, "an hour later it is another one");
}

#[tokio::test]
async fn who_never_reached_an_api_server_ends_when_told() {
    // A port without a listener.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    drop(taken);
    let client = Client::try_from(Config::new(format!("http://{address}").parse().unwrap())).unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let reconcile = |_: Arc<ConfigMap>, _: Arc<()>| async { Ok::<_, kube::Error>(Action::await_change()) };
    let again = |_: Arc<ConfigMap>, _: &kube::Error, _: Arc<()>| Action::await_change();
    let controller = Controller::new(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
        .owns(Api::<ConfigMap>::all(client), watcher::Config::default())
        .graceful_shutdown_on(async { drop(stopped.await) })
        .run(Trail::disabled(), reconcile, again, Arc::new(()));
    let mut controller = std::pin::pin!(controller);
    let first = tokio::time::timeout(Duration::from_secs(60), controller.next()).await.unwrap();
    assert!(matches!(first, Some(Err(_))), "it cannot list");
    drop(stop);
    let ended = controller.for_each(|_| async {});
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it ends");
}
