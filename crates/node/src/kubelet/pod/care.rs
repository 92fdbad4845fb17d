//! What a running container is asked: hooks after its start and before its end, and probes in between.

use std::{convert::Infallible, time::Duration};

use k8s_openapi::api::core::v1::{LifecycleHandler, Probe};

use super::run::Run;
use crate::kubelet::{
    probe::{self, Fault, Kind as ProbeKind, Outcome, Prober, Target},
    status::wildcard_message,
    wildcards::Watched,
};

/// A hook may take as long as it likes: only the end of the container, or of its time, ends it. This is long enough for whatever
/// is still meant.
const HOOK: Duration = Duration::from_secs(60 * 60);

/// Why a container must be restarted.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) message: String,
    /// Another time to end than the pod's.
    pub(super) grace: Option<Duration>,
}

impl Run<'_> {
    /// Looks after the container until it must be restarted; says why.
    pub(super) async fn care(&self) -> Trouble {
        let container = self.container;
        let target = self.target();
        if let Some(hook) = container.lifecycle.as_ref().and_then(|lifecycle| lifecycle.post_start.as_ref())
            && let Err(why) = self.hook(hook, &target).await
        {
            tracing::debug!(pod = %self.worker.key, container = container.name, why, "a hook failed");
            self.worker.warning(&container.name, "FailedPostStartHook", "PostStartHook failed");
            return Trouble { message: "FailedPostStartHook".to_owned(), grace: None };
        }
        if let Some(probe) = &container.startup_probe {
            let prober = self.prober(ProbeKind::Startup, probe, &target);
            if let Err(trouble) = self.passed(ProbeKind::Startup, probe, &prober).await {
                return trouble;
            }
        }
        self.worker.board.change_container(&container.name, |status| {
            status.started = Some(true);
            status.ready = container.readiness_probe.is_none() && self.is_counted();
        });
        let readiness = container.readiness_probe.as_ref();
        let readiness = readiness.map(|probe| self.prober(ProbeKind::Readiness, probe, &target));
        let liveness = container.liveness_probe.as_ref();
        let liveness = liveness.map(|probe| (probe, self.prober(ProbeKind::Liveness, probe, &target)));
        drop(target);
        tokio::select! {
            trouble = self.watch_liveness(liveness) => trouble,
            trouble = self.watch_readiness(readiness) => trouble,
        }
    }

    /// Waits for a probe that ends; its failure is trouble.
    async fn passed(&self, kind: ProbeKind, probe: &Probe, prober: &Prober) -> Result<(), Trouble> {
        let mut outcome = prober.outcome();
        let found = outcome.wait_for(|outcome| *outcome != Outcome::Unknown).await.map(|found| found.clone());
        match found {
            Ok(Outcome::Failure(_)) => Err(self.failed(kind, probe)),
            _ => Ok(()),
        }
    }

    fn failed(&self, kind: ProbeKind, probe: &Probe) -> Trouble {
        let kind = kind.to_string().to_lowercase();
        let message = format!("Container {} failed {kind} probe, will be restarted", self.container.name);
        let seconds = probe.termination_grace_period_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        Trouble { message, grace: seconds.map(Duration::from_secs) }
    }

    async fn watch_liveness(&self, liveness: Option<(&Probe, Prober)>) -> Trouble {
        let Some((probe, prober)) = liveness else { return std::future::pending().await };
        let mut outcome = prober.outcome();
        let failed = outcome.wait_for(|outcome| matches!(outcome, Outcome::Failure(_))).await.is_ok();
        if failed { self.failed(ProbeKind::Liveness, probe) } else { std::future::pending().await }
    }

    async fn watch_readiness(&self, readiness: Option<Prober>) -> Trouble {
        let Some(prober) = readiness else { return std::future::pending().await };
        let mut outcome = prober.outcome();
        loop {
            let ready = *outcome.borrow_and_update() == Outcome::Success;
            self.worker.board.change_container(&self.container.name, |status| status.ready = ready);
            if outcome.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn prober(&self, kind: ProbeKind, probe: &Probe, target: &Target) -> Prober {
        let (events, about) = (self.worker.node.events.clone(), self.worker.refer(&self.container.name));
        let unhealthy = move |fault: &Fault| {
            let note = match fault {
                Fault::Failed(why) => format!("{kind} probe failed: {why}"),
                Fault::Errored(why) => format!("{kind} probe errored and resulted in unknown state: {why}"),
            };
            events.warning(about.clone(), "Unhealthy", note);
        };
        Prober::start(kind, probe.clone(), target.clone(), self.worker.node.checker.clone(), unhealthy)
    }

    /// Tells whoever looks at the pod where it listens on all addresses, for ever.
    pub(super) async fn watch_addresses(&self, mut watched: Watched) -> Infallible {
        let name = &self.container.name;
        loop {
            let addresses = watched.changed().await;
            if !addresses.is_empty() {
                self.worker.warning(name, "WildcardBind", wildcard_message(name, &addresses));
            }
            self.worker.board.change(|facts| {
                drop(facts.wildcards.remove(name));
                if !addresses.is_empty() {
                    facts.wildcards.insert(name.clone(), addresses);
                }
            });
        }
    }

    /// Runs what is to run before the end.
    pub(super) async fn before_end(&self, hook: &LifecycleHandler) {
        if let Err(why) = self.hook(hook, &self.target()).await {
            tracing::debug!(pod = %self.worker.key, container = self.container.name, why, "a hook failed");
            self.worker.warning(&self.container.name, "FailedPreStopHook", "PreStopHook failed");
        }
    }

    async fn hook(&self, hook: &LifecycleHandler, target: &Target) -> Result<(), String> {
        if let Some(exec) = &hook.exec {
            let ran = probe::run(exec.command.as_deref().unwrap_or_default(), target, HOOK).await;
            let exit = ran.map_err(|fault| fault.to_string())?;
            return if exit.code == 0 { Ok(()) } else { Err(exit.output) };
        }
        if let Some(action) = &hook.http_get {
            let asked = probe::get(&self.worker.node.checker, action, target, HOOK).await;
            return asked.map_err(|fault| fault.to_string());
        }
        if let Some(sleep) = &hook.sleep {
            let seconds = u64::try_from(sleep.seconds).unwrap_or(0);
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            return Ok(());
        }
        Err("it says neither exec, nor httpGet, nor sleep".to_owned())
    }

    fn target(&self) -> Target {
        let named = |port: &k8s_openapi::api::core::v1::ContainerPort| {
            Some((port.name.clone()?, u16::try_from(port.container_port).ok()?))
        };
        Target {
            ip: self.worker.ip().into(),
            ports: self.container.ports.iter().flatten().filter_map(named).collect(),
            env: self.launch.env.clone(),
            dir: self.launch.dir.clone(),
            mark: self.mark.clone(),
        }
    }
}
