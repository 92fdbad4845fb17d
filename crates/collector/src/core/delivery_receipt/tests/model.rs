//! A model: requests with receipts are joined, split, filtered, lost and passed to exporters that take, refuse, lack
//! room, or answer later. Each token ends exactly once, and as what happened to its pieces.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    sync::Mutex,
};

use kubewake_otlp::SplitLimit;
use proptest::prelude::*;
use tokio::sync::oneshot;

use super::*;
use crate::core::{Refusal, testing::numbers_in};

const EXPORTERS: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Answer {
    #[default]
    Take,
    Full,
    Refuse,
    /// It takes the batch and loses it, as a queue does whose retries are used up.
    TakeAndReturn,
    TakeLater,
    RefuseLater,
    FullLater,
}

#[derive(Clone, Debug)]
enum Step {
    /// A request of so many records with a receipt for the outputs in the mask; none for an ordinary request.
    Arrive(u64, u8),
    /// The second batch is appended to the first.
    Join(usize, usize),
    Split(usize, usize),
    /// A filter drops the first request of a batch.
    Filter(usize),
    /// A processor loses a batch.
    Lose(usize),
    /// The exporters answer a batch that comes with or without waiting for room.
    Offer(usize, [Answer; 3], bool),
}

#[derive(Default)]
struct Exporter {
    answer: Mutex<Answer>,
    /// Numbers of records that were dealt with.
    dealt: Mutex<BTreeSet<u64>>,
    /// Numbers of records that were not sent.
    unsent: Mutex<BTreeSet<u64>>,
    later: Mutex<Vec<oneshot::Sender<()>>>,
}

impl Exporter {
    fn later(&self, batch: Batch, result: Result<(), Refusal>) -> ConsumeOutcome {
        let (tx, rx) = oneshot::channel();
        self.later.lock().unwrap().push(tx);
        ConsumeOutcome::later(async move {
            let _ = rx.await;
            drop(batch);
            result
        })
    }
}

impl Consumer for Exporter {
    fn consume(self: Arc<Self>, batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        assert!(pressure == OverflowPolicy::Refuse || !batch.has_receipts(), "no receipt waits");
        // The model is about receipts: others are taken.
        if !batch.has_receipts() {
            return ConsumeOutcome::Now(Ok(()));
        }
        let answer = *self.answer.lock().unwrap();
        let dealt = matches!(answer, Answer::Take | Answer::TakeLater | Answer::Refuse | Answer::RefuseLater);
        let set = if dealt { &self.dealt } else { &self.unsent };
        set.lock().unwrap().extend(numbers(&batch));
        match answer {
            Answer::Take => ConsumeOutcome::Now(Ok(())),
            Answer::Refuse => ConsumeOutcome::Now(Err(Refusal::invalid("no"))),
            Answer::Full => ConsumeOutcome::Now(Err(Refusal::queue_full())),
            Answer::TakeAndReturn => {
                batch.return_unsent();
                ConsumeOutcome::Now(Ok(()))
            }
            Answer::TakeLater => self.later(batch, Ok(())),
            Answer::RefuseLater => self.later(batch, Err(Refusal::invalid("no"))),
            Answer::FullLater => self.later(batch, Err(Refusal::queue_full())),
        }
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, _: &Batch, _: DropReason) {}
}

fn answer() -> impl Strategy<Value = Answer> {
    use Answer::*;
    prop_oneof![
        4 => Just(Take),
        1 => Just(Full),
        1 => Just(Refuse),
        1 => Just(TakeAndReturn),
        1 => Just(TakeLater),
        1 => Just(RefuseLater),
        1 => Just(FullLater),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..6_u64, 0..8_u8).prop_map(|(records, mask)| Step::Arrive(records, mask)),
        2 => (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Step::Join(a, b)),
        2 => (any::<usize>(), 1..4_usize).prop_map(|(at, size)| Step::Split(at, size)),
        1 => any::<usize>().prop_map(Step::Filter),
        1 => any::<usize>().prop_map(Step::Lose),
        4 => (any::<usize>(), [answer(), answer(), answer()], any::<bool>())
            .prop_map(|(at, answers, waits)| Step::Offer(at, answers, waits)),
    ]
}

/// A request with a receipt, as the model sees it.
struct Known {
    numbers: BTreeSet<u64>,
    mask: u8,
}

struct Model {
    ledger: Arc<Ledger>,
    exporters: Vec<Arc<Exporter>>,
    fanout: ConsumerFanout,
    requests: BTreeMap<u64, Known>,
    batches: Vec<Batch>,
    /// Records that a filter dropped.
    filtered: BTreeSet<u64>,
    /// Records that a processor lost.
    lost: BTreeSet<u64>,
    next: u64,
}

impl Model {
    fn new() -> Self {
        let exporters: Vec<Arc<Exporter>> = EXPORTERS.iter().map(|_| Arc::default()).collect();
        let consumers = exporters.iter().map(|exporter| exporter.clone() as Arc<dyn Consumer>);
        let fanout = ConsumerFanout::default();
        fanout.set_exporters(&pipeline_id(), EXPORTERS.iter().map(ComponentId::new).zip(consumers).collect());
        Self {
            ledger: Arc::default(),
            exporters,
            fanout,
            requests: BTreeMap::new(),
            batches: Vec::new(),
            filtered: BTreeSet::new(),
            lost: BTreeSet::new(),
            next: 0,
        }
    }

    fn take(&mut self, at: usize) -> Option<Batch> {
        (!self.batches.is_empty()).then(|| self.batches.swap_remove(at % self.batches.len()))
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Arrive(records, mask) => self.arrive(records, mask),
            Step::Join(a, b) => {
                let Some(mut joined) = self.take(a) else { return };
                if let Some(second) = self.take(b) {
                    joined.append(second);
                }
                self.batches.push(joined);
            }
            Step::Split(at, size) => {
                let Some(batch) = self.take(at) else { return };
                self.batches.extend(batch.split(SplitLimit::Items(NonZeroUsize::new(size).unwrap())));
            }
            Step::Filter(at) => {
                let Some(mut batch) = self.take(at) else { return };
                let mut first = true;
                batch.retain_mut(|part| {
                    if first {
                        self.filtered.extend(numbers_in(&part.bytes));
                    }
                    !std::mem::take(&mut first)
                });
                self.batches.push(batch);
            }
            Step::Lose(at) => {
                let Some(batch) = self.take(at) else { return };
                self.lost.extend(numbers(&batch));
                self.fanout.count_loss(&batch, DropReason::MemoryLimit);
            }
            Step::Offer(at, answers, waits) => self.offer(at, answers, waits).await,
        }
    }

    fn arrive(&mut self, records: u64, mask: u8) {
        let numbers: BTreeSet<u64> = (self.next..self.next + records).collect();
        self.next += records;
        if mask == 0 {
            return self.batches.push(crate::core::testing::request(numbers));
        }
        let id = self.requests.len() as u64;
        // Outputs of its own, so that no request is stale because of another one.
        let names: Vec<&str> = (0..3).filter(|bit| mask & (1 << bit) != 0).map(|bit| EXPORTERS[bit]).collect();
        self.batches.push(receipted(id, numbers.iter().copied(), &outputs(&names), &self.ledger));
        self.requests.insert(id, Known { numbers, mask });
    }

    async fn offer(&mut self, at: usize, answers: [Answer; 3], waits: bool) {
        let Some(batch) = self.take(at) else { return };
        for (exporter, answer) in self.exporters.iter().zip(answers) {
            *exporter.answer.lock().unwrap() = answer;
        }
        let offered: BTreeSet<u64> = numbers(&batch).into_iter().collect();
        if waits {
            self.fanout.deliver(batch).await;
        } else {
            drop(self.fanout.offer(batch));
        }
        // What an exporter should have got and did not was stale, because of an earlier piece of its request.
        for (bit, exporter) in self.exporters.iter().enumerate() {
            let dealt = exporter.dealt.lock().unwrap();
            let mut unsent = exporter.unsent.lock().unwrap();
            let due = self.requests.values().filter(|known| known.mask & (1 << bit) != 0);
            let due = due.flat_map(|known| &known.numbers).filter(|n| offered.contains(n) && !dealt.contains(n));
            unsent.extend(due);
        }
    }

    async fn finish(&mut self) {
        self.filtered.extend(self.batches.drain(..).flat_map(|batch| numbers(&batch)));
        for exporter in &self.exporters {
            for go in exporter.later.lock().unwrap().drain(..) {
                // The task may have been cancelled.
                let _ = go.send(());
            }
        }
        settle().await;
    }

    fn check(&self) {
        let mut ends = BTreeMap::new();
        for (request, exporter, outcome) in self.ledger.take() {
            assert!(ends.insert((request, exporter), outcome).is_none(), "a token ends once");
        }
        for (id, known) in &self.requests {
            for (bit, (name, exporter)) in EXPORTERS.iter().zip(&self.exporters).enumerate() {
                let end = ends.remove(&(*id, (*name).to_owned()));
                assert_eq!(end, self.expected(known, bit, exporter), "request {id} at {name}");
            }
        }
        assert!(ends.is_empty());
    }

    fn expected(&self, known: &Known, bit: usize, exporter: &Exporter) -> Option<DeliveryOutcome> {
        let (dealt, unsent) = (exporter.dealt.lock().unwrap(), exporter.unsent.lock().unwrap());
        if known.mask & (1 << bit) == 0 {
            assert!(known.numbers.is_disjoint(&dealt) && known.numbers.is_disjoint(&unsent), "it is left out");
            return None;
        }
        if known.numbers.iter().any(|n| unsent.contains(n) || self.lost.contains(n)) {
            return Some(Returned);
        }
        assert!(known.numbers.iter().all(|n| dealt.contains(n) || self.filtered.contains(n)));
        Some(Settled)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn each_token_ends_once_as_what_happened_to_its_pieces(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut model = Model::new();
            for step in steps {
                model.step(step).await;
            }
            model.finish().await;
            model.check();
        });
    }
}

/// A runtime that ends drops its tasks: what nobody answered for is read again.
#[test]
fn requests_whose_tasks_are_cancelled_are_returned() {
    let model = Model::new();
    for exporter in &model.exporters {
        *exporter.answer.lock().unwrap() = Answer::TakeLater;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let batch = receipted(1, [1], &outputs(&["a"]), &model.ledger);
    runtime.block_on(async { drop(model.fanout.offer(batch)) });
    assert_eq!(model.ledger.take(), []);
    drop(runtime);
    assert_eq!(model.ledger.take(), ended(&[(1, "a", Returned)]));
}
