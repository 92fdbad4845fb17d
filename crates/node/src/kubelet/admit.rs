//! Whether a node takes a pod that it is bound to, as the kubelet decides it: whoever bound it may not have looked. Pure.

use k8s_openapi::api::core::v1::Pod;

use super::status::Verdict;
use crate::scheduler::resources::{PODS, Resources};

/// Why the node does not take the pod, of whose capacity others hold this much. What it took before, it takes again.
pub(super) fn refusal(pod: &Pod, capacity: &Resources, held: &Resources) -> Option<Verdict> {
    if pod.status.as_ref().is_some_and(|status| status.start_time.is_some()) {
        return None;
    }
    let asked = Resources::of_pod(pod);
    let lacks = |name: &str, amount: i64| amount > 0 && capacity.get(name).saturating_sub(held.get(name)) < amount;
    // The number of pods comes first, as in the kubelet.
    let pods = [(PODS, asked.get(PODS))].into_iter();
    let (name, amount) = pods.chain(asked.iter()).find(|(name, amount)| lacks(name, *amount))?;
    let (used, capacity) = (held.get(name), capacity.get(name));
    let message =
        format!("Node didn't have enough resource: {name}, requested: {amount}, used: {used}, capacity: {capacity}");
    Some(Verdict {
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

    fn amounts(cpu: &str, pods: &str) -> Resources {
        let amounts = json!({"cpu": cpu, "memory": "1Mi", "pods": pods});
        Resources::read(Some(&serde_json::from_value(amounts).unwrap()))
    }

    #[test]
    fn who_does_not_fit_is_told_what_is_lacking() {
        let none = Resources::default();
        assert_eq!(refusal(&pod("2"), &amounts("2", "1"), &none), None);
        let verdict = refusal(&pod("2"), &amounts("2", "5"), &Resources::of_pod(&pod("500m"))).unwrap();
        assert_eq!(verdict.reason, "OutOfcpu");
        let words =
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 2000, used: 500, capacity: 2000";
        assert_eq!(verdict.message, words);
        let verdict = refusal(&pod("9"), &amounts("2", "1"), &Resources::of_pod(&pod("1"))).unwrap();
        assert_eq!(verdict.reason, "OutOfpods");
    }

    #[test]
    fn who_was_taken_once_is_taken_again() {
        let mut pod = pod("9");
        pod.status = serde_json::from_value(json!({"startTime": "2026-01-02T03:04:05Z"})).unwrap();
        assert_eq!(refusal(&pod, &amounts("2", "1"), &Resources::default()), None);
    }
}
