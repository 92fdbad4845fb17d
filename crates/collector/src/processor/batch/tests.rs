use bytes::Bytes;

use super::*;
use crate::core::{Charge, Part};

/// A consumer that keeps the batches that it gets, when it has room.
#[derive(Default)]
struct Keeper {
    got: Mutex<Vec<Batch>>,
    closed: Mutex<bool>,
    opened: Notify,
}

impl Keeper {
    fn sizes(&self) -> Vec<usize> {
        self.got.lock().iter().map(Batch::items).collect()
    }

    fn close(&self) {
        *self.closed.lock() = true;
    }

    fn open(&self) {
        *self.closed.lock() = false;
        self.opened.notify_waiters();
    }
}

impl Consumer for Keeper {
    fn consume(self: Arc<Self>, batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        if !*self.closed.lock() {
            self.got.lock().push(batch);
            return ConsumeOutcome::Now(Ok(()));
        }
        match pressure {
            OverflowPolicy::Refuse => ConsumeOutcome::Now(Err(Refusal::queue_full())),
            OverflowPolicy::Wait => ConsumeOutcome::later(async move {
                self.opened.notified().await;
                self.got.lock().push(batch);
                Ok(())
            }),
        }
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, _: &Batch, _: DropReason) {
        panic!("a lone next step loses nothing");
    }
}

/// A request of `n` spans.
fn request(n: usize) -> Batch {
    let spans = [0x12, 0x02, 0x12, 0x00]; // a scope with one empty span
    let mut one = vec![0x0a, spans.len() as u8];
    one.extend(spans);
    let bytes = Bytes::from(one.repeat(n));
    assert_eq!(kubewake_otlp::scan(Signal::Traces, &bytes).unwrap().items, n);
    Batch::single(Signal::Traces, Part::new(bytes, n, Arc::default(), Arc::new(Charge::exempt())))
}

fn batcher(size: u32, max: u32, timeout_ms: u64) -> (Arc<BatchingProcessor>, Arc<Keeper>) {
    let settings = Settings {
        timeout: Duration::from_millis(timeout_ms),
        send_batch_size: size,
        send_batch_max_size: max,
        ..Settings::default()
    };
    let batcher = BatchingProcessor::new(Signal::Traces, settings, Arc::default());
    let keeper = Arc::new(Keeper::default());
    batcher.output().set_targets(vec![keeper.clone()]);
    (batcher, keeper)
}

async fn send(batcher: &Arc<BatchingProcessor>, n: usize) -> Result<(), Refusal> {
    batcher.clone().consume(request(n), OverflowPolicy::Refuse).wait().await
}

/// Lets every task that can run do so; on a paused clock no time passes.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_leaves_when_it_is_full() {
    let (batcher, keeper) = batcher(10, 0, 60_000);
    for _ in 0..3 {
        send(&batcher, 4).await.unwrap();
    }
    settle().await;
    assert_eq!(keeper.sizes(), [12]);
    assert_eq!(keeper.got.lock()[0].parts().len(), 3, "it remembers the requests it was joined from");
}

#[tokio::test(start_paused = true)]
async fn a_batch_leaves_when_its_first_item_has_waited_long_enough() {
    let (batcher, keeper) = batcher(1000, 0, 200);
    send(&batcher, 1).await.unwrap();
    tokio::time::advance(Duration::from_millis(150)).await;
    send(&batcher, 1).await.unwrap();
    settle().await;
    assert!(keeper.sizes().is_empty());
    tokio::time::advance(Duration::from_millis(51)).await;
    settle().await;
    assert_eq!(keeper.sizes(), [2]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_over_the_maximum_is_cut_and_the_rest_waits_for_company() {
    let (batcher, keeper) = batcher(10, 10, 200);
    send(&batcher, 25).await.unwrap();
    settle().await;
    assert_eq!(keeper.sizes(), [10, 10]);
    tokio::time::advance(Duration::from_millis(201)).await;
    settle().await;
    assert_eq!(keeper.sizes(), [10, 10, 5]);
}

#[tokio::test(start_paused = true)]
async fn without_a_timeout_everything_leaves_at_once() {
    let (batcher, keeper) = batcher(1000, 0, 0);
    send(&batcher, 3).await.unwrap();
    settle().await;
    assert_eq!(keeper.sizes(), [3]);
}

#[tokio::test(start_paused = true)]
async fn when_there_is_no_room_it_holds_a_little_refuses_the_rest_and_loses_nothing() {
    let (batcher, keeper) = batcher(10, 0, 200);
    keeper.close();
    let mut accepted = 0;
    for _ in 0..100 {
        if send(&batcher, 5).await.is_ok() {
            accepted += 5;
        }
        settle().await;
    }
    assert_eq!(accepted, 20, "one batch that waits and one that fills");
    keeper.open();
    tokio::time::advance(Duration::from_millis(201)).await;
    settle().await;
    assert_eq!(keeper.sizes().iter().sum::<usize>(), accepted);
}

#[tokio::test(start_paused = true)]
async fn flush_hands_on_what_is_held_without_waiting() {
    let (batcher, keeper) = batcher(1000, 0, 60_000);
    send(&batcher, 7).await.unwrap();
    batcher.flush().await;
    assert_eq!(keeper.sizes(), [7]);
    batcher.flush().await;
}

#[tokio::test(start_paused = true)]
async fn each_combination_of_metadata_has_its_own_batch_up_to_a_limit() {
    let settings = Settings {
        metadata_keys: vec!["tenant".into()],
        metadata_cardinality_limit: 2,
        timeout: Duration::from_millis(200),
        ..Settings::default()
    };
    let batcher = BatchingProcessor::new(Signal::Traces, settings, Arc::default());
    let keeper = Arc::new(Keeper::default());
    batcher.output().set_targets(vec![keeper.clone()]);
    for (tenant, ok) in [("a", true), ("b", true), ("a", true), ("c", false)] {
        let metadata = vec![("tenant".to_owned(), tenant.to_owned())];
        let origin = Arc::new(Origin { metadata, ..Origin::default() });
        let part = Part { origin, ..request(1).into_parts().remove(0) };
        let answer = batcher.clone().consume(Batch::single(Signal::Traces, part), OverflowPolicy::Refuse).wait().await;
        assert_eq!(answer.is_ok(), ok, "{tenant}");
    }
    batcher.flush().await;
    let mut sizes = keeper.sizes();
    sizes.sort();
    assert_eq!(sizes, [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn new_settings_apply_to_what_is_held() {
    let (batcher, keeper) = batcher(1000, 0, 60_000);
    send(&batcher, 5).await.unwrap();
    settle().await;
    batcher.reconfigure(Settings { send_batch_size: 5, ..Settings::default() });
    settle().await;
    assert_eq!(keeper.sizes(), [5]);
}

#[tokio::test(start_paused = true)]
async fn a_batcher_that_went_holds_nothing_back() {
    let (batcher, keeper) = batcher(1000, 0, 60_000);
    send(&batcher, 1).await.unwrap();
    batcher.retire();
    settle().await;
    send(&batcher, 2).await.unwrap();
    settle().await;
    assert_eq!(keeper.sizes(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn flush_waits_for_what_is_on_its_way() {
    let (batcher, keeper) = batcher(10, 10, 60_000);
    keeper.close();
    send(&batcher, 25).await.unwrap();
    settle().await;
    let flushing = tokio::spawn({
        let batcher = batcher.clone();
        async move { batcher.flush().await }
    });
    settle().await;
    assert!(!flushing.is_finished(), "nothing was handed on yet");
    keeper.open();
    flushing.await.unwrap();
    assert_eq!(keeper.sizes(), [10, 10, 5]);
}

#[tokio::test(start_paused = true)]
async fn combinations_of_metadata_are_charged_and_refused_without_memory() {
    let settings =
        Settings { metadata_keys: vec!["tenant".into()], metadata_cardinality_limit: 0, ..Settings::default() };
    let batcher = BatchingProcessor::new(Signal::Traces, settings, Arc::default());
    batcher.output().set_targets(vec![Arc::new(Keeper::default())]);
    let budget = crate::core::Budget::new(16 << 10, 0);
    let member = budget.join();
    let from = |tenant: usize| {
        let metadata = vec![("tenant".to_owned(), format!("{tenant:04000}"))];
        let origin = Arc::new(Origin { metadata, ..Origin::default() });
        let charge = Arc::new(member.reserve(10).unwrap());
        Batch::single(Signal::Traces, Part { origin, charge, ..request(1).into_parts().remove(0) })
    };
    let mut taken = 0;
    while batcher.clone().consume(from(taken), OverflowPolicy::Refuse).wait().await.is_ok() {
        taken += 1;
    }
    assert_eq!(taken, 3, "each takes a little more than 5000 bytes of 16 384");
    batcher.clone().consume(from(0), OverflowPolicy::Refuse).wait().await.unwrap();
    batcher.flush().await;
    assert!(budget.used() > 12_000, "they stay, and so does their charge");
    drop(batcher);
    settle().await;
    assert_eq!(budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn combinations_of_other_metadata_do_not_count() {
    let settings = |key: &str| Settings {
        metadata_keys: vec![key.into()],
        metadata_cardinality_limit: 1,
        timeout: Duration::ZERO,
        ..Settings::default()
    };
    let batcher = BatchingProcessor::new(Signal::Traces, settings("tenant"), Arc::default());
    batcher.output().set_targets(vec![Arc::new(Keeper::default())]);
    let from = |key: &str, value: &str| {
        let metadata = vec![(key.to_owned(), value.to_owned())];
        let origin = Arc::new(Origin { metadata, ..Origin::default() });
        Batch::single(Signal::Traces, Part { origin, ..request(1).into_parts().remove(0) })
    };
    batcher.clone().consume(from("tenant", "a"), OverflowPolicy::Refuse).wait().await.unwrap();
    settle().await;
    batcher.reconfigure(settings("team"));
    batcher.clone().consume(from("team", "b"), OverflowPolicy::Refuse).wait().await.unwrap();
    assert_eq!(batcher.stats.metadata_cardinality.load(Ordering::Relaxed), 1);
}
