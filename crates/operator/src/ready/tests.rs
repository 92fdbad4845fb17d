use serde_json::json;

use super::*;

fn pod(status: Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "p"}, "status": status})).unwrap()
}

fn waiting(reason: &str) -> Value {
    let container = json!({
        "name": "collector", "image": "example.com/c:2", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": reason}},
    });
    json!({"phase": "Pending", "containerStatuses": [container]})
}

#[test]
fn a_pod_that_does_not_start_says_why() {
    let said = |status| trouble(&pod(status)).map(|trouble| (trouble.words, trouble.is_stuck));
    let stuck = |words: &str| Some((format!("the pod p does not start: {words}"), true));
    assert_eq!(said(json!({})), None);
    assert_eq!(said(waiting("ContainerCreating")), None, "that takes a moment");
    assert_eq!(said(waiting("ErrImagePull")), stuck("the image example.com/c:2 cannot be pulled"));
    assert_eq!(said(waiting("ImagePullBackOff")), said(waiting("ErrImagePull")), "in the same words");
    assert_eq!(said(waiting("CrashLoopBackOff")), stuck("CrashLoopBackOff"));
    let full = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"});
    assert_eq!(said(json!({"conditions": [full]})), Some(("the pod p has no node: 0/1 nodes".to_owned(), false)));
    let mut going = pod(waiting("CrashLoopBackOff"));
    going.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    assert_eq!(trouble(&going), None);
}
