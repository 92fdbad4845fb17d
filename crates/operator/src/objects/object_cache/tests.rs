use std::collections::BTreeMap;

use kube::{api::DynamicObject, runtime::watcher::Event};
use serde_json::json;

use super::{ObjectCache, text};
use crate::{
    model::{names::ManagedPart, object_kind::ObjectKind},
    runtime::resync_trigger::ResyncTrigger,
};

fn object(name: &str, uid: &str, revision: u32, words: &str) -> DynamicObject {
    let metadata = json!({
        "name": name, "uid": uid, "resourceVersion": revision.to_string(),
        "labels": {"telemetry.kubewake.io/part": "layer"},
        "managedFields": [{"manager": "somebody"}],
    });
    serde_json::from_value(json!({"metadata": metadata, "spec": {"words": words}, "status": {"seen": words}})).unwrap()
}

fn words(live: &ObjectCache, name: &str) -> Option<String> {
    let object = live.get(ObjectKind::Service, name)?;
    assert!(object.pointer("/metadata/managedFields").is_none() && object.get("status").is_none());
    text(&object, "/spec/words").map(str::to_owned)
}

#[test]
fn the_newer_of_watch_and_answer_counts() {
    let live = ObjectCache::new([ObjectKind::Service], ResyncTrigger::default());
    let mut listed = BTreeMap::new();
    live.record_response(ObjectKind::Service, &object("one", "1", 7, "answer"));
    live.observe(ObjectKind::Service, Event::Apply(object("one", "1", 6, "late")), &mut listed);
    assert_eq!(words(&live, "one").as_deref(), Some("answer"));
    live.observe(ObjectKind::Service, Event::Apply(object("one", "1", 8, "newest")), &mut listed);
    assert_eq!(words(&live, "one").as_deref(), Some("newest"));
    live.observe(ObjectKind::Service, Event::Delete(object("one", "0", 9, "")), &mut listed);
    assert!(words(&live, "one").is_some(), "an older one of that name went");
    live.observe(ObjectKind::Service, Event::Delete(object("one", "1", 9, "")), &mut listed);
    assert_eq!(words(&live, "one"), None);
}

#[test]
fn what_is_not_listed_any_more_is_gone() {
    let live = ObjectCache::new([ObjectKind::Service, ObjectKind::Secret], ResyncTrigger::default());
    let mut listed = BTreeMap::new();
    live.record_response(ObjectKind::Service, &object("gone", "1", 1, ""));
    live.record_response(ObjectKind::Secret, &object("other", "2", 2, ""));
    for event in [Event::Init, Event::InitApply(object("here", "3", 3, "")), Event::InitDone] {
        live.observe(ObjectKind::Service, event, &mut listed);
    }
    assert_eq!(
        live.keys(ManagedPart::Layer),
        [(ObjectKind::Secret, "other".to_owned()), (ObjectKind::Service, "here".to_owned())]
    );
    assert!(!live.is_synced());
    live.observe(ObjectKind::Secret, Event::InitDone, &mut listed);
    assert!(live.is_synced() && live.keys(ManagedPart::Layer).len() == 1);
}

#[test]
fn a_kind_that_nobody_waits_for_comes_and_goes() {
    let live = ObjectCache::new([], ResyncTrigger::default());
    let mut listed = BTreeMap::new();
    assert!(live.is_synced() && !live.has_listed(ObjectKind::PodMonitor));
    for event in [Event::Init, Event::InitApply(object("here", "1", 1, "")), Event::InitDone] {
        assert!(!live.has_listed(ObjectKind::PodMonitor), "not all of it has been listed");
        live.observe(ObjectKind::PodMonitor, event, &mut listed);
    }
    assert!(live.has_listed(ObjectKind::PodMonitor) && live.get(ObjectKind::PodMonitor, "here").is_some());
    live.drop_kind(ObjectKind::PodMonitor);
    assert!(!live.has_listed(ObjectKind::PodMonitor) && live.get(ObjectKind::PodMonitor, "here").is_none());
}

#[test]
fn own_writes_are_reported_to_subscribers_once() {
    let live = ObjectCache::new([ObjectKind::Service], ResyncTrigger::default());
    let mut seen = live.subscribe();
    let mut has_changed = move || {
        let changed = seen.has_changed().unwrap();
        seen.mark_unchanged();
        changed
    };
    live.record_response(ObjectKind::Service, &object("one", "1", 7, "answer"));
    assert!(has_changed());
    live.record_response(ObjectKind::Service, &object("one", "1", 7, "answer"));
    live.observe(ObjectKind::Service, Event::Apply(object("one", "1", 7, "answer")), &mut BTreeMap::new());
    assert!(!has_changed(), "the watch repeats the response");
    live.remove_absent(ObjectKind::Service, "one");
    assert!(has_changed());
}
