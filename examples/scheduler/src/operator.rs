//! The operator: turns a Scheduler into a ConfigMap with its configuration and a Deployment that runs it.
//!
//! *Guaranteed*: an invalid specification changes only the status, which lists all problems; the scheduler
//! continues with its configuration. `Ready` is true only while the scheduler itself reports that it uses the
//! specified configuration. A new configuration restarts nothing. *Assumed*: the scheduler's ServiceAccount
//! exists with its rights (`deploy/operator.yaml`), in the one namespace that the operator watches. *Not done*:
//! leader election.

pub mod build;
mod probe;
pub mod status;

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Pod},
    },
    jiff::Timestamp,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{
        controller::{self, Action},
        watcher,
    },
};
use kubewake_trail::{Controller, PendingWrites, Run, Trail, error_chain};
use serde_json::json;

use self::{build::OperandSettings, status::ReconcileFindings};
use crate::{
    api::{Scheduler, SchedulerStatus},
    configuration::ConfigurationDocument,
};

/// The field manager, and the value of `app.kubernetes.io/managed-by`.
pub const FIELD_MANAGER: &str = "scheduler-operator";
/// A fallback only: watches report every change.
const RESYNC_INTERVAL: Duration = Duration::from_secs(300);
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// The failed step of a reconcile.
#[derive(Debug, thiserror::Error)]
pub enum SchedulerReconcileError {
    #[error("failed to serialize the configuration")]
    Text(#[from] serde_json::Error),
    #[error("failed to apply the ConfigMap of the configuration")]
    ConfigMap(#[source] kube::Error),
    #[error("failed to apply the Deployment of the scheduler")]
    Deployment(#[source] kube::Error),
    #[error("failed to test the configuration with a pod")]
    Probe(#[source] kube::Error),
    #[error("failed to write the status")]
    Status(#[source] kube::Error),
}

struct SchedulerContext {
    client: Client,
    trail: Trail,
    operand: OperandSettings,
    /// Schedulers that were written and that the watch has not shown yet.
    pending_writes: PendingWrites<Arc<Scheduler>>,
}

/// Runs the operator for the Schedulers of a namespace until `stop` completes.
pub async fn run<Stop>(client: Client, trail: Trail, namespace: &str, operand: OperandSettings, stop: Stop)
where
    Stop: Future<Output = ()> + Send + Sync + 'static,
{
    let all = watcher::Config::default();
    let context = Arc::new(SchedulerContext {
        client: client.clone(),
        trail: trail.clone(),
        operand,
        pending_writes: PendingWrites::new(),
    });
    Controller::new(Api::<Scheduler>::namespaced(client.clone(), namespace), all.clone())
        .owns(Api::<ConfigMap>::namespaced(client.clone(), namespace), all.clone())
        .owns(Api::<Deployment>::namespaced(client.clone(), namespace), all.clone())
        .owns(Api::<Pod>::namespaced(client, namespace), all)
        .graceful_shutdown_on(stop)
        .run(trail, reconcile, error_policy, context)
        .for_each(log_watch_error)
        .await;
}

/// Logs watch errors. [`error_policy`] logs reconcile errors.
async fn log_watch_error<T>(result: Result<T, controller::Error<SchedulerReconcileError, watcher::Error>>) {
    if let Err(controller::Error::QueueError(error)) = result {
        tracing::warn!(error = error_chain(&error), "failed to watch objects");
    }
}

fn error_policy(scheduler: Arc<Scheduler>, error: &SchedulerReconcileError, _: Arc<SchedulerContext>) -> Action {
    let namespace = scheduler.namespace();
    let name = scheduler.name_any();
    tracing::warn!(
        kind = "Scheduler",
        namespace,
        name,
        error = error_chain(error),
        "reconcile failed and will be retried"
    );
    Action::requeue(RETRY_DELAY)
}

async fn reconcile(
    scheduler: Arc<Scheduler>,
    context: Arc<SchedulerContext>,
) -> Result<Action, SchedulerReconcileError> {
    let scheduler = context.pending_writes.newer_than(&*scheduler).unwrap_or(scheduler);
    // Checked only now: the deletion may be in the written object, and not yet in the one that the watch shows.
    if scheduler.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let findings = match build::build_document(&scheduler) {
        Ok(document) => context.apply_operands(&scheduler, &document).await?,
        Err(problems) => ReconcileFindings::refused(&problems),
    };
    // The reconcile succeeds, but its span should show the error of the specification.
    if let (ReconcileFindings::Refused { why }, Some(run)) = (&findings, Run::current()) {
        run.note_failure("Refused", why);
    }
    context.update_status(&scheduler, &findings).await?;
    Ok(Action::requeue(RESYNC_INTERVAL))
}

impl SchedulerContext {
    fn namespaced_api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self, of: &Scheduler) -> Api<K> {
        Api::namespaced(self.client.clone(), &of.namespace().unwrap_or_default())
    }
    /// Applies the Deployment and the ConfigMap, and probes the configuration.
    async fn apply_operands(
        &self,
        scheduler: &Scheduler,
        document: &ConfigurationDocument,
    ) -> Result<ReconcileFindings, SchedulerReconcileError> {
        let children = self.trail.child(scheduler);
        // The Deployment first: it is usually unchanged, and a scheduler without a ConfigMap waits for it.
        let deployment = build::build_deployment(scheduler, &self.operand);
        let deployment = children
            .apply(&self.namespaced_api(scheduler), FIELD_MANAGER, deployment)
            .await
            .map_err(SchedulerReconcileError::Deployment)?;
        let config_map = build::build_config_map(scheduler, document)?;
        children
            .apply(&self.namespaced_api(scheduler), FIELD_MANAGER, config_map)
            .await
            .map_err(SchedulerReconcileError::ConfigMap)?;
        let available = status::is_available(&deployment);
        let revision = document.revision.clone();
        let probe =
            probe::run_probe(self, scheduler, &revision, available).await.map_err(SchedulerReconcileError::Probe)?;
        Ok(ReconcileFindings::Configured { revision, available, probe })
    }

    /// Writes the status if it differs.
    async fn update_status(
        &self,
        scheduler: &Scheduler,
        findings: &ReconcileFindings,
    ) -> Result<(), SchedulerReconcileError> {
        let status = status::scheduler_status(scheduler, findings, Timestamp::now());
        if scheduler.status.as_ref() == Some(&status) {
            return Ok(());
        }
        // The scheduler itself writes `running`.
        let mine = SchedulerStatus { running: None, ..status };
        let api: Api<Scheduler> = self.namespaced_api(scheduler);
        let patch = Patch::Merge(json!({ "status": mine }));
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let written =
            self.trail.patch_status(&api, scheduler, &params, &patch).await.map_err(SchedulerReconcileError::Status)?;
        let written = Arc::new(written);
        self.pending_writes.record(&*written, Arc::clone(&written));
        Ok(())
    }
}
