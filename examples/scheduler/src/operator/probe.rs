//! Tries a configuration with a pod before it counts as ready: what the whole of it is worth shows only when a pod gets a node by it.
//!
//! The pod is deleted before the status says what it has come to, so that nothing is left of it, and a crash in between only tries once more.

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};

use super::{
    Context, build,
    status::{Probe, has_taken},
};
use crate::{api::Scheduler, cluster::node_of};

/// What the pod that tries this configuration has come to; makes it if need be.
pub(super) async fn of(
    context: &Context,
    scheduler: &Scheduler,
    revision: &str,
    available: bool,
) -> kube::Result<Probe> {
    if !scheduler.spec.probe {
        return Ok(Probe::NotAsked);
    }
    if let Some(known) = known(scheduler, revision) {
        return Ok(known);
    }
    let running = scheduler.status.as_ref().and_then(|status| status.running.as_ref());
    if !available || !has_taken(running, revision) {
        return Ok(Probe::Waiting);
    }
    let pods: Api<Pod> = context.api(scheduler);
    let name = build::probe_name(scheduler);
    // A list of one or none: that there is none yet is no error.
    let only = ListParams::default().fields(&format!("metadata.name={name}"));
    let Some(pod) = pods.list(&only).await?.items.pop() else { return make(context, scheduler, revision, &pods).await };
    let node = node_of(&pod).map(str::to_owned);
    if pod.metadata.deletion_timestamp.is_none() && (node.is_some() || !build::tries(&pod, revision)) {
        delete(&pods, &name).await?;
    }
    Ok(match node.filter(|_| build::tries(&pod, revision)) {
        Some(node) => Probe::Bound(node),
        None => nowhere(&pod).map_or(Probe::Waiting, Probe::Nowhere),
    })
}

/// What was found before.
fn known(scheduler: &Scheduler, revision: &str) -> Option<Probe> {
    let probed = scheduler.status.as_ref()?.probed.as_ref()?;
    (probed.revision == revision).then(|| Probe::Bound(probed.node.clone()))
}

async fn make(context: &Context, scheduler: &Scheduler, revision: &str, pods: &Api<Pod>) -> kube::Result<Probe> {
    let pod = build::probe(scheduler, &context.operand, revision);
    match context.trail.child(scheduler).create(pods, pod).await {
        // It was made a moment ago.
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(Probe::Waiting),
        created => created.map(|_| Probe::Waiting),
    }
}

async fn delete(pods: &Api<Pod>, name: &str) -> kube::Result<()> {
    match pods.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        deleted => deleted.map(drop),
    }
}

/// Why it has no node, if its scheduler said so.
fn nowhere(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled =
        conditions.iter().find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    scheduled?.message.clone()
}
