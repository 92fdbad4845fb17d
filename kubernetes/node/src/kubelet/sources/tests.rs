use serde_json::json;

use super::*;
use crate::{kubelet::testing::KubeletFixture, testing::NAMESPACE};

fn refer(kind: SourceKind, name: &str) -> SourceRef {
    SourceRef::new(kind, NAMESPACE, name)
}

#[tokio::test]
async fn what_is_read_is_what_is_there_now() {
    let world = KubeletFixture::new().await;
    let wanted = refer(SourceKind::ConfigMap, "app");
    assert!(world.sources.read_data(&wanted).await.unwrap().is_none());
    let mut changes = world.sources.subscribe();
    // The informer has not seen the object yet, and it is found all the same.
    world
        .make::<ConfigMap>(json!({"metadata": {"name": "app"}, "data": {"a": "1"}, "binaryData": {"b": "/w=="}}))
        .await;
    let content = world.sources.read_data(&wanted).await.unwrap().unwrap();
    assert_eq!(content.iter().collect::<Vec<_>>(), [("a", "1".as_bytes()), ("b", &[255])]);
    changes.wait_for_any(&BTreeSet::from([wanted.clone()])).await;
    world.patch::<ConfigMap>("app", json!({"data": {"a": "2"}})).await;
    changes.wait_for_any(&BTreeSet::from([wanted.clone()])).await;
    assert_eq!(world.sources.read_data(&wanted).await.unwrap().unwrap().get("a"), Some(&b"2"[..]));
}

#[tokio::test]
async fn those_who_read_at_once_share_and_nothing_is_kept() {
    let world = KubeletFixture::new().await;
    let wanted = refer(SourceKind::Secret, "key");
    let mut changes = world.sources.subscribe();
    world.make::<Secret>(json!({"metadata": {"name": "key"}, "stringData": {"password": "hunter2"}})).await;
    changes.wait_for_any(&BTreeSet::from([wanted.clone()])).await;
    let (one, other) = tokio::join!(world.sources.read_data(&wanted), world.sources.read_data(&wanted));
    let one = one.unwrap().unwrap();
    let other = other.unwrap().unwrap();
    assert!(Arc::ptr_eq(&one, &other));
    assert!(!format!("{one:?}").contains("hunter2"));
    let left = Arc::downgrade(&one);
    drop((one, other));
    assert!(left.upgrade().is_none());
}

#[tokio::test]
async fn a_pod_changes_when_its_labels_do() {
    let world = KubeletFixture::new().await;
    let pod = world.pod("web", json!({}), json!({})).await;
    let wanted = BTreeSet::from([refer(SourceKind::Pod, "web")]);
    world.informers.pods.record_write(pod.clone());
    let mut changes = world.sources.subscribe();
    let mut started = pod.clone();
    started.metadata.resource_version = Some((u64::MAX - 1).to_string());
    started.status =
        Some(k8s_openapi::api::core::v1::PodStatus { phase: Some("Running".into()), ..Default::default() });
    world.informers.pods.record_write(started.clone());
    while let Ok(changed) = changes.0.try_recv() {
        assert!(!wanted.contains(&changed), "a status is in no file");
    }
    started.metadata.resource_version = Some(u64::MAX.to_string());
    started.metadata.labels = None;
    world.informers.pods.record_write(started);
    changes.wait_for_any(&wanted).await;
}
