//! The Tables of `kubectl get`.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{create, resource, template};
use crate::{
    kinds::table::{cells, columns, format_duration},
    registry::{CustomResourceInfo, ServedResource},
};

/// The cells of an object that was created ninety seconds ago.
fn shown(api_version: &str, kind: &str, body: Value) -> Vec<Value> {
    let mut object = create(api_version, kind, body).unwrap();
    object["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
    cells(&resource(api_version, kind), &object, "2020-01-01T00:01:30Z".parse().unwrap())
}

fn headers(api_version: &str, kind: &str) -> Vec<String> {
    let columns = columns(&resource(api_version, kind), kind);
    columns.iter().map(|column| column["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn core_kinds_have_kubectls_cells() {
    assert_eq!(headers("v1", "ConfigMap"), ["Name", "Data", "Age"]);
    let body = json!({"metadata": {"name": "a"}, "data": {"x": "1", "y": "2"}});
    assert_eq!(shown("v1", "ConfigMap", body), [json!("a"), json!(2), json!("90s")]);
    let service = json!({"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80}]});
    let row = shown("v1", "Service", json!({"metadata": {"name": "s"}, "spec": service}));
    assert_eq!(row, ["s", "ClusterIP", "None", "<none>", "80/TCP", "90s", "a=b"]);
    let row = shown("v1", "Secret", json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}}));
    assert_eq!(row, [json!("s"), json!("Opaque"), json!(1), json!("90s")]);
    assert_eq!(shown("v1", "Namespace", json!({"metadata": {"name": "n"}})), ["n", "Active", "90s"]);
    assert_eq!(shown("v1", "Node", json!({"metadata": {"name": "n"}}))[..3], ["n", "Unknown", "<none>"]);
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}});
    assert_eq!(shown("coordination.k8s.io/v1", "Lease", lease), ["l", "me", "90s"]);
    assert_eq!(headers("v1", "LimitRange"), ["Name", "Created At"]);
}

#[test]
fn workloads_have_kubectls_cells() {
    let spec = json!({"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template()});
    let row = shown("apps/v1", "Deployment", json!({"metadata": {"name": "w"}, "spec": spec}));
    let expected = [json!("w"), json!("0/2"), json!(0), json!(0), json!("90s"), json!("c"), json!("i"), json!("a=b")];
    assert_eq!(row, expected);
}

#[test]
fn columns_and_cells_agree_in_number_everywhere() {
    for resource in super::CATALOG.all() {
        let row = cells(resource, &json!({"metadata": {"name": "x"}}), Timestamp::UNIX_EPOCH);
        assert_eq!(columns(resource, &resource.kind).len(), row.len(), "{}", resource.kind);
    }
}

#[test]
fn a_pod_is_as_its_containers_are() {
    let pods = resource("v1", "Pod");
    let row = |status: Value, more: Value| {
        let spec = json!({"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]});
        let mut pod = json!({"metadata": {"name": "p", "creationTimestamp": "2020-01-01T00:00:00Z"}, "spec": spec, "status": status});
        json_patch::merge(&mut pod, &more);
        let cells = cells(&pods, &pod, "2020-01-01T00:10:00Z".parse().unwrap());
        cells[1..4].iter().map(|cell| cell.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let none = || json!({});
    assert_eq!(row(json!({"phase": "Pending"}), none()), ["0/2", "Pending", "0"]);
    let running = json!({"ready": true, "state": {"running": {}}});
    let crashed = json!({
        "ready": false, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"finishedAt": "2020-01-01T00:09:00Z"}},
    });
    let both = json!({"phase": "Running", "containerStatuses": [running, crashed]});
    assert_eq!(row(both.clone(), none()), ["1/2", "CrashLoopBackOff", "3 (60s ago)"]);
    let going = json!({"metadata": {"deletionTimestamp": "2020-01-01T00:09:00Z"}});
    assert_eq!(row(both, going)[1], "Terminating");
    let init = json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]});
    assert_eq!(row(init, none())[1], "Init:0/1");
    let done = json!({"state": {"terminated": {"exitCode": 1}}});
    let failed = json!({"phase": "Failed", "containerStatuses": [done]});
    assert_eq!(row(failed, none())[1], "ExitCode:1");
}

#[test]
fn ages_are_short() {
    let known = [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (12_000, "3h20m"),
        (28_800, "8h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (176_400, "2d1h"),
        (691_200, "8d"),
        (63_071_999, "729d"),
        (63_072_000, "2y"),
        (63_158_400, "2y1d"),
        (252_288_000, "8y"),
    ];
    for (seconds, short) in known {
        assert_eq!(format_duration(seconds), short, "{seconds}");
    }
}

fn widget(columns: Vec<Value>) -> ServedResource {
    let custom = CustomResourceInfo { columns, ..CustomResourceInfo::default() };
    ServedResource { custom: Some(Arc::new(custom)), ..ServedResource::clone(&resource("v1", "ConfigMap")) }
}

#[test]
fn custom_kinds_have_the_columns_of_their_definition() {
    let widget = widget(vec![
        json!({"name": "Size", "type": "integer", "jsonPath": ".spec.size"}),
        json!({"name": "Name", "type": "string", "jsonPath": ".spec.name", "priority": 1, "description": "the name"}),
        json!({"name": "Ready", "type": "boolean", "jsonPath": ".status.ready"}),
        json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}),
    ]);
    let defined = columns(&widget, &widget.kind);
    assert_eq!(defined[1]["description"], "Custom resource definition column (in JSONPath format): .spec.size");
    let second = json!({"name": "Name", "type": "string", "format": "", "description": "the name", "priority": 1});
    assert_eq!(defined[2], second);
    let meta = json!({"name": "a", "creationTimestamp": "2020-01-01T00:00:00Z"});
    let now: Timestamp = "2020-01-01T00:00:05Z".parse().unwrap();
    let full = json!({"metadata": meta, "spec": {"size": 3, "name": "n"}});
    assert_eq!(cells(&widget, &full, now), [json!("a"), json!(3), json!("n"), json!(null), json!("5s")]);
    let empty = json!({"metadata": meta, "spec": {}});
    assert_eq!(cells(&widget, &empty, now), [json!("a"), json!(null), json!(null), json!(null), json!("5s")]);
}

#[test]
fn custom_kinds_without_columns_have_name_and_age() {
    let widget = widget(Vec::new());
    let kinds: Vec<&str> = columns(&widget, &widget.kind)
        .iter()
        .map(|column| column["type"].as_str().unwrap().to_owned().leak() as &str)
        .collect();
    assert_eq!(kinds, ["string", "date"]);
    let object = json!({"metadata": {"name": "a", "creationTimestamp": "2020-01-01T00:00:00Z"}});
    assert_eq!(cells(&widget, &object, "2020-01-01T00:00:05Z".parse().unwrap()), ["a", "5s"]);
}
