//! Objects that are created, changed and deleted on the embedded API server.

use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::ByteString;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kubewake_apiserver::server::{ApiServer, Options};
use serde_json::json;

use super::*;

fn reference(kind: ReferenceKind, name: &str, key: &str) -> ValueReference {
    ValueReference { kind, namespace: "default".into(), name: name.into(), key: key.into() }
}

fn text(found: &ReferencedValue) -> Option<(String, String)> {
    match found {
        ReferencedValue::Value { text, revision } => Some((text.reveal().to_owned(), revision.clone())),
        _ => None,
    }
}

async fn secret(client: &Client, value: &[u8]) -> Secret {
    let metadata = ObjectMeta { name: Some("backend".into()), ..ObjectMeta::default() };
    let data = Some(BTreeMap::from([("token".to_owned(), ByteString(value.to_vec()))]));
    let secret = Secret { metadata, data, ..Secret::default() };
    let api = Api::<Secret>::namespaced(client.clone(), "default");
    match api.get_opt("backend").await.unwrap() {
        Some(_) => api.patch("backend", &PatchParams::default(), &Patch::Merge(&secret)).await.unwrap(),
        None => api.create(&PostParams::default(), &secret).await.unwrap(),
    }
}

#[tokio::test]
async fn what_a_reference_names_is_followed_as_it_comes_changes_and_goes() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let client = server.client().unwrap();
    let resync_trigger = ResyncTrigger::default();
    let sources = SourceWatcher::new(client.clone(), resync_trigger.clone(), Arc::default());
    let mut strokes = std::pin::pin!(resync_trigger.subscribe());
    let mut rings = async || timeout(Duration::from_secs(60), strokes.next()).await.expect("the resync_trigger rings");
    let (token, other) =
        (reference(ReferenceKind::Secret, "backend", "token"), reference(ReferenceKind::Secret, "backend", "other"));
    let all = BTreeSet::from([token.clone(), other.clone()]);

    let resolved = sources.resolve(&all).await;
    assert_eq!(*resolved.get(&token), ReferencedValue::NoObject);
    rings().await;

    let made = secret(&client, b"one").await;
    rings().await;
    let resolved = sources.resolve(&all).await;
    assert_eq!(text(resolved.get(&token)), Some(("one".into(), made.resource_version().unwrap())));
    assert_eq!(*resolved.get(&other), ReferencedValue::NoKey);

    let changed = secret(&client, b"two").await;
    rings().await;
    let resolved = sources.resolve(&all).await;
    assert_eq!(text(resolved.get(&token)), Some(("two".into(), changed.resource_version().unwrap())));

    let api = Api::<Secret>::namespaced(client.clone(), "default");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    api.patch("backend", &PatchParams::default(), &Patch::Merge(&label)).await.unwrap();
    secret(&client, b"\xff").await;
    rings().await;
    assert_eq!(*sources.resolve(&all).await.get(&token), ReferencedValue::NotText);

    api.delete("backend", &DeleteParams::default()).await.unwrap();
    rings().await;
    assert_eq!(*sources.resolve(&all).await.get(&token), ReferencedValue::NoObject);

    sources.retain_named(BTreeSet::new);
    assert!(sources.watched().is_empty());
}

#[tokio::test]
async fn what_may_not_be_read_says_so() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let client = server.client_as("nobody", &[]).unwrap();
    let sources = SourceWatcher::new(client, ResyncTrigger::default(), Arc::default());
    let reference = reference(ReferenceKind::ConfigMap, "backend", "ca");
    let resolved = sources.resolve(&BTreeSet::from([reference.clone()])).await;
    assert_eq!(*resolved.get(&reference), ReferencedValue::Unreadable("the operator is not allowed to read it".into()));
}

#[test]
fn a_label_changes_no_revision() {
    let there = |revision: &str, value: &str| {
        let values = BTreeMap::from([("key".to_owned(), value.as_bytes().to_vec())]);
        SourceContent::Present(Arc::new(SourceValues { revision: revision.into(), values }))
    };
    let mut content = there("1", "a");
    assert!(!update_content(&mut content, there("2", "a")));
    assert!(content == there("1", "a"));
    assert!(update_content(&mut content, there("3", "b")) && content == there("3", "b"));
}
