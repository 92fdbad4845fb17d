//! One of the destinations, and whether it lives.
//!
//! A peer is *down* when an attempt at a batch had no answer and a second one, made at once, had none either: a connection
//! that only was old is made anew by the second. A peer that answers is never down, whatever it says. One that is down is
//! knocked at, ever more rarely, with a request that holds nothing, and is open again when it answers.

use std::{
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use super::Balancer;
use crate::core::{BalancerStats, Batch, Destination, HandOver, Latency, Next, Outlet, Rescue, SendError};

/// A program that was killed and is started again needs about as long.
const FIRST_KNOCK: Duration = Duration::from_secs(1);
/// As often as the exporters' retries at most.
const LAST_KNOCK: Duration = Duration::from_secs(30);

/// A destination with its queue and connection.
pub(super) struct Peer {
    pub(super) endpoint: String,
    pub(super) seed: u64,
    pub(super) destination: Destination,
    pub(super) outlet: Arc<Outlet>,
    pub(super) health: Arc<Health>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// It gets what belongs to it.
    Open,
    /// It does not answer.
    Down,
    /// It is no longer one of the peers, and gets what it was to get.
    Leaving,
}

/// Whether a peer lives.
pub(super) struct Health {
    state: AtomicU8,
    /// How long to wait before the next knock.
    pause: Mutex<Duration>,
}

impl Health {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { state: AtomicU8::new(State::Open as u8), pause: Mutex::new(FIRST_KNOCK) })
    }

    pub(super) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Open,
            1 => State::Down,
            _ => State::Leaving,
        }
    }

    /// Goes from one state to another; false if it was in a third.
    fn turn(&self, from: State, to: State) -> bool {
        self.state.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// It is no longer one of the peers.
    pub(super) fn leave(&self) {
        self.state.store(State::Leaving as u8, Ordering::Release);
    }

    /// Somebody answers.
    pub(super) fn open(&self) {
        self.turn(State::Down, State::Open);
    }

    /// How long to wait now; twice as long the next time, until something was delivered.
    pub(super) fn next_pause(&self) -> Duration {
        let mut pause = self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        let now = *pause;
        *pause = (now * 2).min(LAST_KNOCK);
        now
    }

    fn delivered(&self) {
        *self.pause.lock().unwrap_or_else(PoisonError::into_inner) = FIRST_KNOCK;
    }
}

/// What the outlet of a peer asks.
pub(super) struct Guard {
    pub(super) endpoint: String,
    pub(super) health: Arc<Health>,
    pub(super) latency: Arc<Latency>,
    pub(super) stats: Arc<BalancerStats>,
    /// It holds the outlet that holds this.
    pub(super) balancer: Weak<Balancer>,
}

impl Rescue for Guard {
    fn is_open(&self) -> bool {
        self.health.state() != State::Down
    }

    fn attempted(&self, taken: bool, took: Duration) {
        self.latency.record(took);
        self.stats.outcome(taken);
        if taken {
            self.health.delivered();
        }
    }

    fn failed(&self, error: &SendError, in_a_row: u32) -> Next {
        match self.health.state() {
            // Its successors are there: there is no reason to insist.
            State::Leaving => Next::HandOver,
            State::Down => Next::HandOver,
            State::Open if !error.is_silence() => Next::Retry,
            State::Open if in_a_row == 0 => Next::AtOnce,
            State::Open => {
                if self.health.turn(State::Open, State::Down)
                    && let Some(balancer) = self.balancer.upgrade()
                {
                    tracing::warn!(exporter = %balancer.id, pipeline = %balancer.pipeline, peer = %self.endpoint,
                        error = %error, "a peer does not answer; its data goes to the others");
                    balancer.knock(&self.endpoint, self.health.clone());
                }
                Next::HandOver
            }
        }
    }

    fn room(&self) {
        if let Some(balancer) = self.balancer.upgrade() {
            balancer.changed.notify_waiters();
        }
    }

    fn hand_over<'a>(&'a self, batch: Batch, error: SendError) -> HandOver<'a> {
        Box::pin(async move {
            match self.balancer.upgrade() {
                Some(balancer) => balancer.take_over(self, batch, error).await,
                None => Err(error),
            }
        })
    }
}
