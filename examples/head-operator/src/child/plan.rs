//! The desired Deployment of a ChildA, and the status that follows from the live one. Pure.

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{Container, PodSpec, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
    jiff::Timestamp,
};
use kube::ResourceExt;

use crate::{
    api::{ChildA, ChildAStatus},
    labels,
    ready::{ReadyReason, ReadyState},
};

/// The desired Deployment. The caller adds owner and context. The pod template never carries a context, since
/// a new one would roll out the pods.
pub fn desired_deployment(child: &ChildA) -> Deployment {
    let name = child.name_any();
    let labels = labels::object_labels(labels::CHILD_LABEL, &name);
    let container = Container {
        name: "main".to_owned(),
        image: Some(child.spec.image.clone()),
        command: Some(child.spec.command.clone()).filter(|command| !command.is_empty()),
        args: Some(child.spec.args.clone()).filter(|args| !args.is_empty()),
        ..Container::default()
    };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels.clone()), ..ObjectMeta::default() }),
        spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
    };
    let spec = DeploymentSpec {
        replicas: Some(child.spec.replicas),
        selector: LabelSelector {
            match_labels: Some(labels::selector_labels(labels::CHILD_LABEL, &name)),
            ..LabelSelector::default()
        },
        template,
        ..DeploymentSpec::default()
    };
    let metadata =
        ObjectMeta { name: Some(name), namespace: child.namespace(), labels: Some(labels), ..ObjectMeta::default() };
    Deployment { metadata, spec: Some(spec), status: None }
}

/// The status that follows from the live Deployment, or from the message with which it was rejected.
pub fn child_status(child: &ChildA, deployment: Result<&Deployment, &str>, now: Timestamp) -> ChildAStatus {
    let before = child.status.clone().unwrap_or_default();
    let generation = child.metadata.generation;
    let current = deployment.ok().and_then(|deployment| deployment.status.as_ref());
    ChildAStatus {
        observed_generation: generation,
        ready_replicas: current.and_then(|status| status.ready_replicas).unwrap_or_default(),
        conditions: ready_state(child, deployment).to_conditions(&before.conditions, generation, now),
    }
}

fn ready_state(child: &ChildA, deployment: Result<&Deployment, &str>) -> ReadyState {
    match deployment {
        Err(message) => ReadyState::new(ReadyReason::DeploymentRefused, message),
        Ok(deployment) if is_available(deployment) => {
            ReadyState::new(ReadyReason::DeploymentAvailable, format!("{} pods are available", child.spec.replicas))
        }
        Ok(deployment) => ReadyState::new(
            ReadyReason::DeploymentProgressing,
            format!("waiting for Deployment {}", deployment.name_any()),
        ),
    }
}

/// Whether every pod is available and of the current template, and no other pod is left.
fn is_available(deployment: &Deployment) -> bool {
    let (Some(spec), Some(status)) = (&deployment.spec, &deployment.status) else { return false };
    let wanted = spec.replicas.unwrap_or(1);
    status.observed_generation >= deployment.metadata.generation
        && [status.replicas, status.updated_replicas, status.available_replicas]
            .iter()
            .all(|count| count.unwrap_or_default() == wanted)
}
