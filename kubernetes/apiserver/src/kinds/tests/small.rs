//! The other kinds.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{bare, create, patch, patch_part, resource};
use crate::{
    api::{field::FieldErrors, meta::set_meta},
    kinds::{
        ServiceAllocator,
        network::{EndpointSliceStrategy, EndpointsStrategy, LoopbackEndpoints},
    },
    registry::Strategy,
};

#[test]
fn an_immutable_config_map_stays() {
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "1"}, "immutable": true});
    let old = create("v1", "ConfigMap", body).unwrap();
    let words = "Forbidden: field is immutable when `immutable` is set";
    let data = patch("v1", "ConfigMap", &old, &json!({"data": {"k": "2"}})).unwrap_err();
    assert_eq!(data, [format!("data: {words}")]);
    let loose = patch("v1", "ConfigMap", &old, &json!({"immutable": null})).unwrap_err();
    assert_eq!(loose, [format!("immutable: {words}")]);
    assert!(patch("v1", "ConfigMap", &old, &json!({"metadata": {"labels": {"x": "y"}}})).is_ok());
}

#[test]
fn keys_and_sizes_of_config_maps_are_bounded() {
    let data = |data: Value| create("v1", "ConfigMap", json!({"metadata": {"name": "a"}, "data": data})).unwrap_err();
    let wrong = data(json!({"a b": "x"}));
    assert!(wrong[0].starts_with("data[a b]: Invalid value: \"a b\": a valid config key must consist of"), "{wrong:?}");
    assert_eq!(data(json!({"a": "x".repeat(1024 * 1024 + 1)})), ["[]: Too long: may not be more than 1048576 bytes"]);
}

#[test]
fn texts_of_a_secret_become_data() {
    let body = json!({
        "metadata": {"name": "s"}, "data": {"a": "b2xk", "b": "Yg=="}, "stringData": {"a": "new", "c": "é"},
    });
    let made = create("v1", "Secret", body).unwrap();
    let data = json!({"a": "bmV3", "b": "Yg==", "c": "w6k="});
    assert_eq!(bare(made.clone()), json!({"metadata": {"name": "s"}, "data": data, "type": "Opaque"}));
    let more = patch("v1", "Secret", &made, &json!({"stringData": {"d": "x"}})).unwrap();
    assert_eq!(more.pointer("/data/d"), Some(&json!("eA==")));
    assert_eq!(more.get("stringData"), None);
}

#[test]
fn the_type_of_a_secret_stays_and_asks_for_keys() {
    let old = create("v1", "Secret", json!({"metadata": {"name": "s"}})).unwrap();
    let wrong = patch("v1", "Secret", &old, &json!({"type": "x/y"})).unwrap_err();
    assert_eq!(wrong, ["type: Invalid value: \"x/y\": field is immutable"]);
    let tls = create("v1", "Secret", json!({"metadata": {"name": "t"}, "type": "kubernetes.io/tls"})).unwrap_err();
    assert_eq!(tls, ["data[tls.crt]: Required value", "data[tls.key]: Required value"]);
}

#[test]
fn a_namespace_has_its_name_as_a_label_and_a_finalizer() {
    let made = create("v1", "Namespace", json!({"metadata": {"name": "n"}})).unwrap();
    let expected = json!({
        "metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "n"}}, "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    });
    assert_eq!(bare(made.clone()), expected);
    let changed =
        json!({"metadata": {"labels": {"kubernetes.io/metadata.name": "x", "a": "b"}}, "spec": {"finalizers": []}});
    let new = patch("v1", "Namespace", &made, &changed).unwrap();
    assert_eq!(new.pointer("/metadata/labels"), Some(&json!({"a": "b", "kubernetes.io/metadata.name": "n"})));
    assert_eq!(new.get("spec"), made.get("spec"));
    let mine = json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["example.com/mine"]}});
    let mine = create("v1", "Namespace", mine).unwrap();
    assert_eq!(mine.pointer("/spec/finalizers"), Some(&json!(["example.com/mine", "kubernetes"])));
    let freed = patch_part("v1", "Namespace", "finalize", &mine, &json!({"spec": {"finalizers": []}})).unwrap();
    assert_eq!(freed.pointer("/spec/finalizers"), Some(&json!([])));
}

#[test]
fn a_lease_has_a_positive_duration() {
    let lease = |spec| create("coordination.k8s.io/v1", "Lease", json!({"metadata": {"name": "l"}, "spec": spec}));
    let wrong = lease(json!({"leaseDurationSeconds": 0})).unwrap_err();
    assert_eq!(wrong, ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"]);
    let wrong = lease(json!({"leaseTransitions": -1})).unwrap_err();
    assert_eq!(wrong, ["spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"]);
    let strategy = &resource("coordination.k8s.io/v1", "Lease").strategy;
    assert!(!strategy.unconditional_update() && strategy.create_on_update());
}

#[test]
fn a_node_begins_not_ready() {
    let node = create("v1", "Node", json!({"metadata": {"name": "n"}})).unwrap();
    assert_eq!(
        node.get("spec"),
        Some(&json!({"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}))
    );
    let status = json!({"status": {"capacity": {"cpu": "2"}, "conditions": [{"type": "Ready", "status": "True"}]}});
    let ready = patch_part("v1", "Node", "status", &node, &status).unwrap();
    assert_eq!(ready.pointer("/status/allocatable"), Some(&json!({"cpu": "2"})));
    let condition = json!({"type": "Ready", "status": "True", "lastHeartbeatTime": null, "lastTransitionTime": null});
    assert_eq!(ready.pointer("/status/conditions"), Some(&json!([condition])));
    assert!(crate::kinds::node::is_ready(&ready));
}

#[test]
fn budgets_and_autoscalers_have_their_defaults() {
    let body =
        json!({"metadata": {"name": "p"}, "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}});
    let budget = bare(create("policy/v1", "PodDisruptionBudget", body.clone()).unwrap());
    let status = json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
    assert_eq!(budget, json!({"metadata": {"name": "p", "generation": 1}, "spec": body["spec"], "status": status}));
    let mut both = body;
    both["spec"]["maxUnavailable"] = json!(1);
    let wrong = create("policy/v1", "PodDisruptionBudget", both).unwrap_err();
    assert!(wrong[0].ends_with("minAvailable and maxUnavailable cannot be both set"), "{wrong:?}");
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let body = json!({"metadata": {"name": "h"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}});
    let scaler = bare(create("autoscaling/v2", "HorizontalPodAutoscaler", body).unwrap());
    let cpu = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}});
    let spec = json!({
        "scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3, "metrics": [{"type": "Resource", "resource": cpu}],
    });
    let status = json!({"desiredReplicas": 0, "currentMetrics": null});
    assert_eq!(scaler, json!({"metadata": {"name": "h"}, "spec": spec, "status": status}));
}

#[test]
fn the_old_autoscaler_is_a_view_of_the_new_one() {
    let target = json!({"kind": "Deployment", "name": "web"});
    let spec = json!({"scaleTargetRef": target, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50});
    let body = json!({"metadata": {"name": "h"}, "spec": spec});
    let mut stored = create("autoscaling/v1", "HorizontalPodAutoscaler", body).unwrap();
    assert_eq!(stored.pointer("/spec/metrics/0/resource/target/averageUtilization"), Some(&json!(50)));
    stored["spec"]["metrics"].as_array_mut().unwrap().push(json!({"type": "Pods", "pods": {}}));
    let old = resource("autoscaling/v1", "HorizontalPodAutoscaler");
    let before = stored.clone();
    old.strategy.convert_to_served(&mut stored);
    assert_eq!(stored.pointer("/spec/targetCPUUtilizationPercentage"), Some(&json!(50)));
    assert_eq!(stored.pointer("/spec/metrics"), None);
    old.strategy.convert_to_stored(&mut stored);
    assert_eq!(stored.pointer("/spec/metrics").unwrap().as_array().unwrap().len(), 2, "nothing is lost on the way");
    assert_eq!(stored.get("metadata"), before.get("metadata"));
}

#[test]
fn a_claim_asks_for_storage() {
    let claim = |spec| create("v1", "PersistentVolumeClaim", json!({"metadata": {"name": "c"}, "spec": spec}));
    let wrong = claim(json!({})).unwrap_err();
    let expected = [
        "spec.accessModes: Required value: at least 1 access mode is required",
        "spec.resources[storage]: Required value",
    ];
    assert_eq!(wrong, expected);
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let mut old = claim(spec).unwrap();
    assert_eq!(old.get("status"), Some(&json!({"phase": "Pending"})));
    set_meta(&mut old, "generation", 0);
    let less = json!({"spec": {"resources": {"requests": {"storage": "1Mi"}}}});
    assert_eq!(patch("v1", "PersistentVolumeClaim", &old, &less).unwrap_err().len(), 2);
}

#[test]
fn a_signing_request_is_decided_on_its_own_path_alone() {
    let (version, kind) = ("certificates.k8s.io/v1", "CertificateSigningRequest");
    let spec =
        json!({"request": "eA==", "signerName": "example.com/s", "usages": ["client auth"], "expirationSeconds": 600});
    let wrong = json!({"request": "eA==", "signerName": "s", "expirationSeconds": 1});
    let refused = create(version, kind, json!({"metadata": {"name": "c"}, "spec": wrong})).unwrap_err();
    assert!(refused.len() == 3 && refused[0] == "spec.usages: Required value", "{refused:?}");
    let old =
        create(version, kind, json!({"metadata": {"name": "c"}, "spec": spec, "status": {"certificate": "eA=="}}));
    let old = old.unwrap();
    assert_eq!(old["status"], json!({}), "nobody signs for himself");
    let approve = json!({"status": {"conditions": [{"type": "Approved", "status": "True"}], "certificate": "eA=="}});
    let unmoved =
        patch(version, kind, &old, &json!({"spec": {"signerName": "x/y"}, "status": approve["status"]})).unwrap();
    assert_eq!((&unmoved["spec"], &unmoved["status"]), (&old["spec"], &old["status"]));
    let signed = patch_part(version, kind, "status", &old, &approve).unwrap();
    assert_eq!(signed["status"], json!({"certificate": "eA=="}), "a signer does not decide");
    let approved = patch_part(version, kind, "approval", &old, &approve).unwrap();
    assert_eq!(approved["status"], json!({"conditions": [{"type": "Approved", "status": "True"}]}));
    let back = patch_part(version, kind, "approval", &approved, &json!({"status": {"conditions": null}})).unwrap_err();
    assert_eq!(back, ["status.conditions: Forbidden: updates may not remove a condition of type \"Approved\""]);
    let failed = json!({"status": {"conditions": [{"type": "Failed", "status": "True"}]}});
    let failed = patch_part(version, kind, "status", &approved, &failed).unwrap();
    assert_eq!(failed["status"]["conditions"].as_array().unwrap().len(), 2);
    let denied = json!({"type": "Denied", "status": "True"});
    let both = json!({"status": {"conditions": [approved["status"]["conditions"][0], denied]}});
    let both = patch_part(version, kind, "approval", &approved, &both).unwrap_err();
    assert!(both[0].contains("mutually exclusive"), "{both:?}");
}

#[test]
fn amounts_of_a_limit_range_go_together() {
    let range =
        |limits: Value| create("v1", "LimitRange", json!({"metadata": {"name": "l"}, "spec": {"limits": limits}}));
    let wrong = range(json!([
        {"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "500m"}},
        {"type": "Container", "min": {"memory": "2Gi"}, "max": {"memory": "1Gi"}, "default": {"memory": "1Gi"}, "defaultRequest": {"memory": "1Gi"}},
        {"type": "Pod", "default": {"cpu": "1"}},
        {"type": "PersistentVolumeClaim"},
    ]));
    let mut wrong = wrong.unwrap_err();
    wrong.sort();
    let wanted = [
        "spec.limits[0].defaultRequest[cpu]: Invalid value: \"1\": default request value 1 is greater than max value 500m",
        "spec.limits[0].default[cpu]: Invalid value: \"500m\": default value 1 is greater than max value 500m",
        "spec.limits[1].defaultRequest[memory]: Invalid value: \"1Gi\": min value 2Gi is greater than default request value 1Gi",
        "spec.limits[1].default[memory]: Invalid value: \"2Gi\": min value 2Gi is greater than default value 1Gi",
        "spec.limits[1].min[memory]: Invalid value: \"2Gi\": min value 2Gi is greater than max value 1Gi",
        "spec.limits[1].type: Duplicate value: \"Container\"",
        "spec.limits[2].default: Forbidden: may not be specified when `type` is 'Pod'",
        "spec.limits[3].limits: Required value: either minimum or maximum storage value is required, but neither was provided",
    ];
    assert_eq!(wrong, wanted);
    assert!(range(json!([{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1"}}])).is_ok());
}

#[test]
fn endpoints_are_no_special_addresses() {
    let ip = |ip: &str| {
        let subset = json!({"addresses": [{"ip": ip}], "ports": [{"port": 80}]});
        create("v1", "Endpoints", json!({"metadata": {"name": "e"}, "subsets": [subset]})).err().unwrap_or_default()
    };
    assert_eq!(ip("10.1.2.3"), [""; 0]);
    for (special, why) in [
        ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
        ("127.1.1.1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        ("169.254.1.1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        ("ff02::1", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
    ] {
        assert_eq!(ip(special), [format!("subsets[0].addresses[0].ip: Invalid value: {special:?}: {why}")]);
    }
    assert_eq!(ip("x").len(), 2);
}

#[test]
fn endpoints_may_be_loopback_addresses_where_services_are() {
    let endpoints =
        json!({"subsets": [{"addresses": [{"ip": "127.1.1.1"}], "ports": [{"port": 80, "protocol": "TCP"}]}]});
    let slice = json!({"addressType": "IPv4", "endpoints": [{"addresses": ["127.1.1.1"]}], "ports": []});
    for (network, refused) in [(Ipv4Addr::new(10, 0, 0, 0), 1), (Ipv4Addr::new(127, 5, 0, 0), 0)] {
        let loopback = LoopbackEndpoints::for_services(&ServiceAllocator::new(network, 24));
        let strategies: [(&dyn Strategy, _); 2] =
            [(&EndpointsStrategy(loopback), &endpoints), (&EndpointSliceStrategy(loopback), &slice)];
        for (strategy, object) in strategies {
            let mut errors = FieldErrors::default();
            strategy.validate_create(object, &mut errors);
            assert_eq!(errors.len(), refused, "{network}: {errors:?}");
        }
    }
}
