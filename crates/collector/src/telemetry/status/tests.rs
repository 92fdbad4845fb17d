use std::{collections::BTreeMap, sync::Arc};

use kubewake_otlp::Signal;
use serde_json::json;

use super::*;
use crate::core::ErrorClass;

const INTERVAL: Duration = Duration::from_secs(300);

/// One pipeline with one exporter, on a paused clock.
struct Setup {
    registry: Registry,
    process: Process,
    running: RunningInfo,
    exporter: Arc<ExporterStats>,
}

impl Setup {
    fn new() -> Self {
        let registry = Registry::default();
        let id = PipelineId { signal: Signal::Traces, name: None };
        let exporters = vec![(ComponentId::new("otlp"), Destination::default())];
        let exporter = registry.exporter(&exporters[0].0, &id, Destination::default());
        let running = RunningInfo {
            phase: Phase::Ready,
            pipelines: vec![RunningPipeline { id, exporters }],
            ..RunningInfo::default()
        };
        Self { registry, process: Process::start("1.2.3", &BTreeMap::new()), running, exporter }
    }

    fn holds(self, requests: u64) -> Self {
        self.exporter.queue_size.store(requests, Ordering::Relaxed);
        self
    }

    fn fails(&self, times: usize) {
        for _ in 0..times {
            self.exporter.progress.failed(ErrorClass::Connection);
            self.registry.pipeline(&self.running.pipelines[0].id).failed(ErrorClass::Connection);
        }
    }

    fn succeeds(&self) {
        self.exporter.progress.succeeded();
        self.registry.pipeline(&self.running.pipelines[0].id).succeeded(5);
    }

    fn status(&self) -> Status {
        build(&self.registry, &self.process, &self.running, &PipelineCheck::default(), Clock::now())
    }

    fn state(&self) -> State {
        self.status().pipelines["traces"].state
    }
}

async fn pass(time: Duration) {
    tokio::time::advance(time).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_to_do_is_idle() {
    assert_eq!(Setup::new().state(), State::Idle);
}

#[tokio::test(start_paused = true)]
async fn what_delivers_is_ok_and_becomes_idle() {
    let setup = Setup::new();
    setup.succeeds();
    assert_eq!(setup.state(), State::Ok);
    pass(INTERVAL).await;
    assert_eq!(setup.state(), State::Idle);
}

#[tokio::test(start_paused = true)]
async fn what_holds_data_and_fails_is_stalled_after_the_interval_and_the_threshold() {
    let setup = Setup::new().holds(3);
    setup.fails(5);
    assert_eq!(setup.state(), State::Retrying);
    pass(INTERVAL - Duration::from_millis(1)).await;
    assert_eq!(setup.state(), State::Retrying);
    pass(Duration::from_millis(1)).await;
    assert_eq!(setup.state(), State::Stalled);
    setup.succeeds();
    assert_eq!(setup.state(), State::Ok);
}

#[tokio::test(start_paused = true)]
async fn few_failures_do_not_stall() {
    let setup = Setup::new().holds(1);
    setup.fails(4);
    pass(INTERVAL * 2).await;
    assert_eq!(setup.state(), State::Retrying);
}

#[tokio::test(start_paused = true)]
async fn old_failures_of_what_holds_nothing_are_forgotten() {
    let setup = Setup::new();
    setup.fails(50);
    pass(INTERVAL).await;
    assert_eq!(setup.state(), State::Idle);
}

#[tokio::test(start_paused = true)]
async fn losing_everything_is_stalled_though_nothing_is_held() {
    let setup = Setup::new();
    for _ in 0..10 {
        setup.fails(1);
        pass(INTERVAL / 5).await;
    }
    assert_eq!(setup.state(), State::Stalled);
}

#[tokio::test(start_paused = true)]
async fn one_stalled_exporter_is_not_hidden_by_another_that_delivers() {
    let mut setup = Setup::new().holds(1);
    setup.running.pipelines[0].exporters.push((ComponentId::new("debug"), Destination::default()));
    let id = setup.running.pipelines[0].id.clone();
    let debug = setup.registry.exporter(&ComponentId::new("debug"), &id, Destination::default());
    setup.fails(5);
    pass(INTERVAL).await;
    debug.progress.succeeded();
    setup.registry.pipeline(&id).succeeded(1);
    let status = setup.status();
    assert_eq!(status.pipelines["traces"].state, State::Stalled);
    assert_eq!(status.pipelines["traces"].failures, 5);
    assert_eq!(status.pipelines["traces"].exporters["debug"].state, State::Ok);
}

#[tokio::test(start_paused = true)]
async fn the_document_as_a_whole() {
    let mut setup = Setup::new().holds(2);
    let loaded_at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    setup.running.revision = Some(Revision { hash: "abc".into(), number: 2, loaded_at });
    setup.running.refused = Some(RefusedRevision {
        hash: "def".into(),
        refused_at: loaded_at,
        reasons: vec!["exporters::otlp: unknown field".into()],
    });
    setup.exporter.queue_capacity.store(1000, Ordering::Relaxed);
    let stats = setup.registry.pipeline(&setup.running.pipelines[0].id);
    stats.received.store(10, Ordering::Relaxed);
    stats.dropped(DropReason::Rejected, 1);
    setup.succeeds();
    pass(Duration::from_millis(1500)).await;
    setup.fails(1);
    let clock = Clock { instant: Instant::now(), wall: loaded_at + Duration::from_secs(10) };
    let status = build(&setup.registry, &setup.process, &setup.running, &PipelineCheck::default(), clock);
    let success = json!({"time": "2023-11-14T22:13:28.500Z", "age_seconds": 1.5});
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
            "state": "retrying",
            "received": 10,
            "delivered": 5,
            "dropped": {
                "memory_limit": 0, "queue_full": 0, "refused": 0, "rejected": 1, "retries_exhausted": 0, "shutdown": 0,
            },
            "last_error": "connection",
            "last_success": success,
            "failures": 1,
            "exporters": {"otlp": {
                "state": "retrying",
                "queue_size": 2,
                "queue_capacity": 1000,
                "in_flight": 0,
                "last_error": "connection",
                "last_success": success,
                "failures": 1,
            }},
        }},
    });
    assert_eq!(serde_json::to_value(&status).expect("JSON"), expected);
}
