//! What is said while no peer is known, in `/status` and by the health check.

use http::StatusCode;
use kubewake_config::model::PipelineCheck;

use super::*;
use crate::{
    core::ResolverFault,
    extension::health::health,
    telemetry::{
        Process,
        status::{Clock, Diagnosis, Phase, RunningInfo, RunningPipeline, State, Status, build},
    },
};

impl Fixture {
    fn status(&self) -> Status {
        let (id, pipeline) = (self.balancer.id.clone(), self.balancer.pipeline.clone());
        let exporters = vec![(id, Destination::default())];
        let pipeline =
            RunningPipeline { id: pipeline, uid: None, carries: Vec::new(), exporters, processors: Vec::new() };
        let running = RunningInfo { phase: Phase::Ready, pipelines: vec![pipeline], ..RunningInfo::default() };
        build(&self.registry, &Process::start("1", &BTreeMap::new()), &running, &PipelineCheck::default(), Clock::now())
    }

    /// The diagnosis, how the exporter is, and what was said last.
    fn says(&self) -> (Diagnosis, State, Option<String>) {
        let pipeline = self.status().pipelines.remove("traces").unwrap();
        let code = pipeline.exporters["load_balancing"].last_error_code.clone();
        let failing = pipeline.failures > 0;
        assert!(!failing || pipeline.last_error_code == code, "the pipeline says the same");
        (pipeline.diagnosis, pipeline.state, code)
    }

    fn fails_to_resolve(&self, fault: ResolverFault) {
        self.balancer.cannot_resolve(ResolverKind::Dns, fault, "no such name");
    }

    fn refusal(&self) -> Refusal {
        let Answer::Now(Err(no)) = self.offer(0..3) else { panic!("there is no peer") };
        assert!(no.is_retryable() && no.is_want_of_room());
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
    assert_eq!(fixture.says(), (Diagnosis::NoData, State::Idle, failed.clone()), "nobody has sent anything");
    assert_eq!(fixture.refusal().message, "no peer is known yet");
    assert_eq!(fixture.says(), (Diagnosis::BackendUnreachable, State::Failing, failed));
    assert_eq!(fixture.refusal().as_loss(), DropReason::RetriesExhausted, "no queue was full");
}

#[tokio::test(start_paused = true)]
async fn a_balancer_whose_peers_have_all_left_says_so() {
    let fixture = fixture(&three(), |_| {}, |_| {});
    fixture.put(0..300).await;
    fixture.list(&[]);
    assert_eq!(fixture.refusal().message, "all peers have left, and no other is known");
    let empty = Some("resolver:empty".to_owned());
    assert_eq!(
        fixture.says(),
        (Diagnosis::BackendUnreachable, State::Failing, empty.clone()),
        "also as long as they leave"
    );
    let_run().await;
    assert_eq!(fixture.says(), (Diagnosis::BackendUnreachable, State::Failing, empty));
    fixture.list(&["a"]);
    fixture.put(0..3).await;
    assert_eq!(fixture.says().1, State::Ok);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_peer_is_unhealthy_after_the_interval_and_the_threshold() {
    let fixture = fixture(&[("a", Script::new([], Reply::Take))], |_| {}, |prepared| prepared.queue = Some(queue(3)));
    fixture.list(&[]);
    fixture.put(0..3).await;
    for _ in 0..30 {
        assert_eq!(fixture.says().1, State::Retrying);
        assert_eq!(health(&fixture.status()).status, StatusCode::OK);
        tokio::time::sleep(10 * SECOND).await;
        fixture.fails_to_resolve(ResolverFault::NoAnswer);
    }
    assert_eq!(fixture.says(), (Diagnosis::BackendUnreachable, State::Stalled, Some("resolver:no_answer".into())));
    assert_eq!(health(&fixture.status()).status, StatusCode::SERVICE_UNAVAILABLE);
    fixture.list(&["a"]);
    let_run().await;
    assert_eq!((fixture.says().1, fixture.all()), (State::Ok, numbers(0..3)));
    // Failures that are over do not count against the next ones.
    fixture.list(&[]);
    let_run().await;
    fixture.put(3..6).await;
    assert_eq!(fixture.says().1, State::Retrying);
}

#[tokio::test(start_paused = true)]
async fn what_was_acknowledged_before_and_waits_for_a_peer_is_held() {
    let fixture = nobody();
    let _waits = tokio::spawn(fixture.balancer.clone().consume(request(0..3), Pressure::Wait).wait());
    let_run().await;
    tokio::time::sleep(3600 * SECOND).await;
    assert_eq!(fixture.says().1, State::Retrying, "however long ago it came");
}

#[tokio::test(start_paused = true)]
async fn a_balancer_with_nothing_to_do_alarms_nobody() {
    let fixture = nobody();
    for _ in 0..100 {
        fixture.fails_to_resolve(ResolverFault::Failed);
        tokio::time::sleep(10 * SECOND).await;
    }
    assert_eq!(fixture.says().1, State::Idle);
    assert_eq!(health(&fixture.status()).status, StatusCode::OK);
}
