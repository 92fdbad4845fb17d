mod model;

use std::sync::atomic::AtomicU64;

use kubewake_config::model::{QueueBatch, QueueSizer};

use super::*;
use crate::core::testing::{Destination, Reply, request, settle, spans};

const SECOND: Duration = Duration::from_secs(1);

/// An exporter queue with its destination and its counters.
struct Fixture {
    outlet: Arc<ExporterQueue>,
    to: Arc<Destination>,
    stats: Arc<ExporterStats>,
    pipeline: Arc<PipelineStats>,
}

/// One request at a time, a queue of ten, and pauses of one, two, four, eight, eight … seconds.
fn settings(to: &Arc<Destination>, stats: &Arc<ExporterStats>) -> ExporterQueueSettings {
    let retry = RetryConfig {
        initial_interval: SECOND,
        randomization_factor: 0.0,
        multiplier: 2.0,
        max_interval: 8 * SECOND,
        max_elapsed_time: None,
    };
    let queue = QueueSettings { num_consumers: 1, queue_size: 10, ..QueueSettings::default() };
    ExporterQueueSettings {
        exporter: to.clone(),
        timeout: None,
        retry: Some(retry),
        queue: Some(queue),
        stats: stats.clone(),
    }
}

fn fixture(to: Arc<Destination>, change: impl FnOnce(&mut ExporterQueueSettings)) -> Fixture {
    let stats = Arc::<ExporterStats>::default();
    let pipeline = Arc::<PipelineStats>::default();
    let mut settings = settings(&to, &stats);
    change(&mut settings);
    let traces = PipelineId { signal: kubewake_otlp::Signal::Traces, name: None };
    let outlet = ExporterQueue::new(ComponentId::new("nop"), traces, pipeline.clone(), settings);
    Fixture { outlet, to, stats, pipeline }
}

fn queue(settings: &mut ExporterQueueSettings) -> &mut QueueSettings {
    settings.queue.as_mut().unwrap()
}

impl Fixture {
    fn offer(&self, batch: Batch) -> ConsumeOutcome {
        self.outlet.clone().consume(batch, OverflowPolicy::Refuse)
    }

    /// Offers a batch that must be taken at once.
    async fn put(&self, batch: Batch) {
        assert!(matches!(self.offer(batch), ConsumeOutcome::Now(Ok(()))));
        settle().await;
    }

    async fn reconfigure(&self, change: impl FnOnce(&mut ExporterQueueSettings)) {
        let mut settings = settings(&self.to, &self.stats);
        change(&mut settings);
        self.outlet.reconfigure(settings);
        settle().await;
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.pipeline.dropped_for(reason)
    }

    fn size(&self) -> u64 {
        self.stats.queue.size()
    }

    /// Whole seconds between the attempts.
    fn pauses(&self) -> Vec<u64> {
        self.to.times().windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect()
    }
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_is_delivered_in_order_and_counted() {
    let f = fixture(Destination::new([], Reply::Take), |_| {});
    for n in 0..5 {
        f.put(request([n])).await;
    }
    assert_eq!(f.to.delivered(), [[0], [1], [2], [3], [4]]);
    assert_eq!((read(&f.stats.sent), read(&f.pipeline.delivered), f.size()), (5, 5, 0));
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_says_so_and_what_is_being_sent_counts() {
    let f = fixture(Destination::new([], Reply::Hang), |s| queue(s).queue_size = 2);
    f.put(spans(1)).await;
    f.put(spans(1)).await;
    let refusal = f.offer(spans(1)).wait().await.unwrap_err();
    assert!(refusal.is_retryable() && refusal.retry_after.is_some());
    assert_eq!((f.to.pending(), f.size()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn what_could_never_fit_is_refused_and_nothing_is_promised() {
    let f = fixture(Destination::new([], Reply::Take), |s| queue(s).sizer = QueueSizer::Items);
    assert_eq!(f.offer(spans(11)).wait().await.unwrap_err().retry_after, None);
    f.put(spans(10)).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_acknowledged_waits_for_room_even_if_it_is_larger_than_the_queue() {
    let f = fixture(Destination::new([], Reply::Hang), |s| queue(s).sizer = QueueSizer::Items);
    f.put(spans(5)).await;
    let waiting = tokio::spawn(f.outlet.clone().consume(spans(11), OverflowPolicy::Wait).wait());
    settle().await;
    assert!(!waiting.is_finished());
    f.to.always(Reply::Take);
    waiting.await.unwrap().unwrap();
    settle().await;
    assert_eq!(read(&f.stats.sent), 16);
}

#[tokio::test(start_paused = true)]
async fn with_block_on_overflow_a_sender_waits_for_room() {
    let f = fixture(Destination::new([], Reply::Hang), |s| {
        (queue(s).queue_size, queue(s).block_on_overflow) = (1, true);
    });
    f.put(spans(1)).await;
    let waiting = tokio::spawn(f.offer(spans(1)).wait());
    let gives_up = tokio::spawn(f.offer(spans(1)).wait());
    settle().await;
    assert!(!waiting.is_finished());
    gives_up.abort();
    f.to.always(Reply::Take);
    waiting.await.unwrap().unwrap();
    settle().await;
    assert_eq!(read(&f.stats.sent), 2, "what its sender gave up is not sent");
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_and_a_hint_makes_them_longer_only() {
    let hint = |seconds| Reply::NotNow(Some(seconds * SECOND));
    let not_now = Reply::NotNow(None);
    let f = fixture(Destination::new([not_now, hint(1), hint(30), not_now, not_now], Reply::Take), |_| {});
    f.put(spans(3)).await;
    pass(100 * SECOND).await;
    assert_eq!(f.pauses(), [1, 2, 30, 8, 8]);
    assert_eq!((read(&f.stats.sent), read(&f.stats.send_failed)), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn when_the_time_for_retries_is_over_the_batch_is_dropped_and_counted() {
    let f = fixture(Destination::new([], Reply::NotNow(None)), |s| {
        s.retry.as_mut().unwrap().max_elapsed_time = Some(10 * SECOND);
    });
    f.put(spans(3)).await;
    pass(60 * SECOND).await;
    assert_eq!(f.pauses(), [1, 2, 4]);
    assert_eq!((f.dropped(DropReason::RetriesExhausted), read(&f.stats.send_failed), f.size()), (3, 3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_says_nothing_is_given_up_and_tried_again() {
    let f = fixture(Destination::new([Reply::Hang], Reply::Take), |s| s.timeout = Some(5 * SECOND));
    f.put(spans(1)).await;
    pass(10 * SECOND).await;
    assert_eq!(f.pauses(), [6], "the time limit and the pause");
    assert_eq!(read(&f.stats.sent), 1);
}

#[tokio::test(start_paused = true)]
async fn a_partial_success_is_never_retried_and_its_count_is_kept() {
    let f = fixture(Destination::new([Reply::TakeAllBut(2)], Reply::Take), |_| {});
    f.put(spans(5)).await;
    pass(100 * SECOND).await;
    assert_eq!(f.to.attempts().len(), 1);
    assert_eq!((f.stats.rejected.total(), f.dropped(DropReason::Rejected), read(&f.pipeline.delivered)), (2, 2, 3));
}

#[tokio::test(start_paused = true)]
async fn of_a_batch_that_is_taken_in_part_only_the_rest_is_sent_again() {
    let f =
        fixture(Destination::new([Reply::TakeFirst(1), Reply::NotNow(None), Reply::TakeFirst(2)], Reply::Take), |_| {});
    let mut joined = request([1, 2, 3]);
    joined.append(request([4, 5]));
    f.put(joined).await;
    pass(100 * SECOND).await;
    assert_eq!(f.to.attempts(), [vec![1, 2, 3, 4, 5], vec![2, 3, 4, 5], vec![2, 3, 4, 5], vec![4, 5]]);
    assert_eq!(f.pauses(), [1, 2, 4]);
    assert_eq!((read(&f.stats.sent), read(&f.pipeline.delivered), read(&f.stats.send_failed)), (5, 5, 0));
}

#[tokio::test(start_paused = true)]
async fn rest_of_a_batch_is_lost_alone_when_the_time_for_retries_is_over() {
    let f = fixture(Destination::new([Reply::TakeFirst(3)], Reply::NotNow(None)), |s| {
        s.retry.as_mut().unwrap().max_elapsed_time = Some(10 * SECOND);
    });
    f.put(spans(5)).await;
    pass(60 * SECOND).await;
    assert_eq!((read(&f.stats.sent), f.dropped(DropReason::RetriesExhausted), read(&f.stats.send_failed)), (3, 2, 2));
}

#[tokio::test(start_paused = true)]
async fn of_a_joined_batch_that_is_refused_only_the_poison_is_lost() {
    let f = fixture(Destination::refusing(3), |_| {});
    let mut joined = request([1, 2]);
    joined.append(request([3]));
    joined.append(request([4, 5]));
    f.put(joined).await;
    assert_eq!(f.to.attempts(), [vec![1, 2, 3, 4, 5], vec![1, 2], vec![3], vec![4, 5]]);
    assert_eq!(f.to.delivered(), [[1, 2], [4, 5]]);
    assert_eq!((f.dropped(DropReason::Refused), read(&f.stats.sent), read(&f.stats.send_failed)), (1, 4, 1));
}

#[tokio::test(start_paused = true)]
async fn the_poison_among_many_is_found_with_few_attempts() {
    let f = fixture(Destination::refusing(700), |_| {});
    let mut joined = request([0]);
    (1..1000).for_each(|n| joined.append(request([n])));
    f.put(joined).await;
    let delivered: Vec<u64> = f.to.delivered().concat();
    assert_eq!(delivered, (0..1000).filter(|n| *n != 700).collect::<Vec<_>>(), "in their order, each once");
    // Pieces of 125, of 16, of 2, and of 1.
    assert_eq!(f.to.attempts().len(), 1 + 8 + 8 + 8 + 2);
    assert_eq!((f.dropped(DropReason::Refused), read(&f.stats.sent), read(&f.stats.send_failed)), (1, 999, 1));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_does_not_blame_the_data_takes_nothing_apart() {
    let f = fixture(Destination::new([Reply::Unauthenticated], Reply::Take), |_| {});
    let mut joined = request([1]);
    joined.append(request([2]));
    f.put(joined).await;
    assert_eq!(f.to.attempts(), [[1, 2]]);
    assert_eq!(f.dropped(DropReason::Refused), 2);
}

#[tokio::test(start_paused = true)]
async fn new_settings_cut_a_pause_short_and_apply_to_what_is_queued() {
    let f = fixture(Destination::new([Reply::NotNow(Some(1000 * SECOND))], Reply::Hang), |_| {});
    f.put(request([1])).await;
    f.put(request([2])).await;
    let elsewhere = Destination::new([], Reply::Take);
    f.reconfigure(|s| s.exporter = elsewhere.clone()).await;
    assert_eq!(f.to.attempts(), [[1]]);
    assert_eq!(elsewhere.delivered(), [[1], [2]]);
}

#[tokio::test(start_paused = true)]
async fn settings_that_change_during_an_attempt_cut_the_pause_after_it_short_too() {
    let f = fixture(Destination::new([], Reply::Hang), |_| {});
    f.put(spans(1)).await;
    let elsewhere = Destination::new([], Reply::Take);
    f.reconfigure(|s| s.exporter = elsewhere.clone()).await;
    f.to.answer(0, Reply::NotNow(Some(1000 * SECOND)));
    settle().await;
    assert_eq!(elsewhere.delivered().len(), 1, "without a pause");
}

#[tokio::test(start_paused = true)]
async fn more_consumers_begin_at_once_and_fewer_end_after_their_request() {
    let f = fixture(Destination::new([], Reply::Hang), |_| {});
    for _ in 0..6 {
        f.put(spans(1)).await;
    }
    assert_eq!(f.to.pending(), 1);
    f.reconfigure(|s| queue(s).num_consumers = 4).await;
    assert_eq!(f.to.pending(), 4);
    f.reconfigure(|s| queue(s).num_consumers = 2).await;
    (0..2).for_each(|_| f.to.answer(0, Reply::Take));
    settle().await;
    assert_eq!(f.to.pending(), 2);
}

#[tokio::test(start_paused = true)]
async fn another_sizer_counts_what_is_held_already() {
    let f = fixture(Destination::new([], Reply::Hang), |_| {});
    f.put(spans(4)).await;
    f.put(spans(5)).await;
    assert_eq!(f.size(), 2);
    f.reconfigure(|s| queue(s).sizer = QueueSizer::Items).await;
    assert_eq!(f.size(), 9);
    assert!(f.offer(spans(2)).wait().await.is_err());
    f.to.always(Reply::Take);
    settle().await;
    assert_eq!(f.size(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_goes_takes_its_gauges_along() {
    let f = fixture(Destination::new([], Reply::Hang), |_| {});
    f.put(spans(1)).await;
    let elsewhere = Arc::<ExporterStats>::default();
    f.reconfigure(|s| s.stats = elsewhere.clone()).await;
    assert_eq!((f.size(), read(&f.stats.queue_capacity)), (0, 0));
    assert_eq!((elsewhere.queue.size(), read(&elsewhere.queue_capacity)), (1, 10));
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_exporter_costs_one_batch_and_not_the_worker() {
    let f = fixture(Destination::new([Reply::Panic], Reply::Take), |_| {});
    f.put(spans(2)).await;
    f.put(spans(1)).await;
    assert_eq!((f.dropped(DropReason::Refused), read(&f.stats.send_failed)), (2, 2));
    assert_eq!((f.to.delivered().len(), f.size()), (1, 0));
    assert_eq!(f.stats.in_flight.load(Ordering::Relaxed), 0);
    f.outlet.drain(Instant::now() + SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_makes_the_exporter_panic_costs_those_it_was_joined_with_nothing() {
    let f = fixture(Destination::new([Reply::Panic, Reply::Panic], Reply::Take), |_| {});
    let mut joined = request([1]);
    joined.append(request([2]));
    f.put(joined).await;
    assert_eq!((f.dropped(DropReason::Refused), f.to.delivered()), (1, vec![vec![2]]));
}

#[tokio::test(start_paused = true)]
async fn draining_ends_when_all_is_delivered() {
    let f = fixture(Destination::new([Reply::NotNow(None)], Reply::Take), |_| {});
    f.put(spans(1)).await;
    f.put(spans(1)).await;
    let begin = Instant::now();
    f.outlet.drain(begin + 25 * SECOND).await;
    assert_eq!(begin.elapsed().as_secs(), 1, "the pause of the first");
    assert_eq!(read(&f.stats.sent), 2);
}

#[tokio::test(start_paused = true)]
async fn at_the_end_of_draining_the_rest_is_counted_before_it_returns() {
    let f = fixture(Destination::new([], Reply::Hang), |s| queue(s).queue_size = 2);
    f.put(spans(1)).await;
    f.put(spans(2)).await;
    let waiting = tokio::spawn(f.outlet.clone().consume(spans(4), OverflowPolicy::Wait).wait());
    settle().await;
    f.outlet.drain(Instant::now() + SECOND).await;
    assert_eq!((f.dropped(DropReason::Shutdown), read(&f.stats.send_failed)), (7, 7));
    assert!(waiting.await.unwrap().is_err());
    assert!(f.offer(spans(1)).wait().await.is_err(), "nothing is taken after the end");
    assert_eq!(f.stats.in_flight.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn without_a_queue_the_sender_hears_what_the_destination_said() {
    let f = fixture(Destination::new([Reply::NotNow(None), Reply::Never], Reply::Take), |s| {
        (s.queue, s.retry) = (None, None);
    });
    assert!(f.offer(spans(1)).wait().await.unwrap_err().is_retryable());
    assert!(!f.offer(spans(1)).wait().await.unwrap_err().is_retryable());
    f.offer(spans(1)).wait().await.unwrap();
    assert_eq!((read(&f.stats.send_failed), read(&f.stats.sent)), (2, 1));
    let dropped: u64 = DropReason::ALL.iter().map(|reason| f.dropped(*reason)).sum();
    assert_eq!(dropped, 0, "what the sender still has is not lost");
}

#[tokio::test(start_paused = true)]
async fn without_a_queue_what_was_acknowledged_and_cannot_be_sent_is_counted_as_dropped() {
    let f = fixture(Destination::new([Reply::Never], Reply::Take), |s| s.queue = None);
    assert!(f.outlet.clone().consume(spans(2), OverflowPolicy::Wait).wait().await.is_err());
    assert_eq!(f.dropped(DropReason::Refused), 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_queue_a_sender_that_goes_away_leaves_nothing_under_way() {
    let f = fixture(Destination::new([], Reply::Hang), |s| s.queue = None);
    let sender = tokio::spawn(f.offer(spans(1)).wait());
    settle().await;
    assert_eq!(f.stats.in_flight.load(Ordering::Relaxed), 1);
    sender.abort();
    settle().await;
    assert_eq!(f.stats.in_flight.load(Ordering::Relaxed), 0);
    f.outlet.drain(Instant::now() + 25 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn draining_waits_for_what_goes_past_the_queue() {
    let f = fixture(Destination::new([], Reply::Hang), |s| s.queue = None);
    let sender = tokio::spawn(f.offer(spans(1)).wait());
    settle().await;
    let outlet = f.outlet.clone();
    let drained = tokio::spawn(async move { outlet.drain(Instant::now() + 25 * SECOND).await });
    settle().await;
    assert!(!drained.is_finished());
    f.to.always(Reply::Take);
    drained.await.unwrap();
    sender.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn with_wait_for_result_the_sender_hears_when_it_is_delivered_or_given_up() {
    let f = fixture(Destination::new([], Reply::Hang), |s| {
        queue(s).wait_for_result = true;
        s.retry = None;
    });
    let [first, second, third] = [1, 1, 1].map(|n| tokio::spawn(f.offer(spans(n)).wait()));
    settle().await;
    assert!(!first.is_finished());
    f.to.answer(0, Reply::Take);
    first.await.unwrap().unwrap();
    settle().await;
    f.to.answer(0, Reply::NotNow(None));
    assert!(second.await.unwrap().unwrap_err().is_retryable());
    f.outlet.drain(Instant::now() + SECOND).await;
    assert!(third.await.unwrap().unwrap_err().is_retryable());
    let dropped: u64 = DropReason::ALL.iter().map(|reason| f.dropped(*reason)).sum();
    assert_eq!((dropped, read(&f.stats.send_failed)), (0, 2));
}

fn batching(min: u64, max: u64) -> impl FnOnce(&mut ExporterQueueSettings) {
    move |settings| {
        let batch = QueueBatch { flush_timeout: SECOND, min_size: min, max_size: max, sizer: QueueSizer::Items };
        queue(settings).batch = Some(batch);
    }
}

#[tokio::test(start_paused = true)]
async fn a_batching_queue_sends_when_there_is_enough() {
    let f = fixture(Destination::new([], Reply::Take), batching(3, 0));
    f.put(request([1])).await;
    f.put(request([2])).await;
    assert!(f.to.attempts().is_empty());
    f.put(request([3])).await;
    assert_eq!(f.to.delivered(), [[1, 2, 3]]);
    assert_eq!(f.size(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_batching_queue_sends_when_the_first_has_waited_long_enough() {
    let f = fixture(Destination::new([], Reply::Take), batching(100, 0));
    f.put(request([1])).await;
    pass(SECOND / 2).await;
    f.put(request([2])).await;
    assert!(f.to.attempts().is_empty());
    pass(SECOND / 2).await;
    assert_eq!(f.to.delivered(), [[1, 2]]);
}

#[tokio::test(start_paused = true)]
async fn a_batching_queue_sends_no_batch_above_the_maximum() {
    let f = fixture(Destination::new([], Reply::Take), batching(3, 4));
    f.put(request(0..10)).await;
    assert_eq!(f.to.delivered(), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
    assert_eq!((read(&f.stats.sent), f.size()), (10, 0));
}

#[tokio::test(start_paused = true)]
async fn a_batching_queue_that_drains_waits_for_nothing() {
    let f = fixture(Destination::new([], Reply::Take), batching(100, 0));
    f.put(spans(1)).await;
    let begin = Instant::now();
    f.outlet.drain(begin + 25 * SECOND).await;
    assert_eq!((begin.elapsed(), read(&f.stats.sent)), (Duration::ZERO, 1));
}

/// `drain` must not miss the end of the last worker, on any thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn draining_on_many_threads_misses_no_end() {
    for round in 0..500 {
        let f = fixture(Destination::new([], Reply::Take), |s| queue(s).num_consumers = 4);
        (0..8).for_each(|_| assert!(matches!(f.offer(spans(1)), ConsumeOutcome::Now(Ok(())))));
        let begin = std::time::Instant::now();
        f.outlet.drain(Instant::now() + 20 * SECOND).await;
        assert!(begin.elapsed() < 10 * SECOND, "round {round}");
        assert_eq!(read(&f.stats.sent), 8);
    }
}
