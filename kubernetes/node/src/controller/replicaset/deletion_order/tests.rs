use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-01T12:00:00Z";

/// A pod that has been ready for an hour, with changes.
fn pod(name: &str, changes: impl FnOnce(&mut Value)) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T11:00:00Z", "annotations": {}},
        "spec": {"nodeName": "n1", "containers": []},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T11:00:00Z"}],
            "containerStatuses": [{"name": "c", "restartCount": 0, "ready": true, "image": "", "imageID": ""}],
        },
    });
    changes(&mut pod);
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn same(_: &mut Value) {}

fn goes(pods: &[Arc<Pod>], count: usize) -> Vec<String> {
    let gone = pods_to_delete(pods.to_vec(), pods, count, NOW.parse().unwrap());
    gone.iter().map(|pod| pod.name_any()).collect()
}

#[test]
fn the_rules_come_in_their_order() {
    // Each pod differs from the next in one more criterion: the first difference decides.
    let ready = |pod: &mut Value, since: &str| pod["status"]["conditions"][0]["lastTransitionTime"] = json!(since);
    let pods = [
        pod("z-old", same),
        pod("y-young", |pod| pod["metadata"]["creationTimestamp"] = json!("2026-01-01T11:59:00Z")),
        pod("x-restarted", |pod| pod["status"]["containerStatuses"][0]["restartCount"] = json!(2)),
        pod("w-just-ready", |pod| ready(pod, "2026-01-01T11:59:00Z")),
        pod("v-cheap", |pod| pod["metadata"]["annotations"][POD_DELETION_COST_ANNOTATION] = json!("-5")),
        pod("u-unready", |pod| pod["status"]["conditions"][0]["status"] = json!("False")),
        pod("t-pending", |pod| pod["status"] = json!({"phase": "Pending"})),
        pod("s-nowhere", |pod| pod["spec"]["nodeName"] = Value::Null),
    ];
    let order = goes(&pods, 7);
    assert_eq!(
        order,
        ["s-nowhere", "t-pending", "u-unready", "v-cheap", "w-just-ready", "x-restarted", "y-young"],
        "and the old one stays"
    );
}

#[test]
fn where_there_are_more_of_the_same_one_goes_first() {
    let on = |node: &str| {
        let node = node.to_owned();
        move |pod: &mut Value| pod["spec"]["nodeName"] = json!(node)
    };
    let pods = [pod("a", on("n1")), pod("b", on("n2")), pod("c", on("n2"))];
    assert_eq!(goes(&pods, 1), ["b"]);
}

#[test]
fn pods_of_about_the_same_age_go_by_chance() {
    let young = |seconds: u32| {
        move |pod: &mut Value| pod["metadata"]["creationTimestamp"] = json!(format!("2026-01-01T10:00:{seconds:02}Z"))
    };
    // A difference of a second in two hours does not count.
    assert_eq!(goes(&[pod("b", young(1)), pod("a", young(0))], 1), ["a"]);
}

#[test]
fn a_dear_pod_stays() {
    let dear = pod("a", |pod| pod["metadata"]["annotations"][POD_DELETION_COST_ANNOTATION] = json!("100"));
    let wrong = pod("b", |pod| pod["metadata"]["annotations"][POD_DELETION_COST_ANNOTATION] = json!("+1e3"));
    assert_eq!(goes(&[dear, wrong], 1), ["b"]);
}

#[test]
fn sidecars_that_restart_count_last() {
    let sidecar = |restarts: i32| {
        move |pod: &mut Value| {
            pod["spec"]["initContainers"] = json!([{"name": "s", "restartPolicy": "Always"}, {"name": "i"}]);
            pod["status"]["initContainerStatuses"] = json!([
                {"name": "s", "restartCount": restarts, "ready": true, "image": "", "imageID": ""},
                {"name": "i", "restartCount": 9, "ready": true, "image": "", "imageID": ""},
            ]);
        }
    };
    assert_eq!(goes(&[pod("a", sidecar(1)), pod("b", sidecar(2))], 1), ["b"]);
}

#[test]
fn all_go_if_all_are_too_many() {
    assert_eq!(goes(&[pod("b", same), pod("a", same)], 2), ["b", "a"]);
}
