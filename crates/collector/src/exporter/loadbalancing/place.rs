//! Which peer gets what, and whether it has room.
//!
//! A batch is placed as a whole or not at all: first it is taken apart, then every share finds a peer that has room, and
//! only then are they handed over. Nobody else fills the queues meanwhile, since all that goes into them goes through here.

use std::sync::{Arc, MutexGuard, PoisonError};

use kubewake_otlp::{
    Allowance, Grain, Share, Signal, partition_within,
    view::{Point, RecordRef},
};

use super::{Balancer, peer::Peer, peer::State, ranking, route::Router};
use crate::core::{
    Answer, BalancerStats, Batch, Consumer, MoveReason, PART_BYTES, Part, Pressure, Refusal, WorkMemory,
};

/// The peers of one moment, by the order of their endpoints.
#[derive(Default)]
pub(super) struct Ring {
    pub(super) peers: Vec<Arc<Peer>>,
}

/// Why a batch was not placed.
pub(super) enum NoPlace {
    /// No peer is known.
    NoPeers {
        /// None ever was.
        yet: bool,
    },
    /// Those that would take it have no room.
    Full,
    /// A share is larger than any queue.
    TooLarge,
    /// There is no memory to take it apart: what the sender is told.
    NoMemory(Refusal),
}

impl NoPlace {
    pub(super) fn refusal(&self) -> Refusal {
        match self {
            Self::NoPeers { yet: true } => Refusal::no_peer("no peer is known yet"),
            Self::NoPeers { yet: false } => Refusal::no_peer("all peers have left, and no other is known"),
            Self::Full => Refusal::queue_full(),
            Self::TooLarge => Refusal::larger_than_queue(),
            Self::NoMemory(refusal) => refusal.clone(),
        }
    }
}

/// Who places a batch.
#[derive(Clone, Copy)]
pub(super) enum Giver<'a> {
    /// Whoever sends here.
    Sender(Pressure),
    /// A peer that did not take it, for this reason. What still belongs to it stays with it, if it may.
    Peer { endpoint: &'a str, reason: MoveReason, stays: bool },
}

impl Giver<'_> {
    fn pressure(&self) -> Pressure {
        match self {
            Self::Sender(pressure) => *pressure,
            Self::Peer { .. } => Pressure::Wait,
        }
    }
}

/// A batch that found its places.
pub(super) struct Placed {
    /// What each peer said, with a tally of what it was offered.
    pub(super) answers: Vec<(Batch, Answer)>,
    /// What the peer that gave it is to try again.
    pub(super) back: Option<Batch>,
}

/// Items that went elsewhere; counted when it is certain.
#[derive(Default)]
struct Moves([u64; MoveReason::ALL.len()]);

impl Moves {
    fn add(&mut self, reason: MoveReason, items: u64) {
        if let Some(count) = self.0.get_mut(reason as usize) {
            *count += items;
        }
    }

    fn count(self, stats: &BalancerStats) {
        let counts = MoveReason::ALL.iter().zip(self.0);
        counts.filter(|(_, items)| *items > 0).for_each(|(reason, items)| stats.moved(*reason, items));
    }
}

/// Which peers are in question.
struct Choice<'a> {
    ring: &'a Ring,
    excluded: Vec<bool>,
    usable: Vec<bool>,
    any_open: bool,
}

impl<'a> Choice<'a> {
    fn new(ring: &'a Ring, giver: Giver<'_>) -> Self {
        let left_out = |peer: &Peer| match giver {
            Giver::Peer { endpoint, stays: false, .. } => peer.endpoint == endpoint,
            _ => false,
        };
        let excluded = ring.peers.iter().map(|peer| left_out(peer)).collect();
        let mut choice = Self { ring, excluded, usable: Vec::new(), any_open: false };
        let open = choice.look();
        choice.any_open = open.contains(&true);
        // Where no peer answers, each keeps what belongs to it until one does.
        choice.usable = if choice.any_open { open } else { choice.excluded.iter().map(|out| !out).collect() };
        choice
    }

    /// Those that answer and are not excluded.
    fn look(&self) -> Vec<bool> {
        let peers = self.ring.peers.iter().zip(&self.excluded);
        peers.map(|(peer, out)| !out && peer.health.state() == State::Open).collect()
    }

    /// Takes one out; false if there is none left.
    fn exclude(&mut self, at: usize) -> bool {
        for list in [&mut self.usable, &mut self.excluded] {
            if let Some(slot) = list.get_mut(at) {
                *slot = !*slot;
            }
        }
        self.usable.contains(&true)
    }

    /// The peer of a key, and why it is not the first of all, if it is not.
    fn choose(&self, key: u64) -> Option<(usize, Option<MoveReason>)> {
        let peers = || self.ring.peers.iter().map(|peer| peer.seed).enumerate();
        let best = ranking::first(key, peers().filter(|(at, _)| self.usable.get(*at).is_some_and(|usable| *usable)))?;
        if !self.usable.contains(&false) {
            return Some((best, None));
        }
        let first = ranking::first(key, peers())?;
        let down = self.ring.peers.get(first).is_some_and(|peer| peer.health.state() == State::Down);
        let reason = if down { MoveReason::Down } else { MoveReason::Full };
        Some((best, (first != best).then_some(reason)))
    }
}

impl Balancer {
    /// Finds a place for all of a batch, or for none of it.
    pub(super) fn try_place(&self, batch: &Batch, giver: Giver<'_>) -> Result<Placed, NoPlace> {
        let ring = self.ring.load();
        if ring.peers.is_empty() {
            return Err(self.missing.no_peers());
        }
        let mut choice = Choice::new(&ring, giver);
        let mut moves = Moves::default();
        // What one peer did not take waits with it until another answers.
        if !choice.any_open && matches!(giver, Giver::Peer { .. }) {
            return Err(NoPlace::Full);
        }
        // Taken apart before it is our turn: that takes time, and needs nobody else to wait.
        let shares = self.divide(&choice, batch, giver, &mut moves)?;
        let _turn: MutexGuard<'_, ()> = self.placing.lock().unwrap_or_else(PoisonError::into_inner);
        let planned = self.plan(&mut choice, shares, giver, &mut moves)?;
        let mut placed = Placed { answers: Vec::new(), back: None };
        for (peer, share) in ring.peers.iter().zip(planned) {
            let Some(share) = share.map(|share| share.failed_at(batch.failing_since())) else { continue };
            if matches!(giver, Giver::Peer { endpoint, .. } if endpoint == peer.endpoint) {
                placed.back = Some(share);
                continue;
            }
            let tally = share.clone_tally();
            placed.answers.push((tally, peer.outlet.clone().consume(share, giver.pressure())));
        }
        match giver {
            Giver::Sender(_) => moves.count(&self.stats),
            Giver::Peer { reason, .. } => {
                let items = placed.answers.iter().map(|(tally, _)| tally.items() as u64).sum();
                self.stats.moved(reason, items);
            }
        }
        Ok(placed)
    }

    /// The shares of the peers, with those of full peers given to the next ones.
    fn plan(
        &self,
        choice: &mut Choice<'_>,
        shares: Vec<(usize, Batch)>,
        giver: Giver<'_>,
        moves: &mut Moves,
    ) -> Result<Vec<Option<Batch>>, NoPlace> {
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
            let gave = matches!(giver, Giver::Peer { endpoint, .. } if endpoint == peer.endpoint);
            if gave || peer.outlet.has_room(&joined, giver.pressure() == Pressure::Wait) {
                *slot = Some(joined);
                continue;
            }
            let too_large = giver.pressure() == Pressure::Refuse && !peer.outlet.could_ever_take(&joined);
            if !choice.exclude(to) {
                return Err(if too_large { NoPlace::TooLarge } else { NoPlace::Full });
            }
            todo.extend(self.divide(choice, &joined, giver, moves)?);
        }
        Ok(planned)
    }

    /// Takes a batch apart by peer.
    fn divide(
        &self,
        choice: &Choice<'_>,
        batch: &Batch,
        giver: Giver<'_>,
        moves: &mut Moves,
    ) -> Result<Vec<(usize, Batch)>, NoPlace> {
        let signal = batch.signal();
        let mut router = Router::new(self.settings.load().routing.as_ref(), signal);
        let grain = router.grain();
        let mut shares: Vec<(usize, Batch)> = Vec::new();
        let mut add = |to: usize, part: Part| match shares.iter_mut().find(|(at, _)| *at == to) {
            Some((_, share)) => share.push(part),
            None => shares.push((to, Batch::single(signal, part))),
        };
        for part in batch.parts() {
            let mut assign = |record: &RecordRef<'_>, point: Option<&Point<'_>>| {
                let (to, reason) = choice.choose(router.key(record, point)).unwrap_or_default();
                if let Some(reason) = reason {
                    let points = || record.metric().and_then(|metric| metric.data()).map(|data| data.points().count());
                    moves.add(reason, point.map_or_else(points, |_| Some(1)).unwrap_or(1) as u64);
                }
                to
            };
            match cut(part, signal, grain, &mut assign) {
                Ok(pieces) => pieces.into_iter().for_each(|(to, piece)| add(to, piece)),
                Err(refusal) if giver.pressure() == Pressure::Refuse => return Err(NoPlace::NoMemory(refusal)),
                Err(_) => {
                    // It was acknowledged, so that it must go on: whole, to where the first of it belongs.
                    let mut first = None;
                    let first_only = |record: &RecordRef<'_>, point: Option<&Point<'_>>| {
                        first.get_or_insert_with(|| assign(record, point));
                        0
                    };
                    drop(partition_within(signal, &part.bytes, grain, first_only, &mut Nothing));
                    moves.add(MoveReason::Memory, part.items as u64);
                    add(first.unwrap_or_default(), part.clone());
                }
            }
        }
        Ok(shares)
    }
}

/// Grants nothing, so that only the first few records are looked at.
struct Nothing;

impl Allowance for Nothing {
    fn reserve(&mut self, _: usize) -> bool {
        false
    }
}

/// So many pieces are covered by what a request of [`PART_BYTES`] is charged for, as there are many peers for few bytes at times.
const COVERED_PIECES: usize = 4;

/// The pieces of a request with their charges, or a refusal if there is no memory for them and for what it takes to make them. What the
/// request is charged for covers them, as far as together they are no larger than it was.
fn cut(
    part: &Part,
    signal: Signal,
    grain: Grain,
    assign: impl FnMut(&RecordRef<'_>, Option<&Point<'_>>) -> usize,
) -> Result<Vec<(usize, Part)>, Refusal> {
    let mut memory = WorkMemory::new(&part.charge);
    let mut shares = partition_within(signal, &part.bytes, grain, assign, &mut memory);
    let written: Vec<Share> = shares.by_ref().collect();
    if shares.is_exhausted() {
        drop(shares);
        return Err(memory.refusal());
    }
    drop(shares);
    let (mut covered, mut covered_pieces) = (part.bytes.len(), COVERED_PIECES * (1 + part.bytes.len() / PART_BYTES));
    let piece = |share: Share| {
        let size = share.bytes.len();
        let charge = match (covered.checked_sub(size), covered_pieces.checked_sub(1)) {
            (Some(left), Some(pieces_left)) => {
                (covered, covered_pieces) = (left, pieces_left);
                part.charge.clone()
            }
            _ => {
                let size = size + PART_BYTES;
                let own = memory.take(size as u64).or_else(|| part.charge.another(size as u64));
                Arc::new(own.ok_or_else(Refusal::memory)?)
            }
        };
        let origin = part.origin.clone();
        Ok((share.to, Part::new(share.bytes, share.items, origin, charge)))
    };
    written.into_iter().map(piece).collect()
}
