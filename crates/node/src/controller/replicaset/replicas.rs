//! More pods, or fewer.

use std::{cmp::Ordering, sync::Arc};

use futures_util::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::{Resource, ResourceExt};

use super::rank;
use crate::{
    controller::{Context, owner, pods, write},
    error::{Error, Result},
};

/// As many as one look makes or deletes; the rest follows in the next.
const BURST: usize = 500;
/// The longest name that an object can have.
const LONGEST_NAME: usize = 253;

/// Why there are not as many pods as there should be.
#[derive(Debug)]
pub(super) struct Failure {
    /// The reason of the condition.
    pub reason: &'static str,
    pub error: Error,
}

/// How many pods a ReplicaSet asks for.
pub fn wanted(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1).max(0)
}

/// Makes or deletes what the difference asks for.
pub(super) async fn manage(context: &Context, set: &ReplicaSet, pods: Vec<Arc<Pod>>) -> Result<(), Failure> {
    let wanted = usize::try_from(wanted(set)).unwrap_or(0);
    match pods.len().cmp(&wanted) {
        Ordering::Less => {
            let missing = (wanted - pods.len()).min(BURST);
            create(context, set, missing).await.map_err(|error| Failure { reason: "FailedCreate", error })
        }
        Ordering::Greater => {
            let spare = (pods.len() - wanted).min(BURST);
            let going = rank::first_to_go(pods, &neighbours(context, set), spare, Timestamp::now());
            delete(context, set, going).await.map_err(|error| Failure { reason: "FailedDelete", error })
        }
        Ordering::Equal => Ok(()),
    }
}

async fn create(context: &Context, set: &ReplicaSet, count: usize) -> Result<()> {
    let pod = pod(set)?;
    write::slow_start(vec![&pod; count], |pod| create_one(context, set, pod)).await
}

fn pod(set: &ReplicaSet) -> Result<Pod> {
    let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
    let template = template.ok_or_else(|| Error::Object("a ReplicaSet has no template".to_owned()))?;
    let mut pod = pods::from_template(template, set);
    let name = set.name_any();
    pod.metadata.generate_name = Some(if name.len() < LONGEST_NAME { format!("{name}-") } else { name });
    Ok(pod)
}

async fn create_one(context: &Context, set: &ReplicaSet, pod: &Pod) -> Result<()> {
    match write::create(&context.client, &context.views.pods, pod).await {
        Ok(made) => {
            context.events.normal(set.object_ref(&()), "SuccessfulCreate", format!("Created pod: {}", made.name_any()));
            Ok(())
        }
        Err(error) if error.is_namespace_terminating() => Ok(()),
        Err(error) => {
            let note = format!("Error creating: {}", error.message());
            context.events.warning(set.object_ref(&()), "FailedCreate", note);
            Err(error)
        }
    }
}

/// All are tried before the first failure is reported.
async fn delete(context: &Context, set: &ReplicaSet, pods: Vec<Arc<Pod>>) -> Result<()> {
    let outcomes = join_all(pods.iter().map(|pod| delete_one(context, set, pod))).await;
    outcomes.into_iter().collect()
}

async fn delete_one(context: &Context, set: &ReplicaSet, pod: &Pod) -> Result<()> {
    let outcome = write::delete(&context.client, &context.views.pods, pod).await;
    match &outcome {
        Ok(()) => {
            let note = format!("Deleted pod: {}", pod.name_any());
            context.events.normal(set.object_ref(&()), "SuccessfulDelete", note);
        }
        Err(error) => {
            let note = format!("Error deleting: {}", error.message());
            context.events.warning(set.object_ref(&()), "FailedDelete", note);
        }
    }
    outcome
}

/// The active pods of all ReplicaSets of the same Deployment, its own among them.
fn neighbours(context: &Context, set: &ReplicaSet) -> Vec<Arc<Pod>> {
    let namespace = set.namespace().unwrap_or_default();
    let deployment = owner::controller_of(set).map(|owner| &owner.uid);
    let sets = context.views.replica_sets.within(&namespace);
    let of_same = sets.iter().filter(|other| {
        other.uid() == set.uid()
            || deployment.is_some() && owner::controller_of(&***other).map(|owner| &owner.uid) == deployment
    });
    let sets: Vec<_> = of_same.collect();
    let pods = context.views.pods.within(&namespace).into_iter().filter(|pod| pods::is_active(pod));
    pods.filter(|pod| sets.iter().any(|set| owner::is_controlled_by(&**pod, &***set))).collect()
}
