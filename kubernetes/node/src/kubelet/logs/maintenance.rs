//! The periodic work on the logs of a node: rotation, and the removal of dead runs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::{MissedTickBehavior, interval};

use super::{ContainerLogStore, ContainerLogs, run_log::RunLog};

/// The interval at which logs of dead runs are removed: the period of the kubelet's garbage collection.
const COLLECTION_INTERVAL: Duration = Duration::from_secs(60);

/// Interrupts a compression when the task of the node is dropped, so that it writes nothing after the end.
struct StopFlag(Arc<AtomicBool>);

impl Drop for StopFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl ContainerLogStore {
    /// Rotates logs and removes those of dead runs, until it is dropped. As in a kubelet, one log is rotated after
    /// the other.
    pub(in crate::kubelet) async fn maintain(self) {
        let stop = StopFlag(Arc::default());
        let every = |period: Duration| {
            let mut ticks = interval(period.max(Duration::from_millis(1)));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        let (mut rotation, mut collection) = (every(self.0.rules.interval), every(COLLECTION_INTERVAL));
        loop {
            let store = self.clone();
            let is_stopping = Arc::clone(&stop.0);
            let work = tokio::select! {
                _ = rotation.tick() => tokio::task::spawn_blocking(move || store.rotate_all(Timestamp::now(), &is_stopping)),
                _ = collection.tick() => tokio::task::spawn_blocking(move || store.remove_dead_runs()),
            };
            // A panic is reported by the runtime.
            let _ = work.await;
        }
    }

    /// Rotates the logs that have reached their size.
    pub(super) fn rotate_all(&self, now: Timestamp, is_stopping: &AtomicBool) {
        for log in self.written_logs() {
            if let Err(error) = log.rotate(&self.0.rules, now, is_stopping)
                && !is_stopping.load(Ordering::Relaxed)
            {
                tracing::warn!(log = %log.path().display(), %error, "failed to rotate a container's log, retrying");
            }
        }
    }

    fn written_logs(&self) -> Vec<Arc<RunLog>> {
        let known = self.lock_logs();
        let last = known.values().flat_map(|pod| pod.values()).filter_map(|container| container.last.clone());
        last.filter(|log| !log.is_finished()).collect()
    }

    /// Keeps one dead run of each container: the log of an earlier one is removed when the last one has ended.
    pub(super) fn remove_dead_runs(&self) {
        let mut known = self.lock_logs();
        let dead = |container: &mut ContainerLogs| {
            container.previous.take_if(|_| container.last.as_ref().is_some_and(|log| log.is_finished()))
        };
        let removed: Vec<Arc<RunLog>> = known.values_mut().flat_map(|pod| pod.values_mut()).filter_map(dead).collect();
        drop(known);
        removed.iter().for_each(|log| self.remove_log(log));
    }
}
