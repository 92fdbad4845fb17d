//! The Deployment and the status of a ChildA.

use k8s_openapi::{
    api::apps::v1::{Deployment, DeploymentStatus},
    jiff::Timestamp,
};

use super::plan;
use crate::api::{ChildA, ChildASpec};

fn child() -> ChildA {
    let spec = ChildASpec { replicas: 2, image: "i".into(), args: vec!["x".into()], ..ChildASpec::default() };
    let mut child = ChildA::new("c", spec);
    child.metadata.generation = Some(1);
    child
}

fn deployment(observed: i64, [all, updated, available]: [i32; 3]) -> Deployment {
    let mut deployment = plan::desired_deployment(&child());
    deployment.metadata.generation = Some(2);
    deployment.status = Some(DeploymentStatus {
        observed_generation: Some(observed),
        replicas: Some(all),
        updated_replicas: Some(updated),
        available_replicas: Some(available),
        ready_replicas: Some(available),
        ..DeploymentStatus::default()
    });
    deployment
}

fn told(deployment: Result<&Deployment, &str>) -> (String, String, i32) {
    let status = plan::child_status(&child(), deployment, Timestamp::now());
    assert_eq!(status.observed_generation, Some(1));
    (status.conditions[0].status.clone(), status.conditions[0].reason.clone(), status.ready_replicas)
}

#[test]
fn its_deployment_runs_what_it_says_and_carries_nothing_that_changes_in_its_pods() {
    let spec = plan::desired_deployment(&child()).spec.unwrap();
    assert_eq!(spec.replicas, Some(2));
    assert_eq!(spec.selector.match_labels.unwrap()["demo.kubewake.io/childa"], "c");
    assert_eq!(spec.template.metadata.unwrap().annotations, None);
    let container = &spec.template.spec.unwrap().containers[0];
    assert_eq!((container.image.as_deref(), container.command.as_ref()), (Some("i"), None));
    assert_eq!(container.args.as_deref(), Some(&["x".to_owned()][..]));
}

#[test]
fn it_is_ready_when_exactly_its_pods_are_available() {
    assert_eq!(told(Ok(&deployment(2, [2, 2, 2]))), ("True".into(), "DeploymentAvailable".into(), 2));
    for counts in [[2, 2, 1], [2, 1, 2], [3, 2, 2], [0, 0, 0]] {
        let (ready, reason, _) = told(Ok(&deployment(2, counts)));
        assert_eq!((&*ready, &*reason), ("False", "DeploymentProgressing"), "{counts:?}");
    }
    assert_eq!(told(Ok(&deployment(1, [2, 2, 2]))).0, "False", "nobody has looked at it yet");
    assert_eq!(told(Err("no")), ("False".into(), "DeploymentRefused".into(), 0));
}
