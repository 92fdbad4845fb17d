//! A peer, and its health.
//!
//! A peer is *down* when an attempt at a batch and an immediate second one both had no response: the second
//! attempt replaces a stale connection. A peer that responds is never down, whatever the response. A peer that
//! is down is probed with an empty request, with increasing delays, and is open again when it responds.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use kubewake_runtime::lock::Mutex;

use super::LoadBalancer;
use crate::core::{
    BalancerStats, Batch, DestinationLabels, ExporterQueue, Failover, FailoverFuture, PeerLatency, RetryDecision,
    SendError,
};

/// A program that was killed needs about this long to start again.
const INITIAL_PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// The same as the maximum of the exporters' retries.
const MAX_PROBE_INTERVAL: Duration = Duration::from_secs(30);

/// A peer with its queue and connection.
pub(super) struct BackendPeer {
    pub(super) endpoint: String,
    pub(super) seed: u64,
    pub(super) destination: DestinationLabels,
    pub(super) exporter_queue: Arc<ExporterQueue>,
    pub(super) health: Arc<PeerHealth>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum PeerState {
    /// The peer gets its data.
    Open,
    Down,
    /// The peer is removed, and gets the data in its queue.
    Leaving,
}

pub(super) struct PeerHealth {
    state: AtomicU8,
    /// Delay before the next probe.
    pause: Mutex<Duration>,
}

impl PeerHealth {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { state: AtomicU8::new(PeerState::Open as u8), pause: Mutex::new(INITIAL_PROBE_INTERVAL) })
    }

    pub(super) fn state(&self) -> PeerState {
        match self.state.load(Ordering::Acquire) {
            0 => PeerState::Open,
            1 => PeerState::Down,
            _ => PeerState::Leaving,
        }
    }

    /// Changes the state; false if it was not `from`.
    fn transition(&self, from: PeerState, to: PeerState) -> bool {
        self.state.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Marks the peer as removed.
    pub(super) fn mark_leaving(&self) {
        self.state.store(PeerState::Leaving as u8, Ordering::Release);
    }

    pub(super) fn mark_open(&self) {
        self.transition(PeerState::Down, PeerState::Open);
    }

    /// The current delay; it doubles until something is delivered.
    pub(super) fn next_probe_delay(&self) -> Duration {
        let mut pause = self.pause.lock();
        let now = *pause;
        *pause = (now * 2).min(MAX_PROBE_INTERVAL);
        now
    }

    fn reset_probe_delay(&self) {
        *self.pause.lock() = INITIAL_PROBE_INTERVAL;
    }
}

/// Failover policy of a peer's queue.
pub(super) struct PeerFailover {
    pub(super) endpoint: String,
    pub(super) health: Arc<PeerHealth>,
    pub(super) latency: Arc<PeerLatency>,
    pub(super) stats: Arc<BalancerStats>,
    /// The balancer owns the queue that owns this policy.
    pub(super) balancer: Weak<LoadBalancer>,
}

impl Failover for PeerFailover {
    fn is_available(&self) -> bool {
        self.health.state() != PeerState::Down
    }

    fn record_attempt(&self, taken: bool, took: Duration) {
        self.latency.record(took);
        self.stats.count_attempt(taken);
        if taken {
            self.health.reset_probe_delay();
        }
    }

    fn decide_retry(&self, error: &SendError, in_a_row: u32) -> RetryDecision {
        match self.health.state() {
            // Other peers have taken over its keys: there is no reason to insist.
            PeerState::Leaving => RetryDecision::FailOver,
            PeerState::Down => RetryDecision::FailOver,
            PeerState::Open if !error.is_unanswered() => RetryDecision::Retry,
            PeerState::Open if in_a_row == 0 => RetryDecision::RetryNow,
            PeerState::Open => {
                if self.health.transition(PeerState::Open, PeerState::Down)
                    && let Some(balancer) = self.balancer.upgrade()
                {
                    tracing::warn!(exporter = %balancer.id, pipeline = %balancer.pipeline, peer = %self.endpoint,
                        error = %error, "a peer does not respond; its data is sent to the other peers");
                    balancer.start_probing(&self.endpoint, self.health.clone());
                }
                RetryDecision::FailOver
            }
        }
    }

    fn notify_room(&self) {
        if let Some(balancer) = self.balancer.upgrade() {
            balancer.changed.notify_waiters();
        }
    }

    fn fail_over<'a>(&'a self, batch: Batch, error: SendError) -> FailoverFuture<'a> {
        Box::pin(async move {
            match self.balancer.upgrade() {
                Some(balancer) => balancer.hand_to_other_peers(self, batch, error).await,
                None => Err(error),
            }
        })
    }
}
