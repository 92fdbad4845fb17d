//! A future that is polled only when its own waker was woken.
//!
//! A task that waits for two futures polls both whenever one of them is woken. If one wakes thousands of times
//! a second and the other once in its life, polling the second is wasted.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use kubewake_runtime::lock::Mutex;

/// The future, with a waker of its own.
pub struct PollOnWake<F> {
    inner: Pin<Box<F>>,
    shared_waker: Arc<SharedWaker>,
    /// The task that `shared_waker` wakes: a copy to compare with, without a lock.
    task: Waker,
}

/// Records that the future was woken, and wakes the task.
struct SharedWaker {
    woken: AtomicBool,
    task: Mutex<Waker>,
}

impl<F: Future> PollOnWake<F> {
    /// Polls `inner` once, and then when it was woken.
    pub fn new(inner: F) -> Self {
        let task = Waker::noop().clone();
        let bell = SharedWaker { woken: AtomicBool::new(true), task: Mutex::new(task.clone()) };
        Self { inner: Box::pin(inner), shared_waker: Arc::new(bell), task }
    }
}

impl<F: Future> Future for PollOnWake<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Before the flag is checked: a wake-up from here on reaches the current task, also if the future moved
        // to another one.
        if !self.task.will_wake(cx.waker()) {
            self.task.clone_from(cx.waker());
            self.shared_waker.task.lock().clone_from(cx.waker());
        }
        // A swap, to see all writes of the last waker.
        if !self.shared_waker.woken.load(Ordering::Acquire) || !self.shared_waker.woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let waker = Waker::from(self.shared_waker.clone());
        self.inner.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

impl Wake for SharedWaker {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.task.lock().wake_by_ref();
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
        let rare = PollOnWake::new(std::future::poll_fn(move |cx| {
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
        let mut rare = Box::pin(PollOnWake::new(rung));
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
