//! The lifecycle of a container: its runs, by its restart policy.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, ContainerStatus};

use super::{
    PodWorker,
    backoff::{ContainerBackoff, format_duration},
    container_run::ContainerRun,
    sandbox::PodSandbox,
    stop_signal::StopSignal,
};
use crate::kubelet::status::restart_policy;

/// The kind of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerKind {
    /// Has to succeed before the next container starts.
    Init,
    /// Starts before the main containers and keeps running beside them.
    Sidecar,
    Main,
}

/// The final result of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerOutcome {
    Succeeded,
    Failed,
    Stopped,
}

impl ContainerOutcome {
    fn from_exit_code(code: i32) -> Self {
        if code == 0 { Self::Succeeded } else { Self::Failed }
    }
}

impl PodWorker {
    /// Runs a container until it will not run again.
    pub(super) async fn run_container(
        &self,
        name: &str,
        kind: ContainerKind,
        ground: &PodSandbox,
        mut orders: StopSignal,
    ) -> ContainerOutcome {
        if let Some(code) = self.final_exit_code(name, kind) {
            return ContainerOutcome::from_exit_code(code);
        }
        let mut backoff = ContainerBackoff::new(self.node.options.backoff);
        loop {
            let launch = self.prepare_container(name, ground, &mut orders).await;
            let Some((container, launch)) = launch else { return ContainerOutcome::Stopped };
            backoff.record_start();
            let code = ContainerRun::new(self, &container, kind, launch).run(&mut orders).await;
            if orders.stop_deadline().is_some() {
                return ContainerOutcome::Stopped;
            }
            if !self.should_restart(kind, code) {
                return ContainerOutcome::from_exit_code(code);
            }
            if let Some(wait) = backoff.next_wait()
                && self.wait_in_crash_loop(name, wait, &mut orders).await.is_none()
            {
                return ContainerOutcome::Stopped;
            }
        }
    }

    /// The exit code, if the container has run and will not run again.
    pub(super) fn final_exit_code(&self, name: &str, kind: ContainerKind) -> Option<i32> {
        let ended = |status: &ContainerStatus| Some(status.state.as_ref()?.terminated.as_ref()?.exit_code);
        self.status.container(name, ended)?.filter(|code| !self.should_restart(kind, *code))
    }

    fn should_restart(&self, kind: ContainerKind, code: i32) -> bool {
        let told = self.updates.borrow();
        let policy = told.pod.spec.as_ref().map_or("Always", restart_policy);
        match (kind, policy) {
            (ContainerKind::Sidecar, _) => true,
            (ContainerKind::Main, "Always") => true,
            (_, "Never") => false,
            _ => code != 0,
        }
    }

    /// Waits for the restart delay. None if the pod stops meanwhile.
    async fn wait_in_crash_loop(&self, name: &str, wait: Duration, orders: &mut StopSignal) -> Option<()> {
        let pod = format!("{}_{}({})", self.key.name, self.key.namespace, self.uid);
        self.record_warning(name, "BackOff", format!("Back-off restarting failed container {name} in pod {pod}"));
        let message = format!("back-off {} restarting failed container={name} pod={pod}", format_duration(wait));
        self.status.set_waiting(name, "CrashLoopBackOff", Some(message));
        orders.sleep_unless_stopped(wait).await
    }

    /// The current spec of the container: its image can be changed.
    pub(super) fn container_spec(&self, name: &str) -> Option<Container> {
        let told = self.updates.borrow();
        let spec = told.pod.spec.as_ref()?;
        let all = spec.init_containers.iter().flatten().chain(&spec.containers);
        all.into_iter().find(|container| container.name == name).cloned()
    }

    /// Waits until the pod has another image for the container, and returns it.
    pub(super) async fn wait_for_new_image(&self, container: &Container) -> String {
        let mut told = self.updates.clone();
        loop {
            if self.container_spec(&container.name).is_some_and(|now| now.image != container.image) {
                return format!("Container {} definition changed, will be restarted", container.name);
            }
            if told.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
