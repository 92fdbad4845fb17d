//! The runtime state of a pod, shared by its containers and its status reporter.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStateWaiting, ContainerStatus};
use kubewake_runtime::lock::Mutex;
use tokio::sync::watch;

use crate::kubelet::status::PodRuntimeState;

#[derive(Debug)]
pub(in crate::kubelet) struct StatusCell {
    state: Mutex<PodRuntimeState>,
    version: watch::Sender<u64>,
}

impl StatusCell {
    pub(super) fn new(facts: PodRuntimeState) -> Self {
        Self { state: Mutex::new(facts), version: watch::Sender::new(1) }
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut PodRuntimeState)) {
        change(&mut self.state.lock());
        self.version.send_modify(|version| *version += 1);
    }

    pub(super) fn update_container(&self, name: &str, change: impl FnOnce(&mut ContainerStatus)) {
        self.update(|facts| facts.containers.get_mut(name).map_or((), change));
    }

    /// Sets the waiting state with its reason.
    pub(super) fn set_waiting(&self, name: &str, reason: &str, message: Option<String>) {
        self.update_container(name, |status| {
            move_to_last_state(status);
            let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
            status.state = Some(ContainerState { waiting: Some(waiting), ..ContainerState::default() });
        });
    }

    pub(super) fn read<R>(&self, read: impl FnOnce(&PodRuntimeState) -> R) -> R {
        read(&self.state.lock())
    }

    pub(in crate::kubelet) fn container<R>(&self, name: &str, read: impl FnOnce(&ContainerStatus) -> R) -> Option<R> {
        self.read(|facts| facts.containers.get(name).map(read))
    }

    pub(super) fn version(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }
}

/// Whether the container has run before.
pub(super) fn has_run(status: &ContainerStatus) -> bool {
    [&status.state, &status.last_state].into_iter().flatten().any(|state| state.terminated.is_some())
}

/// Moves the current state to the last state, if it is a terminated one.
pub(super) fn move_to_last_state(status: &mut ContainerStatus) {
    if let Some(ended) = status.state.take_if(|state| state.terminated.is_some()) {
        status.last_state = Some(ended);
    }
}
