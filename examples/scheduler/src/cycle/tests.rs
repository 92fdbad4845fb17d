use std::{cell::Cell, time::Duration};

use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::*;
use crate::configuration::ConfigurationDocument;

fn configuration(spec: Value) -> SchedulerConfiguration {
    ConfigurationDocument::from_spec(&serde_json::from_value(spec).unwrap()).resolve().ok().unwrap()
}

fn place(name: &str, labels: Value, spec: Value) -> NodeAllocation {
    let allocatable = json!({ "cpu": "1", "memory": "1Gi", "pods": "10" });
    let node = json!({
        "metadata": { "name": name, "labels": labels }, "spec": spec, "status": { "allocatable": allocatable },
    });
    NodeAllocation::new(serde_json::from_value::<Node>(node).unwrap())
}

fn pod(cpu: &str, more: Value) -> Pod {
    let mut spec = more;
    spec["containers"] = json!([{ "name": "c", "resources": { "requests": { "cpu": cpu } } }]);
    serde_json::from_value(json!({ "metadata": { "name": "p", "namespace": "default" }, "spec": spec })).unwrap()
}

/// Runs a cycle with a clock that advances by a microsecond per call.
fn run(configuration: &SchedulerConfiguration, pod: &Pod, places: &[NodeAllocation]) -> SchedulingCycle {
    let ticks = Cell::new(0);
    super::run_cycle(configuration, pod, places, &|| {
        ticks.set(ticks.get() + 1);
        SystemTime::UNIX_EPOCH + Duration::from_micros(ticks.get())
    })
}

const ALL: [&str; 4] = ["NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit"];

#[test]
fn every_plugin_tells_what_it_found() {
    let configuration = configuration(json!({
        "filters": ALL,
        "scores": [{ "name": "LeastAllocated" }, { "name": "NodeLabel", "weight": 2, "label": "disk=ssd" }],
    }));
    let places = [
        place("one", json!({}), json!({})),
        place("two", json!({ "disk": "ssd" }), json!({})),
        place("three", json!({ "disk": "ssd" }), json!({ "unschedulable": true })),
        place("four", json!({}), json!({ "taints": [{ "key": "gpu", "effect": "NoSchedule" }] })),
    ];
    let cycle = run(&configuration, &pod("100m", json!({})), &places);
    let rejected: Vec<_> = cycle.filter.plugins.iter().map(|ran| (ran.plugin, ran.result.len())).collect();
    assert_eq!(
        rejected,
        [("NodeUnschedulable", 1), ("TaintToleration", 1), ("NodeAffinity", 0), ("NodeResourcesFit", 0)]
    );
    assert_eq!(cycle.filter.plugins[0].result[0].node, "three");
    assert_eq!(cycle.pre_filter.plugins[0].result.to_string(), "cpu=100m, pods=1");
    let score = cycle.score.as_ref().unwrap();
    let owned = |points: &[(&str, i64)]| points.iter().map(|(name, points)| ((*name).to_owned(), *points)).collect();
    let named: Vec<(String, i64)> = owned(&[("one", 0), ("two", 100)]);
    assert_eq!((score.plugins[1].plugin, &score.plugins[1].result.points), ("NodeLabel", &named));
    let totals: Vec<(String, i64)> = owned(&[("one", 85), ("two", 285)]);
    assert_eq!(cycle.outcome, Ok(SelectedNode { node: "two".to_owned(), totals }));
    let parts = [cycle.pre_filter.interval, cycle.filter.interval, score.interval];
    assert!(parts.is_sorted_by(|a, b| a.end <= b.start), "one after another");
    assert!(cycle.interval.start <= parts[0].start && parts[2].end <= cycle.interval.end);
}

#[test]
fn of_equals_it_is_the_one_with_fewer_pods_and_then_the_first() {
    let configuration = configuration(json!({ "scores": [{ "name": "NodeLabel", "label": "none" }] }));
    let mut places = ["c", "b", "a"].map(|name| place(name, json!({}), json!({})));
    let node = |places: &[NodeAllocation]| run(&configuration, &pod("1m", json!({})), places).outcome.unwrap().node;
    assert_eq!(node(&places), "a");
    places[2].add_pod(&ResourceList::default());
    assert_eq!(node(&places), "b");
}

#[test]
fn who_fits_nowhere_hears_why() {
    let configuration = configuration(json!({ "filters": ALL, "scores": [{ "name": "LeastAllocated" }] }));
    let places = [
        place("one", json!({}), json!({})),
        place("two", json!({}), json!({})),
        place("three", json!({}), json!({ "unschedulable": true })),
    ];
    let cycle = run(&configuration, &pod("2", json!({})), &places);
    let why = cycle.outcome.unwrap_err().to_string();
    assert_eq!(why, "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.");
    assert_eq!(cycle.score, None);
    let cycle = run(&configuration, &pod("2", json!({ "nodeSelector": { "a": "b" } })), &places);
    assert_eq!(cycle.filter.plugins.len(), 3, "nobody asks what is left of no nodes");
    let cycle = run(&configuration, &pod("2", json!({})), &[]);
    assert_eq!(cycle.outcome.unwrap_err().to_string(), "no nodes available to schedule pods");
}

#[test]
fn without_plugins_any_node_will_do() {
    let cycle = run(&configuration(json!({})), &pod("99", json!({})), &[place("one", json!({}), json!({}))]);
    assert_eq!(cycle.outcome.unwrap().node, "one");
    assert!(cycle.pre_filter.plugins.is_empty() && cycle.filter.plugins.is_empty());
}

#[test]
fn too_many_reasons_are_counted() {
    let reasons = (0..20).map(|number| (format!("reason {number:02}"), 1)).collect();
    let told = NoFeasibleNode { nodes: 20, reasons }.to_string();
    assert!(told.ends_with("1 reason 15, 4 other reasons."), "{told}");
}
