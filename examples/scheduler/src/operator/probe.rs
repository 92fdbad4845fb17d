//! Probes a configuration with a pod before it counts as ready: only a pod that gets a node shows that all of
//! it works.
//!
//! The pod is deleted before the status has the result, so that no pod is left over; a crash in between only
//! repeats the probe.

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};

use super::{
    SchedulerContext, build,
    status::{ProbeResult, has_applied},
};
use crate::{api::Scheduler, cluster::assigned_node};

/// The result of the probe of this configuration; creates the pod if necessary.
pub(super) async fn run_probe(
    context: &SchedulerContext,
    scheduler: &Scheduler,
    revision: &str,
    available: bool,
) -> kube::Result<ProbeResult> {
    if !scheduler.spec.probe {
        return Ok(ProbeResult::NotRequested);
    }
    if let Some(known) = recorded_result(scheduler, revision) {
        return Ok(known);
    }
    let running = scheduler.status.as_ref().and_then(|status| status.running.as_ref());
    if !available || !has_applied(running, revision) {
        return Ok(ProbeResult::Waiting);
    }
    let pods: Api<Pod> = context.namespaced_api(scheduler);
    let name = build::probe_name(scheduler);
    // A list, because a missing pod is no error.
    let only = ListParams::default().fields(&format!("metadata.name={name}"));
    let Some(pod) = pods.list(&only).await?.items.pop() else {
        return create_probe_pod(context, scheduler, revision, &pods).await;
    };
    let node = assigned_node(&pod).map(str::to_owned);
    if pod.metadata.deletion_timestamp.is_none() && (node.is_some() || !build::probes_revision(&pod, revision)) {
        delete_probe_pod(&pods, &name).await?;
    }
    Ok(match node.filter(|_| build::probes_revision(&pod, revision)) {
        Some(node) => ProbeResult::Bound(node),
        None => unschedulable_reason(&pod).map_or(ProbeResult::Waiting, ProbeResult::Unschedulable),
    })
}

/// The result in the status.
fn recorded_result(scheduler: &Scheduler, revision: &str) -> Option<ProbeResult> {
    let probed = scheduler.status.as_ref()?.probed.as_ref()?;
    (probed.revision == revision).then(|| ProbeResult::Bound(probed.node.clone()))
}

async fn create_probe_pod(
    context: &SchedulerContext,
    scheduler: &Scheduler,
    revision: &str,
    pods: &Api<Pod>,
) -> kube::Result<ProbeResult> {
    let pod = build::build_probe_pod(scheduler, &context.operand, revision);
    match context.trail.child(scheduler).create(pods, pod).await {
        // The pod was created in the meantime.
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(ProbeResult::Waiting),
        created => created.map(|_| ProbeResult::Waiting),
    }
}

async fn delete_probe_pod(pods: &Api<Pod>, name: &str) -> kube::Result<()> {
    match pods.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        deleted => deleted.map(drop),
    }
}

/// The scheduler's reason why the pod has no node.
fn unschedulable_reason(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled =
        conditions.iter().find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    scheduled?.message.clone()
}
