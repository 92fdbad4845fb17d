//! Whether the operator does its work.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kubewake_operator::names;
use kubewake_trail::in_words;

use super::{
    Scene, code,
    line::{Line, Outcome, Section},
    rights,
};
use crate::survey::{
    lease::{self, Leader},
    pods,
};

const GROUP: &str = "telemetry.kubewake.io";

pub(super) async fn look(scene: &Scene<'_>) -> Section {
    let (client, namespace) = (&scene.cluster.client, &scene.args.cluster.namespace);
    let deployment = Api::<Deployment>::namespaced(client.clone(), namespace).get_opt(names::MANAGER).await;
    let leader = lease::leader(client, namespace).await;
    let mut line = runs(namespace, &deployment, leader.as_ref().ok().and_then(Option::as_ref));
    if let (Ok(Some(deployment)), true) = (&deployment, line.outcome != Outcome::Passed) {
        line.detail.extend(pods::trouble_of(client, deployment).await.map(|why| format!(": {why}")));
    }
    let mut lines = vec![line];
    lines.push(match &leader {
        Ok(leader) => leads(namespace, leader.as_ref()),
        Err(error) => Line::warned(
            code::KW302,
            format!("its Lease cannot be seen: {}", in_words(error)),
            format!("kubectl auth can-i get leases.coordination.k8s.io --namespace {namespace}"),
        ),
    });
    if let Ok(Some(deployment)) = deployment {
        lines.extend(is_let(scene, &deployment).await);
    }
    Section { name: "Operator", lines }
}

/// As a Deployment, or outside of the cluster.
fn runs(namespace: &str, deployment: &Result<Option<Deployment>, kube::Error>, leader: Option<&Leader>) -> Line {
    match deployment {
        Err(error) => Line::warned(
            code::KW301,
            format!("it cannot be seen: {}", in_words(error)),
            format!("kubectl auth can-i get deployments.apps --namespace {namespace}"),
        ),
        Ok(None) => match leader.filter(|leader| !leader.is_gone) {
            Some(leader) => Line::passed(code::KW301, format!("outside of the cluster, as {}", leader.holder)),
            None => Line::failed(
                code::KW301,
                format!("there is no Deployment {} in {namespace}", names::MANAGER),
                "kubewake operator manifests | kubectl apply -f -",
            ),
        },
        Ok(Some(deployment)) => rolled_out(namespace, deployment),
    }
}

/// How far a Deployment is.
pub(super) struct Rollout {
    pub(super) ready: i32,
    pub(super) wanted: i32,
    /// As `kubectl rollout status` judges it: its controller has seen it, and every pod is a new one and ready.
    pub(super) is_done: bool,
}

pub(super) fn rollout(deployment: &Deployment) -> Rollout {
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let status = deployment.status.clone().unwrap_or_default();
    let ready = status.ready_replicas.unwrap_or(0);
    let updated = status.updated_replicas.unwrap_or(0);
    let is_seen = status.observed_generation.unwrap_or(0) >= deployment.metadata.generation.unwrap_or(0);
    let is_done = is_seen && ready >= wanted && updated >= wanted && status.replicas.unwrap_or(0) <= updated;
    Rollout { ready, wanted, is_done }
}

fn rolled_out(namespace: &str, deployment: &Deployment) -> Line {
    let Rollout { ready, wanted, is_done } = rollout(deployment);
    let detail = match ready >= wanted && !is_done {
        true => "its pods are being replaced".to_owned(),
        false => format!("{ready} of {wanted} pods are ready"),
    };
    let mend = format!(
        "kubectl describe pods --namespace {namespace} --selector app.kubernetes.io/name={0}\n\
         kubectl logs --namespace {namespace} deployment/{0} --tail 20",
        names::MANAGER
    );
    match ready {
        _ if is_done && wanted > 0 => Line::passed(code::KW301, detail),
        0 => Line::failed(code::KW301, detail, mend),
        _ => Line::warned(code::KW301, detail, mend).settling(true),
    }
}

fn leads(namespace: &str, leader: Option<&Leader>) -> Line {
    let mend = format!("kubectl logs --namespace {namespace} deployment/{} --tail 20", names::MANAGER);
    match leader {
        None => Line::failed(code::KW302, format!("there is no Lease {} in {namespace}", names::LEASE), mend),
        Some(leader) if leader.holder.is_empty() => Line::failed(code::KW302, "nobody holds the Lease", mend),
        Some(leader) if leader.is_gone => {
            let detail = format!("{} has not renewed the Lease for {} s", leader.holder, leader.silent_seconds);
            Line::failed(code::KW302, detail, mend)
        }
        Some(leader) => Line::passed(code::KW302, &leader.holder),
    }
}

/// Whether its account has the rights that nothing works without. None where that cannot be asked.
async fn is_let(scene: &Scene<'_>, deployment: &Deployment) -> Option<Line> {
    let namespace = scene.args.cluster.namespace.as_str();
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    let account = pod.service_account_name.as_deref().unwrap_or("default");
    let user = format!("system:serviceaccount:{namespace}:{account}");
    let here = Some(namespace);
    let needed = [
        ("list", GROUP, "tracepipelines", None),
        ("watch", GROUP, "logpipelines", None),
        ("watch", GROUP, "metricpipelines", None),
        ("watch", GROUP, "telemetries", None),
        ("create", "apps", "deployments", here),
        ("create", "", "configmaps", here),
        ("create", "", "secrets", here),
        ("update", "coordination.k8s.io", "leases", here),
        ("create", "authorization.k8s.io", "subjectaccessreviews", None),
    ];
    let missing = rights::missing(&scene.cluster.client, &user, &needed).await.ok()?;
    Some(match missing.is_empty() {
        true => Line::passed(code::KW303, ""),
        false => Line::failed(
            code::KW303,
            format!("{user} may not {}", missing.join(", ")),
            "kubewake operator manifests | kubectl apply -f -",
        ),
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
        let outcome = |ready| rolled_out("ns", &deployment(ready)).outcome;
        assert_eq!([2, 1, 0].map(outcome), [Outcome::Passed, Outcome::Warned, Outcome::Failed]);
    }

    #[test]
    fn pods_of_the_revision_before_are_no_finished_rollout() {
        let mut rolled = deployment(2);
        assert!(rollout(&rolled).is_done);
        rolled.status.as_mut().unwrap().updated_replicas = Some(1);
        let line = rolled_out("ns", &rolled);
        assert_eq!((line.outcome, line.settles), (Outcome::Warned, true), "{line:?}");
        let mut unseen = deployment(2);
        unseen.metadata.generation = Some(2);
        assert!(!rollout(&unseen).is_done);
    }

    #[test]
    fn without_a_deployment_the_lease_tells() {
        let leader = |is_gone| Leader { holder: "me".to_owned(), silent_seconds: 3, is_gone };
        assert_eq!(runs("ns", &Ok(None), Some(&leader(false))).outcome, Outcome::Passed);
        assert_eq!(runs("ns", &Ok(None), Some(&leader(true))).outcome, Outcome::Failed);
        assert_eq!(runs("ns", &Ok(None), None).outcome, Outcome::Failed);
        assert_eq!(leads("ns", Some(&leader(true))).outcome, Outcome::Failed);
        assert!(leads("ns", None).detail.contains("no Lease"));
    }
}
