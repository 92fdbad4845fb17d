//! Reports of the scheduler in the status of its Scheduler: the configuration in use, and the rejected one.
//!
//! *Guaranteed*: the last report is written eventually, however often the API server fails; outdated reports
//! are skipped. Scheduling does not wait for it.

use std::time::Duration;

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use kubewake_trail::error_chain;
use opentelemetry::trace::FutureExt;
use serde_json::json;
use tokio::{sync::watch, time};

use super::{SchedulerIdentity, spans::OpenSpan};
use crate::api::{RefusedConfiguration, RunningScheduler, Scheduler};

/// The first and the longest retry delay.
const RETRY_DELAY_RANGE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

#[derive(Clone, Debug)]
pub struct ConfigurationReport {
    /// The configuration in use.
    pub revision: Option<String>,
    /// The rejected configuration.
    pub refused: Option<RefusedConfiguration>,
    /// The span in which the configuration was loaded or rejected.
    pub span: OpenSpan,
}

/// Writes reports until the sender is dropped.
pub async fn write_reports(
    client: Client,
    identity: SchedulerIdentity,
    mut reports: watch::Receiver<Option<ConfigurationReport>>,
) {
    let api: Api<Scheduler> = Api::namespaced(client, &identity.namespace);
    while reports.changed().await.is_ok() {
        let mut pause = RETRY_DELAY_RANGE.0;
        loop {
            let Some(report) = reports.borrow_and_update().clone() else { break };
            let Err(error) = patch_status(&api, &identity, &report).with_context(report.span.context()).await else {
                report.span.end(report.refused.map_or(Ok(()), |refused| Err(refused.reason)));
                break;
            };
            tracing::warn!(
                kind = "Scheduler",
                name = identity.scheduler,
                error = error_chain(&error),
                "failed to write the status of the Scheduler"
            );
            // A newer report is tried at once. After the sender is dropped there is no retry.
            if let Ok(Err(_)) = time::timeout(pause, reports.changed()).await {
                return;
            }
            pause = (pause * 2).min(RETRY_DELAY_RANGE.1);
        }
    }
}

async fn patch_status(
    api: &Api<Scheduler>,
    identity: &SchedulerIdentity,
    report: &ConfigurationReport,
) -> kube::Result<()> {
    let running = RunningScheduler {
        revision: report.revision.clone(),
        pod: identity.pod.clone(),
        since: Time(Timestamp::now()),
        refused: report.refused.clone(),
    };
    let mut status = json!({ "running": running });
    // A merge patch keeps unnamed fields, so an outdated rejection is set to null.
    if let (None, Some(running)) = (&report.refused, status.pointer_mut("/running")) {
        running["refused"] = serde_json::Value::Null;
    }
    let params = PatchParams { field_manager: Some(super::FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    api.patch_status(&identity.scheduler, &params, &Patch::Merge(json!({ "status": status }))).await?;
    Ok(())
}
