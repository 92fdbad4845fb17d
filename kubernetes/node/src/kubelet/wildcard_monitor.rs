//! Monitors the containers of a node for listeners on all addresses.
//!
//! All containers are checked at once: shortly after one has started, and periodically, as programs may listen
//! late. Nothing is done while no container runs.

use std::{
    collections::{BTreeSet, HashMap},
    net::SocketAddr,
    sync::{Arc, MutexGuard},
    time::Duration,
};

use kubewake_runtime::lock::Mutex;
use tokio::sync::{Notify, watch};

use super::wildcard_listeners;

/// Most programs listen within this time after their start.
const SETTLE_DELAY: Duration = Duration::from_secs(1);
/// The interval for programs that listen later.
const CHECK_INTERVAL: Duration = Duration::from_secs(15);

/// The monitor of a node. Clones share their state.
#[derive(Clone, Debug, Default)]
pub(super) struct WildcardMonitor(Arc<MonitorState>);

#[derive(Debug, Default)]
struct MonitorState {
    watches: Mutex<HashMap<i32, watch::Sender<BTreeSet<SocketAddr>>>>,
    started: Notify,
}

/// A monitored container; until this is dropped.
#[derive(Debug)]
pub(super) struct WildcardWatch {
    monitor: WildcardMonitor,
    group: i32,
    found: watch::Receiver<BTreeSet<SocketAddr>>,
}

impl WildcardWatch {
    /// Waits for a change, and returns the wildcard addresses on which the container listens.
    pub(super) async fn wait_for_change(&mut self) -> BTreeSet<SocketAddr> {
        if self.found.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        self.found.borrow_and_update().clone()
    }
}

impl Drop for WildcardWatch {
    fn drop(&mut self) {
        self.monitor.lock_watches().remove(&self.group);
    }
}

impl WildcardMonitor {
    /// Starts to monitor a container.
    pub(super) fn watch(&self, group: i32) -> WildcardWatch {
        let (sender, found) = watch::channel(BTreeSet::new());
        self.lock_watches().insert(group, sender);
        self.0.started.notify_one();
        WildcardWatch { monitor: self.clone(), group, found }
    }

    pub(super) async fn run(self) {
        loop {
            tokio::select! {
                () = self.0.started.notified() => tokio::time::sleep(SETTLE_DELAY).await,
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
            let groups: BTreeSet<i32> = self.lock_watches().keys().copied().collect();
            if groups.is_empty() {
                continue;
            }
            match tokio::task::spawn_blocking(move || wildcard_listeners::wildcard_addresses(&groups)).await {
                Ok(Ok(found)) => self.notify_watches(found),
                Ok(Err(error)) => tracing::debug!(%error, "failed to list the listening sockets"),
                // The runtime is shutting down.
                Err(_) => return,
            }
        }
    }

    fn notify_watches(&self, mut found: std::collections::BTreeMap<i32, BTreeSet<SocketAddr>>) {
        for (group, sender) in &*self.lock_watches() {
            let now = found.remove(group).unwrap_or_default();
            sender.send_if_modified(|before| {
                let news = *before != now;
                *before = now;
                news
            });
        }
    }

    fn lock_watches(&self) -> MutexGuard<'_, HashMap<i32, watch::Sender<BTreeSet<SocketAddr>>>> {
        self.0.watches.lock()
    }
}
