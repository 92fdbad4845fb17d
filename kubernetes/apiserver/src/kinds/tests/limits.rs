//! LimitRanges and RuntimeClasses: what they add to new objects, and what they refuse.

use serde_json::{Value, json};

use crate::kinds::{
    limits::{set_defaults, violation},
    runtime_class::apply_to_pod,
};

fn range(limit: Value) -> Value {
    json!({"spec": {"limits": [limit]}})
}

fn pod(resources: Value) -> Value {
    json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "resources": resources}]}})
}

#[test]
fn container_without_resources_gets_those_of_the_limit_range() {
    let range = range(json!({
        "type": "Container", "default": {"cpu": "2", "memory": "1Gi"}, "defaultRequest": {"cpu": "1"},
    }));
    let mut new = pod(json!({"limits": {"cpu": "3"}}));
    set_defaults(&mut new, &range);
    let resources = json!({"limits": {"cpu": "3", "memory": "1Gi"}, "requests": {"cpu": "1"}});
    assert_eq!(new.pointer("/spec/containers/0/resources"), Some(&resources));
    let said = "LimitRanger plugin set: cpu request for container a; memory limit for container a";
    assert_eq!(new.pointer("/metadata/annotations/kubernetes.io~1limit-ranger"), Some(&json!(said)));
}

#[test]
fn complete_container_is_left_alone_without_an_annotation() {
    let mut new = pod(json!({"limits": {"cpu": "3"}, "requests": {"cpu": "1"}}));
    let before = new.clone();
    set_defaults(
        &mut new,
        &range(json!({"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}})),
    );
    assert_eq!(new, before);
}

#[test]
fn amounts_outside_of_the_bounds_are_refused() {
    let check = |limit: Value, resources: Value| violation(&pod(resources), "pods", &range(limit));
    let bounds = json!({"type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "2"}});
    assert_eq!(check(bounds.clone(), json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}})), None);
    for (resources, why) in [
        (json!({"limits": {"cpu": "2"}}), "minimum cpu usage per Container is 1.  No request is specified"),
        (
            json!({"requests": {"cpu": "500m"}, "limits": {"cpu": "3"}}),
            "[minimum cpu usage per Container is 1, but request is 500m, maximum cpu usage per Container is 2, but limit is 3]",
        ),
    ] {
        assert_eq!(check(bounds.clone(), resources).as_deref(), Some(why));
    }
    let ratio = json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}});
    assert_eq!(
        check(ratio, json!({"requests": {"cpu": "1"}, "limits": {"cpu": "5"}})).as_deref(),
        Some("cpu max limit to request ratio per Container is 2, but provided ratio is 5.000000")
    );
}

#[test]
fn limits_of_a_pod_count_all_of_its_containers() {
    let container = |amount: &str| json!({"name": "c", "resources": {"limits": {"memory": amount}, "requests": {"memory": amount}}});
    let mut sidecar = container("1Gi");
    sidecar["restartPolicy"] = "Always".into();
    let spec =
        json!({"containers": [container("1Gi"), container("512Mi")], "initContainers": [sidecar, container("2Gi")]});
    let bound = range(json!({"type": "Pod", "max": {"memory": "2Gi"}}));
    // While the second init container runs, the sidecar runs as well.
    assert_eq!(
        violation(&json!({"spec": spec}), "pods", &bound).as_deref(),
        Some("maximum memory usage per Pod is 2Gi, but limit is 3Gi")
    );
}

#[test]
fn size_of_a_claim_is_bounded() {
    let claim = json!({"spec": {"resources": {"requests": {"storage": "5Gi"}}}});
    let bound = range(json!({"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}}));
    assert_eq!(
        violation(&claim, "persistentvolumeclaims", &bound).as_deref(),
        Some("maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 5Gi")
    );
}

#[test]
fn overhead_and_nodes_of_a_pod_are_those_of_its_runtime_class() {
    let class = json!({
        "overhead": {"podFixed": {"cpu": "1"}}, "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "t"}]},
    });
    let mut new = pod(json!({}));
    apply_to_pod(&mut new, Some(&class)).unwrap();
    assert_eq!(new.pointer("/spec/overhead"), Some(&json!({"cpu": "1"})));
    assert_eq!(new.pointer("/spec/nodeSelector"), Some(&json!({"a": "b"})));
    assert_eq!(new.pointer("/spec/tolerations"), Some(&json!([{"key": "t"}])));
    new["spec"]["nodeSelector"]["a"] = "c".into();
    assert_eq!(
        apply_to_pod(&mut new, Some(&class)).unwrap_err(),
        "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c"
    );
    assert_eq!(
        apply_to_pod(&mut new, None).unwrap_err(),
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    );
}
