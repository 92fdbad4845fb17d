//! Calls under way on a connection, and when it is to end.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use kubewake_config::model::ServerKeepalive;
use tokio::sync::{Notify, watch};

/// Why a connection is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The receiver closes.
    Closing,
    /// It is too old, or was idle for too long: the client may make another one.
    Expired,
}

/// Calls under way on a connection.
#[derive(Default)]
pub(super) struct Activity {
    calls: AtomicU64,
    /// A call began or the last one ended.
    changed: Notify,
    ending: watch::Sender<Option<End>>,
}

/// A call that is under way as long as this is there.
pub(super) struct Busy(Arc<Activity>);

impl Activity {
    /// A call begins.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        if self.calls.fetch_add(1, Ordering::AcqRel) == 0 {
            self.changed.notify_one();
        }
        Busy(self.clone())
    }

    /// Tells calls that would go on for ever that the connection is to end.
    pub(super) fn end(&self, why: End) {
        self.ending.send_replace(Some(why));
    }

    /// Ends when the connection is too old, or has been idle for too long.
    pub(super) async fn lifetime(&self, keepalive: &ServerKeepalive) {
        // A tenth of jitter, so that connections that were opened together are not closed together.
        let jitter = |age: Duration| age.mul_f64(0.9 + 0.2 * fastrand::f64());
        let age = async {
            match keepalive.max_connection_age {
                Some(age) => tokio::time::sleep(jitter(age)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = age => {}
            () = self.idle(keepalive.max_connection_idle) => {}
        }
    }

    async fn idle(&self, limit: Option<Duration>) {
        let Some(limit) = limit else { return std::future::pending().await };
        loop {
            let changed = self.changed.notified();
            let busy = self.calls.load(Ordering::Acquire) > 0;
            let wait = if busy { Duration::MAX } else { limit };
            if tokio::time::timeout(wait, changed).await.is_err() {
                return;
            }
        }
    }
}

impl Busy {
    /// Ends when the connection is to end. The call is under way until then.
    pub(super) fn until_the_end(self) -> impl Future<Output = End> + Send + 'static {
        let mut ending = self.0.ending.subscribe();
        async move {
            let _held = self;
            let told = ending.wait_for(Option::is_some).await;
            // An error means that the connection is gone.
            told.ok().and_then(|why| *why).unwrap_or(End::Closing)
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if self.0.calls.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.changed.notify_one();
        }
    }
}
