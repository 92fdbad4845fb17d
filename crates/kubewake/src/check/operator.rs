//! Checks of the operator.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kubewake_operator::names;
use kubewake_trail::error_chain;

use super::{
    CheckContext, codes, permissions,
    report::{CheckLine, CheckOutcome, CheckSection},
};
use crate::inventory::{
    lease::{self, LeaseHolder},
    pods,
};

pub(super) const INSTALL_COMMAND: &str = "kubewake operator manifests | kubectl apply -f -";
const TELEMETRY_API_GROUP: &str = "telemetry.kubewake.io";

pub(super) async fn check(scene: &CheckContext<'_>) -> CheckSection {
    let client = &scene.cluster.client;
    let namespace = &scene.args.cluster.namespace;
    let deployment = Api::<Deployment>::namespaced(client.clone(), namespace).get_opt(names::FIELD_MANAGER).await;
    let leader = lease::fetch_leader(client, namespace).await;
    let mut line = check_running(namespace, &deployment, leader.as_ref().ok().and_then(Option::as_ref));
    if let (Ok(Some(deployment)), true) = (&deployment, line.outcome != CheckOutcome::Passed) {
        line.detail.extend(pods::find_deployment_problem(client, deployment).await.map(|why| format!(": {why}")));
    }
    let mut lines = vec![line];
    lines.push(match &leader {
        Ok(leader) => check_leader(namespace, leader.as_ref(), !matches!(deployment, Ok(None))),
        Err(error) => CheckLine::warned(
            codes::KW302,
            format!("failed to get the Lease of the operator: {}", error_chain(error)),
            format!("kubectl auth can-i get leases.coordination.k8s.io --namespace {namespace}"),
        ),
    });
    if let Ok(Some(deployment)) = deployment {
        lines.extend(check_permissions(scene, &deployment).await);
    }
    CheckSection { name: "Operator", lines }
}

/// Checks that it runs, as a Deployment or outside of the cluster.
fn check_running(
    namespace: &str,
    deployment: &Result<Option<Deployment>, kube::Error>,
    leader: Option<&LeaseHolder>,
) -> CheckLine {
    match deployment {
        Err(error) => CheckLine::warned(
            codes::KW301,
            format!("failed to get the Deployment of the operator: {}", error_chain(error)),
            format!("kubectl auth can-i get deployments.apps --namespace {namespace}"),
        ),
        Ok(None) => match leader.filter(|leader| !leader.is_vacant) {
            Some(leader) => CheckLine::passed(
                codes::KW301,
                format!("the operator runs outside of the cluster, as {}", leader.holder),
            ),
            None => CheckLine::failed(
                codes::KW301,
                format!("Deployment {namespace}/{} does not exist", names::FIELD_MANAGER),
                INSTALL_COMMAND,
            ),
        },
        Ok(Some(deployment)) => check_rollout(namespace, deployment),
    }
}

/// The progress of a Deployment's rollout.
pub(super) struct DeploymentRollout {
    pub(super) ready: i32,
    pub(super) wanted: i32,
    /// By the criteria of `kubectl rollout status`: the controller has observed the Deployment, and every pod
    /// is updated and ready.
    pub(super) is_done: bool,
}

pub(super) fn deployment_rollout(deployment: &Deployment) -> DeploymentRollout {
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let status = deployment.status.clone().unwrap_or_default();
    let ready = status.ready_replicas.unwrap_or(0);
    let updated = status.updated_replicas.unwrap_or(0);
    let is_seen = status.observed_generation.unwrap_or(0) >= deployment.metadata.generation.unwrap_or(0);
    let is_done = is_seen && ready >= wanted && updated >= wanted && status.replicas.unwrap_or(0) <= updated;
    DeploymentRollout { ready, wanted, is_done }
}

fn check_rollout(namespace: &str, deployment: &Deployment) -> CheckLine {
    let DeploymentRollout { ready, wanted, is_done } = deployment_rollout(deployment);
    let detail = if ready >= wanted && !is_done {
        "the rollout is replacing the pods".to_owned()
    } else {
        format!("{ready} of {wanted} pods are ready")
    };
    let mend = format!(
        "kubectl describe pods --namespace {namespace} --selector app.kubernetes.io/name={0}\n\
         kubectl logs --namespace {namespace} deployment/{0} --tail 20",
        names::FIELD_MANAGER
    );
    match ready {
        _ if is_done && wanted > 0 => CheckLine::passed(codes::KW301, detail),
        0 => CheckLine::failed(codes::KW301, detail, mend),
        _ => CheckLine::warned(codes::KW301, detail, mend).with_in_progress(true),
    }
}

fn check_leader(namespace: &str, leader: Option<&LeaseHolder>, has_deployment: bool) -> CheckLine {
    let mend = if has_deployment {
        format!("kubectl logs --namespace {namespace} deployment/{} --tail 20", names::FIELD_MANAGER)
    } else {
        INSTALL_COMMAND.to_owned()
    };
    match leader {
        None => CheckLine::failed(
            codes::KW302,
            format!("there is no Lease {} in namespace {namespace}", names::LEASE_NAME),
            mend,
        ),
        Some(leader) if leader.holder.is_empty() => {
            CheckLine::failed(codes::KW302, "no operator holds the Lease", mend)
        }
        Some(leader) if leader.is_vacant => {
            let detail = format!("{} has not renewed the Lease for {} s", leader.holder, leader.seconds_since_renewal);
            CheckLine::failed(codes::KW302, detail, mend)
        }
        Some(leader) => CheckLine::passed(codes::KW302, &leader.holder),
    }
}

/// Checks the permissions that its ServiceAccount cannot do without. None where they cannot be reviewed.
async fn check_permissions(scene: &CheckContext<'_>, deployment: &Deployment) -> Option<CheckLine> {
    let namespace = scene.args.cluster.namespace.as_str();
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    let account = pod.service_account_name.as_deref().unwrap_or("default");
    let user = format!("system:serviceaccount:{namespace}:{account}");
    let here = Some(namespace);
    let needed = [
        ("list", TELEMETRY_API_GROUP, "tracepipelines", None),
        ("watch", TELEMETRY_API_GROUP, "logpipelines", None),
        ("watch", TELEMETRY_API_GROUP, "metricpipelines", None),
        ("watch", TELEMETRY_API_GROUP, "telemetries", None),
        ("create", "apps", "deployments", here),
        ("create", "", "configmaps", here),
        ("create", "", "secrets", here),
        ("update", "coordination.k8s.io", "leases", here),
        ("create", "authorization.k8s.io", "subjectaccessreviews", None),
    ];
    let missing = permissions::find_missing_permissions(&scene.cluster.client, &user, &needed).await.ok()?;
    Some(if missing.is_empty() {
        CheckLine::passed(codes::KW303, "")
    } else {
        CheckLine::failed(
            codes::KW303,
            format!("missing permissions of {user}: {}", missing.join(", ")),
            INSTALL_COMMAND,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(ready: i32) -> Deployment {
        let object = serde_json::json!({
            "metadata": {}, "spec": {"replicas": 2, "selector": {}, "template": {}}, "status": {"readyReplicas": ready, "updatedReplicas": 2, "replicas": 2},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn one_of_two_is_a_warning_and_none_a_failure() {
        let outcome = |ready| check_rollout("ns", &deployment(ready)).outcome;
        assert_eq!([2, 1, 0].map(outcome), [CheckOutcome::Passed, CheckOutcome::Warned, CheckOutcome::Failed]);
    }

    #[test]
    fn pods_of_the_revision_before_are_no_finished_rollout() {
        let mut rolled = deployment(2);
        assert!(deployment_rollout(&rolled).is_done);
        rolled.status.as_mut().unwrap().updated_replicas = Some(1);
        let line = check_rollout("ns", &rolled);
        assert_eq!((line.outcome, line.in_progress), (CheckOutcome::Warned, true), "{line:?}");
        let mut unseen = deployment(2);
        unseen.metadata.generation = Some(2);
        assert!(!deployment_rollout(&unseen).is_done);
    }

    #[test]
    fn without_a_deployment_the_lease_tells() {
        let leader = |is_gone| LeaseHolder { holder: "me".to_owned(), seconds_since_renewal: 3, is_vacant: is_gone };
        assert_eq!(check_running("ns", &Ok(None), Some(&leader(false))).outcome, CheckOutcome::Passed);
        assert_eq!(check_running("ns", &Ok(None), Some(&leader(true))).outcome, CheckOutcome::Failed);
        assert_eq!(check_running("ns", &Ok(None), None).outcome, CheckOutcome::Failed);
        assert_eq!(check_leader("ns", Some(&leader(true)), true).outcome, CheckOutcome::Failed);
        let missing = |has_deployment| check_leader("ns", None, has_deployment);
        assert!(missing(true).detail.contains("no Lease") && missing(true).mend.contains("logs"));
        assert_eq!(missing(false).mend, INSTALL_COMMAND, "there is no Deployment that has logs");
    }
}
