//! A future that is polled only when it asks to be.
//!
//! A task that waits for two things polls both whenever one of them stirs. Where one stirs thousands of times a second and the
//! other once in its life, that is wasted on the second.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// The future, with a waker of its own.
pub struct Rarely<F> {
    inner: Pin<Box<F>>,
    bell: Arc<Bell>,
    /// The task that the bell wakes: to compare with it takes no lock.
    task: Waker,
}

/// Remembers that the future asked to be polled, and wakes the task.
struct Bell {
    rang: AtomicBool,
    task: Mutex<Waker>,
}

impl<F: Future> Rarely<F> {
    /// Polls `inner` once, and then when it asks.
    pub fn new(inner: F) -> Self {
        let task = Waker::noop().clone();
        let bell = Bell { rang: AtomicBool::new(true), task: Mutex::new(task.clone()) };
        Self { inner: Box::pin(inner), bell: Arc::new(bell), task }
    }
}

impl<F: Future> Future for Rarely<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Before the flag is looked at: whoever rings from here on finds the task that polls, also where it is another
        // one than the last time.
        if !self.task.will_wake(cx.waker()) {
            self.task.clone_from(cx.waker());
            self.bell.task.lock().unwrap_or_else(PoisonError::into_inner).clone_from(cx.waker());
        }
        // Taken down by a swap, which sees all that the last one did who rang.
        if !self.bell.rang.load(Ordering::Acquire) || !self.bell.rang.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let waker = Waker::from(self.bell.clone());
        self.inner.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rang.store(true, Ordering::Release);
        self.task.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_polled_when_it_asks_and_not_when_its_neighbour_does() {
        let polls = Arc::new(AtomicUsize::new(0));
        let counted = polls.clone();
        let mut sleep = Box::pin(tokio::time::sleep(std::time::Duration::from_secs(5)));
        let rare = Rarely::new(std::future::poll_fn(move |cx| {
            counted.fetch_add(1, Ordering::Relaxed);
            sleep.as_mut().poll(cx)
        }));
        let busy = async {
            loop {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = rare => {}
            () = busy => {}
        }
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn it_wakes_the_task_that_polled_it_last() {
        let (ring, rung) = tokio::sync::oneshot::channel();
        let mut rare = Box::pin(Rarely::new(rung));
        let mut poll = |waker: &Waker| rare.as_mut().poll(&mut Context::from_waker(waker));
        assert!(poll(Waker::noop()).is_pending());
        let moved = Arc::new(Told::default());
        assert!(poll(&Waker::from(moved.clone())).is_pending());
        ring.send(()).unwrap();
        assert!(moved.0.load(Ordering::Acquire), "it heard");
        assert!(poll(&Waker::from(moved)).is_ready());
    }

    #[derive(Default)]
    struct Told(AtomicBool);

    impl Wake for Told {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }
}
