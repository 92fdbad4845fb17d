use serde_json::json;

use super::*;

fn pod(uid: &str, node: &str, phase: &str) -> Arc<Pod> {
    let metadata = json!({ "namespace": "here", "name": "web", "uid": uid });
    let pod =
        json!({ "metadata": metadata, "spec": { "nodeName": node, "containers": [] }, "status": { "phase": phase } });
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn key() -> NamespacedKey {
    NamespacedKey::new("here", "web")
}

fn nodes(ledger: &SchedulerCache) -> Vec<&str> {
    ledger.all().map(|booking| booking.node.as_str()).collect()
}

#[test]
fn an_assumption_holds_until_the_pod_is_seen_there_or_gone() {
    let mut ledger = SchedulerCache::default();
    ledger.assume_pod(key(), &pod("1", "", "Pending"), "one");
    assert_eq!(ledger.update_pod(&key(), Some(&pod("1", "", "Pending"))), None);
    assert_eq!(nodes(&ledger), ["one"]);
    assert_eq!(ledger.update_pod(&key(), Some(&pod("1", "one", "Pending"))), None);
    ledger.forget_pod(&key());
    assert_eq!(nodes(&ledger), ["one"]);
    assert_eq!(ledger.update_pod(&key(), None), Some(ClusterEvent::ResourcesFreed));
    assert!(nodes(&ledger).is_empty());
}

#[test]
fn an_assumption_that_failed_is_released() {
    let mut ledger = SchedulerCache::default();
    ledger.assume_pod(key(), &pod("1", "", "Pending"), "one");
    ledger.forget_pod(&key());
    assert!(nodes(&ledger).is_empty());
}

#[test]
fn a_pod_that_ended_or_was_made_again_makes_room() {
    let mut ledger = SchedulerCache::default();
    assert_eq!(ledger.update_pod(&key(), Some(&pod("1", "one", "Running"))), Some(ClusterEvent::PodChanged));
    assert_eq!(ledger.update_pod(&key(), Some(&pod("1", "one", "Succeeded"))), Some(ClusterEvent::ResourcesFreed));
    ledger.update_pod(&key(), Some(&pod("1", "one", "Running")));
    assert_eq!(ledger.update_pod(&key(), Some(&pod("2", "", "Pending"))), Some(ClusterEvent::ResourcesFreed));
    assert!(nodes(&ledger).is_empty());
}
