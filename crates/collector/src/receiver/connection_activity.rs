//! Counts the calls under way on a connection, and decides when the connection closes.

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

/// Why a connection closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    Shutdown,
    /// It is too old, or was idle for too long: the client may open another connection.
    Expired,
}

#[derive(Default)]
pub(super) struct ConnectionActivity {
    calls: AtomicU64,
    /// A call began or the last one ended.
    changed: Notify,
    close_reason: watch::Sender<Option<CloseReason>>,
}

/// Counts as one call under way until it is dropped.
pub(super) struct CallGuard(Arc<ConnectionActivity>);

impl ConnectionActivity {
    pub(super) fn begin_call(self: &Arc<Self>) -> CallGuard {
        if self.calls.fetch_add(1, Ordering::AcqRel) == 0 {
            self.changed.notify_one();
        }
        CallGuard(self.clone())
    }

    /// Tells calls without an end of their own (health watches, streams) that the connection closes.
    pub(super) fn announce_close(&self, why: CloseReason) {
        self.close_reason.send_replace(Some(why));
    }

    /// Resolves when the connection is too old or was idle for too long.
    pub(super) async fn wait_for_expiry(&self, keepalive: &ServerKeepalive) {
        // 10 % jitter, so that connections that were opened together do not close together.
        let jitter = |age: Duration| age.mul_f64(0.9 + 0.2 * fastrand::f64());
        let age = async {
            match keepalive.max_connection_age {
                Some(age) => tokio::time::sleep(jitter(age)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = age => {}
            () = self.wait_until_idle(keepalive.max_connection_idle) => {}
        }
    }

    async fn wait_until_idle(&self, limit: Option<Duration>) {
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

impl CallGuard {
    /// Resolves when the connection closes. The call counts as under way until then.
    pub(super) fn wait_for_close(self) -> impl Future<Output = CloseReason> + Send + 'static {
        let mut ending = self.0.close_reason.subscribe();
        async move {
            let _held = self;
            let told = ending.wait_for(Option::is_some).await;
            // An error means that the connection is gone.
            told.ok().and_then(|why| *why).unwrap_or(CloseReason::Shutdown)
        }
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        if self.0.calls.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.changed.notify_one();
        }
    }
}
