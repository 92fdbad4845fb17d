//! Who may compute a password hash next.
//!
//! *Guarantees.* No more than [`MAX_RUNNING`] hashes are computed at once. Peers take turns, and the names that one peer
//! asks for take turns within it, so that whoever guesses waits behind their own guesses and not in front of others. What
//! waits is bounded for each name of a peer, for each peer and in all. Names are treated alike whether they are known or
//! not: who waits or is refused learns nothing about them.

use std::{
    collections::VecDeque,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// Hashes that are computed at once. Guesses cost the machine no more than this many cores; further ones wait.
pub(super) const MAX_RUNNING: usize = 2;
/// Hashes that wait for one name of one peer. A sender with the right password is remembered, so that only those that
/// begin at once wait.
pub(super) const MAX_WAITING_PER_NAME: usize = 16;
/// Hashes that wait for all names of one peer.
pub(super) const MAX_WAITING_PER_PEER: usize = 64;
/// Hashes that wait in all.
const MAX_WAITING: usize = 1024;

/// A name as it is told apart here: a keyed hash, which has a bounded size.
pub(super) type NameKey = [u8; 32];

/// Those who wait for one name of one peer.
struct Queue {
    peer: IpAddr,
    name: NameKey,
    waiting: VecDeque<oneshot::Sender<Place>>,
}

/// The places at which hashes are computed, and who waits for one.
#[derive(Default)]
pub(super) struct Places(Mutex<State>);

#[derive(Default)]
struct State {
    running: usize,
    /// In the order of their turns. No queue is empty.
    queues: VecDeque<Queue>,
    /// In the order of their turns: every peer that has a queue.
    peers: VecDeque<IpAddr>,
}

/// A place at which one hash may be computed. It goes to the next who waits when it is dropped.
pub(super) struct Place(Arc<Places>);

/// Too many wait already.
#[derive(Debug)]
pub(super) struct Crowded;

/// A place, at once or later.
pub(super) enum Turn {
    Now(Place),
    Later(oneshot::Receiver<Place>),
}

impl Turn {
    /// Waits for the place; none comes if the process ends.
    pub(super) async fn wait(self) -> Option<Place> {
        match self {
            Self::Now(place) => Some(place),
            Self::Later(place) => place.await.ok(),
        }
    }
}

impl Places {
    /// Asks for a place to compute a hash of `name` that `peer` wants.
    pub(super) fn ask(self: &Arc<Self>, peer: IpAddr, name: NameKey) -> Result<Turn, Crowded> {
        let mut state = self.state();
        if state.running < MAX_RUNNING {
            state.running += 1;
            return Ok(Turn::Now(Place(self.clone())));
        }
        state.forget_those_who_left();
        state.check_room(peer, &name)?;
        let (sender, receiver) = oneshot::channel();
        state.push(peer, name, sender);
        Ok(Turn::Later(receiver))
    }

    /// Whether no hash is computed.
    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        self.state().running == 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn forget_those_who_left(&mut self) {
        self.queues.iter_mut().for_each(|queue| queue.waiting.retain(|sender| !sender.is_closed()));
        self.forget_empty();
    }

    fn forget_empty(&mut self) {
        self.queues.retain(|queue| !queue.waiting.is_empty());
        let queues = &self.queues;
        self.peers.retain(|peer| queues.iter().any(|queue| queue.peer == *peer));
    }

    fn check_room(&self, peer: IpAddr, name: &NameKey) -> Result<(), Crowded> {
        let count = |is_meant: &dyn Fn(&&Queue) -> bool| -> usize {
            self.queues.iter().filter(is_meant).map(|queue| queue.waiting.len()).sum()
        };
        let has_room = count(&|_| true) < MAX_WAITING
            && count(&|queue| queue.peer == peer) < MAX_WAITING_PER_PEER
            && count(&|queue| queue.peer == peer && queue.name == *name) < MAX_WAITING_PER_NAME;
        if has_room { Ok(()) } else { Err(Crowded) }
    }

    fn push(&mut self, peer: IpAddr, name: NameKey, sender: oneshot::Sender<Place>) {
        match self.queues.iter_mut().find(|queue| queue.peer == peer && queue.name == name) {
            Some(queue) => queue.waiting.push_back(sender),
            None => self.queues.push_back(Queue { peer, name, waiting: VecDeque::from([sender]) }),
        }
        if !self.peers.contains(&peer) {
            self.peers.push_back(peer);
        }
    }

    /// Takes out whose turn it is.
    fn next(&mut self) -> Option<oneshot::Sender<Place>> {
        let peer = self.peers.pop_front()?;
        let at = self.queues.iter().position(|queue| queue.peer == peer)?;
        let mut queue = self.queues.remove(at)?;
        let next = queue.waiting.pop_front();
        // The others of this peer come first now, and those of other peers before it.
        self.queues.push_back(queue);
        self.peers.push_back(peer);
        self.forget_empty();
        next
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.0.state();
        while let Some(next) = state.next() {
            // Whoever hung up gives it back, and must not do so with the lock held.
            match next.is_closed() {
                true => {}
                false => {
                    drop(state);
                    let _ = next.send(Place(self.0.clone()));
                    return;
                }
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

    /// Places that are all taken.
    fn full() -> (Arc<Places>, Vec<Place>) {
        let places = Arc::new(Places::default());
        let take = |_| match places.ask(GUESSER, [0; 32]) {
            Ok(Turn::Now(place)) => place,
            _ => panic!("it is free"),
        };
        let taken = (0..MAX_RUNNING).map(take).collect();
        (places, taken)
    }

    fn later(places: &Arc<Places>, peer: IpAddr, name: u8) -> oneshot::Receiver<Place> {
        match places.ask(peer, [name; 32]) {
            Ok(Turn::Later(place)) => place,
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
        assert!(places.ask(GUESSER, [1; 32]).is_err());
        let names = 2..;
        waiting.extend(names.take(MAX_WAITING_PER_PEER - waiting.len()).map(|name| later(&places, GUESSER, name)));
        assert!(places.ask(GUESSER, [255; 32]).is_err());
        waiting.push(later(&places, SENDER, 1));
        waiting.remove(0);
        waiting.push(later(&places, GUESSER, 1));
        let peers = (0..100u8).map(|peer| IpAddr::from([10, 0, 1, peer]));
        let asked: Vec<_> = peers.flat_map(|peer| (0..50).map(move |name| (peer, name))).collect();
        let more: Vec<_> = asked.iter().filter_map(|(peer, name)| places.ask(*peer, [*name; 32]).ok()).collect();
        assert_eq!(more.len() + waiting.len(), MAX_WAITING);
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
