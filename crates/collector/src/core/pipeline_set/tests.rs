use kubewake_config::PipelineId;

use super::*;
use crate::core::{
    Allowance, Budget, Code, OverflowPolicy, PipelineStats, RefusalKind,
    testing::{numbers, part},
};

/// The last consumer of a pipeline, with or without room.
struct End(bool);

impl Consumer for End {
    fn consume(self: Arc<Self>, batch: Batch, _: OverflowPolicy) -> ConsumeOutcome {
        assert!(!numbers(&batch).is_empty());
        ConsumeOutcome::Now(if self.0 { Ok(()) } else { Err(Refusal::queue_full()) })
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, _: &Batch, _: DropReason) {
        panic!("it is alone in its pipeline");
    }
}

/// A pipeline with a budget of this many bytes.
fn pipeline(name: &str, bytes: u64, has_room: bool) -> (Arc<Pipeline>, Arc<Budget>) {
    let budget = Budget::new(bytes, 0);
    let id = PipelineId { signal: Signal::Traces, name: Some(name.into()) };
    let allowance = Allowance { member: budget.join(), limiter: None };
    let pipeline = Pipeline::new(id, allowance, Arc::<PipelineStats>::default());
    pipeline.head().set_targets(vec![Arc::new(End(has_room))]);
    (pipeline, budget)
}

fn intake(pipelines: &[&Arc<Pipeline>]) -> PipelineSet {
    let intake = PipelineSet::default();
    intake.set_pipelines(Signal::Traces, pipelines.iter().map(|p| (*p).clone()).collect());
    intake
}

async fn submit(admission: RequestReservation) -> Result<(), Refusal> {
    admission.submit(part(0..3, Charge::exempt()).bytes, 3, SpanTraits::default(), Arc::default()).wait().await
}

fn lost(pipeline: &Pipeline) -> u64 {
    pipeline.stats().dropped_for(DropReason::MemoryLimit)
}

#[tokio::test]
async fn a_pipeline_without_memory_is_left_out_and_counts_the_loss() {
    let ((small, _), (large, budget)) = (pipeline("small", 10, true), pipeline("large", 1000, true));
    let intake = intake(&[&small, &large]);
    submit(intake.reserve(Signal::Traces, 100).unwrap()).await.unwrap();
    assert_eq!((lost(&small), lost(&large)), (3, 0));
    assert_eq!([&small, &large].map(|p| p.stats().received()), [3, 3]);
    assert_eq!(budget.used(), 0, "given back with the data");
}

#[tokio::test]
async fn when_none_has_memory_the_sender_is_refused_and_nothing_is_lost() {
    let (full, budget) = pipeline("full", 1000, true);
    let intake = intake(&[&full]);
    assert_eq!(full.stats().last_refused(), None);
    let held = intake.reserve(Signal::Traces, 500).unwrap();
    let refusal = intake.reserve(Signal::Traces, 1000).err().unwrap();
    assert!(refusal.is_retryable() && refusal.retry_after.is_some());
    let mut grows = intake.reserve(Signal::Traces, 10).unwrap();
    let refusal = grows.grow(1000 - PART_OVERHEAD_BYTES).unwrap_err();
    assert!(refusal.is_retryable() && refusal.retry_after.is_some(), "when the other is gone it fits");
    assert!(full.stats().last_refused().is_some());
    drop((held, grows));
    assert_eq!((lost(&full), budget.used()), (0, 0));
}

#[tokio::test]
async fn what_no_pipeline_could_ever_hold_is_refused_for_good() {
    let ((small, _), (large, budget)) = (pipeline("small", 100, true), pipeline("large", 1000, true));
    let intake = intake(&[&small, &large]);
    let _held = intake.reserve(Signal::Traces, 500).unwrap();
    let for_good = |refusal: Refusal| {
        let Refusal { kind, code, retry_after, .. } = refusal;
        (kind, code, retry_after) == (RefusalKind::BadRequest, Code::ResourceExhausted, None)
    };
    assert!(intake.reserve(Signal::Traces, 1000).err().unwrap().is_retryable(), "one of them may have room for it");
    assert!(for_good(intake.reserve(Signal::Traces, 1001).err().unwrap()));
    let mut grows = intake.reserve(Signal::Traces, 10).unwrap();
    assert!(for_good(grows.grow(1001 - PART_OVERHEAD_BYTES).unwrap_err()));
    drop(grows);
    assert_eq!(budget.used(), 500);
    assert!([small, large].iter().all(|pipeline| pipeline.stats().last_refused().is_some()));
}

#[tokio::test]
async fn while_it_feeds_none_a_sender_is_to_come_again() {
    assert!(intake(&[]).reserve(Signal::Traces, 1).err().unwrap().is_retryable());
}

#[tokio::test]
async fn what_the_sender_is_told_to_send_again_is_no_loss() {
    let ((small, _), (full, _)) = (pipeline("small", 10, true), pipeline("full", 1000, false));
    assert!(submit(intake(&[&small, &full]).reserve(Signal::Traces, 100).unwrap()).await.is_err());
    assert_eq!((lost(&small), lost(&full)), (0, 0));
    assert_eq!([&small, &full].map(|p| p.stats().received()), [0, 0]);
}

#[tokio::test]
async fn a_request_that_grows_leaves_behind_who_cannot_follow() {
    let ((small, small_budget), (large, budget)) = (pipeline("small", 500, true), pipeline("large", 1000, true));
    let intake = intake(&[&small, &large]);
    let mut admission = intake.reserve(Signal::Traces, 400).unwrap();
    admission.grow(200).unwrap();
    assert_eq!((small_budget.used(), budget.used()), (0, 600));
    assert!(admission.grow(1000).is_err());
    assert_eq!(budget.used(), 600, "its bytes are still there when it is refused");
    drop(admission);
    assert_eq!(budget.used(), 0, "a refused request holds nothing");
}

#[tokio::test]
async fn a_request_that_is_given_up_before_it_is_handed_in_gives_its_memory_back() {
    let (pipeline, budget) = pipeline("one", 1000, true);
    let admission = intake(&[&pipeline]).reserve(Signal::Traces, 500).unwrap();
    assert_eq!(budget.used(), 500);
    drop(admission);
    assert_eq!(budget.used(), 0);
}

#[tokio::test]
async fn a_request_keeps_its_pipeline_until_it_is_handed_in() {
    let (pipeline, _) = pipeline("one", 1000, true);
    let gone = pipeline.watch_gone();
    let intake = intake(&[&pipeline]);
    let admission = intake.reserve(Signal::Traces, 100).unwrap();
    drop(pipeline);
    intake.set_pipelines(Signal::Traces, Vec::new());
    assert!(tokio::time::timeout(std::time::Duration::from_millis(10), gone.wait()).await.is_err());
    submit(admission).await.unwrap();
    gone.wait().await;
}

#[tokio::test]
async fn tiny_request_is_charged_for_what_it_takes_to_hold_it() {
    let (pipeline, budget) = pipeline("one", 10 * PART_OVERHEAD_BYTES as u64, true);
    let intake = intake(&[&pipeline]);
    let mut admission = intake.reserve(Signal::Traces, 6).unwrap();
    assert_eq!(budget.used(), PART_OVERHEAD_BYTES as u64);
    admission.shrink_to(6);
    assert_eq!(budget.used(), PART_OVERHEAD_BYTES as u64);
    drop(admission);
    let mut arrival = intake.begin_arrival(Signal::Traces, 1000, &Arc::default()).unwrap();
    assert_eq!(budget.used(), 0, "an announcement holds nothing");
    arrival.grow(6).unwrap();
    arrival.grow(6).unwrap();
    assert_eq!(budget.used(), PART_OVERHEAD_BYTES as u64 + 6);
}
