//! Rules of receipts with real exporter queues, and a model of everything that can happen to the pieces of requests.

mod model;

use std::time::Duration;

use kubewake_config::model::{BatchProcessor, QueueConfig, RetryConfig};
use kubewake_otlp::Signal;
use tokio::time::Instant;

use super::{DeliveryOutcome::*, *};
use crate::{
    core::{
        Batch, Charge, ConsumeOutcome, Consumer, ConsumerFanout, DropReason, ExporterQueue, ExporterQueueSettings,
        ExporterStats, Origin, OverflowPolicy, PipelineStats, Processor, ProcessorStats,
        testing::{Destination, Reply, numbers, part, settle},
    },
    processor::batch::BatchingProcessor,
};

/// A receiver that awaits receipts: request, exporter, outcome.
#[derive(Default)]
pub(super) struct Ledger(std::sync::Mutex<Vec<(u64, String, DeliveryOutcome)>>);

impl ReceiptListener for Ledger {
    fn end_token(&self, request: u64, output: &ReceiptOutput, outcome: DeliveryOutcome) {
        self.0.lock().unwrap().push((request, output.exporter.to_string(), outcome));
    }
}

impl Ledger {
    /// The tokens that ended since the last call, in a fixed order.
    pub(super) fn take(&self) -> Vec<(u64, String, DeliveryOutcome)> {
        let mut ended = std::mem::take(&mut *self.0.lock().unwrap());
        ended.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        ended
    }
}

pub(super) fn pipeline_id() -> PipelineId {
    PipelineId { signal: Signal::Traces, name: None }
}

pub(super) fn outputs(names: &[&str]) -> Vec<Arc<ReceiptOutput>> {
    names.iter().map(|name| ReceiptOutput::new(pipeline_id(), ComponentId::new(name), 0)).collect()
}

/// A request with a receipt for these outputs, in their current epochs.
pub(super) fn receipted(
    request: u64,
    numbers: impl IntoIterator<Item = u64>,
    outputs: &[Arc<ReceiptOutput>],
    ledger: &Arc<Ledger>,
) -> Batch {
    let listener: Arc<dyn ReceiptListener> = ledger.clone();
    let receipt = DeliveryReceipt::new(request, outputs.iter().map(|o| (o, o.epoch())), &listener);
    let mut part = part(numbers, Charge::exempt());
    part.origin = Arc::new(Origin { receipt: Some(Arc::new(receipt)), ..Origin::default() });
    Batch::single(Signal::Traces, part)
}

/// A pipeline without processors whose exporters have queues and scripted destinations.
struct Fixture {
    ledger: Arc<Ledger>,
    outputs: Vec<Arc<ReceiptOutput>>,
    fanout: Arc<ConsumerFanout>,
    queues: Vec<Arc<ExporterQueue>>,
    stats: Arc<PipelineStats>,
}

const SECOND: Duration = Duration::from_secs(1);

fn fixture(exporters: &[(&str, &Arc<Destination>)], change: impl Fn(&mut ExporterQueueSettings)) -> Fixture {
    let stats = Arc::<PipelineStats>::default();
    let queue = |(name, to): &(&str, &Arc<Destination>)| {
        let retry = RetryConfig {
            initial_interval: SECOND,
            randomization_factor: 0.0,
            multiplier: 1.0,
            max_interval: SECOND,
            max_elapsed_time: Some(3 * SECOND),
        };
        let mut settings = ExporterQueueSettings {
            exporter: Arc::clone(to) as _,
            timeout: None,
            retry: Some(retry),
            queue: Some(QueueConfig { num_consumers: 1, queue_size: 2, ..QueueConfig::default() }),
            stats: Arc::<ExporterStats>::default(),
        };
        change(&mut settings);
        ExporterQueue::new(ComponentId::new(name), pipeline_id(), stats.clone(), settings)
    };
    let queues: Vec<_> = exporters.iter().map(queue).collect();
    let names: Vec<&str> = exporters.iter().map(|(name, _)| *name).collect();
    let fanout = Arc::<ConsumerFanout>::default();
    let consumers = names.iter().zip(&queues).map(|(name, queue)| (ComponentId::new(name), queue.clone() as _));
    fanout.set_exporters(&pipeline_id(), consumers.collect());
    Fixture { ledger: Arc::default(), outputs: outputs(&names), fanout, queues, stats }
}

impl Fixture {
    fn request(&self, request: u64) -> Batch {
        receipted(request, [request], &self.outputs, &self.ledger)
    }

    async fn offer(&self, batch: Batch) {
        assert!(matches!(self.fanout.offer(batch), ConsumeOutcome::Now(Ok(()))));
        settle().await;
    }

    fn dropped(&self) -> u64 {
        DropReason::ALL.iter().map(|reason| self.stats.dropped_for(*reason)).sum()
    }
}

fn ended(list: &[(u64, &str, DeliveryOutcome)]) -> Vec<(u64, String, DeliveryOutcome)> {
    list.iter().map(|(request, exporter, outcome)| (*request, (*exporter).to_owned(), *outcome)).collect()
}

#[tokio::test(start_paused = true)]
async fn token_of_an_exporter_ends_when_its_destination_took_the_request() {
    let (quick, hanging) = (Destination::new([], Reply::Take), Destination::new([], Reply::Hang));
    let pipeline = fixture(&[("a", &quick), ("b", &hanging)], |_| {});
    pipeline.offer(pipeline.request(1)).await;
    assert_eq!(pipeline.ledger.take(), ended(&[(1, "a", Settled)]));
    hanging.answer(0, Reply::Take);
    settle().await;
    assert_eq!(pipeline.ledger.take(), ended(&[(1, "b", Settled)]));
}

#[tokio::test(start_paused = true)]
async fn exporter_without_a_token_does_not_get_the_request() {
    let (a, b) = (Destination::new([], Reply::Take), Destination::new([], Reply::Take));
    let pipeline = fixture(&[("a", &a), ("b", &b)], |_| {});
    let only_b = receipted(1, [1], &pipeline.outputs[1..], &pipeline.ledger);
    let mut joined = pipeline.request(2);
    joined.append(only_b);
    joined.append(crate::core::testing::request([3]));
    pipeline.offer(joined).await;
    let sorted = |to: &Destination| {
        let mut all = to.delivered().concat();
        all.sort_unstable();
        all
    };
    assert_eq!((sorted(&a), sorted(&b)), (vec![2, 3], vec![1, 2, 3]));
    assert_eq!(pipeline.ledger.take(), ended(&[(1, "b", Settled), (2, "a", Settled), (2, "b", Settled)]));
}

#[tokio::test(start_paused = true)]
async fn token_for_an_exporter_that_has_left_the_pipeline_is_returned() {
    let a = Destination::new([], Reply::Take);
    let pipeline = fixture(&[("a", &a)], |_| {});
    pipeline.offer(receipted(1, [1], &outputs(&["a", "gone"]), &pipeline.ledger)).await;
    assert_eq!(pipeline.ledger.take(), ended(&[(1, "a", Settled), (1, "gone", Returned)]));
}

#[tokio::test(start_paused = true)]
async fn request_without_room_in_the_queue_is_returned_and_no_loss() {
    let hanging = Destination::new([], Reply::Hang);
    let pipeline = fixture(&[("a", &hanging)], |_| {});
    for request in 1..=3 {
        pipeline.offer(pipeline.request(request)).await;
    }
    assert_eq!(pipeline.ledger.take(), ended(&[(3, "a", Returned)]));
    // The second waits behind the first and would be sent; a fourth of the same epoch must not be.
    assert_eq!(pipeline.outputs[0].epoch(), 1);
    hanging.always(Reply::Take);
    settle().await;
    assert_eq!(pipeline.ledger.take(), ended(&[(1, "a", Settled), (2, "a", Returned)]));
    assert_eq!(pipeline.dropped(), 0);
    pipeline.offer(pipeline.request(2)).await;
    assert_eq!(pipeline.ledger.take(), ended(&[(2, "a", Settled)]));
}

#[tokio::test(start_paused = true)]
async fn request_of_an_epoch_that_has_ended_overtakes_nothing() {
    let a = Destination::new([], Reply::Take);
    let pipeline = fixture(&[("a", &a)], |_| {});
    let late = pipeline.request(2);
    pipeline.request(1).return_unsent();
    pipeline.offer(late).await;
    assert_eq!(pipeline.ledger.take(), ended(&[(1, "a", Returned), (2, "a", Returned)]));
    assert!(a.attempts().is_empty());
}

#[tokio::test(start_paused = true)]
async fn acknowledged_request_with_a_receipt_does_not_wait_for_room_while_others_do() {
    let hanging = Destination::new([], Reply::Hang);
    let pipeline = fixture(&[("a", &hanging)], |_| {});
    for request in 1..=2 {
        pipeline.offer(pipeline.request(request)).await;
    }
    let mut mixed = crate::core::testing::request([7]);
    mixed.append(pipeline.request(3));
    let fanout = pipeline.fanout.clone();
    let waiting = tokio::spawn(async move { fanout.deliver(mixed).await });
    settle().await;
    assert!(!waiting.is_finished());
    assert_eq!(pipeline.ledger.take(), ended(&[(3, "a", Returned)]));
    hanging.always(Reply::Take);
    settle().await;
    assert!(waiting.is_finished() && hanging.delivered().concat().contains(&7));
    assert_eq!(pipeline.dropped(), 0);
}

#[tokio::test(start_paused = true)]
async fn request_whose_retries_are_used_up_is_returned_with_those_behind_it() {
    let down = Destination::new([], Reply::NotNow(None));
    let pipeline = fixture(&[("a", &down)], |_| {});
    pipeline.offer(pipeline.request(1)).await;
    pipeline.offer(pipeline.request(2)).await;
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(pipeline.ledger.take(), ended(&[(1, "a", Returned), (2, "a", Returned)]));
    assert_eq!(pipeline.dropped(), 0);
    assert!(!down.attempts().concat().contains(&2));
}

#[tokio::test(start_paused = true)]
async fn request_that_the_backend_refuses_for_good_is_settled_and_counted() {
    for queue in [true, false] {
        let picky = Destination::new([], Reply::Never);
        let pipeline = fixture(&[("a", &picky)], |settings| settings.queue = settings.queue.take().filter(|_| queue));
        pipeline.offer(pipeline.request(1)).await;
        assert_eq!(pipeline.ledger.take(), ended(&[(1, "a", Settled)]));
        assert_eq!(pipeline.stats.dropped_for(DropReason::Refused), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn exporter_without_a_queue_settles_after_the_delivery() {
    let hanging = Destination::new([], Reply::Hang);
    let pipeline = fixture(&[("a", &hanging)], |settings| (settings.queue, settings.retry) = (None, None));
    pipeline.offer(pipeline.request(1)).await;
    assert_eq!(pipeline.ledger.take(), []);
    hanging.answer(0, Reply::NotNow(None));
    settle().await;
    assert_eq!(pipeline.ledger.take(), ended(&[(1, "a", Returned)]));
    assert_eq!(pipeline.dropped(), 0);
}

#[tokio::test(start_paused = true)]
async fn request_larger_than_the_queue_is_sent_alone() {
    let hanging = Destination::new([], Reply::Hang);
    let pipeline = fixture(&[("a", &hanging)], |settings| {
        let queue = settings.queue.as_mut().unwrap();
        (queue.sizer, queue.queue_size) = (kubewake_config::model::QueueSizer::Items, 2);
    });
    pipeline.offer(receipted(1, 1..=5, &pipeline.outputs, &pipeline.ledger)).await;
    pipeline.offer(pipeline.request(2)).await;
    assert_eq!(pipeline.ledger.take(), ended(&[(2, "a", Returned)]));
    hanging.always(Reply::Take);
    settle().await;
    assert_eq!(pipeline.ledger.take(), ended(&[(1, "a", Settled)]));
}

#[tokio::test(start_paused = true)]
async fn shutdown_returns_what_is_held() {
    let hanging = Destination::new([], Reply::Hang);
    let pipeline = fixture(&[("a", &hanging)], |_| {});
    pipeline.offer(pipeline.request(1)).await;
    pipeline.offer(pipeline.request(2)).await;
    pipeline.queues[0].drain(Instant::now() + SECOND).await;
    assert_eq!(pipeline.ledger.take(), ended(&[(1, "a", Returned), (2, "a", Returned)]));
    pipeline.offer(pipeline.request(3)).await;
    assert_eq!(pipeline.ledger.take(), ended(&[(3, "a", Returned)]));
    assert_eq!(pipeline.dropped(), 0);
}

#[tokio::test(start_paused = true)]
async fn token_ends_with_the_last_piece_of_a_request_that_batch_has_split() {
    let hanging = Destination::new([], Reply::Hang);
    let pipeline = fixture(&[("a", &hanging)], |settings| settings.queue.as_mut().unwrap().queue_size = 10);
    let settings = BatchProcessor { send_batch_size: 2, send_batch_max_size: 2, ..BatchProcessor::default() };
    let batcher = BatchingProcessor::new(Signal::Traces, settings, Arc::<ProcessorStats>::default());
    batcher.output().set_exporters(&pipeline_id(), vec![(ComponentId::new("a"), pipeline.queues[0].clone() as _)]);
    let consume = |batch| batcher.clone().consume(batch, OverflowPolicy::Refuse).wait();
    consume(receipted(1, 1..=5, &pipeline.outputs, &pipeline.ledger)).await.unwrap();
    tokio::time::sleep(10 * SECOND).await;
    for left in (0..3).rev() {
        assert_eq!(pipeline.ledger.take(), []);
        hanging.answer(0, Reply::Take);
        settle().await;
        assert_eq!(hanging.pending(), usize::from(left > 0));
    }
    assert_eq!(pipeline.ledger.take(), ended(&[(1, "a", Settled)]));
    let mut all = hanging.delivered().concat();
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn request_that_is_dropped_on_purpose_is_settled() {
    let ledger = Arc::<Ledger>::default();
    let outputs = outputs(&["a", "b"]);
    let mut batch = receipted(1, 1..=2, &outputs, &ledger);
    batch.retain_mut(|_| false);
    assert_eq!(ledger.take(), ended(&[(1, "a", Settled), (1, "b", Settled)]));
}

#[tokio::test(start_paused = true)]
async fn loss_in_a_processor_returns_the_request() {
    let a = Destination::new([], Reply::Take);
    let pipeline = fixture(&[("a", &a)], |_| {});
    let mut batch = pipeline.request(1);
    batch.append(crate::core::testing::request([2, 3]));
    pipeline.fanout.count_loss(&batch, DropReason::MemoryLimit);
    drop(batch);
    assert_eq!(pipeline.ledger.take(), ended(&[(1, "a", Returned)]));
    assert_eq!(pipeline.dropped(), 2);
}

#[tokio::test(start_paused = true)]
async fn pipeline_without_exporters_returns_requests() {
    let pipeline = fixture(&[], |_| {});
    let outputs = outputs(&["a"]);
    let _ = pipeline.fanout.offer(receipted(1, [1], &outputs, &pipeline.ledger));
    pipeline.fanout.deliver(receipted(2, [2], &outputs, &pipeline.ledger)).await;
    assert_eq!(pipeline.ledger.take(), ended(&[(1, "a", Returned), (2, "a", Returned)]));
}

/// Behind a connector there is one token for all pipelines.
#[tokio::test(start_paused = true)]
async fn receipt_that_came_through_a_connector_stands_for_all_exporters_behind_it() {
    let (quick, hanging) = (Destination::new([], Reply::Take), Destination::new([], Reply::Hang));
    let pipeline = fixture(&[("a", &quick), ("b", &hanging)], |_| {});
    let before = PipelineId { signal: Signal::Traces, name: Some("before".into()) };
    let outputs = [ReceiptOutput::new(before, ComponentId::new("forward"), 0)];
    pipeline.offer(receipted(1, [1], &outputs, &pipeline.ledger)).await;
    assert_eq!(pipeline.ledger.take(), []);
    hanging.answer(0, Reply::Take);
    settle().await;
    assert_eq!(pipeline.ledger.take(), ended(&[(1, "forward", Settled)]));
    pipeline.offer(receipted(2, [2], &outputs, &pipeline.ledger)).await;
    hanging.answer(0, Reply::NotNow(None));
    tokio::time::sleep(SECOND / 2).await;
    pipeline.queues[1].halt().await;
    assert_eq!(pipeline.ledger.take(), ended(&[(2, "forward", Returned)]));
    assert_eq!(numbers(&pipeline.request(9)), [9]);
    pipeline.ledger.take();
}
