use kubewake_apiserver::server::{ApiServer, Options};

use super::*;

fn about(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(name.to_owned()),
        namespace: Some("default".to_owned()),
        uid: Some("1".to_owned()),
        ..ObjectReference::default()
    }
}

#[tokio::test]
async fn events_are_told_apart_by_what_they_say_and_repetitions_are_counted() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let client = server.client().unwrap();
    let events = Events::new(client.clone(), "kubelet", Some("node"));
    events.normal(about("pod"), "Made", "made one");
    events.normal(about("pod"), "Made", "made another");
    events.warning(about("pod"), "Made", "made one");
    events.normal(about("pod"), "Made", "made one");
    events.normal(ObjectReference { namespace: None, kind: Some("Node".to_owned()), ..about("node") }, "Last", "done");
    let api: Api<Event> = Api::namespaced(client, "default");
    let all = loop {
        // They are written in order: the last is the last.
        let all = api.list(&Default::default()).await.unwrap().items;
        if all.iter().any(|event| event.reason.as_deref() == Some("Last")) {
            break all;
        }
        tokio::task::yield_now().await;
    };
    let made = all.iter().filter(|event| event.reason.as_deref() == Some("Made"));
    let mut made: Vec<_> = made.map(|event| (event.type_.as_deref(), event.message.as_deref(), event.count)).collect();
    made.sort();
    let expected = [("Normal", "made another", 1), ("Normal", "made one", 2), ("Warning", "made one", 1)];
    assert_eq!(made, expected.map(|(kind, note, count)| (Some(kind), Some(note), Some(count))));
    let event = all.iter().find(|event| event.reason.as_deref() == Some("Last")).unwrap();
    assert_eq!(event.source.as_ref().unwrap().component.as_deref(), Some("kubelet"));
    assert_eq!(event.source.as_ref().unwrap().host.as_deref(), Some("node"));
}
