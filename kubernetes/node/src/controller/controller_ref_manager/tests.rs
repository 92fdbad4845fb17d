use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use serde_json::{Value, json};

use super::*;

fn set(name: &str, selector: Value) -> ReplicaSet {
    let metadata = json!({"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"});
    serde_json::from_value(json!({"metadata": metadata, "spec": {"selector": selector}})).unwrap()
}

fn pod(labels: Value, owner: Option<&str>) -> Option<Arc<Pod>> {
    let owners = owner.map(|owner| {
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": true}])
    });
    let metadata = json!({"name": "p", "namespace": "default", "labels": labels, "ownerReferences": owners});
    Some(Arc::new(serde_json::from_value(json!({"metadata": metadata})).unwrap()))
}

fn told(old: Option<Arc<Pod>>, new: Option<Arc<Pod>>) -> Vec<String> {
    let sets = Arc::new(SharedInformer::default());
    sets.record_write(set("front", json!({"matchLabels": {"app": "front"}})));
    sets.record_write(set("back", json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["back"]}]})));
    sets.record_write(set("empty", json!({})));
    let might_take = |set: &ReplicaSet, pod: &Pod| {
        let selector = parse_selector(&set.spec.as_ref().unwrap().selector).unwrap();
        selects(&selector, pod)
    };
    let keys = affected_owners(&InformerChange { old, new }, &Arc::downgrade(&sets), might_take);
    keys.into_iter().map(|key| key.name).collect()
}

#[test]
fn the_owner_of_now_and_the_one_before_are_concerned() {
    let labels = || json!({"app": "front"});
    assert_eq!(told(None, pod(labels(), Some("front"))), ["front"]);
    assert_eq!(told(pod(labels(), Some("front")), pod(labels(), Some("front"))), ["front"]);
    assert_eq!(told(pod(labels(), Some("back")), pod(labels(), Some("front"))), ["back", "front"]);
    assert_eq!(told(pod(labels(), Some("front")), None), ["front"]);
}

#[test]
fn an_orphan_concerns_whoever_might_take_it() {
    let labels = |app: &str| json!({"app": app});
    assert_eq!(told(None, pod(labels("back"), None)), ["back"]);
    assert_eq!(told(pod(labels("back"), None), pod(labels("front"), None)), ["front"]);
    assert_eq!(told(pod(labels("front"), Some("back")), pod(labels("front"), None)), ["back", "front"]);
    assert!(told(pod(labels("back"), None), pod(labels("back"), None)).is_empty(), "nothing that matters has changed");
    assert!(told(pod(labels("back"), None), None).is_empty());
    assert!(told(None, pod(labels("other"), None)).is_empty());
}
