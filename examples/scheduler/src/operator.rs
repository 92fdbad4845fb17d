//! The operator: turns a Scheduler into a ConfigMap with its configuration and a Deployment that runs it.
//!
//! *Guarantees.* A specification that is no good changes nothing but the status, which says all that is wrong with it: the scheduler goes on with what it
//! has. `Ready` is true only while the scheduler itself says that it decides by what is specified. A new configuration restarts nothing.
//! *Assumes* that the ServiceAccount of the scheduler is there, with its rights (`deploy/operator.yaml`), in the one namespace that it looks at.
//! *Does not* elect a leader.

pub mod build;
mod probe;
pub mod status;
mod written;

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
use kubewake_trail::{Controller, Run, Trail, in_words};
use serde_json::json;

use self::{build::Operand, status::Findings, written::Written};
use crate::{
    api::{Scheduler, SchedulerStatus},
    configuration::Document,
};

/// Who makes all of it; also the name under which fields are owned.
pub const MANAGER: &str = "scheduler-operator";
/// Watches tell of every change; this is for the case that one did not.
const RESYNC: Duration = Duration::from_secs(300);
/// How long after a failure.
const RETRY: Duration = Duration::from_secs(5);

/// What went wrong, and with what.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the configuration cannot be written as text")]
    Text(#[from] serde_json::Error),
    #[error("the ConfigMap of the configuration is not written")]
    ConfigMap(#[source] kube::Error),
    #[error("the Deployment of the scheduler is not written")]
    Deployment(#[source] kube::Error),
    #[error("the configuration is not tried")]
    Probe(#[source] kube::Error),
    #[error("the status is not written")]
    Status(#[source] kube::Error),
}

struct Context {
    client: Client,
    trail: Trail,
    operand: Operand,
    written: Written,
}

/// Looks after the Schedulers of a namespace until it is told to stop.
pub async fn run<Stop>(client: Client, trail: Trail, namespace: &str, operand: Operand, stop: Stop)
where
    Stop: Future<Output = ()> + Send + Sync + 'static,
{
    let all = watcher::Config::default();
    let written = Written::default();
    let context = Arc::new(Context { client: client.clone(), trail: trail.clone(), operand, written });
    Controller::new(Api::<Scheduler>::namespaced(client.clone(), namespace), all.clone())
        .owns(Api::<ConfigMap>::namespaced(client.clone(), namespace), all.clone())
        .owns(Api::<Deployment>::namespaced(client.clone(), namespace), all.clone())
        .owns(Api::<Pod>::namespaced(client, namespace), all)
        .graceful_shutdown_on(stop)
        .run(trail, reconcile, again, context)
        .for_each(report)
        .await;
}

/// Tells of watches that do not work. What reconciles have to say is said by [`again`].
async fn report<T>(result: Result<T, controller::Error<Error, watcher::Error>>) {
    if let Err(controller::Error::QueueError(error)) = result {
        tracing::warn!(error = in_words(&error), "objects cannot be watched");
    }
}

fn again(scheduler: Arc<Scheduler>, error: &Error, _: Arc<Context>) -> Action {
    let (namespace, name) = (scheduler.namespace(), scheduler.name_any());
    tracing::warn!(kind = "Scheduler", namespace, name, error = in_words(error), "it does not work yet");
    Action::requeue(RETRY)
}

async fn reconcile(scheduler: Arc<Scheduler>, context: Arc<Context>) -> Result<Action, Error> {
    if scheduler.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let scheduler = context.written.newer(scheduler);
    let findings = match build::check(&scheduler) {
        Ok(document) => context.bring_about(&scheduler, &document).await?,
        Err(problems) => Findings::refused(&problems),
    };
    // The operator has done what it can, but whoever looks for what went wrong looks for errors.
    if let (Findings::Refused { why }, Some(run)) = (&findings, Run::current()) {
        run.note_failure("Refused", why);
    }
    context.tell(&scheduler, &findings).await?;
    Ok(Action::requeue(RESYNC))
}

impl Context {
    fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self, of: &Scheduler) -> Api<K> {
        Api::namespaced(self.client.clone(), &of.namespace().unwrap_or_default())
    }
    /// Writes what it is made of.
    async fn bring_about(&self, scheduler: &Scheduler, document: &Document) -> Result<Findings, Error> {
        let children = self.trail.child(scheduler);
        // First what is as it was at most times: a scheduler without a configuration waits for it.
        let deployment = build::deployment(scheduler, &self.operand);
        let deployment = children.apply(&self.api(scheduler), MANAGER, deployment).await.map_err(Error::Deployment)?;
        let config_map = build::config_map(scheduler, document)?;
        children.apply(&self.api(scheduler), MANAGER, config_map).await.map_err(Error::ConfigMap)?;
        let available = status::is_available(&deployment);
        let revision = document.revision.clone();
        let probe = probe::of(self, scheduler, &revision, available).await.map_err(Error::Probe)?;
        Ok(Findings::Given { revision, available, probe })
    }

    /// Writes the status, unless it says so already.
    async fn tell(&self, scheduler: &Scheduler, findings: &Findings) -> Result<(), Error> {
        let status = status::of(scheduler, findings, Timestamp::now());
        if scheduler.status.as_ref() == Some(&status) {
            return Ok(());
        }
        // What the scheduler says of itself is for it to write.
        let mine = SchedulerStatus { running: None, ..status };
        let api: Api<Scheduler> = self.api(scheduler);
        let patch = Patch::Merge(json!({ "status": mine }));
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let written = self.trail.patch_status(&api, scheduler, &params, &patch).await.map_err(Error::Status)?;
        self.written.note(written);
        Ok(())
    }
}
