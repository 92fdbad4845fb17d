//! `load_balancing`, `loadbalancing`: distributes data over peers so that related records meet at one of them.
//!
//! Each peer has a queue, retries and a connection of its own: an [`ExporterQueue`] with the exporter of
//! `otlp`. A request is partitioned by peer and put into their queues.
//!
//! *Guaranteed*: all balancers with the same peers send a trace to the same one. A new peer takes over one key
//! in `n + 1`, and a removed one leaves its own keys alone. A request is accepted as a whole, when all its
//! shares have room, or refused as a whole: a sender never has to repeat a share that a peer already took. A
//! peer that does not answer holds up no other: its data fails over to the next peer in the order of each key,
//! and only its data. A removed peer still gets its queued data; data that it does not take goes to the others.
//! All rerouted items are counted, with the reason.
//!
//! *Not done*: peers are not told of each other: a trace that is open when the list changes may end at another
//! peer. It is unknown whether a peer that died took its last request: that is sent again, to the next peer (at
//! least once).

mod dialer;
mod missing_peers;
mod peer;
mod peer_wait;
mod placement;
mod ranking;
mod record_router;
mod resolver;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use kubewake_config::{ComponentId, PipelineId, model::LoadBalancingExporter};
use kubewake_runtime::lock::Mutex;
use tokio::{sync::Notify, task::AbortHandle, time::Instant};

use self::{
    dialer::PreparedBalancer,
    missing_peers::MissingPeers,
    peer::{BackendPeer, PeerFailover, PeerHealth, PeerState},
    peer_wait::merge_outcomes,
    placement::{BatchSource, PeerRing, PlacementError},
};
use crate::{
    components::{
        BuildError, ExporterContext, ExporterNode, ExporterParts, ExporterSite, PrepareExporter, PreparedExporter,
    },
    core::{
        BalancerStats, Batch, ConsumeOutcome, Consumer, DestinationLabels, DropReason, ExporterQueue,
        ExporterQueueSettings, ExporterStats, HALT_TIMEOUT, OverflowPolicy, PipelineStats, ResolverFault, ResolverKind,
        StatsRegistry,
    },
};

/// Limit of peers; a longer list is a mistake. Each peer costs a connection and a queue.
const MAX_PEERS: usize = 1024;

pub(crate) fn prepare(
    settings: &LoadBalancingExporter,
    context: &ExporterContext<'_>,
) -> Result<PreparedExporter, BuildError> {
    dialer::prepare(settings, context.pipeline.signal, context.auth.clone()).map(PreparedExporter::new)
}

impl PrepareExporter for PreparedBalancer {
    type Node = LoadBalancer;

    fn start(self, site: &ExporterSite<'_>) -> Arc<LoadBalancer> {
        LoadBalancer::start(site.id.clone(), site.pipeline.clone(), site.registry, self)
    }

    fn reconfigure(self, node: &Arc<LoadBalancer>, _: &ExporterSite<'_>) {
        node.reconfigure(self);
    }
}

/// The load balancer in one pipeline.
pub struct LoadBalancer {
    id: ComponentId,
    pipeline: PipelineId,
    registry: Arc<StatsRegistry>,
    progress: Arc<PipelineStats>,
    stats: Arc<BalancerStats>,
    /// Statistics of data without a peer.
    unassigned_stats: Arc<ExporterStats>,
    settings: ArcSwap<PreparedBalancer>,
    ring: ArcSwap<PeerRing>,
    missing: MissingPeers,
    /// Peers that are no longer in the ring and still hold data.
    leaving: Mutex<Vec<Arc<BackendPeer>>>,
    /// Held while queues are checked and filled.
    placing: Mutex<()>,
    /// Notified when a queue has room again, the peers change, or one of them answers again.
    changed: Notify,
    /// Lets requests that wait for a peer try one after another.
    turn: tokio::sync::Mutex<()>,
    /// The size of the data that waits for a peer, by the sizer of the queue.
    waiting: Mutex<u64>,
    /// Number of batches that failed over from one peer to others.
    handed_over: AtomicU64,
    halted: AtomicBool,
    /// The exporter is no longer part of its pipeline.
    retired: AtomicBool,
    resolving: Mutex<Option<AbortHandle>>,
    me: Weak<LoadBalancer>,
}

impl LoadBalancer {
    /// Starts an exporter, which begins to resolve its peers.
    fn start(
        id: ComponentId,
        pipeline: PipelineId,
        registry: &Arc<StatsRegistry>,
        prepared: PreparedBalancer,
    ) -> Arc<Self> {
        let balancer = Arc::new_cyclic(|me| Self {
            progress: registry.pipeline(&pipeline),
            stats: registry.balancer(&id),
            unassigned_stats: registry.exporter(&id, &pipeline, DestinationLabels::default()),
            registry: registry.clone(),
            id,
            pipeline,
            settings: ArcSwap::from_pointee(prepared),
            ring: ArcSwap::default(),
            missing: MissingPeers::default(),
            leaving: Mutex::default(),
            placing: Mutex::default(),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::default(),
            waiting: Mutex::default(),
            handed_over: AtomicU64::new(0),
            halted: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            resolving: Mutex::default(),
            me: me.clone(),
        });
        balancer.publish_wait_capacity();
        balancer.restart_resolver();
        balancer
    }

    /// Applies new settings. Peers that stay keep their queues with the data in them.
    fn reconfigure(&self, prepared: PreparedBalancer) {
        let old = self.settings.swap(Arc::new(prepared));
        self.publish_wait_capacity();
        for peer in &self.ring.load().peers {
            match self.exporter_queue_settings(&peer.endpoint) {
                Ok((settings, _)) => peer.exporter_queue.reconfigure(settings),
                Err(error) => self.log_unusable_peer(&peer.endpoint, &error),
            }
        }
        if old.resolver != self.settings.load().resolver {
            self.restart_resolver();
        }
        self.changed.notify_waiters();
    }

    /// Starts the resolver of the current settings.
    fn restart_resolver(&self) {
        let resolver = self.settings.load().resolver.clone();
        let task = resolver::start_resolver(resolver, self.me.clone());
        let old = std::mem::replace(&mut *self.resolving.lock(), task);
        old.inspect(AbortHandle::abort);
    }

    fn set_peers(&self, kind: ResolverKind, endpoints: impl IntoIterator<Item = String>) {
        let wanted: BTreeSet<String> = endpoints.into_iter().take(MAX_PEERS).collect();
        let counters = self.stats.resolver(kind);
        counters.succeeded.fetch_add(1, Ordering::Relaxed);
        counters.backends.store(wanted.len() as u64, Ordering::Relaxed);
        let old = self.ring.load_full();
        if old.peers.iter().map(|peer| &peer.endpoint).eq(&wanted) {
            return self.report_no_peer_found(ResolverFault::Empty);
        }
        counters.updates.fetch_add(1, Ordering::Relaxed);
        tracing::info!(exporter = %self.id, pipeline = %self.pipeline, peers = wanted.len(),
            "the list of peers changed");
        let find = |endpoint: &String| old.peers.iter().find(|peer| peer.endpoint == *endpoint).cloned();
        let peers = wanted.iter().filter_map(|endpoint| find(endpoint).or_else(|| self.make_peer(endpoint)));
        self.replace_ring(PeerRing { peers: peers.collect() });
        if self.retired.load(Ordering::Acquire) && !wanted.is_empty() {
            // It resolved only to find a peer for the data that it still holds.
            self.stop_resolving();
        }
        let gone = old.peers.iter().filter(|peer| !wanted.contains(&peer.endpoint));
        gone.for_each(|peer| self.start_leaving(peer.clone()));
        self.changed.notify_waiters();
    }

    /// No peer is ready: terminating peers that still serve stay. If there are none, all peers stay until
    /// others are listed. A peer that is really gone does not answer, and its data fails over to the others.
    fn keep_peers(&self, kind: ResolverKind, terminating: &BTreeSet<&str>) {
        let known = self.ring.load_full();
        let endpoints = known.peers.iter().map(|peer| &peer.endpoint);
        let serving: Vec<String> =
            endpoints.filter(|endpoint| terminating.contains(endpoint.as_str())).cloned().collect();
        if !serving.is_empty() {
            return self.set_peers(kind, serving);
        }
        self.stats.resolver(kind).succeeded.fetch_add(1, Ordering::Relaxed);
        if !known.peers.is_empty() {
            tracing::info!(exporter = %self.id, pipeline = %self.pipeline, resolver = kind.name(),
                "the resolver found no ready peers; the known peers stay in use");
        }
        self.report_no_peer_found(ResolverFault::Empty);
    }

    /// The resolver failed.
    fn report_resolver_failure(&self, kind: ResolverKind, fault: ResolverFault, error: &str) {
        self.stats.resolver(kind).failed.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(exporter = %self.id, pipeline = %self.pipeline, resolver = kind.name(), error,
            "failed to resolve the peers; the known peers stay in use");
        self.report_no_peer_found(fault);
    }

    fn log_unusable_peer(&self, endpoint: &str, error: &BuildError) {
        tracing::error!(exporter = %self.id, pipeline = %self.pipeline, peer = endpoint, %error,
            "failed to use a peer");
    }

    fn exporter_queue_settings(
        &self,
        endpoint: &str,
    ) -> Result<(ExporterQueueSettings, DestinationLabels), BuildError> {
        let built = self.settings.load().dialer.build_exporter(endpoint)?;
        let ExporterParts { exporter, timeout, retry, queue, destination } = built;
        let stats = self.registry.exporter(&self.id, &self.pipeline, destination.clone());
        Ok((ExporterQueueSettings { exporter, timeout, retry, queue, stats }, destination))
    }

    fn make_peer(&self, endpoint: &str) -> Option<Arc<BackendPeer>> {
        let (settings, destination) = match self.exporter_queue_settings(endpoint) {
            Ok(made) => made,
            Err(error) => {
                self.log_unusable_peer(endpoint, &error);
                return None;
            }
        };
        let health = PeerHealth::new();
        let guard = PeerFailover {
            endpoint: endpoint.to_owned(),
            health: health.clone(),
            latency: self.stats.latency(endpoint),
            stats: self.stats.clone(),
            balancer: self.me.clone(),
        };
        let id = self.id.clone();
        let pipeline = self.pipeline.clone();
        let outlet = ExporterQueue::with_failover(id, pipeline, self.progress.clone(), settings, Some(Arc::new(guard)));
        Some(Arc::new(BackendPeer {
            endpoint: endpoint.to_owned(),
            seed: ranking::seed(endpoint),
            destination,
            exporter_queue: outlet,
            health,
        }))
    }

    /// A peer is no longer in the ring: its queue is emptied, and then it is forgotten.
    fn start_leaving(&self, peer: Arc<BackendPeer>) {
        peer.health.mark_leaving();
        peer.exporter_queue.retry_now();
        self.leaving.lock().push(peer.clone());
        let me = self.me.clone();
        tokio::spawn(async move {
            peer.exporter_queue.wait_until_empty().await;
            if let Some(balancer) = me.upgrade() {
                balancer.forget_peer(&peer);
            }
        });
    }

    fn forget_peer(&self, gone: &Arc<BackendPeer>) {
        self.leaving.lock().retain(|peer| !Arc::ptr_eq(peer, gone));
        // The peer may have come back meanwhile.
        if !self.ring.load().peers.iter().any(|peer| peer.endpoint == gone.endpoint) {
            gone.exporter_queue.retire();
            self.stats.remove_peer(&gone.endpoint);
            self.registry.forget_destination(
                &self.id,
                &self.pipeline,
                gone.destination.clone(),
                &self.unassigned_stats,
            );
        }
    }

    /// Probes a peer that is down until it answers.
    fn start_probing(&self, endpoint: &str, health: Arc<PeerHealth>) {
        if let Some(peer) = self.ring.load().peers.iter().find(|peer| Arc::ptr_eq(&peer.health, &health)) {
            peer.exporter_queue.retry_now();
        }
        let me = self.me.clone();
        let endpoint = endpoint.to_owned();
        tokio::spawn(async move {
            while health.state() == PeerState::Down {
                tokio::time::sleep(health.next_probe_delay()).await;
                let Some(dial) = me.upgrade().map(|balancer| balancer.settings.load().dialer.clone()) else { return };
                if dial.probe(&endpoint).await
                    && let Some(balancer) = me.upgrade()
                {
                    health.mark_open();
                    tracing::info!(exporter = %balancer.id, pipeline = %balancer.pipeline, peer = endpoint,
                        "a peer responds again");
                    balancer.changed.notify_waiters();
                }
            }
        });
    }

    fn all_exporter_queues(&self) -> Vec<Arc<ExporterQueue>> {
        let ring = self.ring.load();
        ring.peers.iter().chain(self.leaving.lock().iter()).map(|peer| peer.exporter_queue.clone()).collect()
    }

    /// Resolves when no data is held. Data that one peer does not take moves to others meanwhile.
    async fn wait_empty(&self) {
        loop {
            let before = self.handed_over.load(Ordering::Acquire);
            let outlets = self.all_exporter_queues();
            for outlet in &outlets {
                outlet.wait_until_empty().await;
            }
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let none_waits = self.is_wait_empty();
            if none_waits && outlets.iter().all(|o| o.is_idle()) && self.handed_over.load(Ordering::Acquire) == before {
                return;
            }
            if !none_waits {
                changed.await;
            }
        }
    }

    /// Removes the exporter's gauges when it leaves its pipeline. It stops resolving, unless data waits and no
    /// peer is known.
    fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        if self.is_wait_empty() || !self.ring.load().peers.is_empty() {
            self.stop_resolving();
        }
        self.all_exporter_queues().iter().for_each(|outlet| outlet.retire());
        self.unassigned_stats.retire();
        ResolverKind::ALL.iter().for_each(|kind| self.stats.resolver(*kind).backends.store(0, Ordering::Relaxed));
    }

    /// Waits until everything is delivered, at most until `deadline`; then counts the rest as dropped.
    async fn drain(&self, deadline: Instant) {
        if tokio::time::timeout_at(deadline, self.wait_empty()).await.is_err() {
            self.halt().await;
        }
        self.stop_resolving();
    }

    fn stop_resolving(&self) {
        self.resolving.lock().take().inspect(AbortHandle::abort);
    }

    /// Gives up: data that is held, or still arrives, is counted as dropped.
    async fn halt(&self) {
        let outlets = self.all_exporter_queues();
        // All queues before the notification: a batch without a place then knows the reason.
        outlets.iter().for_each(|outlet| outlet.cancel_attempts());
        self.halted.store(true, Ordering::Release);
        self.changed.notify_waiters();
        let halts = outlets.iter().map(|outlet| outlet.halt());
        let waiting = tokio::time::timeout(HALT_TIMEOUT, self.wait_until_none_waits());
        let _ = tokio::join!(futures_util::future::join_all(halts), waiting);
    }
}

impl ExporterNode for LoadBalancer {
    fn retire(&self) {
        Self::retire(self);
    }

    fn drain(&self, deadline: Instant) -> BoxFuture<'_, ()> {
        Box::pin(Self::drain(self, deadline))
    }

    fn halt(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::halt(self))
    }
}

impl Drop for LoadBalancer {
    fn drop(&mut self) {
        self.stop_resolving();
    }
}

impl Consumer for LoadBalancer {
    fn consume(self: Arc<Self>, batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        match self.try_place(&batch, BatchSource::Sender(pressure)) {
            Ok(placed) if pressure == OverflowPolicy::Wait => merge_outcomes(placed.outcomes, |_, _| {}),
            Ok(placed) => self.merge_outcomes_or_drop(placed.outcomes, &batch),
            Err(no) => {
                if matches!(no, PlacementError::NoPeers { .. }) {
                    self.report_missed_peer();
                }
                match pressure {
                    OverflowPolicy::Wait => ConsumeOutcome::later(async move { self.place_or_drop(batch, None).await }),
                    OverflowPolicy::Refuse => self.wait_or_refuse(batch, &no),
                }
            }
        }
    }

    fn count_refused(&self, batch: &Batch) {
        self.unassigned_stats.enqueue_failed.fetch_add(batch.items() as u64, Ordering::Relaxed);
    }

    fn count_lost(&self, batch: &Batch, reason: DropReason) {
        self.progress.count_dropped(reason, batch.items() as u64);
    }
}
