//! Helpers for tests of the core: requests with distinguishable spans, and a destination that answers by
//! script.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use kubewake_otlp::{ScanVisitor, Signal, wire::put_bytes};
use tokio::{sync::oneshot, time::Instant};

use super::{
    Batch, Charge, Code, Exporter, Part, RecordOutcome, RecordOutcomes, RejectReason, RejectionCounts, SendError,
    SendFuture, SendSuccess,
};

/// A request with a span for each number, which is its trace id.
pub(crate) fn part(numbers: impl IntoIterator<Item = u64>, charge: Charge) -> Part {
    let mut spans = Vec::new();
    let mut items = 0;
    for number in numbers {
        let mut span = Vec::new();
        put_bytes(&mut span, 1, &u128::from(number + 1).to_be_bytes());
        put_bytes(&mut spans, 2, &span);
        items += 1;
    }
    let mut scope = Vec::new();
    let mut request = Vec::new();
    put_bytes(&mut scope, 2, &spans);
    put_bytes(&mut request, 1, &scope);
    Part::new(Bytes::from(request), items, Arc::default(), Arc::new(charge))
}

/// A batch of one request.
pub(crate) fn request(numbers: impl IntoIterator<Item = u64>) -> Batch {
    Batch::single(Signal::Traces, part(numbers, Charge::exempt()))
}

/// A batch of one request with `n` spans.
pub(crate) fn spans(n: u64) -> Batch {
    request(0..n)
}

/// The numbers of the spans in a batch. Every part of it must be a valid request, and count its items right.
pub(crate) fn numbers(batch: &Batch) -> Vec<u64> {
    let mut all = Vec::new();
    for part in batch.parts() {
        let some = numbers_in(&part.bytes);
        assert_eq!(some.len(), part.items, "a part counts its items right");
        all.extend(some);
    }
    assert_eq!(all.len(), batch.items(), "a batch counts its items right");
    assert_eq!(batch.parts().iter().map(|p| p.bytes.len()).sum::<usize>(), batch.bytes());
    all
}

/// The numbers of the spans in a request, which must be valid.
pub(crate) fn numbers_in(request: &[u8]) -> Vec<u64> {
    struct Ids(Vec<u64>);
    impl ScanVisitor for Ids {
        fn record(&mut self, _: std::ops::Range<usize>, trace_id: &[u8], _: usize) {
            self.0.push(u128::from_be_bytes(trace_id.try_into().unwrap()) as u64 - 1);
        }
    }
    let mut ids = Ids(Vec::new());
    kubewake_otlp::scan_with(Signal::Traces, request, &mut ids).unwrap();
    ids.0
}

/// Lets every task that can run do so; on a paused clock no time passes.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Take,
    /// It takes the request and rejects so many items.
    TakeAllBut(u64),
    /// It takes so many items, and asks to send the others again.
    TakeFirst(usize),
    /// It asks to come back, maybe with a hint when.
    NotNow(Option<Duration>),
    /// It refuses the data for good.
    Never,
    /// It rejects the credentials.
    Unauthenticated,
    /// It does not answer until the test says so.
    Hang,
    Panic,
}

/// A destination that answers by script and records what it got.
pub(crate) struct Destination {
    script: Mutex<VecDeque<Reply>>,
    otherwise: Mutex<Reply>,
    poison: Option<u64>,
    attempts: Mutex<Vec<(Instant, Vec<u64>)>>,
    delivered: Mutex<Vec<Vec<u64>>>,
    pending: Mutex<Vec<oneshot::Sender<Reply>>>,
}

impl Destination {
    /// Answers from the script, and then always `otherwise`.
    pub(crate) fn new(script: impl IntoIterator<Item = Reply>, otherwise: Reply) -> Arc<Self> {
        Arc::new(Self::with_poison(script, otherwise, None))
    }

    /// Takes everything except requests with this span.
    pub(crate) fn refusing(poison: u64) -> Arc<Self> {
        Arc::new(Self::with_poison([], Reply::Take, Some(poison)))
    }

    fn with_poison(script: impl IntoIterator<Item = Reply>, otherwise: Reply, poison: Option<u64>) -> Self {
        Self {
            script: Mutex::new(script.into_iter().collect()),
            otherwise: Mutex::new(otherwise),
            poison,
            attempts: Mutex::default(),
            delivered: Mutex::default(),
            pending: Mutex::default(),
        }
    }

    /// What was sent, regardless of the answer.
    pub(crate) fn attempts(&self) -> Vec<Vec<u64>> {
        self.attempts.lock().unwrap().iter().map(|(_, numbers)| numbers.clone()).collect()
    }

    pub(crate) fn times(&self) -> Vec<Instant> {
        self.attempts.lock().unwrap().iter().map(|(at, _)| *at).collect()
    }

    pub(crate) fn delivered(&self) -> Vec<Vec<u64>> {
        self.delivered.lock().unwrap().clone()
    }

    pub(crate) fn pending(&self) -> usize {
        let mut pending = self.pending.lock().unwrap();
        pending.retain(|reply| !reply.is_closed());
        pending.len()
    }

    /// Answers one of the pending attempts.
    pub(crate) fn answer(&self, at: usize, reply: Reply) {
        if self.pending() > 0 {
            let mut pending = self.pending.lock().unwrap();
            let at = at % pending.len();
            let _ = pending.remove(at).send(reply);
        }
    }

    /// Gives this answer from now on, and to all pending attempts.
    pub(crate) fn always(&self, reply: Reply) {
        self.script.lock().unwrap().clear();
        *self.otherwise.lock().unwrap() = reply;
        for waiting in self.pending.lock().unwrap().drain(..) {
            // The attempt may have been given up.
            let _ = waiting.send(reply);
        }
    }

    fn reply(&self, numbers: &[u64]) -> Reply {
        if self.poison.is_some_and(|poison| numbers.contains(&poison)) {
            return Reply::Never;
        }
        self.script.lock().unwrap().pop_front().unwrap_or(*self.otherwise.lock().unwrap())
    }
}

impl Exporter for Destination {
    fn send<'a>(&'a self, batch: &'a Batch) -> SendFuture<'a> {
        Box::pin(async move {
            let numbers = numbers(batch);
            self.attempts.lock().unwrap().push((Instant::now(), numbers.clone()));
            let reply = match self.reply(&numbers) {
                Reply::Hang => {
                    let (tx, rx) = oneshot::channel();
                    self.pending.lock().unwrap().push(tx);
                    rx.await.unwrap()
                }
                reply => reply,
            };
            let refused = |code| SendError { code, retryable: false, ..SendError::malformed("no") };
            match reply {
                Reply::Take | Reply::TakeAllBut(_) => self.delivered.lock().unwrap().push(numbers),
                Reply::TakeFirst(count) => {
                    let mut outcomes = RecordOutcomes::unsent(numbers.len());
                    let taken = numbers.get(..count).unwrap_or(&numbers);
                    (0..taken.len()).for_each(|record| outcomes.set(record, RecordOutcome::Delivered));
                    self.delivered.lock().unwrap().push(taken.to_vec());
                    return outcomes.into_result(batch, String::new(), || SendError::connection("not all now"));
                }
                Reply::NotNow(hint) => return Err(SendError { retry_after: hint, ..SendError::connection("not now") }),
                Reply::Never => return Err(refused(Code::InvalidArgument)),
                Reply::Unauthenticated => return Err(refused(Code::Unauthenticated)),
                Reply::Hang => std::future::pending().await,
                Reply::Panic => panic!("of the exporter"),
            }
            let rejected = if let Reply::TakeAllBut(n) = reply { n } else { 0 };
            let rejected = RejectionCounts::from_reason(RejectReason::Other, rejected);
            Ok(SendSuccess { rejected, ..SendSuccess::default() })
        })
    }
}

/// Captures the log of this thread, from [`Log::begin`] until it is dropped.
pub(crate) struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    _here: tracing::subscriber::DefaultGuard,
}

impl Log {
    pub(crate) fn begin() -> Self {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        Self { _here: tracing::subscriber::set_default(Recorder(lines.clone())), lines }
    }

    /// The level, message and fields of each event.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

struct Recorder(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Recorder {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            line.push_str(&format!(" {field}={value:?}"));
        });
        self.0.lock().unwrap().push(line);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
