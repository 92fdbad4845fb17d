//! The life of a container: run after run, as its restart policy has it.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, ContainerStatus};

use super::{
    Worker,
    backoff::{Backoff, words},
    ground::Ground,
    orders::Orders,
    run::Run,
};
use crate::kubelet::status::restart_policy;

/// What a container is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It must succeed before the next begins.
    Init,
    /// It begins before others, and stays beside them.
    Sidecar,
    /// What the pod is for.
    Main,
}

/// How it ended for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Succeeded,
    Failed,
    /// Because the pod stops.
    Stopped,
}

impl Outcome {
    fn of(code: i32) -> Self {
        if code == 0 { Self::Succeeded } else { Self::Failed }
    }
}

impl Worker {
    /// Runs a container until it will not run again.
    pub(super) async fn container(&self, name: &str, kind: Kind, ground: &Ground, mut orders: Orders) -> Outcome {
        if let Some(code) = self.has_ended(name, kind) {
            return Outcome::of(code);
        }
        let mut backoff = Backoff::new(self.node.options.backoff);
        loop {
            let launch = self.launch(name, ground, &mut orders).await;
            let Some((container, launch)) = launch else { return Outcome::Stopped };
            backoff.begin();
            let code = Run::new(self, &container, kind, launch).run(&mut orders).await;
            if orders.by().is_some() {
                return Outcome::Stopped;
            }
            if !self.is_restarted(kind, code) {
                return Outcome::of(code);
            }
            if let Some(wait) = backoff.end()
                && self.crash_loop(name, wait, &mut orders).await.is_none()
            {
                return Outcome::Stopped;
            }
        }
    }

    /// Its exit code, if it has run before and does not run again.
    pub(super) fn has_ended(&self, name: &str, kind: Kind) -> Option<i32> {
        let ended = |status: &ContainerStatus| Some(status.state.as_ref()?.terminated.as_ref()?.exit_code);
        self.board.container(name, ended)?.filter(|code| !self.is_restarted(kind, *code))
    }

    fn is_restarted(&self, kind: Kind, code: i32) -> bool {
        let told = self.told.borrow();
        let policy = told.pod.spec.as_ref().map_or("Always", restart_policy);
        match (kind, policy) {
            (Kind::Sidecar, _) => true,
            (Kind::Main, "Always") => true,
            (_, "Never") => false,
            _ => code != 0,
        }
    }

    /// Waits before the next run. None if the pod stops meanwhile.
    async fn crash_loop(&self, name: &str, wait: Duration, orders: &mut Orders) -> Option<()> {
        let pod = format!("{}_{}({})", self.key.name, self.key.namespace, self.uid);
        self.warning(name, "BackOff", format!("Back-off restarting failed container {name} in pod {pod}"));
        let message = format!("back-off {} restarting failed container={name} pod={pod}", words(wait));
        self.board.wait(name, "CrashLoopBackOff", Some(message));
        orders.pause(wait).await
    }

    /// The container as the pod has it now: its image may be another than before.
    pub(super) fn spec_of(&self, name: &str) -> Option<Container> {
        let told = self.told.borrow();
        let spec = told.pod.spec.as_ref()?;
        let all = spec.init_containers.iter().flatten().chain(&spec.containers);
        all.into_iter().find(|container| container.name == name).cloned()
    }

    /// Waits until another image is asked for than this container runs; says so.
    pub(super) async fn replaced(&self, container: &Container) -> String {
        let mut told = self.told.clone();
        loop {
            if self.spec_of(&container.name).is_some_and(|now| now.image != container.image) {
                return format!("Container {} definition changed, will be restarted", container.name);
            }
            if told.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
