//! Why pods do not start, according to the kubelet and the scheduler. Pure, except for the list.

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ContainerStatus, Pod},
};
use kube::{Api, Client, ResourceExt as _, api::ListParams};

/// Reasons for waiting that are part of a normal start.
const NORMAL_WAIT_REASONS: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// A container runtime's message may be long and repetitive.
const MAX_MESSAGE_CHARS: usize = 400;

/// Why the pods of a Deployment do not become ready: the problem of the first pod that has one, or why there
/// are no pods. None if no reason is known.
pub(crate) async fn find_deployment_problem(client: &Client, deployment: &Deployment) -> Option<String> {
    let spec = deployment.spec.as_ref()?;
    let labels = spec.selector.match_labels.iter().flatten().map(|(key, value)| format!("{key}={value}"));
    let selector = labels.collect::<Vec<_>>().join(",");
    let api = Api::<Pod>::namespaced(client.clone(), &deployment.namespace().unwrap_or_default());
    let pods = api.list(&ListParams::default().labels(&selector)).await.ok()?;
    first_pod_problem(deployment, &pods.items)
}

fn first_pod_problem(deployment: &Deployment, pods: &[Pod]) -> Option<String> {
    let staying = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let of_pod = |pod: &Pod| pod_problem(pod).map(|why| format!("pod {}: {why}", pod.name_any()));
    staying.filter_map(of_pod).next().or_else(|| replica_failure(deployment))
}

/// Why a Deployment cannot create pods, such as a quota or a policy.
fn replica_failure(deployment: &Deployment) -> Option<String> {
    let conditions = deployment.status.as_ref()?.conditions.iter().flatten();
    let failure = conditions.into_iter().find(|it| it.type_ == "ReplicaFailure" && it.status == "True")?;
    Some(single_line(failure.message.as_deref().or(failure.reason.as_deref())?))
}

/// Why a pod does not start or does not continue, according to the scheduler or its kubelet.
pub(crate) fn pod_problem(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let unscheduled = status.conditions.iter().flatten().find(|it| it.type_ == "PodScheduled" && it.status == "False");
    if let Some(condition) = unscheduled {
        let why = [&condition.reason, &condition.message].into_iter().flatten().map(String::as_str);
        return Some(single_line(&why.collect::<Vec<_>>().join(": ")));
    }
    let containers = status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
    let waiting = containers.into_iter().find_map(|container| container_problem(pod, container));
    // For example `Evicted`.
    let of_pod = || status.reason.as_ref().map(|reason| join_reason(reason, status.message.as_deref()));
    waiting.or_else(of_pod).map(|words| single_line(&words))
}

fn container_problem(pod: &Pod, container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().filter(|reason| !NORMAL_WAIT_REASONS.contains(reason))?;
    let last = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
    let ended = last.map(|last| {
        let code = format!("exit code {}", last.exit_code);
        last.reason.as_ref().map_or_else(|| code.clone(), |reason| format!("{code} ({reason})"))
    });
    let image = reason.contains("Image").then(|| format!("image {}", requested_image(pod, container)));
    let parts = [Some(reason.to_owned()), image, ended, waiting.message.clone()];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(": "))
}

/// The image in the spec: the status may lack the name of an image that was never pulled.
fn requested_image(pod: &Pod, container: &ContainerStatus) -> String {
    let spec = pod.spec.as_ref();
    let asked = spec.into_iter().flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
    let asked = asked.into_iter().find(|asked| asked.name == container.name).and_then(|asked| asked.image.clone());
    asked.unwrap_or_else(|| container.image.clone())
}

fn join_reason(reason: &str, message: Option<&str>) -> String {
    message.map_or_else(|| reason.to_owned(), |message| format!("{reason}: {message}"))
}

fn single_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: Value) -> Pod {
        let containers = json!([{"name": "operator", "image": "docker.io/kubewake/operator:0.1.0"}]);
        let object = json!({"metadata": {"name": "operator-1"}, "spec": {"containers": containers}, "status": status});
        serde_json::from_value(object).unwrap()
    }

    fn container(state: Value, last: Value) -> Value {
        json!({"containerStatuses": [{
            "name": "operator", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state, "lastState": last,
        }]})
    }

    fn said(status: Value) -> Option<String> {
        pod_problem(&pod(status))
    }

    #[test]
    fn pod_that_does_not_start_says_why() {
        let scheduled = |message: &str| {
            json!({"conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]})
        };
        let words = said(scheduled("0/3 nodes are available:\n3 Insufficient cpu.")).unwrap();
        assert_eq!(words, "Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.");
        let waits = |reason: &str, message: &str| json!({"waiting": {"reason": reason, "message": message}});
        let pulled = said(container(waits("ImagePullBackOff", "Back-off pulling image"), json!({}))).unwrap();
        assert_eq!(pulled, "ImagePullBackOff: image docker.io/kubewake/operator:0.1.0: Back-off pulling image");
        let ended = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
        let crashed = said(container(waits("CrashLoopBackOff", "back-off 10s"), ended)).unwrap();
        assert_eq!(crashed, "CrashLoopBackOff: exit code 1 (Error): back-off 10s");
        assert_eq!(
            said(json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"})).unwrap(),
            "Evicted: low on memory"
        );
        assert!(said(scheduled(&"x ".repeat(1000))).unwrap().chars().count() <= MAX_MESSAGE_CHARS + 1);
    }

    #[test]
    fn pod_that_starts_in_the_ordinary_course_says_nothing() {
        assert_eq!(said(json!({})), None);
        assert_eq!(said(container(json!({"waiting": {"reason": "ContainerCreating"}}), json!({}))), None);
        assert_eq!(said(container(json!({"running": {}}), json!({}))), None);
    }

    #[test]
    fn deployment_without_pods_says_why_there_are_none() {
        let condition = json!({"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"});
        let deployment: Deployment =
            serde_json::from_value(json!({"metadata": {}, "status": {"conditions": [condition]}})).unwrap();
        assert_eq!(first_pod_problem(&deployment, &[]).as_deref(), Some("exceeded quota"));
        let unscheduled =
            pod(json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}));
        assert_eq!(first_pod_problem(&deployment, &[unscheduled]).as_deref(), Some("pod operator-1: Unschedulable"));
        assert_eq!(first_pod_problem(&Deployment::default(), &[]), None);
    }
}
