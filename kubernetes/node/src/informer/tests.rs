use std::sync::Mutex;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;

use super::*;

fn object(name: &str, uid: &str, version: u64) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(name.into()),
        namespace: Some("here".into()),
        uid: Some(uid.into()),
        resource_version: Some(version.to_string()),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}

fn held(view: &SharedInformer<ConfigMap>, name: &str) -> Option<u64> {
    view.get(&NamespacedKey::new("here", name)).map(|object| version(&*object))
}

#[test]
fn older_versions_change_nothing() {
    let view = SharedInformer::default();
    view.record_write(object("a", "1", 9));
    view.record_write(object("a", "1", 10));
    view.record_write(object("a", "1", 9));
    assert_eq!(held(&view, "a"), Some(10));
}

#[test]
fn what_was_made_again_stays_when_the_old_one_goes() {
    let view = SharedInformer::default();
    view.record_write(object("a", "2", 12));
    view.remove(&object("a", "1", 11));
    assert_eq!(held(&view, "a"), Some(12));
    view.remove(&object("a", "2", 13));
    assert_eq!(held(&view, "a"), None);
}

#[test]
fn a_namespace_is_seen_alone() {
    let view = SharedInformer::default();
    view.record_write(object("b", "1", 1));
    view.record_write(object("a", "2", 2));
    let mut other = object("c", "3", 3);
    other.metadata.namespace = Some("here-too".into());
    view.record_write(other);
    let names: Vec<String> = view.in_namespace("here").iter().map(|object| object.name_any()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn listeners_hear_what_is_there_and_what_comes() {
    let view = SharedInformer::default();
    view.record_write(object("a", "1", 1));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&heard);
    view.on_change(move |change: &InformerChange<ConfigMap>| {
        to.lock().unwrap().push((change.old.is_some(), change.new.is_some()));
    });
    view.record_write(object("a", "1", 2));
    view.retain_listed(&BTreeSet::new());
    assert_eq!(*heard.lock().unwrap(), [(false, true), (true, true), (true, false)]);
}

#[test]
fn an_answer_that_comes_after_the_watch_brings_nothing_back() {
    let view = SharedInformer::default();
    view.advance_version(12);
    view.remove(&object("a", "1", 12));
    view.record_write(object("a", "1", 11));
    assert_eq!(held(&view, "a"), None);
    view.record_write(object("a", "2", 13));
    assert_eq!(held(&view, "a"), Some(13));
}

#[test]
fn what_is_deleted_is_gone_unless_it_waits_for_something() {
    let view = SharedInformer::default();
    let mut marked = object("a", "1", 2);
    view.record_write(object("a", "1", 1));
    marked.metadata.deletion_grace_period_seconds = Some(30);
    view.record_deletion(&object("a", "1", 1), Some(marked.clone()));
    assert_eq!(held(&view, "a"), Some(2));
    marked.metadata.deletion_grace_period_seconds = Some(0);
    view.record_deletion(&object("a", "1", 1), Some(marked));
    assert_eq!(held(&view, "a"), None);
}
