//! Admission of pods to a node, by the kubelet's rules: a pod may have been bound without a check of its node.
//! Pure.

use k8s_openapi::api::core::v1::Pod;

use super::status::PodFailure;
use crate::scheduler::resources::{PODS_RESOURCE, ResourceAmounts};

/// The reason to reject the pod, if `held` is in use by others. Pods that were admitted before are admitted
/// again.
pub(super) fn admission_failure(pod: &Pod, capacity: &ResourceAmounts, held: &ResourceAmounts) -> Option<PodFailure> {
    if pod.status.as_ref().is_some_and(|status| status.start_time.is_some()) {
        return None;
    }
    let asked = ResourceAmounts::requested_by_pod(pod);
    let lacks = |name: &str, amount: i64| amount > 0 && capacity.get(name).saturating_sub(held.get(name)) < amount;
    // The number of pods is checked first, as in the kubelet.
    let pods = [(PODS_RESOURCE, asked.get(PODS_RESOURCE))].into_iter();
    let (name, amount) = pods.chain(asked.iter()).find(|(name, amount)| lacks(name, *amount))?;
    let used = held.get(name);
    let capacity = capacity.get(name);
    let message =
        format!("Node didn't have enough resource: {name}, requested: {amount}, used: {used}, capacity: {capacity}");
    Some(PodFailure {
        reason: format!("OutOf{name}").into(),
        message: format!("Pod was rejected: {message}"),
        grace: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(cpu: &str) -> Pod {
        let resources = json!({"requests": {"cpu": cpu, "memory": "1Ki"}});
        let spec = json!({"containers": [{"name": "main", "resources": resources}]});
        serde_json::from_value(json!({"spec": spec})).unwrap()
    }

    fn amounts(cpu: &str, pods: &str) -> ResourceAmounts {
        let amounts = json!({"cpu": cpu, "memory": "1Mi", "pods": pods});
        ResourceAmounts::from_quantities(Some(&serde_json::from_value(amounts).unwrap()))
    }

    #[test]
    fn who_does_not_fit_is_told_what_is_lacking() {
        let none = ResourceAmounts::default();
        assert_eq!(admission_failure(&pod("2"), &amounts("2", "1"), &none), None);
        let verdict =
            admission_failure(&pod("2"), &amounts("2", "5"), &ResourceAmounts::requested_by_pod(&pod("500m"))).unwrap();
        assert_eq!(verdict.reason, "OutOfcpu");
        let words =
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 2000, used: 500, capacity: 2000";
        assert_eq!(verdict.message, words);
        let verdict =
            admission_failure(&pod("9"), &amounts("2", "1"), &ResourceAmounts::requested_by_pod(&pod("1"))).unwrap();
        assert_eq!(verdict.reason, "OutOfpods");
    }

    #[test]
    fn who_was_taken_once_is_taken_again() {
        let mut pod = pod("9");
        pod.status = serde_json::from_value(json!({"startTime": "2026-01-02T03:04:05Z"})).unwrap();
        assert_eq!(admission_failure(&pod, &amounts("2", "1"), &ResourceAmounts::default()), None);
    }
}
