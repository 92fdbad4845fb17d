//! The hooks and probes of a running container.

use std::{convert::Infallible, time::Duration};

use k8s_openapi::api::core::v1::{LifecycleHandler, Probe};

use super::container_run::ContainerRun;
use crate::kubelet::{
    probe::{self, ProbeError, ProbeKind, ProbeOutcome, ProbeTarget, Prober},
    status::wildcard_message,
    wildcard_monitor::WildcardWatch,
};

/// Hooks have no time limit of their own; they end with the container or its grace period. This is a safe upper
/// limit.
const HOOK_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// The reason to restart a container.
#[derive(Debug)]
pub(super) struct RestartReason {
    pub(super) message: String,
    /// The grace period, if it differs from the pod's.
    pub(super) grace: Option<Duration>,
}

impl ContainerRun<'_> {
    /// Runs the probes until the container must be restarted, and returns the reason.
    pub(super) async fn run_probes(&self) -> RestartReason {
        let container = self.container;
        let target = self.probe_target();
        if let Some(hook) = container.lifecycle.as_ref().and_then(|lifecycle| lifecycle.post_start.as_ref())
            && let Err(why) = self.run_hook(hook, &target).await
        {
            tracing::debug!(pod = %self.worker.key, container = container.name, why, "a hook failed");
            self.worker.record_warning(&container.name, "FailedPostStartHook", "PostStartHook failed");
            return RestartReason { message: "FailedPostStartHook".to_owned(), grace: None };
        }
        if let Some(probe) = &container.startup_probe {
            let prober = self.prober(ProbeKind::Startup, probe, &target);
            if let Err(trouble) = self.wait_for_probe(ProbeKind::Startup, probe, &prober).await {
                return trouble;
            }
        }
        self.worker.status.update_container(&container.name, |status| {
            status.started = Some(true);
            status.ready = container.readiness_probe.is_none() && self.counts_for_readiness();
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

    /// Waits for a startup or liveness probe; its failure is a reason to restart.
    async fn wait_for_probe(&self, kind: ProbeKind, probe: &Probe, prober: &Prober) -> Result<(), RestartReason> {
        let mut outcome = prober.outcome();
        let found = outcome.wait_for(|outcome| *outcome != ProbeOutcome::Unknown).await.map(|found| found.clone());
        match found {
            Ok(ProbeOutcome::Failure(_)) => Err(self.restart_reason(kind, probe)),
            _ => Ok(()),
        }
    }

    fn restart_reason(&self, kind: ProbeKind, probe: &Probe) -> RestartReason {
        let kind = kind.to_string().to_lowercase();
        let message = format!("Container {} failed {kind} probe, will be restarted", self.container.name);
        let seconds = probe.termination_grace_period_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        RestartReason { message, grace: seconds.map(Duration::from_secs) }
    }

    async fn watch_liveness(&self, liveness: Option<(&Probe, Prober)>) -> RestartReason {
        let Some((probe, prober)) = liveness else { return std::future::pending().await };
        let mut outcome = prober.outcome();
        let failed = outcome.wait_for(|outcome| matches!(outcome, ProbeOutcome::Failure(_))).await.is_ok();
        if failed { self.restart_reason(ProbeKind::Liveness, probe) } else { std::future::pending().await }
    }

    async fn watch_readiness(&self, readiness: Option<Prober>) -> RestartReason {
        let Some(prober) = readiness else { return std::future::pending().await };
        let mut outcome = prober.outcome();
        loop {
            let ready = *outcome.borrow_and_update() == ProbeOutcome::Success;
            self.worker.status.update_container(&self.container.name, |status| status.ready = ready);
            if outcome.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn prober(&self, kind: ProbeKind, probe: &Probe, target: &ProbeTarget) -> Prober {
        let events = self.worker.node.events.clone();
        let about = self.worker.container_reference(&self.container.name);
        let unhealthy = move |fault: &ProbeError| {
            let note = match fault {
                ProbeError::Failed(why) => format!("{kind} probe failed: {why}"),
                ProbeError::Errored(why) => format!("{kind} probe errored and resulted in unknown state: {why}"),
            };
            events.record_warning(about.clone(), "Unhealthy", note);
        };
        Prober::start(kind, probe.clone(), target.clone(), self.worker.node.probe_checker.clone(), unhealthy)
    }

    /// Reports listeners on all addresses in the pod's status, for ever.
    pub(super) async fn watch_wildcard_binds(&self, mut watched: WildcardWatch) -> Infallible {
        let name = &self.container.name;
        loop {
            let addresses = watched.wait_for_change().await;
            if !addresses.is_empty() {
                self.worker.record_warning(name, "WildcardBind", wildcard_message(name, &addresses));
            }
            self.worker.status.update(|facts| {
                drop(facts.wildcard_binds.remove(name));
                if !addresses.is_empty() {
                    facts.wildcard_binds.insert(name.clone(), addresses);
                }
            });
        }
    }

    /// Runs the pre-stop hook.
    pub(super) async fn run_pre_stop_hook(&self, hook: &LifecycleHandler) {
        if let Err(why) = self.run_hook(hook, &self.probe_target()).await {
            tracing::debug!(pod = %self.worker.key, container = self.container.name, why, "a hook failed");
            self.worker.record_warning(&self.container.name, "FailedPreStopHook", "PreStopHook failed");
        }
    }

    async fn run_hook(&self, hook: &LifecycleHandler, target: &ProbeTarget) -> Result<(), String> {
        if let Some(exec) = &hook.exec {
            let ran = probe::run_command(exec.command.as_deref().unwrap_or_default(), target, HOOK_TIMEOUT).await;
            let exit = ran.map_err(|fault| fault.to_string())?;
            return if exit.code == 0 { Ok(()) } else { Err(exit.output) };
        }
        if let Some(action) = &hook.http_get {
            let asked = probe::send_hook_request(&self.worker.node.probe_checker, action, target, HOOK_TIMEOUT).await;
            return asked.map_err(|fault| fault.to_string());
        }
        if let Some(sleep) = &hook.sleep {
            let seconds = u64::try_from(sleep.seconds).unwrap_or(0);
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            return Ok(());
        }
        Err("the hook has none of exec, httpGet and sleep".to_owned())
    }

    fn probe_target(&self) -> ProbeTarget {
        let named = |port: &k8s_openapi::api::core::v1::ContainerPort| {
            Some((port.name.clone()?, u16::try_from(port.container_port).ok()?))
        };
        ProbeTarget {
            ip: self.worker.ip().into(),
            ports: self.container.ports.iter().flatten().filter_map(named).collect(),
            env: self.process_spec.env.clone(),
            dir: self.process_spec.dir.clone(),
            tag: self.tag.clone(),
        }
    }
}
