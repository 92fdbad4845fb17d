//! What is known of a pod, written by those who run it and read by the one who reports it.

use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::{ContainerState, ContainerStateWaiting, ContainerStatus};
use tokio::sync::watch;

use crate::kubelet::status::Facts;

#[derive(Debug)]
pub(super) struct Board {
    facts: Mutex<Facts>,
    /// Counts changes.
    version: watch::Sender<u64>,
}

impl Board {
    pub(super) fn new(facts: Facts) -> Self {
        Self { facts: Mutex::new(facts), version: watch::Sender::new(1) }
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Facts)) {
        change(&mut self.facts.lock().unwrap_or_else(PoisonError::into_inner));
        self.version.send_modify(|version| *version += 1);
    }

    pub(super) fn change_container(&self, name: &str, change: impl FnOnce(&mut ContainerStatus)) {
        self.change(|facts| facts.containers.get_mut(name).map_or((), change));
    }

    /// It waits, and says for what.
    pub(super) fn wait(&self, name: &str, reason: &str, message: Option<String>) {
        self.change_container(name, |status| {
            keep_last(status);
            let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
            status.state = Some(ContainerState { waiting: Some(waiting), ..ContainerState::default() });
        });
    }

    pub(super) fn read<R>(&self, read: impl FnOnce(&Facts) -> R) -> R {
        read(&self.facts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn container<R>(&self, name: &str, read: impl FnOnce(&ContainerStatus) -> R) -> Option<R> {
        self.read(|facts| facts.containers.get(name).map(read))
    }

    /// Counts changes.
    pub(super) fn version(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }
}

/// Whether it has ended before.
pub(super) fn has_run(status: &ContainerStatus) -> bool {
    [&status.state, &status.last_state].into_iter().flatten().any(|state| state.terminated.is_some())
}

/// What is about to be replaced stays as the last, if it tells of an end.
pub(super) fn keep_last(status: &mut ContainerStatus) {
    if let Some(ended) = status.state.take_if(|state| state.terminated.is_some()) {
        status.last_state = Some(ended);
    }
}
