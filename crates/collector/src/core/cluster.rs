//! What a processor counts that looks at a cluster, and how it gets on with that.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::time::Instant;

use super::{ErrorClass, Said, stats::closed};

/// The counters of one processor, in all its pipelines together.
#[derive(Debug, Default)]
pub struct ClusterStats {
    /// Pods that are known.
    pub pods: AtomicU64,
    /// Bytes that are held of them, about.
    pub held: AtomicU64,
    /// Pods that came.
    pub added: AtomicU64,
    /// Pods that changed.
    pub updated: AtomicU64,
    /// Pods that went.
    pub deleted: AtomicU64,
    /// Objects that there was no room for.
    pub left_out: AtomicU64,
    /// Times that the cluster could not be asked.
    pub failures: AtomicU64,
    associations: [AtomicU64; 2],
    view: Mutex<Weak<ClusterView>>,
}

impl ClusterStats {
    /// Resources whose pod was found, or was not.
    pub fn associated(&self, found: bool) -> &AtomicU64 {
        let [missed, matched] = &self.associations;
        if found { matched } else { missed }
    }

    /// From now on it looks at the cluster like this, maybe together with others.
    pub fn looks_by(&self, view: &Arc<ClusterView>) {
        *lock(&self.view) = Arc::downgrade(view);
    }

    /// How it gets on, if it looks at a cluster now.
    pub fn look(&self) -> Option<Look> {
        let view = lock(&self.view).upgrade();
        view.map(|view| view.look())
    }
}

closed! {
    /// How somebody gets on who looks at a cluster.
    ClusterState {
        /// Not everything that is asked for was seen so far.
        Connecting => "connecting",
        /// It was, and the cluster tells of changes.
        Synced => "synced",
        /// The cluster cannot be asked, for some of it at least. What is known is used.
        Failing => "failing",
    }
}

/// How the cluster is seen.
#[derive(Debug)]
pub struct ClusterView {
    course: Mutex<Course>,
    /// Pods that are known.
    pub pods: AtomicU64,
}

#[derive(Debug)]
struct Course {
    look: Look,
    /// What cannot be asked for at the moment.
    failing: BTreeSet<&'static str>,
    synced: bool,
}

/// A look at a [`ClusterView`] at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// How it gets on.
    pub state: ClusterState,
    /// Since when.
    pub since: Instant,
    /// The class of the last error, also after it was over.
    pub last_error: ErrorClass,
    /// What the API server said in it, if it answered.
    pub last_said: Option<Said>,
    /// When that was.
    pub last_failure: Option<Instant>,
    /// Pods that are known.
    pub pods: u64,
}

impl Default for ClusterView {
    fn default() -> Self {
        let look = Look {
            state: ClusterState::Connecting,
            since: Instant::now(),
            last_error: ErrorClass::None,
            last_said: None,
            last_failure: None,
            pods: 0,
        };
        Self { course: Mutex::new(Course { look, failing: BTreeSet::new(), synced: false }), pods: AtomicU64::new(0) }
    }
}

impl ClusterView {
    /// Something could not be asked for.
    pub fn failed(&self, what: &'static str, class: ErrorClass, said: Option<Said>) {
        let mut course = lock(&self.course);
        (course.look.last_error, course.look.last_said) = (class, said);
        course.look.last_failure = Some(Instant::now());
        course.failing.insert(what);
        course.settle();
    }

    /// Something was asked for, and answered. Says whether that was not so before.
    pub fn answered(&self, what: &'static str) -> bool {
        let mut course = lock(&self.course);
        let failed = course.failing.remove(what);
        course.settle();
        failed
    }

    /// Everything was seen.
    pub fn synced(&self) {
        let mut course = lock(&self.course);
        course.synced = true;
        course.settle();
    }

    /// How it stands.
    pub fn look(&self) -> Look {
        Look { pods: self.pods.load(Ordering::Relaxed), ..lock(&self.course).look }
    }
}

impl Course {
    fn settle(&mut self) {
        let state = match (self.failing.is_empty(), self.synced) {
            (false, _) => ClusterState::Failing,
            (true, true) => ClusterState::Synced,
            (true, false) => ClusterState::Connecting,
        };
        if state != self.look.state {
            (self.look.state, self.look.since) = (state, Instant::now());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_failing_until_everything_that_failed_is_answered() {
        let view = ClusterView::default();
        let state = || (view.look().state, view.look().since.elapsed().as_secs());
        assert_eq!(state(), (ClusterState::Connecting, 0));
        view.failed("pods", ErrorClass::Connection, None);
        tokio::time::advance(Duration::from_secs(1)).await;
        view.failed("nodes", ErrorClass::Authentication, None);
        assert_eq!(state(), (ClusterState::Failing, 1), "since the first failure");
        assert!(view.answered("pods") && !view.answered("pods"));
        view.synced();
        assert_eq!(state(), (ClusterState::Failing, 1));
        assert!(view.answered("nodes"));
        assert_eq!(state(), (ClusterState::Synced, 0));
        assert_eq!(view.look().last_error, ErrorClass::Authentication, "it is still known");
    }
}
