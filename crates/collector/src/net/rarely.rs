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
}

/// Remembers that the future asked to be polled, and wakes the task.
struct Bell {
    rang: AtomicBool,
    task: Mutex<Waker>,
}

impl<F: Future> Rarely<F> {
    /// Polls `inner` once, and then when it asks.
    pub fn new(inner: F) -> Self {
        let bell = Bell { rang: AtomicBool::new(true), task: Mutex::new(Waker::noop().clone()) };
        Self { inner: Box::pin(inner), bell: Arc::new(bell) }
    }
}

impl<F: Future> Future for Rarely<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        if !self.bell.rang.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        // Before the flag is taken down: whoever rings from here on finds the task.
        self.bell.task.lock().unwrap_or_else(PoisonError::into_inner).clone_from(cx.waker());
        self.bell.rang.store(false, Ordering::Release);
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
}
