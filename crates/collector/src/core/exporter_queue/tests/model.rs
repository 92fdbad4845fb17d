//! An exporter queue against a model: under any sequence of events its guarantees hold.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// An event in the life of an exporter queue.
#[derive(Clone, Debug)]
enum Event {
    /// A request with this many spans is offered, or a joined one with this many in each.
    Offer(Vec<u64>),
    /// The destination answers one of the pending attempts.
    Answer(usize, Reply),
    Pass(u64),
    /// New settings are applied.
    Settings(Shape),
}

#[derive(Clone, Debug)]
struct Shape {
    consumers: u32,
    size: u64,
    sizer: QueueSizer,
    batch: Option<(u64, u64)>,
    max_elapsed: Option<u64>,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let sizers = prop_oneof![Just(QueueSizer::Requests), Just(QueueSizer::Items), Just(QueueSizer::Bytes)];
    let batch =
        prop::option::of((1u64..6, 0u64..3).prop_map(|(min, more)| (min, if more == 0 { 0 } else { min + more })));
    (1u32..4, 3u64..9, sizers, batch, prop::option::of(5u64..50)).prop_map(
        |(consumers, size, sizer, batch, max_elapsed)| {
            // A span takes about twenty bytes.
            let size = if sizer == QueueSizer::Bytes { size * 40 } else { size };
            Shape { consumers, size, sizer, batch, max_elapsed }
        },
    )
}

fn events() -> impl Strategy<Value = Event> {
    let reply = prop_oneof![
        3 => Just(Reply::Take),
        1 => (0u64..3).prop_map(Reply::TakeAllBut),
        1 => (0usize..5).prop_map(Reply::TakeFirst),
        2 => prop::option::of(0u64..20).prop_map(|hint| Reply::NotNow(hint.map(Duration::from_secs))),
        1 => Just(Reply::Never),
        1 => Just(Reply::Unauthenticated),
    ];
    prop_oneof![
        4 => prop::collection::vec(1u64..4, 1..3).prop_map(Event::Offer),
        4 => (any::<usize>(), reply).prop_map(|(at, reply)| Event::Answer(at, reply)),
        2 => (0u64..20).prop_map(Event::Pass),
        1 => shapes().prop_map(Event::Settings),
    ]
}

impl Shape {
    fn settings(&self, to: &Arc<Destination>, stats: &Arc<ExporterStats>) -> ExporterQueueSettings {
        let mut settings = settings(to, stats);
        let batch = self.batch.map(|(min_size, max_size)| QueueBatch {
            flush_timeout: SECOND,
            min_size,
            max_size,
            sizer: QueueSizer::Items,
        });
        settings.queue = Some(QueueSettings {
            num_consumers: self.consumers,
            queue_size: self.size,
            sizer: self.sizer,
            batch,
            ..QueueSettings::default()
        });
        settings.retry.as_mut().unwrap().max_elapsed_time = self.max_elapsed.map(Duration::from_secs);
        settings
    }
}

/// Runs the events, drains, and checks the totals. `rescued`: the destination takes everything in the end.
async fn run(shape: Shape, events: Vec<Event>, rescued: bool) {
    let f = fixture(Destination::new([], Reply::Hang), |_| {});
    f.outlet.reconfigure(shape.settings(&f.to, &f.stats));
    let mut shape = shape;
    let mut next = 0;
    let mut taken = Vec::new();
    let mut one_at_a_time = shape.consumers == 1;
    for event in events {
        match event {
            Event::Offer(sizes) => {
                let mut batch = Batch::empty(kubewake_otlp::Signal::Traces);
                let first = next;
                for size in sizes {
                    batch.append(request(next..next + size));
                    next += size;
                }
                match f.offer(batch) {
                    ConsumeOutcome::Now(Ok(())) => {
                        taken.extend(first..next);
                        assert!(f.size() <= shape.size, "{} of {}", f.size(), shape.size);
                    }
                    ConsumeOutcome::Now(Err(_)) => {}
                    ConsumeOutcome::Partial(_) | ConsumeOutcome::Later(_) => panic!("it is known at once"),
                }
            }
            Event::Answer(at, reply) => f.to.answer(at, reply),
            Event::Pass(seconds) => pass(Duration::from_secs(seconds)).await,
            Event::Settings(new) => {
                f.outlet.reconfigure(new.settings(&f.to, &f.stats));
                one_at_a_time &= new.consumers == 1;
                shape = new;
            }
        }
        settle().await;
        assert!(f.to.pending() <= 4);
        check_attempts(&f, one_at_a_time);
    }
    if rescued {
        f.to.always(Reply::Take);
    }
    f.outlet.drain(Instant::now() + 100 * SECOND).await;
    check_attempts(&f, one_at_a_time);
    check_accounts(&f, &taken, rescued);
}

/// Nothing is sent again after it was taken, and a single consumer sends requests in order.
fn check_attempts(f: &Fixture, one_at_a_time: bool) {
    let mut delivered = BTreeMap::<u64, usize>::new();
    f.to.delivered().iter().flatten().for_each(|number| *delivered.entry(*number).or_default() += 1);
    assert!(delivered.values().all(|times| *times == 1), "delivered twice: {delivered:?}");
    if one_at_a_time {
        let mut begun = Vec::new();
        for number in f.to.attempts().into_iter().flatten() {
            if !begun.contains(&number) {
                begun.push(number);
            }
        }
        assert!(begun.is_sorted(), "{begun:?}");
    }
}

/// Every span that was taken was delivered once, or dropped once with a reason.
fn check_accounts(f: &Fixture, taken: &[u64], rescued: bool) {
    let delivered: Vec<u64> = f.to.delivered().into_iter().flatten().collect();
    assert!(delivered.iter().all(|number| taken.contains(number)), "what was refused is not sent");
    let lost: u64 = DropReason::ALL.iter().filter(|r| **r != DropReason::Rejected).map(|r| f.dropped(*r)).sum();
    assert_eq!(taken.len() as u64, delivered.len() as u64 + lost, "taken = sent + dropped");
    assert_eq!(read(&f.stats.sent), delivered.len() as u64);
    assert_eq!(read(&f.stats.send_failed), lost);
    assert_eq!(f.dropped(DropReason::Rejected), f.stats.rejected.total());
    assert_eq!(f.size(), 0, "nothing is held");
    assert_eq!(f.stats.in_flight.load(Ordering::Relaxed), 0);
    if rescued {
        assert_eq!(f.dropped(DropReason::Shutdown), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_taken_is_delivered_once_or_dropped_once_whatever_happens(
        shape in shapes(),
        events in prop::collection::vec(events(), 1..40),
        rescued in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(shape, events, rescued));
    }
}
