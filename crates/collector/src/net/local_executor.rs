//! An executor that runs the streams of an HTTP/2 connection in the task of the connection.
//!
//! hyper hands every stream to an executor. Streams that are spawned as tasks wake other threads, which then
//! work on bytes in this thread's cache. Here a connection with all its streams is one task, and a stream that
//! another one wakes is polled in the same round. Long work (decompression) must therefore be spawned by the
//! stream itself. Each stream has a waker of its own, which belongs to its slot and is reused by the next
//! stream there. A stream is polled when it is new and when it was woken, and never else.
//!
//! *Guarantees.* A stream that panics ends alone. Submitted streams that never ran are dropped with the
//! connection. *Assumes* that the connection bounds its streams: HTTP/2 does, by their number and by how many
//! may be reset before they were accepted.

mod stream_slots;

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use hyper::rt::Executor;
use kubewake_runtime::lock::Mutex;

use self::stream_slots::StreamSlots;

/// Rounds of the connection and its streams before other tasks run.
const MAX_POLL_ROUNDS: usize = 16;

/// A stream whose panic does not affect the others of its connection.
struct StreamTask(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Future for StreamTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| {
            tracing::error!("the handler of a request panicked; its connection stays open");
            Poll::Ready(())
        })
    }
}

/// Collects the streams of one connection.
#[derive(Clone, Default)]
pub struct LocalExecutor(Arc<Mutex<SubmittedStreams>>);

/// Streams that were submitted and have not begun.
#[derive(Default)]
struct SubmittedStreams {
    streams: Vec<StreamTask>,
    /// The connection is gone, and submitted streams would never run.
    ended: bool,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, stream: F) {
        let stream = StreamTask(Box::pin(stream));
        let mut handed = self.submitted();
        if !handed.ended {
            handed.streams.push(stream);
        }
    }
}

impl LocalExecutor {
    fn submitted(&self) -> MutexGuard<'_, SubmittedStreams> {
        self.0.lock()
    }

    /// Runs the connection with its streams. It ends when the connection does; remaining streams are dropped.
    pub fn run<C: Future>(self, connection: C) -> ConnectionTask<C> {
        let bell = Arc::new(ConnectionWaker::default());
        ConnectionTask {
            connection: Box::pin(connection),
            executor: self,
            starting: Vec::new(),
            ready: Vec::new(),
            streams: StreamSlots::new(bell.clone()),
            waker: Waker::from(bell.clone()),
            connection_waker: bell,
        }
    }
}

pub struct ConnectionTask<C> {
    connection: Pin<Box<C>>,
    executor: LocalExecutor,
    streams: StreamSlots,
    /// Streams to be polled for the first time; empty between rounds.
    starting: Vec<StreamTask>,
    /// Slots of the streams to be polled again; empty between rounds.
    ready: Vec<usize>,
    connection_waker: Arc<ConnectionWaker>,
    waker: Waker,
}

/// The waker of the connection, and the slots of woken streams. A stream that is woken during a round is polled
/// without another turn of the scheduler.
#[derive(Default)]
struct ConnectionWaker {
    woken: AtomicBool,
    is_polling: AtomicBool,
    task: Mutex<Option<Waker>>,
    /// The slots of streams that were woken.
    ready_slots: Mutex<Vec<usize>>,
}

impl ConnectionWaker {
    /// Wakes the task, unless it is in a round and checks for work at the end.
    fn wake_task(&self) {
        if !self.is_polling.load(Ordering::SeqCst)
            && let Some(task) = &*self.task.lock()
        {
            task.wake_by_ref();
        }
    }

    fn ready_slots(&self) -> MutexGuard<'_, Vec<usize>> {
        self.ready_slots.lock()
    }
}

impl Wake for ConnectionWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Sequentially consistent, as is the end of a round: one of the two sees the other.
        self.woken.store(true, Ordering::SeqCst);
        self.wake_task();
    }
}

impl<C: Future> ConnectionTask<C> {
    pub fn connection(&mut self) -> Pin<&mut C> {
        self.connection.as_mut()
    }

    /// Polls the connection, then its streams.
    fn poll_round(&mut self) -> Poll<C::Output> {
        let cx = &mut Context::from_waker(&self.waker);
        if let Poll::Ready(end) = self.connection.as_mut().poll(cx) {
            return Poll::Ready(end);
        }
        std::mem::swap(&mut self.starting, &mut self.executor.submitted().streams);
        self.starting.drain(..).for_each(|stream| self.streams.start_stream(stream));
        std::mem::swap(&mut self.ready, &mut *self.connection_waker.ready_slots());
        self.ready.drain(..).for_each(|seat| self.streams.poll_slot(seat));
        Poll::Pending
    }

    /// Whether the connection or a stream needs another round.
    fn has_work(&self) -> bool {
        self.connection_waker.woken.load(Ordering::SeqCst)
            || !self.connection_waker.ready_slots().is_empty()
            || !self.executor.submitted().streams.is_empty()
    }
}

impl<C> Drop for ConnectionTask<C> {
    fn drop(&mut self) {
        // A stream holds a reference to its executor, so streams that stay in it would form a cycle and leak.
        let never_ran = {
            let mut handed = self.executor.submitted();
            handed.ended = true;
            std::mem::take(&mut handed.streams)
        };
        drop(never_ran);
    }
}

impl<C: Future> Future for ConnectionTask<C> {
    type Output = C::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Output> {
        let me = self.get_mut();
        {
            let mut task = me.connection_waker.task.lock();
            if !task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
                *task = Some(cx.waker().clone());
            }
        }
        me.connection_waker.is_polling.store(true, Ordering::SeqCst);
        for _ in 0..MAX_POLL_ROUNDS {
            me.connection_waker.woken.store(false, Ordering::SeqCst);
            if let Poll::Ready(end) = me.poll_round() {
                return Poll::Ready(end);
            }
            if !me.has_work() {
                break;
            }
        }
        me.connection_waker.is_polling.store(false, Ordering::SeqCst);
        if me.has_work() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[tokio::test]
    async fn streams_run_while_the_connection_does() {
        let streams = LocalExecutor::default();
        let first = tokio::sync::oneshot::channel();
        let second = tokio::sync::oneshot::channel();
        let spawn = streams.clone();
        let connection = async move {
            spawn.execute(async move { first.0.send(1).unwrap() });
            let one = first.1.await.unwrap();
            spawn.execute(async move { second.0.send(2).unwrap() });
            one + second.1.await.unwrap()
        };
        assert_eq!(streams.run(connection).await, 3);
    }

    #[tokio::test]
    async fn a_stream_can_start_another() {
        let streams = LocalExecutor::default();
        let (done, wait) = tokio::sync::oneshot::channel();
        let spawn = streams.clone();
        streams.execute(async move { spawn.execute(async move { done.send(()).unwrap() }) });
        streams.run(wait).await.unwrap();
    }

    #[tokio::test]
    async fn a_stream_that_never_ran_goes_with_its_connection() {
        let streams = LocalExecutor::default();
        let held = Arc::new(());
        let spawn = streams.clone();
        let holds = held.clone();
        // Like hyper's streams, it holds a reference to the executor.
        let stream = |holds: Arc<()>| {
            let executor = spawn.clone();
            async move { drop((executor, holds)) }
        };
        let connection = async {
            spawn.execute(stream(holds));
        };
        streams.run(connection).await;
        assert_eq!(Arc::strong_count(&held), 1, "it is gone");
        spawn.execute(stream(held.clone()));
        assert_eq!(Arc::strong_count(&held), 1, "nothing is kept for a connection that is gone");
    }

    #[tokio::test]
    async fn a_stream_that_panics_takes_nobody_along() {
        let (streams, (done, wait)) = (LocalExecutor::default(), tokio::sync::oneshot::channel());
        streams.execute(async { panic!("of one stream") });
        streams.execute(async move {
            tokio::task::yield_now().await;
            done.send(()).unwrap();
        });
        streams.run(wait).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_wakes_it_from_another_thread_is_heard() {
        for _ in 0..2000 {
            let (streams, (done, wait)) = (LocalExecutor::default(), tokio::sync::oneshot::channel());
            streams.execute(async move {
                let other = tokio::spawn(async { tokio::task::yield_now().await });
                other.await.unwrap();
                done.send(()).unwrap();
            });
            let run = tokio::spawn(async { streams.run(wait).await.unwrap() });
            tokio::time::timeout(std::time::Duration::from_secs(10), run).await.expect("woken").unwrap();
        }
    }

    #[tokio::test]
    async fn a_stream_is_polled_when_it_is_new_and_when_it_asks() {
        let streams = LocalExecutor::default();
        let polls = Arc::new(AtomicUsize::new(0));
        let (ring, rung) = tokio::sync::oneshot::channel::<()>();
        let counted = polls.clone();
        let mut rung = Box::pin(rung);
        let (done, wait) = tokio::sync::oneshot::channel();
        streams.execute(async move {
            let counted = std::future::poll_fn(|cx| {
                counted.fetch_add(1, Ordering::Relaxed);
                rung.as_mut().poll(cx)
            });
            done.send(counted.await).unwrap();
        });
        let connection = async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            ring.send(()).unwrap();
            wait.await.unwrap().unwrap();
        };
        streams.run(connection).await;
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn a_seat_serves_one_stream_after_the_other() {
        let streams = LocalExecutor::default();
        let spawn = streams.clone();
        let connection = async move {
            for _ in 0..100 {
                let (done, wait) = tokio::sync::oneshot::channel();
                spawn.execute(async move {
                    tokio::task::yield_now().await;
                    done.send(()).unwrap();
                });
                wait.await.unwrap();
            }
        };
        let mut run = streams.run(connection);
        (&mut run).await;
        assert_eq!(run.streams.len(), 1);
    }

    #[tokio::test]
    async fn a_connection_that_is_never_idle_leaves_time_to_others() {
        let always = std::future::poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        let busy = LocalExecutor::default().run(always);
        tokio::select! {
            () = busy => {}
            () = async { tokio::task::yield_now().await } => {}
        }
    }
}
