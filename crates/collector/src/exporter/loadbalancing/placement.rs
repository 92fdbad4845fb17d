//! Places the shares of a batch in the queues of peers.
//!
//! A batch is placed as a whole or not at all: first it is partitioned, then every share is assigned to a peer
//! with room, and only then are the shares enqueued. Nobody else fills the queues meanwhile, since all data
//! enters them through this module.

use std::sync::{Arc, MutexGuard};

use kubewake_otlp::{
    Allowance, PartitionGrain, PartitionShare, Signal, partition_within,
    view::{DataPoint, RecordRef},
};

use super::{LoadBalancer, peer::BackendPeer, peer::PeerState, ranking, record_router::RecordRouter};
use crate::core::{
    BalancerStats, Batch, ConsumeOutcome, Consumer, MoveReason, OverflowPolicy, PART_OVERHEAD_BYTES, Part, Refusal,
    WorkMemory,
};

/// A snapshot of the peers, in the order of their endpoints.
#[derive(Default)]
pub(super) struct PeerRing {
    pub(super) peers: Vec<Arc<BackendPeer>>,
}

/// Why a batch was not placed.
pub(super) enum PlacementError {
    NoPeers {
        never_known: bool,
    },
    /// All eligible peers are full.
    Full,
    /// A share is larger than any queue.
    TooLarge,
    /// There is no memory to partition the batch; the refusal is the sender's.
    NoMemory(Refusal),
}

impl PlacementError {
    pub(super) fn refusal(&self) -> Refusal {
        match self {
            Self::NoPeers { never_known: true } => Refusal::no_peer("the resolver has found no peers yet"),
            Self::NoPeers { never_known: false } => {
                Refusal::no_peer("all peers have left, and the resolver has found no others")
            }
            Self::Full => Refusal::queue_full(),
            Self::TooLarge => Refusal::larger_than_queue(),
            Self::NoMemory(refusal) => refusal.clone(),
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum BatchSource<'a> {
    Sender(OverflowPolicy),
    /// A peer that did not take the batch, for this reason. With `stays`, records that still belong to it stay.
    Peer {
        endpoint: &'a str,
        reason: MoveReason,
        stays: bool,
    },
}

impl BatchSource<'_> {
    fn pressure(&self) -> OverflowPolicy {
        match self {
            Self::Sender(pressure) => *pressure,
            Self::Peer { .. } => OverflowPolicy::Wait,
        }
    }
}

/// A batch that was placed.
pub(super) struct PlacedBatch {
    /// The outcome of each share, with its tally.
    pub(super) outcomes: Vec<(Batch, ConsumeOutcome)>,
    /// The part that the giving peer has to retry.
    pub(super) back: Option<Batch>,
}

/// Rerouted items; counted when the placement is certain.
#[derive(Default)]
struct MoveCounts([u64; MoveReason::ALL.len()]);

impl MoveCounts {
    fn add(&mut self, reason: MoveReason, items: u64) {
        if let Some(count) = self.0.get_mut(reason as usize) {
            *count += items;
        }
    }

    fn count(self, stats: &BalancerStats) {
        let counts = MoveReason::ALL.iter().zip(self.0);
        counts.filter(|(_, items)| *items > 0).for_each(|(reason, items)| stats.count_moved(*reason, items));
    }
}

/// The eligible peers.
struct PeerChoice<'a> {
    ring: &'a PeerRing,
    excluded: Vec<bool>,
    usable: Vec<bool>,
    any_open: bool,
}

impl<'a> PeerChoice<'a> {
    fn new(ring: &'a PeerRing, giver: BatchSource<'_>) -> Self {
        let left_out = |peer: &BackendPeer| match giver {
            BatchSource::Peer { endpoint, stays: false, .. } => peer.endpoint == endpoint,
            _ => false,
        };
        let excluded = ring.peers.iter().map(|peer| left_out(peer)).collect();
        let mut choice = Self { ring, excluded, usable: Vec::new(), any_open: false };
        let open = choice.open_peers();
        choice.any_open = open.contains(&true);
        // Where no peer answers, each keeps its data until one does.
        choice.usable = if choice.any_open { open } else { choice.excluded.iter().map(|out| !out).collect() };
        choice
    }

    /// The peers that answer and are not excluded.
    fn open_peers(&self) -> Vec<bool> {
        let peers = self.ring.peers.iter().zip(&self.excluded);
        peers.map(|(peer, out)| !out && peer.health.state() == PeerState::Open).collect()
    }

    /// Excludes a peer; false if none is left.
    fn exclude(&mut self, at: usize) -> bool {
        for list in [&mut self.usable, &mut self.excluded] {
            if let Some(slot) = list.get_mut(at) {
                *slot = !*slot;
            }
        }
        self.usable.contains(&true)
    }

    /// The peer of a key, with the reason if it is not the key's first choice.
    fn choose_peer(&self, key: u64) -> Option<(usize, Option<MoveReason>)> {
        let peers = || self.ring.peers.iter().map(|peer| peer.seed).enumerate();
        let best =
            ranking::highest_ranked(key, peers().filter(|(at, _)| self.usable.get(*at).is_some_and(|usable| *usable)))?;
        if !self.usable.contains(&false) {
            return Some((best, None));
        }
        let first = ranking::highest_ranked(key, peers())?;
        let down = self.ring.peers.get(first).is_some_and(|peer| peer.health.state() == PeerState::Down);
        let reason = if down { MoveReason::Down } else { MoveReason::Full };
        Some((best, (first != best).then_some(reason)))
    }
}

impl LoadBalancer {
    /// Places all of a batch, or nothing.
    pub(super) fn try_place(&self, batch: &Batch, giver: BatchSource<'_>) -> Result<PlacedBatch, PlacementError> {
        let ring = self.ring.load();
        if ring.peers.is_empty() {
            return Err(self.missing.no_peers_error());
        }
        let mut choice = PeerChoice::new(&ring, giver);
        let mut moves = MoveCounts::default();
        // A failed-over batch waits with its peer until another peer answers.
        if !choice.any_open && matches!(giver, BatchSource::Peer { .. }) {
            return Err(PlacementError::Full);
        }
        // Partitioned before the lock is taken: it takes time, and can be done concurrently.
        let shares = self.partition_by_peer(&choice, batch, giver, &mut moves)?;
        let _turn: MutexGuard<'_, ()> = self.placing.lock();
        let planned = self.assign_peers(&mut choice, shares, giver, &mut moves)?;
        let mut placed = PlacedBatch { outcomes: Vec::new(), back: None };
        for (peer, share) in ring.peers.iter().zip(planned) {
            let Some(share) = share.map(|share| share.with_failing_since(batch.failing_since())) else { continue };
            if matches!(giver, BatchSource::Peer { endpoint, .. } if endpoint == peer.endpoint) {
                placed.back = Some(share);
                continue;
            }
            let tally = share.clone_tally();
            let held = share.hold_receipts();
            let outcome = peer.exporter_queue.clone().consume(share, giver.pressure());
            placed.outcomes.push((tally, outcome.settle_receipts(held)));
        }
        match giver {
            BatchSource::Sender(_) => moves.count(&self.stats),
            BatchSource::Peer { reason, .. } => {
                let items = placed.outcomes.iter().map(|(tally, _)| tally.items() as u64).sum();
                self.stats.count_moved(reason, items);
            }
        }
        Ok(placed)
    }

    /// Assigns shares to peers; shares of full peers go to the next ones.
    fn assign_peers(
        &self,
        choice: &mut PeerChoice<'_>,
        shares: Vec<(usize, Batch)>,
        giver: BatchSource<'_>,
        moves: &mut MoveCounts,
    ) -> Result<Vec<Option<Batch>>, PlacementError> {
        let mut planned: Vec<Option<Batch>> = vec![None; choice.ring.peers.len()];
        let mut todo = shares;
        while let Some((to, share)) = todo.pop() {
            let (Some(slot), Some(peer)) = (planned.get_mut(to), choice.ring.peers.get(to)) else { continue };
            let joined = match slot.take() {
                None => share,
                Some(mut earlier) => {
                    earlier.append(share);
                    earlier
                }
            };
            let gave = matches!(giver, BatchSource::Peer { endpoint, .. } if endpoint == peer.endpoint);
            if gave || peer.exporter_queue.has_room(&joined, giver.pressure() == OverflowPolicy::Wait) {
                *slot = Some(joined);
                continue;
            }
            let mut too_large = giver.pressure() == OverflowPolicy::Refuse;
            too_large &= !peer.exporter_queue.could_ever_take(&joined);
            // A receiver that reads again would do so forever.
            if too_large && joined.has_receipts() && peer.exporter_queue.has_room(&joined, true) {
                *slot = Some(joined);
                continue;
            }
            if !choice.exclude(to) {
                return Err(if too_large { PlacementError::TooLarge } else { PlacementError::Full });
            }
            todo.extend(self.partition_by_peer(choice, &joined, giver, moves)?);
        }
        Ok(planned)
    }

    /// Partitions a batch by peer.
    fn partition_by_peer(
        &self,
        choice: &PeerChoice<'_>,
        batch: &Batch,
        giver: BatchSource<'_>,
        moves: &mut MoveCounts,
    ) -> Result<Vec<(usize, Batch)>, PlacementError> {
        let signal = batch.signal();
        let mut router = RecordRouter::new(self.settings.load().routing.as_ref(), signal);
        let grain = router.grain();
        let mut shares: Vec<(usize, Batch)> = Vec::new();
        let mut add = |to: usize, part: Part| match shares.iter_mut().find(|(at, _)| *at == to) {
            Some((_, share)) => share.push(part),
            None => shares.push((to, Batch::single(signal, part))),
        };
        for part in batch.parts() {
            let mut assign = |record: &RecordRef<'_>, point: Option<&DataPoint<'_>>| {
                let (to, reason) = choice.choose_peer(router.routing_key(record, point)).unwrap_or_default();
                if let Some(reason) = reason {
                    let points = || record.metric().and_then(|metric| metric.data()).map(|data| data.points().count());
                    moves.add(reason, point.map_or_else(points, |_| Some(1)).unwrap_or(1) as u64);
                }
                to
            };
            match partition_part(part, signal, grain, &mut assign) {
                Ok(pieces) => pieces.into_iter().for_each(|(to, piece)| add(to, piece)),
                Err(refusal) if giver.pressure() == OverflowPolicy::Refuse => {
                    return Err(PlacementError::NoMemory(refusal));
                }
                Err(_) => {
                    // Acknowledged data must go on: as a whole, to the peer of its first record.
                    let mut first = None;
                    let first_only = |record: &RecordRef<'_>, point: Option<&DataPoint<'_>>| {
                        first.get_or_insert_with(|| assign(record, point));
                        0
                    };
                    drop(partition_within(signal, &part.bytes, grain, first_only, &mut NoAllowance));
                    moves.add(MoveReason::Memory, part.items as u64);
                    add(first.unwrap_or_default(), part.clone());
                }
            }
        }
        Ok(shares)
    }
}

/// Grants nothing, so that only the first few records are visited.
struct NoAllowance;

impl Allowance for NoAllowance {
    fn reserve(&mut self, _: usize) -> bool {
        false
    }
}

/// Pieces that the charge of a request of [`PART_OVERHEAD_BYTES`] covers, as a few bytes may be divided among
/// many peers.
const COVERED_PIECES_PER_PART: usize = 4;

/// Partitions a request into charged pieces; a refusal if there is no memory for the pieces and the work. The
/// charge of the request covers pieces that together are no larger than the request.
fn partition_part(
    part: &Part,
    signal: Signal,
    grain: PartitionGrain,
    assign: impl FnMut(&RecordRef<'_>, Option<&DataPoint<'_>>) -> usize,
) -> Result<Vec<(usize, Part)>, Refusal> {
    let mut memory = WorkMemory::new(&part.charge);
    let mut shares = partition_within(signal, &part.bytes, grain, assign, &mut memory);
    let written: Vec<PartitionShare> = shares.by_ref().collect();
    if shares.is_exhausted() {
        drop(shares);
        return Err(memory.refusal());
    }
    drop(shares);
    let (mut covered, mut covered_pieces) =
        (part.bytes.len(), COVERED_PIECES_PER_PART * (1 + part.bytes.len() / PART_OVERHEAD_BYTES));
    let piece = |share: PartitionShare| {
        let size = share.bytes.len();
        let charge = match (covered.checked_sub(size), covered_pieces.checked_sub(1)) {
            (Some(left), Some(pieces_left)) => {
                (covered, covered_pieces) = (left, pieces_left);
                part.charge.clone()
            }
            _ => {
                let size = size + PART_OVERHEAD_BYTES;
                let own = memory.split_off(size as u64).or_else(|| part.charge.reserve_copy(size as u64));
                Arc::new(own.ok_or_else(Refusal::out_of_memory)?)
            }
        };
        let origin = part.origin.clone();
        Ok((share.to, Part::new(share.bytes, share.items, origin, charge)))
    };
    written.into_iter().map(piece).collect()
}
