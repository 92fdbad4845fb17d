//! `load_balancing`, `loadbalancing`: spreads data over peers so that what belongs together meets at one of them.
//!
//! Every peer has a queue, retries and a connection of its own: an [`Outlet`] with the exporter of `otlp`. A request is
//! taken apart by peer and put into their queues.
//!
//! *Guarantees.* All who see the same peers send a trace to the same one. A peer that comes takes over one key in `n + 1`,
//! and one that goes leaves its own alone. A request is taken as a whole, when all its shares have room, or refused as a
//! whole: a sender never has to repeat what a peer already took. A peer that does not answer holds up nobody: what was for
//! it goes to the next in the order of each key, and only that. One that leaves the list gets what it was to get, and what it does
//! not take goes to the others. All that went elsewhere is counted, with the reason.
//!
//! *Does not* tell the peers about each other: a trace that is open when the list changes may end at another peer. Nor does
//! it know whether a peer that died took its last request: that is sent again, to the next (at least once).

mod dial;
mod missing;
mod peer;
mod place;
mod ranking;
mod resolve;
mod route;
mod wait;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use kubewake_config::{ComponentId, PipelineId};
use tokio::{sync::Notify, task::AbortHandle, time::Instant};

pub(crate) use self::dial::{Prepared, prepare};
use self::{
    missing::Missing,
    peer::{Guard, Health, Peer, State},
    place::{Giver, NoPlace, Ring},
    wait::settle,
};
use crate::{
    components::{BuildError, BuiltExporter},
    core::{
        Answer, BalancerStats, Batch, Consumer, Destination, DropReason, ExporterStats, HALT_LIMIT, Outlet,
        OutletSettings, PipelineStats, Pressure, Registry, ResolverFault, ResolverKind,
    },
};

/// Whoever names more peers than this means something else; each costs a connection and a queue.
const MAX_PEERS: usize = 1024;

/// The exporter in one pipeline.
pub struct Balancer {
    id: ComponentId,
    pipeline: PipelineId,
    registry: Arc<Registry>,
    progress: Arc<PipelineStats>,
    stats: Arc<BalancerStats>,
    /// For what belongs to no peer.
    rest: Arc<ExporterStats>,
    settings: ArcSwap<Prepared>,
    ring: ArcSwap<Ring>,
    missing: Missing,
    /// Peers that are no longer in the ring and still hold something.
    leaving: Mutex<Vec<Arc<Peer>>>,
    /// Held while queues are looked at and filled.
    placing: Mutex<()>,
    /// A queue has room again, or the peers are others, or one of them answers again.
    changed: Notify,
    /// Whose turn it is of those who wait for a peer.
    turn: tokio::sync::Mutex<()>,
    /// What waits for a peer, by the sizer of the queue.
    waiting: Mutex<u64>,
    /// How many batches were handed from one peer to others.
    handed: AtomicU64,
    halted: AtomicBool,
    /// It is no longer part of its pipeline.
    retired: AtomicBool,
    resolving: Mutex<Option<AbortHandle>>,
    me: Weak<Balancer>,
}

impl Balancer {
    /// An exporter that looks for its peers from now on.
    pub(crate) fn start(
        id: ComponentId,
        pipeline: PipelineId,
        registry: &Arc<Registry>,
        prepared: Prepared,
    ) -> Arc<Self> {
        let balancer = Arc::new_cyclic(|me| Self {
            progress: registry.pipeline(&pipeline),
            stats: registry.balancer(&id),
            rest: registry.exporter(&id, &pipeline, Destination::default()),
            registry: registry.clone(),
            id,
            pipeline,
            settings: ArcSwap::from_pointee(prepared),
            ring: ArcSwap::default(),
            missing: Missing::default(),
            leaving: Mutex::default(),
            placing: Mutex::default(),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::default(),
            waiting: Mutex::default(),
            handed: AtomicU64::new(0),
            halted: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            resolving: Mutex::default(),
            me: me.clone(),
        });
        balancer.show_room();
        balancer.resolve();
        balancer
    }

    /// Puts new settings in force. Peers that stay keep their queues and what is in them.
    pub(crate) fn reconfigure(&self, prepared: Prepared) {
        let old = self.settings.swap(Arc::new(prepared));
        self.show_room();
        for peer in &self.ring.load().peers {
            match self.outlet_settings(&peer.endpoint) {
                Ok((settings, _)) => peer.outlet.reconfigure(settings),
                Err(error) => self.cannot_send_to(&peer.endpoint, &error),
            }
        }
        if old.resolver != self.settings.load().resolver {
            self.resolve();
        }
        self.changed.notify_waiters();
    }

    /// Begins to look for peers, as the settings say now.
    fn resolve(&self) {
        let resolver = self.settings.load().resolver.clone();
        let task = resolve::start(resolver, self.me.clone());
        let old = std::mem::replace(&mut *lock(&self.resolving), task);
        old.inspect(AbortHandle::abort);
    }

    /// The peers are these.
    fn set_peers(&self, kind: ResolverKind, endpoints: impl IntoIterator<Item = String>) {
        let wanted: BTreeSet<String> = endpoints.into_iter().take(MAX_PEERS).collect();
        let counters = self.stats.resolver(kind);
        counters.succeeded.fetch_add(1, Ordering::Relaxed);
        counters.backends.store(wanted.len() as u64, Ordering::Relaxed);
        let old = self.ring.load_full();
        if old.peers.iter().map(|peer| &peer.endpoint).eq(&wanted) {
            return self.no_peer_found(ResolverFault::Empty);
        }
        counters.updates.fetch_add(1, Ordering::Relaxed);
        tracing::info!(exporter = %self.id, pipeline = %self.pipeline, peers = wanted.len(), "the peers have changed");
        let find = |endpoint: &String| old.peers.iter().find(|peer| peer.endpoint == *endpoint).cloned();
        let peers = wanted.iter().filter_map(|endpoint| find(endpoint).or_else(|| self.make(endpoint)));
        self.replace_ring(Ring { peers: peers.collect() });
        if self.retired.load(Ordering::Acquire) && !wanted.is_empty() {
            // It looked on only for somebody who gets what it still holds.
            self.stop_resolving();
        }
        let gone = old.peers.iter().filter(|peer| !wanted.contains(&peer.endpoint));
        gone.for_each(|peer| self.let_leave(peer.clone()));
        self.changed.notify_waiters();
    }

    /// The resolver could not find out.
    fn cannot_resolve(&self, kind: ResolverKind, fault: ResolverFault, error: &str) {
        self.stats.resolver(kind).failed.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(exporter = %self.id, pipeline = %self.pipeline, resolver = kind.name(), error,
            "the peers cannot be found out; those known so far stay");
        self.no_peer_found(fault);
    }

    fn cannot_send_to(&self, endpoint: &str, error: &BuildError) {
        tracing::error!(exporter = %self.id, pipeline = %self.pipeline, peer = endpoint, %error, "a peer cannot be used");
    }

    fn outlet_settings(&self, endpoint: &str) -> Result<(OutletSettings, Destination), BuildError> {
        let built = self.settings.load().dial.exporter(endpoint)?;
        let BuiltExporter { exporter, timeout, retry, queue, destination } = built;
        let stats = self.registry.exporter(&self.id, &self.pipeline, destination.clone());
        Ok((OutletSettings { exporter, timeout, retry, queue, stats }, destination))
    }

    fn make(&self, endpoint: &str) -> Option<Arc<Peer>> {
        let (settings, destination) = match self.outlet_settings(endpoint) {
            Ok(made) => made,
            Err(error) => {
                self.cannot_send_to(endpoint, &error);
                return None;
            }
        };
        let health = Health::new();
        let guard = Guard {
            endpoint: endpoint.to_owned(),
            health: health.clone(),
            latency: self.stats.latency(endpoint),
            stats: self.stats.clone(),
            balancer: self.me.clone(),
        };
        let (id, pipeline) = (self.id.clone(), self.pipeline.clone());
        let outlet = Outlet::with_rescue(id, pipeline, self.progress.clone(), settings, Some(Arc::new(guard)));
        Some(Arc::new(Peer {
            endpoint: endpoint.to_owned(),
            seed: ranking::seed(endpoint),
            destination,
            outlet,
            health,
        }))
    }

    /// A peer is no longer in the ring: it gets what it was to get, and is forgotten.
    fn let_leave(&self, peer: Arc<Peer>) {
        peer.health.leave();
        peer.outlet.stir();
        lock(&self.leaving).push(peer.clone());
        let me = self.me.clone();
        tokio::spawn(async move {
            peer.outlet.empty().await;
            if let Some(balancer) = me.upgrade() {
                balancer.forget(&peer);
            }
        });
    }

    fn forget(&self, gone: &Arc<Peer>) {
        lock(&self.leaving).retain(|peer| !Arc::ptr_eq(peer, gone));
        // It may have come back while it left.
        if !self.ring.load().peers.iter().any(|peer| peer.endpoint == gone.endpoint) {
            gone.outlet.retire();
            self.stats.forget(&gone.endpoint);
            self.registry.forget_destination(&self.id, &self.pipeline, gone.destination.clone(), &self.rest);
        }
    }

    /// Knocks at a peer that is down until it answers.
    fn knock(&self, endpoint: &str, health: Arc<Health>) {
        if let Some(peer) = self.ring.load().peers.iter().find(|peer| Arc::ptr_eq(&peer.health, &health)) {
            peer.outlet.stir();
        }
        let (me, endpoint) = (self.me.clone(), endpoint.to_owned());
        tokio::spawn(async move {
            while health.state() == State::Down {
                tokio::time::sleep(health.next_pause()).await;
                let Some(dial) = me.upgrade().map(|balancer| balancer.settings.load().dial.clone()) else { return };
                if dial.reaches(&endpoint).await
                    && let Some(balancer) = me.upgrade()
                {
                    health.open();
                    tracing::info!(exporter = %balancer.id, pipeline = %balancer.pipeline, peer = endpoint,
                        "a peer answers again");
                    balancer.changed.notify_waiters();
                }
            }
        });
    }

    fn all_outlets(&self) -> Vec<Arc<Outlet>> {
        let ring = self.ring.load();
        ring.peers.iter().chain(lock(&self.leaving).iter()).map(|peer| peer.outlet.clone()).collect()
    }

    /// Ends when nothing is held by anybody. What one peer does not take moves to others meanwhile.
    async fn empty(&self) {
        loop {
            let before = self.handed.load(Ordering::Acquire);
            let outlets = self.all_outlets();
            for outlet in &outlets {
                outlet.empty().await;
            }
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let none_waits = self.none_waits();
            if none_waits && outlets.iter().all(|o| o.is_idle()) && self.handed.load(Ordering::Acquire) == before {
                return;
            }
            if !none_waits {
                changed.await;
            }
        }
    }

    /// It is no longer part of its pipeline: its gauges go, and it looks for peers no more, unless it holds something and knows
    /// nobody who could get it.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        if self.none_waits() || !self.ring.load().peers.is_empty() {
            self.stop_resolving();
        }
        self.all_outlets().iter().for_each(|outlet| outlet.retire());
        self.rest.retire();
        ResolverKind::ALL.iter().for_each(|kind| self.stats.resolver(*kind).backends.store(0, Ordering::Relaxed));
    }

    /// Waits until everything is delivered, at most until `deadline`; then counts the rest as dropped.
    pub(crate) async fn drain(&self, deadline: Instant) {
        if tokio::time::timeout_at(deadline, self.empty()).await.is_err() {
            self.halt().await;
        }
        self.stop_resolving();
    }

    fn stop_resolving(&self) {
        lock(&self.resolving).take().inspect(AbortHandle::abort);
    }

    /// Gives up: whatever is held, or still comes, is counted as dropped.
    pub(crate) async fn halt(&self) {
        let outlets = self.all_outlets();
        // All of them before anybody hears of it: whoever finds no place now has to know why.
        outlets.iter().for_each(|outlet| outlet.stop());
        self.halted.store(true, Ordering::Release);
        self.changed.notify_waiters();
        let halts = outlets.iter().map(|outlet| outlet.halt());
        let waiting = tokio::time::timeout(HALT_LIMIT, self.waited());
        let _ = tokio::join!(futures_util::future::join_all(halts), waiting);
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.stop_resolving();
    }
}

impl Consumer for Balancer {
    fn consume(self: Arc<Self>, batch: Batch, pressure: Pressure) -> Answer {
        match self.try_place(&batch, Giver::Sender(pressure)) {
            Ok(placed) if pressure == Pressure::Wait => settle(placed.answers, |_, _| {}),
            Ok(placed) => self.settle_some(placed.answers),
            Err(no) => {
                if matches!(no, NoPlace::NoPeers { .. }) {
                    self.peer_was_missed();
                }
                match pressure {
                    Pressure::Wait => Answer::later(async move { self.place_or_drop(batch, None).await }),
                    Pressure::Refuse => self.wait_or_refuse(batch, &no),
                }
            }
        }
    }

    fn refused(&self, batch: &Batch) {
        self.rest.enqueue_failed.fetch_add(batch.items() as u64, Ordering::Relaxed);
    }

    fn lost(&self, batch: &Batch, reason: DropReason) {
        self.progress.dropped(reason, batch.items() as u64);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
