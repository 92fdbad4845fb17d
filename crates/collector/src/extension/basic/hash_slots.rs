//! Fair scheduling of password hashes.
//!
//! *Guaranteed*: no more than [`MAX_RUNNING_HASHES`] hashes are computed at once. Peers take turns, and the
//! user names that one peer tries take turns within it, so that a client that guesses waits behind its own
//! guesses and not in front of other clients. Waiting hashes are bounded for each name of a peer, for each peer
//! and in all. Known and unknown names are treated alike: waiting or a refusal reveals nothing about them.

use std::{
    collections::VecDeque,
    net::IpAddr,
    sync::{Arc, MutexGuard},
};

use kubewake_runtime::lock::Mutex;
use tokio::sync::oneshot;

/// Hashes that are computed at once. Guesses cost the machine no more than this many cores; further ones wait.
pub(super) const MAX_RUNNING_HASHES: usize = 2;
/// Waiting hashes of one name of one peer. The result for a right password is cached, so that only logins that
/// begin at the same time wait.
pub(super) const MAX_WAITING_PER_NAME: usize = 16;
/// Waiting hashes of one peer, over all names.
pub(super) const MAX_WAITING_PER_PEER: usize = 64;
/// Waiting hashes in all.
const MAX_WAITING_HASHES: usize = 1024;

/// Identifies a user name: a keyed hash, which has a bounded size.
pub(super) type NameKey = [u8; 32];

/// The waiting hashes of one name of one peer.
struct NameQueue {
    peer: IpAddr,
    name: NameKey,
    waiting: VecDeque<oneshot::Sender<HashSlot>>,
}

/// The running hashes, and the queues of waiting ones.
#[derive(Default)]
pub(super) struct HashSlots(Mutex<HashSlotState>);

#[derive(Default)]
struct HashSlotState {
    running: usize,
    /// In the order of their turns. No queue is empty.
    queues: VecDeque<NameQueue>,
    /// Every peer that has a queue, in the order of their turns.
    peers: VecDeque<IpAddr>,
}

/// Permission to compute one hash. On drop it passes to the next waiting hash.
pub(super) struct HashSlot(Arc<HashSlots>);

#[derive(Debug)]
pub(super) struct TooManyWaiting;

/// A slot, available at once or later.
pub(super) enum PendingSlot {
    Now(HashSlot),
    Later(oneshot::Receiver<HashSlot>),
}

impl PendingSlot {
    /// Waits for the slot; `None` if the process ends.
    pub(super) async fn wait(self) -> Option<HashSlot> {
        match self {
            Self::Now(place) => Some(place),
            Self::Later(place) => place.await.ok(),
        }
    }
}

impl HashSlots {
    /// Requests a slot to compute a hash of `name` for `peer`.
    pub(super) fn acquire(self: &Arc<Self>, peer: IpAddr, name: NameKey) -> Result<PendingSlot, TooManyWaiting> {
        let mut state = self.state();
        if state.running < MAX_RUNNING_HASHES {
            state.running += 1;
            return Ok(PendingSlot::Now(HashSlot(self.clone())));
        }
        state.remove_cancelled();
        state.check_room(peer, &name)?;
        let (sender, receiver) = oneshot::channel();
        state.push(peer, name, sender);
        Ok(PendingSlot::Later(receiver))
    }

    /// Whether no hash is being computed.
    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        self.state().running == 0
    }

    fn state(&self) -> MutexGuard<'_, HashSlotState> {
        self.0.lock()
    }
}

impl HashSlotState {
    fn remove_cancelled(&mut self) {
        self.queues.iter_mut().for_each(|queue| queue.waiting.retain(|sender| !sender.is_closed()));
        self.remove_empty();
    }

    fn remove_empty(&mut self) {
        self.queues.retain(|queue| !queue.waiting.is_empty());
        let queues = &self.queues;
        self.peers.retain(|peer| queues.iter().any(|queue| queue.peer == *peer));
    }

    fn check_room(&self, peer: IpAddr, name: &NameKey) -> Result<(), TooManyWaiting> {
        let count = |is_meant: &dyn Fn(&&NameQueue) -> bool| -> usize {
            self.queues.iter().filter(is_meant).map(|queue| queue.waiting.len()).sum()
        };
        let has_room = count(&|_| true) < MAX_WAITING_HASHES
            && count(&|queue| queue.peer == peer) < MAX_WAITING_PER_PEER
            && count(&|queue| queue.peer == peer && queue.name == *name) < MAX_WAITING_PER_NAME;
        if has_room { Ok(()) } else { Err(TooManyWaiting) }
    }

    fn push(&mut self, peer: IpAddr, name: NameKey, sender: oneshot::Sender<HashSlot>) {
        match self.queues.iter_mut().find(|queue| queue.peer == peer && queue.name == name) {
            Some(queue) => queue.waiting.push_back(sender),
            None => self.queues.push_back(NameQueue { peer, name, waiting: VecDeque::from([sender]) }),
        }
        if !self.peers.contains(&peer) {
            self.peers.push_back(peer);
        }
    }

    /// Removes the hash whose turn it is.
    fn next(&mut self) -> Option<oneshot::Sender<HashSlot>> {
        let peer = self.peers.pop_front()?;
        let at = self.queues.iter().position(|queue| queue.peer == peer)?;
        let mut queue = self.queues.remove(at)?;
        let next = queue.waiting.pop_front();
        // This peer's other names come first now, and other peers before this one.
        self.queues.push_back(queue);
        self.peers.push_back(peer);
        self.remove_empty();
        next
    }
}

impl Drop for HashSlot {
    fn drop(&mut self) {
        let mut state = self.0.state();
        while let Some(next) = state.next() {
            // A closed receiver would give the slot back in its drop, which must not happen with the lock held.
            if !(next.is_closed()) {
                drop(state);
                let _ = next.send(HashSlot(self.0.clone()));
                return;
            }
        }
        state.running -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUESSER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const SENDER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    /// Takes all slots.
    fn full() -> (Arc<HashSlots>, Vec<HashSlot>) {
        let places = Arc::new(HashSlots::default());
        let take = |_| match places.acquire(GUESSER, [0; 32]) {
            Ok(PendingSlot::Now(place)) => place,
            _ => panic!("it is free"),
        };
        let taken = (0..MAX_RUNNING_HASHES).map(take).collect();
        (places, taken)
    }

    fn later(places: &Arc<HashSlots>, peer: IpAddr, name: u8) -> oneshot::Receiver<HashSlot> {
        match places.acquire(peer, [name; 32]) {
            Ok(PendingSlot::Later(place)) => place,
            _ => panic!("it waits"),
        }
    }

    #[test]
    fn peers_and_names_take_turns() {
        let (places, mut taken) = full();
        let mut guesses: Vec<_> = (0..MAX_WAITING_PER_NAME).map(|_| later(&places, GUESSER, 1)).collect();
        let mut other_name = later(&places, GUESSER, 2);
        let mut other_peer = later(&places, SENDER, 1);
        let mut got = Vec::new();
        for _ in 0..4 {
            drop(taken.pop());
            let waiting = [&mut guesses[got.len() / 3], &mut other_peer, &mut other_name];
            for (who, place) in waiting.into_iter().enumerate() {
                if let Ok(place) = place.try_recv() {
                    got.push(who);
                    taken.insert(0, place);
                }
            }
        }
        assert_eq!(got, [0, 1, 2, 0], "one guess, the other peer, the other name, and then the next guess");
    }

    #[test]
    fn name_peer_and_all_together_have_a_bound() {
        let (places, _taken) = full();
        let mut waiting: Vec<_> = (0..MAX_WAITING_PER_NAME).map(|_| later(&places, GUESSER, 1)).collect();
        assert!(places.acquire(GUESSER, [1; 32]).is_err());
        let names = 2..;
        waiting.extend(names.take(MAX_WAITING_PER_PEER - waiting.len()).map(|name| later(&places, GUESSER, name)));
        assert!(places.acquire(GUESSER, [255; 32]).is_err());
        waiting.push(later(&places, SENDER, 1));
        waiting.remove(0);
        waiting.push(later(&places, GUESSER, 1));
        let peers = (0..100u8).map(|peer| IpAddr::from([10, 0, 1, peer]));
        let asked: Vec<_> = peers.flat_map(|peer| (0..50).map(move |name| (peer, name))).collect();
        let more: Vec<_> = asked.iter().filter_map(|(peer, name)| places.acquire(*peer, [*name; 32]).ok()).collect();
        assert_eq!(more.len() + waiting.len(), MAX_WAITING_HASHES);
    }

    #[test]
    fn those_who_hang_up_leave_their_place_to_others() {
        let (places, mut taken) = full();
        let gone: Vec<_> = (0..5).map(|_| later(&places, GUESSER, 1)).collect();
        let mut stays = later(&places, SENDER, 1);
        drop(gone);
        drop(taken.pop());
        let place = stays.try_recv().unwrap();
        drop((place, taken));
        let state = places.state();
        assert_eq!((state.running, state.peers.len()), (0, 0));
    }
}
