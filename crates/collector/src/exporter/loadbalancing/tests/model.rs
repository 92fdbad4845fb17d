//! Whatever happens to peers, accepted data is delivered exactly once.

use proptest::prelude::*;

use super::*;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Debug)]
enum Step {
    /// A sender sends this many spans, each of a trace of its own.
    Send(u64),
    /// An acknowledged batch arrives.
    Deliver(u64),
    /// A peer accepts everything from now on, connections included.
    Works(usize),
    /// A peer is gone, and refuses connections.
    Dies(usize),
    Hangs(usize),
    List(Vec<bool>),
    /// This many milliseconds pass.
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let peer = 0usize..NAMES.len();
    let step = prop_oneof![
        6 => (1u64..40).prop_map(Step::Send),
        2 => (1u64..40).prop_map(Step::Deliver),
        2 => peer.clone().prop_map(Step::Works),
        2 => peer.clone().prop_map(Step::Dies),
        1 => peer.prop_map(Step::Hangs),
        1 => proptest::collection::vec(any::<bool>(), NAMES.len()).prop_map(Step::List),
        3 => (1u64..5000).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..60)
}

/// Spans that were accepted so far.
struct BalancerModel {
    fixture: Fixture,
    next: u64,
    taken: Vec<u64>,
    waiting: Vec<tokio::task::JoinHandle<Result<(), Refusal>>>,
}

impl BalancerModel {
    fn new() -> Self {
        let scripts = NAMES.map(|name| (name, Script::new([], Reply::Take)));
        let fixture = fixture(
            &scripts,
            |peers| {
                peers.queue = Some(queue(4));
                peers.timeout = Some(2 * SECOND);
                peers.retry = Some(RetryConfig { max_elapsed_time: None, ..retry() });
            },
            |_| {},
        );
        Self { fixture, next: 0, taken: Vec::new(), waiting: Vec::new() }
    }

    fn some(&mut self, count: u64) -> std::ops::Range<u64> {
        self.next += count;
        self.next - count..self.next
    }

    async fn take(&mut self, step: &Step) {
        let name = |peer: &usize| NAMES[*peer];
        match step {
            Step::Send(count) => {
                let some = self.some(*count);
                match self.fixture.offer(some.clone()) {
                    ConsumeOutcome::Now(Ok(())) => self.taken.extend(some),
                    ConsumeOutcome::Now(Err(no)) => assert!(no.is_retryable(), "{no}"),
                    ConsumeOutcome::Partial(_) | ConsumeOutcome::Later(_) => panic!("there are queues"),
                }
            }
            Step::Deliver(count) => {
                let some = self.some(*count);
                let answer = self.fixture.balancer.clone().consume(request(some.clone()), OverflowPolicy::Wait);
                self.taken.extend(some);
                self.waiting.push(tokio::spawn(answer.wait()));
            }
            Step::Works(peer) => self.fixture.comes_back(name(peer)),
            Step::Dies(peer) => {
                self.fixture.peers.there.lock().remove(name(peer));
                self.fixture.peers.scripts[name(peer)].always(Reply::NotNow(None));
            }
            Step::Hangs(peer) => self.fixture.peers.scripts[name(peer)].always(Reply::Hang),
            Step::List(which) => {
                let names: Vec<&str> = NAMES.into_iter().zip(which).filter(|(_, on)| **on).map(|(n, _)| n).collect();
                self.fixture.list(&names);
            }
            Step::Wait(milliseconds) => tokio::time::sleep(Duration::from_millis(*milliseconds)).await,
        }
        let_run().await;
    }

    /// All peers work again, and everything is delivered.
    async fn end(mut self) {
        self.fixture.list(&NAMES);
        NAMES.iter().for_each(|name| self.fixture.comes_back(name));
        for waiting in self.waiting.drain(..) {
            let ended = tokio::time::timeout(200 * SECOND, waiting).await;
            ended.expect("it finds a place").unwrap().unwrap();
        }
        let begun = Instant::now();
        self.fixture.balancer.drain(begun + 200 * SECOND).await;
        assert!(begun.elapsed() < 200 * SECOND, "it comes to an end");
        assert!(DropReason::ALL.iter().all(|reason| self.fixture.dropped(*reason) == 0));
        self.taken.sort_unstable();
        assert_eq!(self.fixture.all(), self.taken, "each once");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_was_taken_is_delivered_once(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut world = BalancerModel::new();
            for step in &steps {
                world.take(step).await;
            }
            world.end().await;
        });
    }
}
