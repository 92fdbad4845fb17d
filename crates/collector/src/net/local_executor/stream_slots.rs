//! Slots for the streams of a connection.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
};

use super::{ConnectionWaker, StreamTask};

/// The streams of a connection that have not ended. There are as many slots as there ever were concurrent
/// streams, which the connection bounds.
pub(super) struct StreamSlots {
    slots: Vec<StreamSlot>,
    free: Vec<usize>,
    connection_waker: Arc<ConnectionWaker>,
}

struct StreamSlot {
    stream: Option<StreamTask>,
    slot_waker: Arc<SlotWaker>,
    waker: Waker,
}

/// The waker of one slot. A stale waker may poll the slot's next stream; that is a harmless spurious wake-up.
struct SlotWaker {
    slot: usize,
    /// It was woken, and not polled since.
    is_ready: AtomicBool,
    connection_waker: Arc<ConnectionWaker>,
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_ready.swap(true, Ordering::AcqRel) {
            // A separate statement, so that the lock is released: either the end of the round finds the slot,
            // or `wake_task` finds that the round has ended.
            self.connection_waker.ready_slots().push(self.slot);
            self.connection_waker.wake_task();
        }
    }
}

impl StreamSlots {
    pub(super) fn new(connection_waker: Arc<ConnectionWaker>) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), connection_waker }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Polls a new stream, which keeps its slot unless it ends.
    pub(super) fn start_stream(&mut self, stream: StreamTask) {
        let at = self.free.pop().unwrap_or_else(|| self.add_slot());
        if let Some(seat) = self.slots.get_mut(at) {
            seat.stream = Some(stream);
        }
        self.poll_slot(at);
    }

    /// Polls the stream in a slot.
    pub(super) fn poll_slot(&mut self, at: usize) {
        let Some(seat) = self.slots.get_mut(at) else { return };
        // A swap, to see all writes of the last waker. Before the poll, so that a wake-up from here on causes
        // another poll.
        seat.slot_waker.is_ready.swap(false, Ordering::AcqRel);
        let Some(stream) = &mut seat.stream else { return };
        if Pin::new(stream).poll(&mut Context::from_waker(&seat.waker)).is_ready() {
            seat.stream = None;
            self.free.push(at);
        }
    }

    fn add_slot(&mut self) -> usize {
        let seat = self.slots.len();
        let knock = Arc::new(SlotWaker {
            slot: seat,
            is_ready: AtomicBool::new(false),
            connection_waker: self.connection_waker.clone(),
        });
        self.slots.push(StreamSlot { stream: None, waker: Waker::from(knock.clone()), slot_waker: knock });
        seat
    }
}
