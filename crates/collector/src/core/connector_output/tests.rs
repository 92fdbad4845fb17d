use kubewake_config::PipelineId;

use super::*;
use crate::core::{
    Allowance, Budget, ConsumerFanout, PipelineStats,
    testing::{numbers, part},
};

/// The last consumer of a pipeline; it keeps what it takes.
#[derive(Default)]
struct Shelf(Mutex<Vec<Batch>>);

impl Consumer for Shelf {
    fn consume(self: Arc<Self>, batch: Batch, _: OverflowPolicy) -> ConsumeOutcome {
        self.0.lock().push(batch);
        ConsumeOutcome::Now(Ok(()))
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, _: &Batch, _: DropReason) {
        panic!("it takes everything");
    }
}

struct TestPipeline {
    pipeline: Arc<Pipeline>,
    budget: Arc<Budget>,
    shelf: Arc<Shelf>,
}

/// A pipeline with a budget of this many bytes.
fn pipeline(bytes: u64) -> TestPipeline {
    let budget = Budget::new(bytes, 0);
    let id = PipelineId { signal: Signal::Traces, name: None };
    let allowance = Allowance { member: budget.join(), limiter: None };
    let pipeline = Pipeline::new(id, allowance, Arc::<PipelineStats>::default());
    let shelf = Arc::<Shelf>::default();
    pipeline.head().set_targets(vec![shelf.clone()]);
    TestPipeline { pipeline, budget, shelf }
}

fn output(pipelines: &[&TestPipeline]) -> Arc<ConnectorOutput> {
    let output = Arc::<ConnectorOutput>::default();
    output.set_pipelines(Signal::Traces, pipelines.iter().map(|p| p.pipeline.clone()).collect());
    output
}

/// A batch of two requests that is charged to a budget.
fn batch(budget: &Arc<Budget>) -> Batch {
    let member = budget.join();
    let mut batch = Batch::empty(Signal::Traces);
    for number in [1, 2] {
        batch.push(part([number], member.reserve(500).unwrap()));
    }
    batch
}

#[tokio::test]
async fn each_pipeline_is_charged_for_bytes_that_they_share() {
    let (first, second, source) = (pipeline(10_000), pipeline(10_000), Budget::new(10_000, 0));
    let batch = batch(&source);
    let bytes = batch.parts()[0].bytes.as_ptr();
    output(&[&first, &second]).pass_on(batch, OverflowPolicy::Refuse).wait().await.unwrap();
    assert_eq!(source.used(), 0, "the pipeline that it comes from holds it no longer");
    for TestPipeline { budget, shelf, pipeline } in [first, second] {
        assert_eq!(budget.used(), 2 * PART_OVERHEAD_BYTES as u64);
        let held = shelf.0.lock().pop().unwrap();
        assert_eq!((numbers(&held), held.parts()[0].bytes.as_ptr()), (vec![1, 2], bytes));
        drop(held);
        assert_eq!((budget.used(), pipeline.stats().received()), (0, 2));
    }
}

#[tokio::test]
async fn without_memory_anywhere_the_sender_is_refused_for_good_only_if_it_never_fits() {
    let (small, full, source) = (pipeline(10), pipeline(1000), Budget::new(10_000, 0));
    let refusal = output(&[&small]).pass_on(batch(&source), OverflowPolicy::Refuse).wait().await.unwrap_err();
    assert_eq!((refusal.kind, refusal.is_retryable()), (RefusalKind::BadRequest, false));
    let held = full.pipeline.reserve(900);
    let output = output(&[&small, &full]);
    let refusal = output.pass_on(batch(&source), OverflowPolicy::Refuse).wait().await.unwrap_err();
    assert!(refusal.is_retryable());
    drop(held);
    output.pass_on(batch(&source), OverflowPolicy::Refuse).wait().await.unwrap();
    assert_eq!(small.pipeline.stats().dropped_for(DropReason::MemoryLimit), 2);
    assert_eq!((source.used(), full.budget.used()), (0, 2 * PART_OVERHEAD_BYTES as u64));
}

#[tokio::test]
async fn acknowledged_data_without_memory_stays_charged_to_the_pipeline_that_it_comes_from() {
    let (small, tiny, source) = (pipeline(10), pipeline(10), Budget::new(10_000, 0));
    for pipelines in [&[&small][..], &[&small, &tiny]] {
        output(pipelines).pass_on(batch(&source), OverflowPolicy::Wait).wait().await.unwrap();
        assert_eq!((source.used(), small.budget.used()), (1000, 0));
        let mut held = small.shelf.0.lock().pop().into_iter().chain(tiny.shelf.0.lock().pop());
        assert_eq!(numbers(&held.next().unwrap()), [1, 2]);
        drop(held);
        assert_eq!(source.used(), 0);
    }
}

#[tokio::test]
async fn output_without_pipelines_refuses_and_never_takes_silently() {
    let (only, source) = (pipeline(10_000), Budget::new(10_000, 0));
    let output = output(&[&only]);
    assert!(output.serves(Signal::Traces) && !output.serves(Signal::Logs));
    output.clear();
    for pressure in [OverflowPolicy::Refuse, OverflowPolicy::Wait] {
        let refusal = output.pass_on(batch(&source), pressure).wait().await.unwrap_err();
        assert!(refusal.is_retryable());
    }
    assert_eq!((Arc::strong_count(&only.pipeline), source.used()), (1, 0));
}

#[test]
fn pipeline_that_stays_keeps_its_inlet() {
    let (stays, other) = (pipeline(10), pipeline(10));
    let output = output(&[&stays]);
    let inlet = |at: usize| output.traces.inlets.lock()[at].clone();
    let before = inlet(0);
    output.set_pipelines(Signal::Traces, vec![other.pipeline.clone(), stays.pipeline.clone()]);
    assert!(Arc::ptr_eq(&before, &inlet(1)));
}

/// A connector that is replaced and disconnected while a batch is on its way to it.
struct Replaced {
    caller: Arc<ConsumerFanout>,
    next: Arc<dyn Consumer>,
}

impl Consumer for Replaced {
    fn consume(self: Arc<Self>, batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        self.caller.set_targets(vec![self.next.clone()]);
        Arc::<ConnectorOutput>::default().pass_on(batch, pressure)
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, _: &Batch, _: DropReason) {
        panic!("nothing is lost");
    }
}

#[tokio::test]
async fn batch_on_its_way_to_a_connector_that_is_replaced_goes_to_the_next_one() {
    let (caller, next) = (Arc::<ConsumerFanout>::default(), Arc::<Shelf>::default());
    caller.set_targets(vec![Arc::new(Replaced { caller: caller.clone(), next: next.clone() })]);
    assert!(caller.deliver_if_connected(batch(&Budget::new(10_000, 0))).await);
    assert_eq!(next.0.lock().iter().flat_map(numbers).collect::<Vec<_>>(), [1, 2]);
}
