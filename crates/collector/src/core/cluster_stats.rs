//! Counters of a processor that watches a Kubernetes cluster, and the state of its watches.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use kubewake_runtime::{label_enum, lock::Mutex};
use tokio::time::Instant;

use super::{BackendStatus, ErrorClass};

/// The counters of one processor, over all its pipelines.
#[derive(Debug, Default)]
pub struct ClusterStats {
    pub pods: AtomicU64,
    /// The approximate size of the cached objects, in bytes.
    pub held: AtomicU64,
    pub added: AtomicU64,
    pub updated: AtomicU64,
    pub deleted: AtomicU64,
    /// Objects that there was no room for.
    pub left_out: AtomicU64,
    /// Failed requests to the API server.
    pub failures: AtomicU64,
    associations: [AtomicU64; 2],
    view: Mutex<Weak<ClusterView>>,
}

impl ClusterStats {
    /// Resources whose pod was found, or was not.
    pub fn associations(&self, found: bool) -> &AtomicU64 {
        let [missed, matched] = &self.associations;
        if found { matched } else { missed }
    }

    /// Sets the view of the cluster, which other processors may share.
    pub fn set_view(&self, view: &Arc<ClusterView>) {
        *self.view.lock() = Arc::downgrade(view);
    }

    /// The state of the current view; `None` without one.
    pub fn snapshot(&self) -> Option<ClusterSnapshot> {
        let view = self.view.lock().upgrade();
        view.map(|view| view.snapshot())
    }
}

label_enum! {
    /// The state of the watches of a cluster.
    pub enum ClusterState {
        /// Some resources were not listed yet.
        Connecting => "connecting",
        /// All resources were listed, and no request fails.
        Synced => "synced",
        /// Some requests fail. Known objects are still used.
        Failing => "failing",
    }
}

/// A view of a cluster and its state.
#[derive(Debug)]
pub struct ClusterView {
    progress: Mutex<ClusterProgress>,
    pub pods: AtomicU64,
}

#[derive(Debug)]
struct ClusterProgress {
    snapshot: ClusterSnapshot,
    /// The requests that currently fail.
    failing: BTreeSet<&'static str>,
    synced: bool,
}

/// The state of a [`ClusterView`] at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterSnapshot {
    pub state: ClusterState,
    pub since: Instant,
    /// The class of the last error, kept after recovery.
    pub last_error: ErrorClass,
    /// The status of the API server's response, if it responded.
    pub last_status: Option<BackendStatus>,
    pub last_failure: Option<Instant>,
    pub pods: u64,
}

impl Default for ClusterView {
    fn default() -> Self {
        let look = ClusterSnapshot {
            state: ClusterState::Connecting,
            since: Instant::now(),
            last_error: ErrorClass::None,
            last_status: None,
            last_failure: None,
            pods: 0,
        };
        Self {
            progress: Mutex::new(ClusterProgress { snapshot: look, failing: BTreeSet::new(), synced: false }),
            pods: AtomicU64::new(0),
        }
    }
}

impl ClusterView {
    /// Records a failed request.
    pub fn record_failure(&self, what: &'static str, class: ErrorClass, said: Option<BackendStatus>) {
        let mut course = self.progress.lock();
        (course.snapshot.last_error, course.snapshot.last_status) = (class, said);
        course.snapshot.last_failure = Some(Instant::now());
        course.failing.insert(what);
        course.update_state();
    }

    /// Records a successful request. Returns whether it failed before.
    pub fn record_answer(&self, what: &'static str) -> bool {
        let mut course = self.progress.lock();
        let failed = course.failing.remove(what);
        course.update_state();
        failed
    }

    pub fn mark_synced(&self) {
        let mut course = self.progress.lock();
        course.synced = true;
        course.update_state();
    }

    pub fn snapshot(&self) -> ClusterSnapshot {
        ClusterSnapshot { pods: self.pods.load(Ordering::Relaxed), ..self.progress.lock().snapshot }
    }
}

impl ClusterProgress {
    fn update_state(&mut self) {
        let state = match (self.failing.is_empty(), self.synced) {
            (false, _) => ClusterState::Failing,
            (true, true) => ClusterState::Synced,
            (true, false) => ClusterState::Connecting,
        };
        if state != self.snapshot.state {
            (self.snapshot.state, self.snapshot.since) = (state, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_failing_until_everything_that_failed_is_answered() {
        let view = ClusterView::default();
        let state = || (view.snapshot().state, view.snapshot().since.elapsed().as_secs());
        assert_eq!(state(), (ClusterState::Connecting, 0));
        view.record_failure("pods", ErrorClass::Connection, None);
        tokio::time::advance(Duration::from_secs(1)).await;
        view.record_failure("nodes", ErrorClass::Authentication, None);
        assert_eq!(state(), (ClusterState::Failing, 1), "since the first failure");
        assert!(view.record_answer("pods") && !view.record_answer("pods"));
        view.mark_synced();
        assert_eq!(state(), (ClusterState::Failing, 1));
        assert!(view.record_answer("nodes"));
        assert_eq!(state(), (ClusterState::Synced, 0));
        assert_eq!(view.snapshot().last_error, ErrorClass::Authentication, "it is still known");
    }
}
