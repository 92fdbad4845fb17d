use serde_json::{Value, json};

use super::*;

fn asked(spec: Value) -> Vec<(String, i64)> {
    let pod: Pod = serde_json::from_value(json!({ "spec": spec })).unwrap();
    ResourceAmounts::requested_by_pod(&pod).iter().map(|(name, amount)| (name.to_owned(), amount)).collect()
}

fn container(cpu: &str, memory: &str) -> Value {
    json!({ "name": "c", "resources": { "requests": { "cpu": cpu, "memory": memory } } })
}

fn amounts(cpu: i64, memory: i64) -> Vec<(String, i64)> {
    vec![(CPU_RESOURCE.to_owned(), cpu), (MEMORY_RESOURCE.to_owned(), memory), (PODS_RESOURCE.to_owned(), 1)]
}

#[test]
fn containers_ask_together() {
    let containers = [container("100m", "1Ki"), container("1", "1k")];
    assert_eq!(asked(json!({ "containers": containers })), amounts(1100, 2024));
}

#[test]
fn an_init_container_runs_alone_and_a_sidecar_beside_all() {
    let mut sidecar = container("300m", "10");
    sidecar["restartPolicy"] = "Always".into();
    let containers = [container("100m", "100")];
    let inits = [container("200m", "500"), sidecar, container("250m", "1")];
    assert_eq!(asked(json!({ "containers": containers, "initContainers": inits })), amounts(550, 500));
}

#[test]
fn what_is_asked_for_the_pod_wins_and_overhead_comes_on_top() {
    let spec = json!({
        "containers": [container("100m", "100")],
        "resources": { "requests": { "cpu": "2" } },
        "overhead": { "cpu": "5m", "memory": "7" },
    });
    assert_eq!(asked(spec), amounts(2005, 107));
}

#[test]
fn a_pod_that_asks_for_nothing_is_still_one_pod() {
    assert_eq!(asked(json!({ "containers": [{ "name": "c" }] })), [(PODS_RESOURCE.to_owned(), 1)]);
}
