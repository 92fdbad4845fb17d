//! Streams of an HTTP/2 connection, run in the task of the connection.
//!
//! hyper hands every stream to an executor. Spawned as tasks of their own they wake other threads, which then work on
//! bytes that are in this one's cache. Here they stay: a connection with all its streams is one task, and what one of them
//! asks of another is done in the same turn. What takes long (decompression) must therefore be spawned by the stream
//! itself. Most streams find all that they need when they are first polled, and end there; only the others are kept, each
//! with a waker of its own.
//!
//! *Guarantees.* A stream that panics ends alone. What was handed over and never ran goes when the connection does. *Assumes*
//! that the connection bounds its streams: HTTP/2 does, by their number and by how many may be reset before they were
//! accepted.

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::stream::{FuturesUnordered, Stream};
use hyper::rt::Executor;

/// How often the connection and its streams take turns before other tasks have theirs.
const TURNS: usize = 16;

/// A stream, whose panic is its own: the others of its connection go on.
struct Alone(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Future for Alone {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| {
            tracing::error!("a request made the collector panic; its connection goes on");
            Poll::Ready(())
        })
    }
}

/// Takes the streams of one connection.
#[derive(Clone, Default)]
pub struct InTask(Arc<Mutex<Handed>>);

/// Streams that were handed over and have not begun.
#[derive(Default)]
struct Handed {
    streams: Vec<Alone>,
    /// The connection is gone, and nobody will run what is handed over.
    ended: bool,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for InTask {
    fn execute(&self, stream: F) {
        let stream = Alone(Box::pin(stream));
        let mut handed = self.handed();
        if !handed.ended {
            handed.streams.push(stream);
        }
    }
}

impl InTask {
    fn handed(&self) -> MutexGuard<'_, Handed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the connection with its streams. It ends when the connection does; streams that are left are dropped.
    pub fn run<C: Future>(self, connection: C) -> Run<C> {
        let bell = Arc::new(Bell::default());
        Run {
            connection: Box::pin(connection),
            new: self,
            first: Vec::new(),
            waiting: FuturesUnordered::new(),
            waker: Waker::from(bell.clone()),
            bell,
        }
    }
}

/// A connection with its streams.
pub struct Run<C> {
    connection: Pin<Box<C>>,
    new: InTask,
    /// Those that are polled for the first time; empty between turns.
    first: Vec<Alone>,
    /// Those that did not end then.
    waiting: FuturesUnordered<Alone>,
    bell: Arc<Bell>,
    waker: Waker,
}

/// The waker of the connection and its streams. What wakes one of them during a turn costs no turn of the scheduler.
#[derive(Default)]
struct Bell {
    rang: AtomicBool,
    in_turn: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Sequentially consistent, as is the end of a turn: one of the two sees the other.
        self.rang.store(true, Ordering::SeqCst);
        if !self.in_turn.load(Ordering::SeqCst)
            && let Some(task) = &*self.task.lock().unwrap_or_else(PoisonError::into_inner)
        {
            task.wake_by_ref();
        }
    }
}

impl<C: Future> Run<C> {
    /// The connection itself.
    pub fn connection(&mut self) -> Pin<&mut C> {
        self.connection.as_mut()
    }

    /// Polls the connection, then its streams.
    fn turn(&mut self) -> Poll<C::Output> {
        let cx = &mut Context::from_waker(&self.waker);
        if let Poll::Ready(end) = self.connection.as_mut().poll(cx) {
            return Poll::Ready(end);
        }
        std::mem::swap(&mut self.first, &mut self.new.handed().streams);
        for mut stream in self.first.drain(..) {
            if Pin::new(&mut stream).poll(cx).is_pending() {
                self.waiting.push(stream);
            }
        }
        while !self.waiting.is_empty() && Pin::new(&mut self.waiting).poll_next(cx).is_ready() {}
        Poll::Pending
    }

    fn has_new(&self) -> bool {
        !self.new.handed().streams.is_empty()
    }
}

impl<C> Drop for Run<C> {
    fn drop(&mut self) {
        // A stream holds the executor that it was handed to, so that those in it would hold themselves for ever.
        let never_ran = {
            let mut handed = self.new.handed();
            handed.ended = true;
            std::mem::take(&mut handed.streams)
        };
        drop(never_ran);
    }
}

impl<C: Future> Future for Run<C> {
    type Output = C::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Output> {
        let me = self.get_mut();
        {
            let mut task = me.bell.task.lock().unwrap_or_else(PoisonError::into_inner);
            if !task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
                *task = Some(cx.waker().clone());
            }
        }
        me.bell.in_turn.store(true, Ordering::SeqCst);
        for _ in 0..TURNS {
            me.bell.rang.store(false, Ordering::SeqCst);
            if let Poll::Ready(end) = me.turn() {
                return Poll::Ready(end);
            }
            if !me.bell.rang.load(Ordering::SeqCst) && !me.has_new() {
                break;
            }
        }
        me.bell.in_turn.store(false, Ordering::SeqCst);
        if me.bell.rang.load(Ordering::SeqCst) || me.has_new() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn streams_run_while_the_connection_does() {
        let streams = InTask::default();
        let (first, second) = (tokio::sync::oneshot::channel(), tokio::sync::oneshot::channel());
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
        let streams = InTask::default();
        let (done, wait) = tokio::sync::oneshot::channel();
        let spawn = streams.clone();
        streams.execute(async move { spawn.execute(async move { done.send(()).unwrap() }) });
        streams.run(wait).await.unwrap();
    }

    #[tokio::test]
    async fn a_stream_that_never_ran_goes_with_its_connection() {
        let (streams, held) = (InTask::default(), Arc::new(()));
        let (spawn, holds) = (streams.clone(), held.clone());
        // As hyper's streams do, it holds on to the executor.
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
        let (streams, (done, wait)) = (InTask::default(), tokio::sync::oneshot::channel());
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
            let (streams, (done, wait)) = (InTask::default(), tokio::sync::oneshot::channel());
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
    async fn a_connection_that_is_never_idle_leaves_time_to_others() {
        let always = std::future::poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        let busy = InTask::default().run(always);
        tokio::select! {
            () = busy => {}
            () = async { tokio::task::yield_now().await } => {}
        }
    }
}
