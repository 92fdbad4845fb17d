//! The server's built-in admission: its changes of objects, and its warnings.

use serde_json::{Value, json};

use crate::stage::{MAPS, MERGE, Stage};

const PODS: &str = "/api/v1/namespaces/default/pods";
const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for (field, value) in spec.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    pod
}

fn class(name: &str, value: i64, is_default: bool) -> Value {
    json!({"metadata": {"name": name}, "value": value, "globalDefault": is_default, "preemptionPolicy": "Never"})
}

fn warned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| format!("299 - \"{}\"", text.replace('"', "\\\""))).collect()
}

/// The fields that a pod gets from its class.
fn given(pod: &Value) -> [&Value; 3] {
    ["priorityClassName", "priority", "preemptionPolicy"].map(|field| &pod["spec"][field])
}

#[tokio::test]
async fn pod_gets_the_priority_of_its_class() {
    let stage = Stage::new().await;
    let plain = stage.post(PODS, pod("plain", json!({}))).await;
    assert_eq!(given(&plain.body), [&Value::Null, &json!(0), &json!("PreemptLowerPriority")]);
    let critical = stage.post(PODS, pod("critical", json!({"priorityClassName": "system-node-critical"}))).await;
    let system = [&json!("system-node-critical"), &json!(2_000_001_000), &json!("PreemptLowerPriority")];
    assert_eq!(given(&critical.body), system);
    assert_eq!(stage.post(CLASSES, class("usual", 7, true)).await.code, 201);
    let usual = stage.post(PODS, pod("usual", json!({}))).await;
    assert_eq!(given(&usual.body), [&json!("usual"), &json!(7), &json!("Never")]);
}

#[tokio::test]
async fn pod_that_contradicts_its_class_is_refused() {
    let stage = Stage::new().await;
    let computed = "priority admission controller computed";
    for (spec, why) in [
        (json!({"priorityClassName": "absent"}), "no PriorityClass with name absent was found".to_owned()),
        (
            json!({"priority": 3}),
            format!(
                "the integer value of priority (3) must not be provided in pod spec; {computed} 0 from the given PriorityClass name"
            ),
        ),
        (
            json!({"preemptionPolicy": "Never"}),
            format!(
                "the string value of PreemptionPolicy (Never) must not be provided in pod spec; {computed} PreemptLowerPriority \
                 from the given PriorityClass name"
            ),
        ),
    ] {
        let refused = stage.post(PODS, pod("p", spec)).await;
        assert_eq!(refused.message(), (403, format!("pods \"p\" is forbidden: {why}").as_str()));
    }
}

#[tokio::test]
async fn only_one_class_is_the_default() {
    let stage = Stage::new().await;
    assert_eq!(stage.post(CLASSES, class("first", 1, true)).await.code, 201);
    let why = "priorityclasses.scheduling.k8s.io \"second\" is forbidden: PriorityClass first is already marked as default. Only one \
               default can exist";
    assert_eq!(stage.post(CLASSES, class("second", 2, true)).await.message(), (403, why));
    assert_eq!(stage.post(CLASSES, class("second", 2, false)).await.code, 201);
    let patch = json!({"globalDefault": true});
    assert_eq!(stage.send("PATCH", &format!("{CLASSES}/second"), MERGE, &patch).await.message(), (403, why));
    // The default class itself can be changed.
    assert_eq!(stage.send("PATCH", &format!("{CLASSES}/first"), MERGE, json!({"description": "d"})).await.code, 200);
}

#[tokio::test]
async fn writer_is_warned_of_what_has_no_effect() {
    let stage = Stage::new().await;
    let spec = json!({
        "nodeSelector": {"beta.kubernetes.io/os": "linux"},
        "containers": [{
            "name": "c", "image": "i", "resources": {"limits": {"memory": "1500m"}},
            "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "A", "value": "$(A):3"}],
            "ports": [{"containerPort": 80}, {"containerPort": 80, "hostPort": 8080}],
        }],
    });
    let said = [
        "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
        "spec.containers[0].resources.limits[memory]: fractional byte value \"1500m\" is invalid, must be an integer",
        "spec.containers[0].resources.requests[memory]: fractional byte value \"1500m\" is invalid, must be an integer",
        "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
        "spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]",
    ];
    assert_eq!(stage.post(PODS, pod("p", spec.clone())).await.warnings, warned(&said));
    // A refused object gets no warnings.
    let refused = stage.post(PODS, pod("P", spec)).await;
    assert_eq!((refused.code, refused.warnings.len()), (422, 0));
}

#[tokio::test]
async fn change_of_a_workload_warns_only_if_its_spec_changed() {
    let stage = Stage::new().await;
    let spec =
        json!({"nodeSelector": {"beta.kubernetes.io/arch": "arm64"}, "containers": [{"name": "c", "image": "i"}]});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": spec});
    let body =
        json!({"metadata": {"name": "d.e"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    let arch = "spec.template.spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; use \"kubernetes.io/arch\" instead";
    let name = "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is \
                recommended: [must not contain dots]";
    assert_eq!(stage.post(DEPLOYMENTS, body).await.warnings, warned(&[name, arch]));
    let path = format!("{DEPLOYMENTS}/d.e");
    let labelled = stage.send("PATCH", &path, MERGE, json!({"metadata": {"labels": {"l": "m"}}})).await;
    assert_eq!((labelled.code, labelled.warnings.len()), (200, 0));
    let scaled = stage.send("PATCH", &path, MERGE, json!({"spec": {"replicas": 2}})).await;
    assert_eq!(scaled.warnings, warned(&[arch]));
}

#[tokio::test]
async fn binding_and_eviction_name_their_pod() {
    let stage = Stage::new().await;
    assert_eq!(stage.post(PODS, pod("p", json!({}))).await.code, 201);
    let other = json!({"name": "other"});
    let binding = json!({"metadata": other, "target": {"kind": "Node", "name": "n"}});
    let refused = stage.post(&format!("{PODS}/p/binding"), binding).await;
    assert_eq!(refused.message(), (400, "name in URL does not match name in Binding object"));
    let refused = stage.post(&format!("{PODS}/p/eviction"), json!({"metadata": other})).await;
    assert_eq!(refused.message(), (400, "name in URL does not match name in Eviction object"));
}

#[tokio::test]
async fn object_that_a_policy_refuses_is_named_if_it_has_a_name() {
    let stage = Stage::new().await;
    assert_eq!(stage.post(MAPS, json!({"metadata": {"name": "a"}})).await.code, 201);
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]});
    let spec = json!({"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false"}]});
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    assert_eq!(stage.post(path, json!({"metadata": {"name": "p"}, "spec": spec})).await.code, 201);
    let spec = json!({"policyName": "p", "validationActions": ["Deny"]});
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    assert_eq!(stage.post(path, json!({"metadata": {"name": "p"}, "spec": spec})).await.code, 201);
    let body = json!({"metadata": {"generateName": "made-"}});
    let refused = loop {
        let answer = stage.post(MAPS, body.clone()).await;
        if answer.code != 201 {
            break answer;
        }
    };
    assert!(refused.message().1.starts_with("configmaps \"made-"), "{}", refused.text);
    let refused = stage.send("DELETE", MAPS, "", "").await;
    assert!(refused.message().1.starts_with("configmaps \"Unknown\" is forbidden: "), "{}", refused.text);
    let refused = stage.post("/api/v1/namespaces/gone/configmaps", body).await;
    assert_eq!(refused.message(), (404, "namespaces \"gone\" not found"));
}
