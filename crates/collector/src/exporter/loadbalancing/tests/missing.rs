//! Reports while no peer is known, in `/status` and by the health check.

use http::StatusCode;
use kubewake_config::model::PipelineCheck;
use kubewake_status::{CollectorPhase, CollectorStatus, PipelineDiagnosis, SendState};

use super::*;
use crate::{
    core::ResolverFault,
    extension::health::health,
    telemetry::{
        ProcessIdentity,
        status::{PipelineInfo, RunningInfo, StatusClock, build_status},
    },
};

impl Fixture {
    fn status(&self) -> CollectorStatus {
        let id = self.balancer.id.clone();
        let pipeline = self.balancer.pipeline.clone();
        let exporters = vec![(id, DestinationLabels::default())];
        let pipeline = PipelineInfo { id: pipeline, uid: None, carries: Vec::new(), exporters, processors: Vec::new() };
        let running = RunningInfo { phase: CollectorPhase::Ready, pipelines: vec![pipeline], ..RunningInfo::default() };
        build_status(
            &self.registry,
            &ProcessIdentity::start("1", &BTreeMap::new()),
            &running,
            &PipelineCheck::default(),
            StatusClock::now(),
        )
    }

    /// The diagnosis, the exporter's state, and the last error.
    fn says(&self) -> (PipelineDiagnosis, SendState, Option<String>) {
        let pipeline = self.status().pipelines.remove("traces").unwrap();
        let code = pipeline.exporters["load_balancing"].last_error_code.clone();
        let failing = pipeline.failures > 0;
        assert!(!failing || pipeline.last_error_code == code, "the pipeline says the same");
        (pipeline.diagnosis, pipeline.state, code)
    }

    fn fails_to_resolve(&self, fault: ResolverFault) {
        self.balancer.report_resolver_failure(ResolverKind::Dns, fault, "no such name");
    }

    fn refusal(&self) -> Refusal {
        let ConsumeOutcome::Now(Err(no)) = self.offer(0..3) else { panic!("there is no peer") };
        assert!(no.is_retryable() && no.is_lack_of_room());
        no
    }
}

fn nobody() -> Fixture {
    fixture(&[], |_| {}, |_| {})
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_refuses_everybody_for_want_of_a_peer_is_unreachable() {
    let fixture = nobody();
    fixture.fails_to_resolve(ResolverFault::Failed);
    let failed = Some("resolver:failed".to_owned());
    assert_eq!(
        fixture.says(),
        (PipelineDiagnosis::NoData, SendState::Idle, failed.clone()),
        "nobody has sent anything"
    );
    assert_eq!(fixture.refusal().message, "the resolver has found no peers yet");
    assert_eq!(fixture.says(), (PipelineDiagnosis::BackendUnreachable, SendState::Failing, failed));
    assert_eq!(fixture.refusal().drop_reason(), DropReason::RetriesExhausted, "no queue was full");
}

#[tokio::test(start_paused = true)]
async fn a_balancer_whose_peers_have_all_left_says_so() {
    let fixture = fixture(&three(), |_| {}, |_| {});
    fixture.put(0..300).await;
    fixture.list(&[]);
    assert_eq!(fixture.refusal().message, "all peers have left, and the resolver has found no others");
    let empty = Some("resolver:empty".to_owned());
    assert_eq!(
        fixture.says(),
        (PipelineDiagnosis::BackendUnreachable, SendState::Failing, empty.clone()),
        "also as long as they leave"
    );
    let_run().await;
    assert_eq!(fixture.says(), (PipelineDiagnosis::BackendUnreachable, SendState::Failing, empty));
    fixture.list(&["a"]);
    fixture.put(0..3).await;
    assert_eq!(fixture.says().1, SendState::Ok);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_peer_is_unhealthy_after_the_interval_and_the_threshold() {
    let fixture = fixture(&[("a", Script::new([], Reply::Take))], |_| {}, |prepared| prepared.queue = Some(queue(3)));
    fixture.list(&[]);
    fixture.put(0..3).await;
    for _ in 0..30 {
        assert_eq!(fixture.says().1, SendState::Retrying);
        assert_eq!(health(&fixture.status()).status, StatusCode::OK);
        tokio::time::sleep(10 * SECOND).await;
        fixture.fails_to_resolve(ResolverFault::NoAnswer);
    }
    assert_eq!(
        fixture.says(),
        (PipelineDiagnosis::BackendUnreachable, SendState::Stalled, Some("resolver:no_answer".into()))
    );
    assert_eq!(health(&fixture.status()).status, StatusCode::SERVICE_UNAVAILABLE);
    fixture.list(&["a"]);
    let_run().await;
    assert_eq!((fixture.says().1, fixture.all()), (SendState::Ok, numbers(0..3)));
    // Failures that are over do not count towards the next ones.
    fixture.list(&[]);
    let_run().await;
    fixture.put(3..6).await;
    assert_eq!(fixture.says().1, SendState::Retrying);
}

#[tokio::test(start_paused = true)]
async fn what_was_acknowledged_before_and_waits_for_a_peer_is_held() {
    let fixture = nobody();
    let _waits = tokio::spawn(fixture.balancer.clone().consume(request(0..3), OverflowPolicy::Wait).wait());
    let_run().await;
    tokio::time::sleep(3600 * SECOND).await;
    assert_eq!(fixture.says().1, SendState::Retrying, "however long ago it came");
}

#[tokio::test(start_paused = true)]
async fn a_balancer_with_nothing_to_do_alarms_nobody() {
    let fixture = nobody();
    for _ in 0..100 {
        fixture.fails_to_resolve(ResolverFault::Failed);
        tokio::time::sleep(10 * SECOND).await;
    }
    assert_eq!(fixture.says().1, SendState::Idle);
    assert_eq!(health(&fixture.status()).status, StatusCode::OK);
}
