//! Pods: defaults, valid changes, binding, eviction.

use serde_json::{Value, json};

use super::{bare, create, patch, patch_part, resource};
use crate::kinds::pod::{BudgetUpdate, admit_priority, bind, check_eviction};

fn pod() -> Value {
    admitted(&json!({"containers": [{"name": "a", "image": "i"}]}))
}

/// A new pod after admission without PriorityClasses.
fn admitted(spec: &Value) -> Value {
    let mut body = json!({"metadata": {"name": "p"}, "spec": spec});
    admit_priority(&mut body, None).unwrap();
    create("v1", "Pod", body).unwrap()
}

fn refused(spec: &Value) -> Vec<String> {
    create("v1", "Pod", json!({"metadata": {"name": "p"}, "spec": spec})).unwrap_err()
}

#[test]
fn a_pod_has_its_defaults() {
    let container = json!({
        "name": "a", "image": "img", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
        "ports": [{"containerPort": 1}], "livenessProbe": {"httpGet": {"port": 1}},
    });
    let pod = admitted(&json!({"containers": [container]}));
    let toleration =
        |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
    let expected = json!({
        "metadata": {"name": "p", "generation": 1},
        "spec": {
            "containers": [{
                "name": "a", "image": "img", "ports": [{"containerPort": 1, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
                "livenessProbe": {
                    "httpGet": {"path": "/", "port": 1, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10,
                    "successThreshold": 1, "failureThreshold": 3,
                },
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "imagePullPolicy": "Always",
            }],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "securityContext": {},
            "schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": true,
            "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": [toleration("node.kubernetes.io/not-ready"), toleration("node.kubernetes.io/unreachable")],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    });
    assert_eq!(bare(pod), expected);
}

#[test]
fn images_with_a_version_are_pulled_once() {
    let policy = |image: &str| {
        let spec = json!({"containers": [{"name": "a", "image": image}]});
        let pod = create("v1", "Pod", json!({"metadata": {"name": "p"}, "spec": spec})).unwrap();
        pod.pointer("/spec/containers/0/imagePullPolicy").unwrap().as_str().unwrap().to_owned()
    };
    for always in ["i", "i:latest", "host:5000/i", "a/b/c"] {
        assert_eq!(policy(always), "Always", "{always}");
    }
    for once in ["i:1", "host:5000/i:1", "i@sha256:0000"] {
        assert_eq!(policy(once), "IfNotPresent", "{once}");
    }
}

#[test]
fn limits_are_requests_and_make_the_class() {
    let class = |resources: Value| {
        let spec = json!({"containers": [{"name": "a", "image": "i", "resources": resources}]});
        let pod = create("v1", "Pod", json!({"metadata": {"name": "p"}, "spec": spec})).unwrap();
        pod.pointer("/status/qosClass").unwrap().as_str().unwrap().to_owned()
    };
    assert_eq!(class(json!({})), "BestEffort");
    assert_eq!(class(json!({"limits": {"cpu": "1", "memory": "1Gi"}})), "Guaranteed");
    assert_eq!(class(json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}})), "Burstable");
    assert_eq!(class(json!({"limits": {"nvidia.com/gpu": "1"}})), "BestEffort");
}

#[test]
fn containers_are_checked() {
    let container = json!([
        {"name": "a", "image": "i", "env": [{"name": "A=B"}], "volumeMounts": [{"name": "v", "mountPath": "/m"}],
         "ports": [{"containerPort": 70000}, {"containerPort": 1, "name": "x"}, {"containerPort": 2, "name": "x"}],
         "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}},
        {"name": "a"},
    ]);
    let at = "spec.containers[0]";
    let mut wrong = refused(&json!({"containers": container}));
    wrong.sort();
    let mut expected = [
        format!(
            "{at}.env[0].name: Invalid value: \"A=B\": a valid environment variable name must consist only of printable ASCII \
             characters other than '='"
        ),
        format!("{at}.ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"),
        format!("{at}.ports[2].name: Duplicate value: \"x\""),
        format!("{at}.resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"),
        format!("{at}.volumeMounts[0].name: Not found: \"v\""),
        "spec.containers[1].image: Required value".to_owned(),
        "spec.containers[1].name: Duplicate value: \"a\"".to_owned(),
    ];
    expected.sort();
    assert_eq!(wrong, expected);
}

#[test]
fn probes_volumes_and_tolerations_are_checked() {
    let spec = json!({
        "containers": [{"name": "a", "image": "i", "livenessProbe": {}, "readinessProbe": {"exec": {"command": []}}}],
        "volumes": [{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}, {"name": "v", "configMap": {}}],
        "tolerations": [{"operator": "Equal"}, {"key": "k", "tolerationSeconds": 1}],
    });
    let mut wrong = refused(&spec);
    wrong.sort();
    let mut expected = [
        "spec.containers[0].livenessProbe: Required value: must specify a handler type",
        "spec.containers[0].readinessProbe.exec.command: Required value",
        "spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type",
        "spec.volumes[1].configMap.name: Required value",
        "spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \"match all \
         values and all keys\"",
        "spec.tolerations[1].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
    ];
    expected.sort_unstable();
    assert_eq!(wrong, expected);
}

#[test]
fn only_images_deadlines_and_tolerations_change() {
    let old = pod();
    let image = json!({"spec": {"containers": [{"name": "a", "image": "j"}]}});
    let new = patch("v1", "Pod", &old, &image);
    // A merge patch replaces the list, so the defaults are set again and only the image differs.
    assert_eq!(new.unwrap().pointer("/metadata/generation"), Some(&json!(2)));
    let host = patch("v1", "Pod", &old, &json!({"spec": {"hostname": "x"}})).unwrap_err();
    assert_eq!(host.len(), 1);
    assert!(
        host[0]
            .starts_with("spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,")
    );
    let tolerant = patch("v1", "Pod", &old, &json!({"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}));
    let fewer = patch("v1", "Pod", &tolerant.unwrap(), &json!({"spec": {"tolerations": null}})).unwrap_err();
    assert_eq!(
        fewer,
        ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"]
    );
}

#[test]
fn a_pod_may_be_replaced_without_what_it_was_given() {
    let old = pod();
    let without = json!({"spec": {"tolerations": null, "priority": null, "preemptionPolicy": null}});
    assert_eq!(patch("v1", "Pod", &old, &without).unwrap(), old);
}

#[test]
fn a_status_write_changes_the_status_alone() {
    let change = json!({"spec": {"hostname": "x"}, "status": {"phase": "Running", "qosClass": null}});
    let new = patch_part("v1", "Pod", "status", &pod(), &change).unwrap();
    assert_eq!(new.pointer("/status"), Some(&json!({"phase": "Running", "qosClass": "BestEffort"})));
    assert_eq!(new.get("spec"), pod().get("spec"));
    assert_eq!(new.pointer("/metadata/generation"), Some(&json!(1)));
}

#[test]
fn a_pod_without_a_node_goes_at_once() {
    let strategy = &resource("v1", "Pod").strategy;
    assert_eq!(strategy.grace_period(&pod(), None), Some(0));
    let mut bound = pod();
    bound["spec"]["nodeName"] = json!("n");
    assert_eq!(strategy.grace_period(&bound, None), Some(30));
    assert_eq!(strategy.grace_period(&bound, Some(0)), Some(0));
    assert_eq!(strategy.grace_period(&bound, Some(-1)), Some(1));
    bound["status"]["phase"] = json!("Succeeded");
    assert_eq!(strategy.grace_period(&bound, None), Some(0));
}

#[test]
fn a_binding_sets_the_node_once() {
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}});
    let bound = bind(&pod(), &binding, "2020-01-01T00:00:00Z").unwrap();
    assert_eq!(bound.pointer("/spec/nodeName"), Some(&json!("n1")));
    let scheduled = json!([{
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": "2020-01-01T00:00:00Z",
    }]);
    assert_eq!(bound.pointer("/status/conditions"), Some(&scheduled));
    let again = bind(&bound, &binding, "2020-01-01T00:00:00Z").unwrap_err();
    let words = "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\"";
    assert_eq!((again.code, again.message.as_str()), (409, words));
}

#[test]
fn a_budget_can_refuse_an_eviction() {
    let mut running = pod();
    assert_eq!(check_eviction(&running, &[], "t"), Ok(BudgetUpdate::NotNeeded));
    running["status"]["phase"] = json!("Running");
    running["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    running["metadata"]["labels"] = json!({"a": "b"});
    let budget = |allowed: i64| {
        let status =
            json!({"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "observedGeneration": 1});
        let meta = json!({"name": "b", "namespace": "ns", "generation": 1});
        json!({"metadata": meta, "spec": {"selector": {"matchLabels": {"a": "b"}}}, "status": status})
    };
    let refused = check_eviction(&running, &[budget(0)], "t").unwrap_err();
    assert_eq!((refused.code, refused.reason), (429, "TooManyRequests"));
    let why = &refused.details.as_ref().unwrap().causes[0];
    assert_eq!(why.message, "The disruption budget b needs 1 healthy pods and has 1 currently");
    let Ok(BudgetUpdate::Decrement(charged)) = check_eviction(&running, &[budget(1)], "t") else { panic!("allowed") };
    assert_eq!(charged.pointer("/status/disruptionsAllowed"), Some(&json!(0)));
    assert_eq!(charged.pointer("/status/disruptedPods/p"), Some(&json!("t")));
    assert_eq!(check_eviction(&running, &[budget(1), budget(1)], "t").unwrap_err().code, 500);
}

#[test]
fn selectors_see_fields_of_pods() {
    let strategy = &resource("v1", "Pod").strategy;
    let value = |path: &str| strategy.field_value(&pod(), path).unwrap();
    assert_eq!(value("status.phase"), "Pending");
    assert_eq!(value("spec.nodeName"), "");
    assert_eq!(value("spec.hostNetwork"), "false");
    assert_eq!(value("status.podIP"), "");
}

#[test]
fn hosts_gates_systems_and_users_are_checked() {
    let containers = json!([{"name": "a", "image": "i", "securityContext": {"runAsUser": -1}}]);
    let found = refused(&json!({
        "containers": containers, "os": {"name": "plan9"}, "readinessGates": [{"conditionType": "a.b/c"}],
        "hostAliases": [{"ip": "1.2.3", "hostnames": ["h"]}], "schedulingGates": [{"name": "g"}, {"name": "g"}],
    }));
    let wanted = [
        "spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
        "spec.schedulingGates[1]: Duplicate value: \"g\"",
        "spec.hostAliases[0].ip: Invalid value: \"1.2.3\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        "spec.os: Unsupported value: \"plan9\": supported values: \"linux\", \"windows\"",
    ];
    assert_eq!(found, wanted);
}
