use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::*;

fn place(name: &str, spec: Value, labels: Value) -> NodeAllocation {
    let allocatable = json!({ "cpu": "1", "memory": "1Gi", "pods": "2" });
    let node = json!({
        "metadata": { "name": name, "labels": labels }, "spec": spec, "status": { "allocatable": allocatable },
    });
    NodeAllocation::new(serde_json::from_value::<Node>(node).unwrap())
}

fn pod(spec: Value) -> Pod {
    let mut spec = spec;
    let requests = spec.as_object_mut().unwrap().remove("requests").unwrap_or_default();
    spec["containers"] = json!([{ "name": "c", "resources": { "requests": requests } }]);
    serde_json::from_value(json!({ "metadata": { "name": "p" }, "spec": spec })).unwrap()
}

fn against(filter: &str, pod: &Pod, place: &NodeAllocation) -> Vec<String> {
    let (_, filter) = FILTER_PLUGINS.into_iter().find(|(name, _)| *name == filter).unwrap();
    filter.rejection_reasons(&ask(pod), place)
}

fn points(score: &str, pod: &Pod, places: &[&NodeAllocation]) -> Vec<i64> {
    let (_, score) = SCORE_PLUGINS.into_iter().find(|(name, _)| *name == score).unwrap();
    score.score_nodes(&ask(pod), places)
}

fn ask(pod: &Pod) -> PodInfo<'_> {
    PodInfo { spec: pod.spec.as_ref().unwrap(), requests: ResourceList::pod_requests(pod) }
}

#[test]
fn a_cordoned_node_takes_only_who_tolerates_it() {
    let cordoned = place("one", json!({ "unschedulable": true }), json!({}));
    assert_eq!(against("NodeUnschedulable", &pod(json!({})), &cordoned), ["node(s) were unschedulable"]);
    let tolerant = pod(json!({ "tolerations": [{ "operator": "Exists" }] }));
    assert!(against("NodeUnschedulable", &tolerant, &cordoned).is_empty());
}

#[test]
fn taints_keep_away_or_deter() {
    let gpu = place("gpu", json!({ "taints": [{ "key": "gpu", "value": "a100", "effect": "NoSchedule" }] }), json!({}));
    let slow = place("slow", json!({ "taints": [{ "key": "slow", "effect": "PreferNoSchedule" }] }), json!({}));
    let plain = place("plain", json!({}), json!({}));
    let any = pod(json!({}));
    assert_eq!(against("TaintToleration", &any, &gpu), ["node(s) had untolerated taint {gpu: a100}"]);
    assert!(against("TaintToleration", &any, &slow).is_empty());
    let ours = pod(json!({ "tolerations": [{ "key": "gpu", "value": "a100", "effect": "NoSchedule" }] }));
    assert!(against("TaintToleration", &ours, &gpu).is_empty());
    let other = pod(json!({ "tolerations": [{ "key": "gpu", "value": "v100" }] }));
    assert_eq!(against("TaintToleration", &other, &gpu).len(), 1);
    assert_eq!(points("TaintToleration", &any, &[&slow, &plain]), [0, 100]);
}

#[test]
fn a_pod_selects_and_prefers_nodes() {
    let ssd = place("ssd", json!({}), json!({ "disk": "ssd", "cores": "8" }));
    let hdd = place("hdd", json!({}), json!({ "disk": "hdd", "cores": "2" }));
    let selects = pod(json!({ "nodeSelector": { "disk": "ssd" } }));
    assert!(against("NodeAffinity", &selects, &ssd).is_empty());
    assert_eq!(against("NodeAffinity", &selects, &hdd), ["node(s) didn't match Pod's node affinity/selector"]);
    let fits = |operator: &str, values: Value| {
        let wanted = json!([{ "matchExpressions": [{ "key": "cores", "operator": operator, "values": values }] }]);
        let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": wanted } });
        let pod = pod(json!({ "affinity": { "nodeAffinity": required } }));
        [&ssd, &hdd].map(|place| against("NodeAffinity", &pod, place).is_empty())
    };
    assert_eq!(fits("Gt", json!(["4"])), [true, false]);
    assert_eq!(fits("In", json!(["2", "3"])), [false, true]);
    assert_eq!(fits("NotIn", json!(["2"])), [true, false]);
    assert_eq!(fits("Exists", json!([])), [true, true]);
    let preference = json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["hdd"] }] });
    let preferred = json!([{ "weight": 10, "preference": preference }]);
    let affinity = json!({ "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": preferred } });
    assert_eq!(points("NodeAffinity", &pod(json!({ "affinity": affinity })), &[&ssd, &hdd]), [0, 100]);
}

#[test]
fn a_node_must_have_what_the_pod_needs() {
    let mut one = place("one", json!({}), json!({}));
    let asks = |cpu: &str, memory: &str| pod(json!({ "requests": { "cpu": cpu, "memory": memory } }));
    assert!(against("NodeResourcesFit", &asks("1", "1Gi"), &one).is_empty());
    assert_eq!(against("NodeResourcesFit", &asks("1001m", "2Gi"), &one), ["Insufficient cpu", "Insufficient memory"]);
    one.add_pod(&ResourceList::pod_requests(&asks("600m", "0")));
    assert_eq!(against("NodeResourcesFit", &asks("500m", "0"), &one), ["Insufficient cpu"]);
    one.add_pod(&ResourceList::pod_requests(&asks("0", "0")));
    assert_eq!(against("NodeResourcesFit", &pod(json!({})), &one), ["Too many pods"]);
}

#[test]
fn room_is_counted_with_the_pod_in_it() {
    let mut half = place("half", json!({}), json!({}));
    let empty = place("empty", json!({}), json!({}));
    let asks = pod(json!({ "requests": { "cpu": "250m", "memory": "256Mi" } }));
    half.add_pod(&ResourceList::pod_requests(&pod(json!({ "requests": { "cpu": "500m", "memory": "256Mi" } }))));
    assert_eq!(points("LeastAllocated", &asks, &[&half, &empty]), [37, 75]);
    assert_eq!(points("MostAllocated", &asks, &[&half, &empty]), [62, 25]);
    assert_eq!(points("BalancedAllocation", &asks, &[&half, &empty]), [88, 100]);
    let nothing = place("nothing", json!({}), json!({}));
    let nothing = NodeAllocation { allocatable: ResourceList::default(), ..nothing };
    assert_eq!(points("LeastAllocated", &asks, &[&nothing]), [0]);
}

#[test]
fn a_label_gives_all_points_or_none() {
    let ssd = place("ssd", json!({}), json!({ "disk": "ssd" }));
    let hdd = place("hdd", json!({}), json!({ "disk": "hdd" }));
    let none = place("none", json!({}), json!({}));
    let pod = pod(json!({}));
    let places = [&ssd, &hdd, &none];
    assert_eq!(LabelPreference::parse("disk=ssd").unwrap().score_nodes(&ask(&pod), &places), [100, 0, 0]);
    assert_eq!(LabelPreference::parse("disk").unwrap().score_nodes(&ask(&pod), &places), [100, 100, 0]);
    for good in ["a", "example.com/a", "a=", "a=b.c_d-e"] {
        assert_eq!(LabelPreference::parse(good).unwrap().to_string(), good);
    }
    for bad in ["", "=", "/a", "a/b/c d", "-a", "a= ", "a=b=c"] {
        assert!(LabelPreference::parse(bad).is_err(), "{bad}");
    }
}
