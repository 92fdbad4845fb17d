use kube::{Resource, runtime::wait::await_condition};
use kubewake_apiserver::server::{ApiServer, Options};

use super::*;

#[tokio::test]
async fn repetitions_are_counted_and_other_words_are_another_event() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let client = server.client().unwrap();
    let events = EventRecorder::new(client.clone(), "kubelet", Some("node-0"));
    let about = ObjectReference {
        field_path: Some("spec.containers{main}".into()),
        ..k8s_openapi::api::core::v1::Pod {
            metadata: ObjectMeta {
                name: Some("web".into()),
                namespace: Some("default".into()),
                uid: Some("1".into()),
                ..ObjectMeta::default()
            },
            ..Default::default()
        }
        .object_ref(&())
    };
    events.record_warning(about.clone(), "Failed", "one");
    events.record_warning(about.clone(), "Failed", "two");
    let changed = ObjectReference { resource_version: Some("7".into()), ..about.clone() };
    events.record_warning(changed, "Failed", "one");
    events.record_normal(about, "Started", "ü".repeat(1000));
    let api = Api::<Event>::namespaced(client, "default");
    let all = loop {
        let all = api.list(&Default::default()).await.unwrap().items;
        if all.len() == 3 {
            break all;
        }
        tokio::task::yield_now().await;
    };
    let one = all.iter().find(|event| event.message.as_deref() == Some("one")).unwrap();
    let counted = |event: Option<&Event>| event.is_some_and(|event| event.count == Some(2));
    let one = await_condition(api, &one.name_any(), counted).await.unwrap().unwrap();
    assert_eq!(one.source.unwrap().host.as_deref(), Some("node-0"));
    assert_eq!(one.involved_object.field_path.as_deref(), Some("spec.containers{main}"));
    let long = all.iter().find(|event| event.reason.as_deref() == Some("Started")).unwrap();
    assert_eq!(long.message.as_ref().unwrap().len(), 1024);
}

#[test]
fn who_says_too_much_is_not_heard_for_a_while() {
    let mut budget = EventTokenBucket::new();
    let now = Instant::now();
    assert_eq!((0..100).filter(|_| budget.take(now)).count(), 25);
    assert!(budget.take(now + TOKEN_REFILL_INTERVAL));
    assert!(!budget.take(now + TOKEN_REFILL_INTERVAL));
    assert!(!budget.is_full(now + TOKEN_REFILL_INTERVAL));
    assert!(budget.is_full(now + TOKEN_REFILL_INTERVAL * 30));
}
