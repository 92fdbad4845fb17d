//! What the scheduler says of itself in the status of its Scheduler: which configuration it decides by, and which it does not take.
//!
//! *Guarantees.* What was said last is written in the end, however often the API server fails; what is out of date by then is not. Nobody waits for it.

use std::time::Duration;

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use kubewake_trail::in_words;
use opentelemetry::trace::FutureExt;
use serde_json::json;
use tokio::{sync::watch, time};

use super::{Identity, spans::Open};
use crate::api::{Refused, Running, Scheduler};

/// After the first failure, and after many.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// What is so now.
#[derive(Clone, Debug)]
pub struct Report {
    /// The configuration that it decides by.
    pub revision: Option<String>,
    /// The one that it does not take.
    pub refused: Option<Refused>,
    /// In which span that came to be.
    pub span: Open,
}

/// Writes what is reported, until nobody reports any more.
pub async fn write(client: Client, identity: Identity, mut reports: watch::Receiver<Option<Report>>) {
    let api: Api<Scheduler> = Api::namespaced(client, &identity.namespace);
    while reports.changed().await.is_ok() {
        let mut pause = RETRY.0;
        loop {
            let Some(report) = reports.borrow_and_update().clone() else { break };
            let Err(error) = tell(&api, &identity, &report).with_context(report.span.context()).await else {
                report.span.end(report.refused.map_or(Ok(()), |refused| Err(refused.reason)));
                break;
            };
            tracing::warn!(
                kind = "Scheduler",
                name = identity.scheduler,
                error = in_words(&error),
                "its status is not written"
            );
            // A newer report is tried at once, and the last one no more when nobody reports.
            if let Ok(Err(_)) = time::timeout(pause, reports.changed()).await {
                return;
            }
            pause = (pause * 2).min(RETRY.1);
        }
    }
}

async fn tell(api: &Api<Scheduler>, identity: &Identity, report: &Report) -> kube::Result<()> {
    let running = Running {
        revision: report.revision.clone(),
        pod: identity.pod.clone(),
        since: Time(Timestamp::now()),
        refused: report.refused.clone(),
    };
    let mut status = json!({ "running": running });
    // A merge keeps what is not named: what is over must be named.
    if let (None, Some(running)) = (&report.refused, status.pointer_mut("/running")) {
        running["refused"] = serde_json::Value::Null;
    }
    let params = PatchParams { field_manager: Some(super::MANAGER.to_owned()), ..PatchParams::default() };
    api.patch_status(&identity.scheduler, &params, &Patch::Merge(json!({ "status": status }))).await?;
    Ok(())
}
