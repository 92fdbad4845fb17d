use std::{collections::BTreeMap, sync::Arc};

use kubewake_otlp::Signal;
use kubewake_status::{PipelineDiagnosis, SendState};
use serde_json::{Value, json};

use super::*;
use crate::core::{
    BackendStatus, Budget, ClusterView, Code, DropReason, ErrorClass, ExporterStats, PipelineStats, SendError,
};

const INTERVAL: Duration = Duration::from_secs(300);

/// One pipeline with one exporter, on a paused clock.
struct Setup {
    registry: StatsRegistry,
    process: ProcessIdentity,
    running: RunningInfo,
    exporter: Arc<ExporterStats>,
}

impl Setup {
    fn new() -> Self {
        let registry = StatsRegistry::default();
        let id = PipelineId { signal: Signal::Traces, name: None };
        let exporters = vec![(ComponentId::new("otlp"), DestinationLabels::default())];
        let exporter = registry.exporter(&exporters[0].0, &id, DestinationLabels::default());
        let running = RunningInfo {
            phase: CollectorPhase::Ready,
            pipelines: vec![PipelineInfo { id, uid: None, carries: Vec::new(), processors: Vec::new(), exporters }],
            ..RunningInfo::default()
        };
        Self { registry, process: ProcessIdentity::start("1.2.3", &BTreeMap::new()), running, exporter }
    }

    fn holds(self, requests: u64) -> Self {
        self.exporter.queue.set(requests, Some(Instant::now()));
        self
    }

    fn pipeline(&self) -> Arc<PipelineStats> {
        self.registry.pipeline(&self.running.pipelines[0].id)
    }

    fn fails(&self, times: usize) {
        for _ in 0..times {
            self.fails_with(&SendError::connection("no"));
        }
    }

    fn fails_with(&self, error: &SendError) {
        self.exporter.progress.record_failure(error);
        self.pipeline().record_failure(error);
    }

    fn succeeds(&self) {
        self.exporter.progress.record_success();
        self.pipeline().record_success(5);
    }

    fn diagnosis(&self) -> PipelineDiagnosis {
        self.status().pipelines["traces"].diagnosis
    }

    fn status(&self) -> CollectorStatus {
        build_status(&self.registry, &self.process, &self.running, &PipelineCheck::default(), StatusClock::now())
    }

    fn state(&self) -> SendState {
        self.status().pipelines["traces"].state
    }
}

fn answers(class: ErrorClass, said: BackendStatus) -> SendError {
    SendError { class, backend_status: Some(said), ..SendError::connection("no") }
}

async fn pass(time: Duration) {
    tokio::time::advance(time).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_to_do_is_idle() {
    assert_eq!(Setup::new().state(), SendState::Idle);
}

#[tokio::test(start_paused = true)]
async fn what_delivers_is_ok_and_becomes_idle() {
    let setup = Setup::new();
    setup.succeeds();
    assert_eq!(setup.state(), SendState::Ok);
    pass(INTERVAL).await;
    assert_eq!(setup.state(), SendState::Idle);
}

#[tokio::test(start_paused = true)]
async fn what_holds_data_and_fails_is_stalled_after_the_interval_and_the_threshold() {
    let setup = Setup::new().holds(3);
    setup.fails(5);
    assert_eq!(setup.state(), SendState::Retrying);
    pass(INTERVAL - Duration::from_millis(1)).await;
    assert_eq!(setup.state(), SendState::Retrying);
    pass(Duration::from_millis(1)).await;
    assert_eq!(setup.state(), SendState::Stalled);
    setup.succeeds();
    assert_eq!(setup.state(), SendState::Ok);
}

#[tokio::test(start_paused = true)]
async fn few_failures_do_not_stall() {
    let setup = Setup::new().holds(1);
    setup.fails(4);
    pass(INTERVAL * 2).await;
    assert_eq!(setup.state(), SendState::Retrying);
}

#[tokio::test(start_paused = true)]
async fn old_failures_of_what_holds_nothing_are_forgotten() {
    let setup = Setup::new();
    setup.fails(50);
    pass(INTERVAL).await;
    assert_eq!(setup.state(), SendState::Idle);
}

#[tokio::test(start_paused = true)]
async fn after_a_final_refusal_nothing_is_retried() {
    let setup = Setup::new();
    let refusal = SendError { retryable: false, ..SendError::connection("no") };
    setup.fails_with(&refusal);
    assert_eq!(setup.state(), SendState::Failing);
    let setup = setup.holds(1);
    assert_eq!(setup.state(), SendState::Failing, "what is held is something else");
    setup.fails(1);
    assert_eq!(setup.state(), SendState::Retrying);
    setup.exporter.queue.set(0, None);
    assert_eq!(setup.state(), SendState::Failing, "it was given up");
    setup.succeeds();
    assert_eq!(setup.state(), SendState::Ok);
}

#[tokio::test(start_paused = true)]
async fn losing_everything_is_stalled_though_nothing_is_held() {
    let setup = Setup::new();
    for _ in 0..10 {
        setup.fails(1);
        pass(INTERVAL / 5).await;
    }
    assert_eq!(setup.state(), SendState::Stalled);
}

#[tokio::test(start_paused = true)]
async fn one_stalled_exporter_is_not_hidden_by_another_that_delivers() {
    let mut setup = Setup::new().holds(1);
    setup.running.pipelines[0].exporters.push((ComponentId::new("debug"), DestinationLabels::default()));
    let id = setup.running.pipelines[0].id.clone();
    let debug = setup.registry.exporter(&ComponentId::new("debug"), &id, DestinationLabels::default());
    setup.fails(5);
    pass(INTERVAL).await;
    debug.progress.record_success();
    setup.registry.pipeline(&id).record_success(1);
    let status = setup.status();
    assert_eq!(status.pipelines["traces"].state, SendState::Stalled);
    assert_eq!(status.pipelines["traces"].failures, 5);
    assert_eq!(status.pipelines["traces"].exporters["debug"].state, SendState::Ok);
}

#[tokio::test(start_paused = true)]
async fn the_document_as_a_whole() {
    let mut setup = Setup::new().holds(2);
    let loaded_at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    setup.running.revision = Some(LoadedRevision { hash: "abc".into(), number: 2, loaded_at });
    setup.running.refused = Some(RefusedRevision {
        hash: "def".into(),
        refused_at: loaded_at,
        reasons: vec!["exporters::otlp: unknown field".into()],
    });
    setup.exporter.queue_capacity.store(1000, Ordering::Relaxed);
    let stats = setup.pipeline();
    let memory = Budget::new(1000, 200).join();
    let _used = memory.reserve(300);
    stats.set_memory(&memory);
    stats.count_received(10);
    stats.count_dropped(DropReason::Rejected, 1);
    setup.exporter.calls.record(Code::Ok, Duration::from_millis(20));
    setup.succeeds();
    pass(Duration::from_millis(1500)).await;
    setup.fails_with(&answers(ErrorClass::Throttled, BackendStatus::Grpc(Code::Unavailable)));
    let clock = StatusClock { instant: Instant::now(), wall: loaded_at + Duration::from_secs(10) };
    let status = build_status(&setup.registry, &setup.process, &setup.running, &PipelineCheck::default(), clock);
    let then = json!({"time": "2023-11-14T22:13:28.500Z", "age_seconds": 1.5});
    let now = json!({"time": "2023-11-14T22:13:30.000Z", "age_seconds": 0.0});
    let expected = json!({
        "version": "1.2.3",
        "started": status.started,
        "uptime_seconds": 1.5,
        "phase": "ready",
        "revision": {"hash": "abc", "number": 2, "time": "2023-11-14T22:13:20.000Z"},
        "refused": {
            "hash": "def", "time": "2023-11-14T22:13:20.000Z", "reasons": ["exporters::otlp: unknown field"],
        },
        "pipelines": {"traces": {
            "diagnosis": "BackendUnreachable",
            "state": "retrying",
            "received": 10,
            "last_received": then,
            "last_refused": null,
            "delivered": 5,
            "dropped": {
                "memory_limit": 0, "queue_full": 0, "refused": 0, "rejected": 1, "retries_exhausted": 0, "shutdown": 0,
            },
            "last_drop": {"reason": "rejected", "time": "2023-11-14T22:13:28.500Z", "age_seconds": 1.5},
            "last_error": "throttled",
            "last_error_code": "grpc:14",
            "last_failure": now,
            "last_success": then,
            "failures": 1,
            "memory": {"used_bytes": 300, "limit_bytes": 800},
            "exporters": {"otlp": {
                "state": "retrying",
                "queue_size": 2,
                "queue_capacity": 1000,
                "oldest": then,
                "in_flight": 0,
                "latency_seconds": 0.02,
                "last_error": "throttled",
                "last_error_code": "grpc:14",
                "last_failure": now,
                "last_success": then,
                "failures": 1,
                "failing_since": now,
            }},
        }},
    });
    assert_eq!(serde_json::to_value(&status).expect("JSON"), expected);
    assert_eq!(serde_json::from_value::<CollectorStatus>(expected).expect("a status"), status);
}

/// The paths of fields without a value.
fn unset_fields(path: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().flat_map(|(name, value)| unset_fields(&format!("{path}.{name}"), value)).collect()
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().flat_map(|value| unset_fields(&format!("{path}[]"), value)).collect()
        }
        Value::Null | Value::Object(_) | Value::Array(_) => vec![path.to_owned()],
        Value::String(text) if text.is_empty() => vec![path.to_owned()],
        Value::String(_) | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_collector_writes_with_every_field_is_what_readers_get() {
    let mut setup = Setup::new().holds(2);
    setup.running.revision = Some(LoadedRevision { hash: "abc".into(), number: 2, loaded_at: SystemTime::now() });
    let reasons = vec!["exporters::otlp: unknown field".into()];
    setup.running.refused = Some(RefusedRevision { hash: "def".into(), refused_at: SystemTime::now(), reasons });
    setup.running.pipelines[0].uid = Some("uid".into());
    setup.running.pipelines[0].carries = vec!["other".into()];
    setup.running.pipelines[0].processors.push(ComponentId::new("tail_sampling"));
    setup.registry.sampler(&ComponentId::new("tail_sampling")).traces.store(7, Ordering::Relaxed);
    let view = Arc::new(ClusterView::default());
    setup.registry.cluster(&ComponentId::new("k8s_attributes")).set_view(&view);
    view.record_failure("pods", ErrorClass::Authentication, Some(BackendStatus::Http(http::StatusCode::FORBIDDEN)));
    let gone = PipelineId { signal: Signal::Traces, name: Some("gone".into()) };
    setup.registry.pipeline(&gone).count_dropped(DropReason::QueueFull, 3);
    setup.registry.end_pipeline(&gone, Some("uid of the gone"), &["other".to_owned()]);
    let stats = setup.pipeline();
    let memory = Budget::new(1000, 200).join();
    stats.set_memory(&memory);
    stats.count_received(10);
    stats.mark_refused();
    stats.count_dropped(DropReason::Rejected, 1);
    let address = DestinationLabels { address: "10.0.0.1".into(), port: "4317".into(), path: String::new() };
    let peer = setup.registry.exporter(&ComponentId::new("otlp"), &setup.running.pipelines[0].id, address);
    for exporter in [&setup.exporter, &peer] {
        exporter.queue.set(2, Some(Instant::now()));
        exporter.calls.record(Code::Ok, Duration::from_millis(20));
        exporter.progress.record_success();
        exporter.progress.record_failure(&answers(ErrorClass::Throttled, BackendStatus::Grpc(Code::Unavailable)));
    }
    setup.succeeds();
    setup.fails_with(&answers(ErrorClass::Throttled, BackendStatus::Grpc(Code::Unavailable)));
    pass(Duration::from_secs(1)).await;
    let written = setup.status();
    let text = serde_json::to_string(&written).expect("JSON");
    assert_eq!(serde_json::from_str::<CollectorStatus>(&text).expect("a status"), written);
    let unset = unset_fields("", &serde_json::from_str(&text).expect("JSON"));
    assert!(unset.is_empty(), "{unset:?} in {text}");
    let pipeline = &written.pipelines["traces"];
    assert!(pipeline.uid.is_some() && !pipeline.carries.is_empty());
    assert!(!pipeline.exporters["otlp"].peers.is_empty());
    assert!(written.ended[0].uid.is_some() && !written.ended[0].carries.is_empty());
    assert!(!written.samplers.is_empty() && !written.clusters.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_diagnosed_by_its_class_and_code() {
    let http = |status: u16| BackendStatus::Http(http::StatusCode::from_u16(status).expect("a status"));
    for (class, said, expected) in [
        (ErrorClass::Authentication, Some(http(401)), PipelineDiagnosis::BackendRefuses),
        (ErrorClass::Authentication, Some(http(403)), PipelineDiagnosis::BackendRefuses),
        (
            ErrorClass::Authentication,
            Some(BackendStatus::Grpc(Code::Unauthenticated)),
            PipelineDiagnosis::BackendRefuses,
        ),
        (
            ErrorClass::Authentication,
            Some(BackendStatus::Grpc(Code::PermissionDenied)),
            PipelineDiagnosis::BackendRefuses,
        ),
        (ErrorClass::Refused, Some(BackendStatus::Grpc(Code::InvalidArgument)), PipelineDiagnosis::BackendRefuses),
        (ErrorClass::Protocol, Some(http(404)), PipelineDiagnosis::BackendRefuses),
        (ErrorClass::Connection, None, PipelineDiagnosis::BackendUnreachable),
        (ErrorClass::Timeout, None, PipelineDiagnosis::BackendUnreachable),
        (ErrorClass::Local, None, PipelineDiagnosis::BackendUnreachable),
        (ErrorClass::Throttled, Some(http(503)), PipelineDiagnosis::BackendUnreachable),
        (ErrorClass::Throttled, Some(BackendStatus::Grpc(Code::Unavailable)), PipelineDiagnosis::BackendUnreachable),
        (ErrorClass::Throttled, Some(http(429)), PipelineDiagnosis::BackendSlow),
        (ErrorClass::Throttled, Some(BackendStatus::Grpc(Code::ResourceExhausted)), PipelineDiagnosis::BackendSlow),
    ] {
        let setup = Setup::new().holds(1);
        setup.fails_with(&SendError { class, backend_status: said, ..SendError::connection("no") });
        assert_eq!(setup.diagnosis(), expected, "{class:?} {said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn data_that_comes_and_goes_is_delivering_and_none_is_no_data() {
    let setup = Setup::new();
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::NoData);
    setup.pipeline().count_received(5);
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::Delivering);
    setup.succeeds();
    pass(INTERVAL).await;
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::NoData);
}

#[tokio::test(start_paused = true)]
async fn a_loss_is_told_until_it_is_long_ago() {
    let setup = Setup::new();
    setup.succeeds();
    setup.pipeline().count_dropped(DropReason::QueueFull, 0);
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::Delivering, "nothing was lost");
    setup.pipeline().count_dropped(DropReason::QueueFull, 3);
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::DataDropped);
    setup.fails(1);
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::BackendUnreachable, "which is why");
    setup.succeeds();
    pass(INTERVAL).await;
    setup.succeeds();
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::Delivering);
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_takes_its_time_is_slow_and_not_failing() {
    let setup = Setup::new().holds(3);
    setup.exporter.in_flight.store(1, Ordering::Relaxed);
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::Delivering);
    pass(Duration::from_secs(5)).await;
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::BackendSlow, "it says nothing");
    setup.succeeds();
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::Delivering, "it has just answered");
    setup.exporter.calls.record(Code::Ok, Duration::from_secs(5));
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::BackendSlow, "after a long time");
}

#[tokio::test(start_paused = true)]
async fn a_buffer_that_fills_is_told_of_whether_it_is_a_queue_or_memory() {
    let setup = Setup::new().holds(79);
    setup.exporter.queue_capacity.store(100, Ordering::Relaxed);
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::Delivering);
    let setup = setup.holds(80);
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::BufferFilling);
    let setup = setup.holds(1);
    let memory = Budget::new(1000, 0).join();
    setup.pipeline().set_memory(&memory);
    let most = memory.reserve(800);
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::BufferFilling);
    drop(most);
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::Delivering);
}

#[tokio::test(start_paused = true)]
async fn where_memory_refuses_what_is_sent_there_is_data() {
    let setup = Setup::new();
    setup.pipeline().mark_refused();
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::BufferFilling, "although nothing is held");
    pass(INTERVAL).await;
    assert_eq!(setup.diagnosis(), PipelineDiagnosis::NoData);
}

#[tokio::test(start_paused = true)]
async fn a_processor_that_cannot_ask_its_cluster_is_seen_until_it_is_gone() {
    let setup = Setup::new();
    assert!(setup.status().clusters.is_empty());
    let view = Arc::new(ClusterView::default());
    setup.registry.cluster(&ComponentId::new("k8s_attributes")).set_view(&view);
    let said = BackendStatus::Http(http::StatusCode::FORBIDDEN);
    view.record_failure("pods", ErrorClass::Authentication, Some(said));
    pass(Duration::from_secs(2)).await;
    let status = setup.status();
    let cluster = &status.clusters["k8s_attributes"];
    assert_eq!((cluster.state.as_str(), cluster.last_error.as_str()), ("failing", "authentication"));
    assert_eq!(cluster.last_error_code.as_deref(), Some("http:403"));
    assert_eq!(cluster.since.as_ref().map(|since| since.age_seconds), Some(2.0));
    drop(view);
    assert!(setup.status().clusters.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_sampler_without_memory_is_seen_until_all_have_some_again() {
    let mut setup = Setup::new();
    setup.running.pipelines[0].processors.push(ComponentId::new("tail_sampling"));
    let stats = setup.registry.sampler(&ComponentId::new("tail_sampling"));
    let state = || serde_json::to_value(setup.status()).unwrap()["samplers"]["tail_sampling"].clone();
    let expected = |state: &str, overloads: u64| json!({"state": state, "traces": 7, "waiting_bytes": 4096, "overloads": overloads});
    stats.traces.store(7, Ordering::Relaxed);
    stats.waiting_bytes.store(4096, Ordering::Relaxed);
    assert_eq!(state(), expected("ok", 0));
    stats.overloads.store(2, Ordering::Relaxed);
    for (pipelines, word) in [(2, "overloaded"), (1, "overloaded"), (0, "ok")] {
        stats.overloaded.store(pipelines, Ordering::Relaxed);
        assert_eq!(state(), expected(word, 2), "{pipelines} have too little");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sampler_that_the_document_has_no_more_is_not_seen() {
    let mut setup = Setup::new();
    setup.running.pipelines[0].processors.push(ComponentId::new("tail_sampling"));
    for id in ["tail_sampling", "tail_sampling/gone"] {
        setup.registry.sampler(&ComponentId::new(id)).traces.store(1, Ordering::Relaxed);
    }
    assert_eq!(setup.status().samplers.into_keys().collect::<Vec<_>>(), ["tail_sampling"]);
    setup.running.pipelines[0].processors.clear();
    assert!(setup.status().samplers.is_empty());
}
