//! Creates missing pods and deletes surplus ones.

use std::{cmp::Ordering, sync::Arc};

use futures_util::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::{Resource, ResourceExt};

use super::deletion_order;
use crate::{
    controller::{ControllerContext, owner_reference, pods, write_through},
    error::{ClusterError, Result},
};

/// The most pods that one sync creates or deletes; the rest follows in the next.
const BURST_REPLICAS: usize = 500;
/// The longest name of an object.
const MAX_NAME_LENGTH: usize = 253;

/// The reason why the number of pods is wrong.
#[derive(Debug)]
pub(super) struct ReplicaFailure {
    /// The reason of the condition.
    pub reason: &'static str,
    pub error: ClusterError,
}

/// The desired number of pods.
pub fn desired_replicas(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1).max(0)
}

/// Creates or deletes pods to match the desired number.
pub(super) async fn manage_replicas(
    context: &ControllerContext,
    set: &ReplicaSet,
    pods: Vec<Arc<Pod>>,
) -> Result<(), ReplicaFailure> {
    let wanted = usize::try_from(desired_replicas(set)).unwrap_or(0);
    match pods.len().cmp(&wanted) {
        Ordering::Less => {
            let missing = (wanted - pods.len()).min(BURST_REPLICAS);
            create_pods(context, set, missing).await.map_err(|error| ReplicaFailure { reason: "FailedCreate", error })
        }
        Ordering::Greater => {
            let spare = (pods.len() - wanted).min(BURST_REPLICAS);
            let going = deletion_order::pods_to_delete(pods, &related_pods(context, set), spare, Timestamp::now());
            delete_pods(context, set, going).await.map_err(|error| ReplicaFailure { reason: "FailedDelete", error })
        }
        Ordering::Equal => Ok(()),
    }
}

async fn create_pods(context: &ControllerContext, set: &ReplicaSet, count: usize) -> Result<()> {
    let pod = new_pod(set)?;
    write_through::slow_start_batch(vec![&pod; count], |pod| create_pod(context, set, pod)).await
}

fn new_pod(set: &ReplicaSet) -> Result<Pod> {
    let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
    let template = template.ok_or_else(|| ClusterError::Object("a ReplicaSet has no template".to_owned()))?;
    let mut pod = pods::from_template(template, set);
    let name = set.name_any();
    pod.metadata.generate_name = Some(if name.len() < MAX_NAME_LENGTH { format!("{name}-") } else { name });
    Ok(pod)
}

async fn create_pod(context: &ControllerContext, set: &ReplicaSet, pod: &Pod) -> Result<()> {
    match write_through::create(&context.client, &context.informers.pods, pod).await {
        Ok(made) => {
            context.events.record_normal(
                set.object_ref(&()),
                "SuccessfulCreate",
                format!("Created pod: {}", made.name_any()),
            );
            Ok(())
        }
        Err(error) if error.is_namespace_terminating() => Ok(()),
        Err(error) => {
            let note = format!("Error creating: {}", error.message());
            context.events.record_warning(set.object_ref(&()), "FailedCreate", note);
            Err(error)
        }
    }
}

/// Tries all deletions before it returns the first error.
async fn delete_pods(context: &ControllerContext, set: &ReplicaSet, pods: Vec<Arc<Pod>>) -> Result<()> {
    let outcomes = join_all(pods.iter().map(|pod| delete_pod(context, set, pod))).await;
    outcomes.into_iter().collect()
}

async fn delete_pod(context: &ControllerContext, set: &ReplicaSet, pod: &Pod) -> Result<()> {
    let outcome = write_through::delete(&context.client, &context.informers.pods, pod).await;
    match &outcome {
        Ok(()) => {
            let note = format!("Deleted pod: {}", pod.name_any());
            context.events.record_normal(set.object_ref(&()), "SuccessfulDelete", note);
        }
        Err(error) => {
            let note = format!("Error deleting: {}", error.message());
            context.events.record_warning(set.object_ref(&()), "FailedDelete", note);
        }
    }
    outcome
}

/// The active pods of all ReplicaSets of the same Deployment, including this one.
fn related_pods(context: &ControllerContext, set: &ReplicaSet) -> Vec<Arc<Pod>> {
    let namespace = set.namespace().unwrap_or_default();
    let deployment = owner_reference::controller_of(set).map(|owner| &owner.uid);
    let sets = context.informers.replica_sets.in_namespace(&namespace);
    let of_same = sets.iter().filter(|other| {
        other.uid() == set.uid()
            || deployment.is_some() && owner_reference::controller_of(&***other).map(|owner| &owner.uid) == deployment
    });
    let sets: Vec<_> = of_same.collect();
    let pods = context.informers.pods.in_namespace(&namespace).into_iter().filter(|pod| pods::is_active(pod));
    pods.filter(|pod| sets.iter().any(|set| owner_reference::is_controlled_by(&**pod, &***set))).collect()
}
