//! Where streams sit while they wait.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
};

use super::{Alone, Bell};

/// The streams of a connection that have not ended. There are as many seats as there ever were streams at once, which the connection
/// bounds.
pub(super) struct Seats {
    seats: Vec<Seat>,
    free: Vec<usize>,
    bell: Arc<Bell>,
}

struct Seat {
    stream: Option<Alone>,
    knock: Arc<Knock>,
    waker: Waker,
}

/// Asks for whoever sits in a seat. One that is gone may have its waker still, and asks for its successor then: that is polled for
/// nothing, which is no harm.
struct Knock {
    seat: usize,
    /// It asked, and was not polled since.
    asked: AtomicBool,
    bell: Arc<Bell>,
}

impl Wake for Knock {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.asked.swap(true, Ordering::AcqRel) {
            // In a statement of its own, so that the lock is free again: either the end of the turn finds it there, or this finds
            // that the turn has ended.
            self.bell.asking().push(self.seat);
            self.bell.stir();
        }
    }
}

impl Seats {
    pub(super) fn new(bell: Arc<Bell>) -> Self {
        Self { seats: Vec::new(), free: Vec::new(), bell }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.seats.len()
    }

    /// Polls a new stream, which keeps its seat if it does not end.
    pub(super) fn begin(&mut self, stream: Alone) {
        let at = self.free.pop().unwrap_or_else(|| self.add());
        if let Some(seat) = self.seats.get_mut(at) {
            seat.stream = Some(stream);
        }
        self.go_on(at);
    }

    /// Polls the stream in a seat.
    pub(super) fn go_on(&mut self, at: usize) {
        let Some(seat) = self.seats.get_mut(at) else { return };
        // By a swap, which sees all that the last one did who asked. Before the poll: who asks from here on is polled again.
        seat.knock.asked.swap(false, Ordering::AcqRel);
        let Some(stream) = &mut seat.stream else { return };
        if Pin::new(stream).poll(&mut Context::from_waker(&seat.waker)).is_ready() {
            seat.stream = None;
            self.free.push(at);
        }
    }

    fn add(&mut self) -> usize {
        let seat = self.seats.len();
        let knock = Arc::new(Knock { seat, asked: AtomicBool::new(false), bell: self.bell.clone() });
        self.seats.push(Seat { stream: None, waker: Waker::from(knock.clone()), knock });
        seat
    }
}
