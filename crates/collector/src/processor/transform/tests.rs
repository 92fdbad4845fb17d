use std::sync::Mutex;

use kubewake_otlp::view::RecordRef;

use super::*;
use crate::core::{
    Budget, Member, Origin,
    testing::{numbers, part},
};

/// A consumer that keeps the batches that it gets, or has no room.
#[derive(Default)]
struct Keeper {
    got: Mutex<Vec<Batch>>,
    full: Mutex<bool>,
}

impl Keeper {
    fn numbers(&self) -> Vec<Vec<u64>> {
        self.got.lock().unwrap().iter().map(numbers).collect()
    }
}

impl Consumer for Keeper {
    fn consume(self: Arc<Self>, batch: Batch, _: OverflowPolicy) -> ConsumeOutcome {
        if *self.full.lock().unwrap() {
            return ConsumeOutcome::Now(Err(Refusal::queue_full()));
        }
        self.got.lock().unwrap().push(batch);
        ConsumeOutcome::Now(Ok(()))
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, _: &Batch, _: DropReason) {}
}

/// Keeps the spans whose number is below a limit.
struct Below(u64);

impl RequestTransform for Below {
    fn transform(
        &self,
        signal: Signal,
        part: &Part,
        memory: &mut dyn Allowance,
    ) -> Result<TransformedRequest, NoMemory> {
        let number = |id: &[u8]| u128::from_be_bytes(id.try_into().unwrap()) as u64 - 1;
        let is_below = |record: &RecordRef<'_>| number(record.trace_id()) < self.0;
        kubewake_otlp::retain_within(signal, &part.bytes, is_below, memory).map(TransformedRequest::from)
    }
}

struct Repeat(usize);

impl RequestTransform for Repeat {
    fn transform(&self, _: Signal, part: &Part, memory: &mut dyn Allowance) -> Result<TransformedRequest, NoMemory> {
        if !memory.reserve(part.bytes.len() * self.0) {
            return Err(NoMemory);
        }
        Ok(TransformedRequest { bytes: Bytes::from(part.bytes.repeat(self.0)), items: part.items * self.0 })
    }
}

fn mapping(mapper: impl RequestTransform + 'static) -> (Arc<TransformProcessor>, Arc<Keeper>) {
    let mapping = TransformProcessor::new(Signal::Traces, Box::new(mapper), Arc::default());
    let keeper = Arc::new(Keeper::default());
    mapping.output().set_targets(vec![keeper.clone()]);
    (mapping, keeper)
}

fn counts(mapping: &TransformProcessor) -> [u64; 4] {
    let stats = &mapping.stats;
    [&stats.incoming, &stats.outgoing, &stats.filtered, &stats.refused].map(|count| count.load(Ordering::Relaxed))
}

fn batch(parts: impl IntoIterator<Item = Part>) -> Batch {
    let mut batch = Batch::empty(Signal::Traces);
    parts.into_iter().for_each(|part| batch.push(part));
    batch
}

async fn send(mapping: &Arc<TransformProcessor>, batch: Batch, pressure: OverflowPolicy) -> Result<(), Refusal> {
    mapping.clone().consume(batch, pressure).wait().await
}

#[tokio::test]
async fn requests_shrink_stay_or_end_and_are_counted_by_what_became_of_them() {
    let (mapping, keeper) = mapping(Below(5));
    let untouched = part(0..3, Charge::exempt());
    let pointer = untouched.bytes.as_ptr();
    let origin = Arc::new(Origin { subject: Some("shop".into()), ..Origin::default() });
    let cut = Part { origin: origin.clone(), ..part(3..10, Charge::exempt()) };
    send(&mapping, batch([untouched, cut, part(10..20, Charge::exempt())]), OverflowPolicy::Refuse).await.unwrap();
    assert_eq!(keeper.numbers(), [[0, 1, 2, 3, 4]]);
    let got = keeper.got.lock().unwrap();
    let parts = got[0].parts();
    assert_eq!(parts.len(), 2, "what has nothing left ends here");
    assert_eq!(parts[0].bytes.as_ptr(), pointer, "what did not change was not copied");
    assert_eq!(parts[1].origin, origin);
    assert_eq!(counts(&mapping), [20, 5, 15, 0]);
}

#[tokio::test]
async fn a_batch_of_which_nothing_is_left_is_taken_and_not_handed_on() {
    for pressure in [OverflowPolicy::Refuse, OverflowPolicy::Wait] {
        let (mapping, keeper) = mapping(Below(0));
        let member = Budget::new(1000, 0).join();
        send(&mapping, batch([part(0..3, member.reserve(500).unwrap())]), pressure).await.unwrap();
        assert!(keeper.numbers().is_empty());
        assert_eq!(member.used(), 0);
        assert_eq!(counts(&mapping), [3, 0, 3, 0]);
    }
}

#[tokio::test]
async fn the_charge_follows_the_bytes() {
    let budget = Budget::new(100_000, 0);
    let member = budget.join();
    let (smaller, keeper) = mapping(Below(50));
    let request = part(0..100, Charge::exempt());
    let charged = |n: usize| Part { charge: Arc::new(member.reserve(n as u64).unwrap()), ..request.clone() };
    send(&smaller, batch([charged(2 * request.bytes.len())]), OverflowPolicy::Refuse).await.unwrap();
    let left = keeper.got.lock().unwrap()[0].bytes();
    assert!(left < request.bytes.len());
    assert_eq!(budget.used(), left as u64);
    keeper.got.lock().unwrap().clear();

    let (larger, keeper) = mapping(Repeat(3));
    send(&larger, batch([charged(request.bytes.len())]), OverflowPolicy::Refuse).await.unwrap();
    assert_eq!(budget.used(), 3 * request.bytes.len() as u64);
    drop(keeper.got.lock().unwrap().drain(..));
    assert_eq!(budget.used(), 0);
}

/// A request, and a budget with room for this many more of its size.
fn request_with_room(more: u64) -> (Part, Arc<Budget>, Arc<Member>) {
    let request = part(0..10, Charge::exempt());
    let size = request.bytes.len() as u64;
    // An eighth stays free of work memory.
    let budget = Budget::new((size * (1 + more)).div_ceil(7) * 8, 0);
    let member = budget.join();
    let charge = Arc::new(member.reserve(size).unwrap());
    (Part { charge, ..request }, budget, member)
}

/// A consumer that also counts losses.
#[derive(Default)]
struct Losses(Mutex<Vec<(usize, DropReason)>>);

impl Consumer for Losses {
    fn consume(self: Arc<Self>, _: Batch, _: OverflowPolicy) -> ConsumeOutcome {
        panic!("nothing is handed on");
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, batch: &Batch, reason: DropReason) {
        self.0.lock().unwrap().push((batch.items(), reason));
    }
}

#[tokio::test]
async fn sender_is_told_to_come_again_when_memory_is_in_use_and_not_if_it_never_suffices() {
    let (request, budget, member) = request_with_room(3);
    let size = request.bytes.len() as u64;
    let (mapping, _keeper) = mapping(Repeat(3));
    let other = member.reserve(size).unwrap();
    let refusal = send(&mapping, batch([request.clone()]), OverflowPolicy::Refuse).await.unwrap_err();
    assert!(refusal.is_retryable() && refusal.is_lack_of_room());
    assert_eq!(
        (counts(&mapping), budget.used()),
        ([0, 0, 0, 10], 2 * size),
        "the request is still there to be sent again"
    );
    drop(other);
    mapping.reconfigure(Box::new(Repeat(5)));
    let refusal = send(&mapping, batch([request.clone()]), OverflowPolicy::Refuse).await.unwrap_err();
    assert!(!refusal.is_retryable(), "{refusal}");
    mapping.reconfigure(Box::new(Repeat(3)));
    send(&mapping, batch([request]), OverflowPolicy::Refuse).await.unwrap();
    assert_eq!(budget.used(), 3 * size);
}

#[tokio::test(start_paused = true)]
async fn acknowledged_data_waits_for_memory() {
    let (request, budget, member) = request_with_room(3);
    let size = request.bytes.len() as u64;
    let (mapping, keeper) = mapping(Repeat(3));
    let other = member.reserve(size).unwrap();
    let waiting = tokio::spawn(mapping.clone().consume(batch([request]), OverflowPolicy::Wait).wait());
    tokio::time::sleep(MEMORY_WAIT_TIMEOUT / 2).await;
    assert!(keeper.numbers().is_empty() && !waiting.is_finished());
    drop(other);
    waiting.await.unwrap().unwrap();
    assert_eq!((keeper.numbers()[0].len(), budget.used()), (30, 3 * size));
}

#[tokio::test(start_paused = true)]
async fn acknowledged_data_goes_on_uncharged_if_it_grows_moderately() {
    let (request, budget, member) = request_with_room(3);
    let size = request.bytes.len() as u64;
    let (mapping, keeper) = mapping(Repeat(3));
    let _other = member.reserve(2 * size).unwrap();
    send(&mapping, batch([request]), OverflowPolicy::Wait).await.unwrap();
    assert_eq!((keeper.numbers()[0].len(), budget.used()), (30, 3 * size));
}

#[tokio::test(start_paused = true)]
async fn acknowledged_data_that_grows_beyond_memory_is_counted_as_dropped() {
    let (request, budget, _) = request_with_room(3);
    let losses = Arc::new(Losses::default());
    let mapping = TransformProcessor::new(Signal::Traces, Box::new(Repeat(50)), Arc::default());
    mapping.output().set_targets(vec![losses.clone()]);
    send(&mapping, batch([request]), OverflowPolicy::Wait).await.unwrap();
    assert_eq!(*losses.0.lock().unwrap(), [(10, DropReason::MemoryLimit)]);
    assert_eq!(budget.used(), 0);
}

#[tokio::test]
async fn a_little_that_is_left_does_not_hold_on_to_all_that_was() {
    // Two entries of the request, of which the small one stays unchanged.
    let small = part([0], Charge::exempt());
    let large = part(100..200, Charge::exempt());
    let bytes = Bytes::from([&small.bytes[..], &large.bytes[..]].concat());
    let range = bytes.as_ptr_range();
    let member = Budget::new(100_000, 0).join();
    let charge = Arc::new(member.reserve(bytes.len() as u64).unwrap());
    let (mapping, keeper) = mapping(Below(1));
    send(&mapping, batch([Part { bytes, items: 101, charge, ..small.clone() }]), OverflowPolicy::Refuse).await.unwrap();
    let got = keeper.got.lock().unwrap();
    assert!(!range.contains(&got[0].parts()[0].bytes.as_ptr()));
    assert_eq!(member.used(), PART_OVERHEAD_BYTES as u64);
}

#[tokio::test]
async fn a_refusal_behind_it_is_the_answer_and_nothing_is_counted() {
    let (mapping, keeper) = mapping(Below(5));
    *keeper.full.lock().unwrap() = true;
    let refusal = send(&mapping, batch([part(0..9, Charge::exempt())]), OverflowPolicy::Refuse).await.unwrap_err();
    assert!(refusal.is_lack_of_room());
    assert_eq!(counts(&mapping), [0; 4]);
}

#[tokio::test]
async fn new_rules_hold_from_the_next_request_on() {
    let (mapping, keeper) = mapping(Below(1));
    send(&mapping, batch([part(0..3, Charge::exempt())]), OverflowPolicy::Refuse).await.unwrap();
    mapping.reconfigure(Box::new(Below(2)));
    send(&mapping, batch([part(0..3, Charge::exempt())]), OverflowPolicy::Wait).await.unwrap();
    assert_eq!(keeper.numbers(), [vec![0], vec![0, 1]]);
}
