//! Looks now and then whether a container listens on all addresses, and tells it.
//!
//! All containers of a node are looked at in one go: soon after one has started, and from time to time, as programs may listen
//! late. Nothing is done while no container runs.

use std::{
    collections::{BTreeSet, HashMap},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{Notify, watch};

use super::listening;

/// Most programs listen within this time after their start.
const SETTLE: Duration = Duration::from_secs(1);
/// For those that do not.
const PERIOD: Duration = Duration::from_secs(15);

/// Of a node. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Wildcards(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// By process group.
    watched: Mutex<HashMap<i32, watch::Sender<BTreeSet<SocketAddr>>>>,
    started: Notify,
}

/// A container that is looked at until this is dropped.
#[derive(Debug)]
pub(super) struct Watched {
    all: Wildcards,
    group: i32,
    found: watch::Receiver<BTreeSet<SocketAddr>>,
}

impl Watched {
    /// Waits until it listens elsewhere than before, and says where that is on all addresses.
    pub(super) async fn changed(&mut self) -> BTreeSet<SocketAddr> {
        if self.found.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        self.found.borrow_and_update().clone()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.all.watched().remove(&self.group);
    }
}

impl Wildcards {
    /// Looks at a container from now on.
    pub(super) fn watch(&self, group: i32) -> Watched {
        let (sender, found) = watch::channel(BTreeSet::new());
        self.watched().insert(group, sender);
        self.0.started.notify_one();
        Watched { all: self.clone(), group, found }
    }

    /// Looks, for ever.
    pub(super) async fn run(self) {
        loop {
            tokio::select! {
                () = self.0.started.notified() => tokio::time::sleep(SETTLE).await,
                () = tokio::time::sleep(PERIOD) => {}
            }
            let groups: BTreeSet<i32> = self.watched().keys().copied().collect();
            if groups.is_empty() {
                continue;
            }
            match tokio::task::spawn_blocking(move || listening::on_all_addresses(&groups)).await {
                Ok(Ok(found)) => self.tell(found),
                Ok(Err(error)) => tracing::debug!(%error, "nobody knows who listens where"),
                // The runtime ends.
                Err(_) => return,
            }
        }
    }

    fn tell(&self, mut found: std::collections::BTreeMap<i32, BTreeSet<SocketAddr>>) {
        for (group, sender) in &*self.watched() {
            let now = found.remove(group).unwrap_or_default();
            sender.send_if_modified(|before| {
                let news = *before != now;
                *before = now;
                news
            });
        }
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<i32, watch::Sender<BTreeSet<SocketAddr>>>> {
        self.0.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
