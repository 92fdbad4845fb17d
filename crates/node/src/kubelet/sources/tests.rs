use serde_json::json;

use super::*;
use crate::{kubelet::testing::Desk, testing::NAMESPACE};

fn refer(kind: Kind, name: &str) -> Ref {
    Ref::new(kind, NAMESPACE, name)
}

#[tokio::test]
async fn what_is_read_is_what_is_there_now() {
    let world = Desk::new().await;
    let wanted = refer(Kind::ConfigMap, "app");
    assert!(world.sources.read(&wanted).await.unwrap().is_none());
    let mut changes = world.sources.changes();
    // The view has heard nothing of it yet, and it is found all the same.
    world
        .make::<ConfigMap>(json!({"metadata": {"name": "app"}, "data": {"a": "1"}, "binaryData": {"b": "/w=="}}))
        .await;
    let content = world.sources.read(&wanted).await.unwrap().unwrap();
    assert_eq!(content.iter().collect::<Vec<_>>(), [("a", "1".as_bytes()), ("b", &[255])]);
    changes.any_of(&BTreeSet::from([wanted.clone()])).await;
    world.patch::<ConfigMap>("app", json!({"data": {"a": "2"}})).await;
    changes.any_of(&BTreeSet::from([wanted.clone()])).await;
    assert_eq!(world.sources.read(&wanted).await.unwrap().unwrap().get("a"), Some(&b"2"[..]));
}

#[tokio::test]
async fn those_who_read_at_once_share_and_nothing_is_kept() {
    let world = Desk::new().await;
    let wanted = refer(Kind::Secret, "key");
    let mut changes = world.sources.changes();
    world.make::<Secret>(json!({"metadata": {"name": "key"}, "stringData": {"password": "hunter2"}})).await;
    changes.any_of(&BTreeSet::from([wanted.clone()])).await;
    let (one, other) = tokio::join!(world.sources.read(&wanted), world.sources.read(&wanted));
    let (one, other) = (one.unwrap().unwrap(), other.unwrap().unwrap());
    assert!(Arc::ptr_eq(&one, &other));
    assert!(!format!("{one:?}").contains("hunter2"));
    let left = Arc::downgrade(&one);
    drop((one, other));
    assert!(left.upgrade().is_none());
}

#[tokio::test]
async fn a_pod_changes_when_its_labels_do() {
    let world = Desk::new().await;
    let pod = world.pod("web", json!({}), json!({})).await;
    let wanted = BTreeSet::from([refer(Kind::Pod, "web")]);
    world.views.pods.note(pod.clone());
    let mut changes = world.sources.changes();
    let mut started = pod.clone();
    started.metadata.resource_version = Some((u64::MAX - 1).to_string());
    started.status =
        Some(k8s_openapi::api::core::v1::PodStatus { phase: Some("Running".into()), ..Default::default() });
    world.views.pods.note(started.clone());
    while let Ok(changed) = changes.0.try_recv() {
        assert!(!wanted.contains(&changed), "a status is in no file");
    }
    started.metadata.resource_version = Some(u64::MAX.to_string());
    started.metadata.labels = None;
    world.views.pods.note(started);
    changes.any_of(&wanted).await;
}
