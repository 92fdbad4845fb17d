use std::collections::BTreeMap;

use kube::{api::DynamicObject, runtime::watcher::Event};
use serde_json::json;

use super::{Live, text};
use crate::{bell::Bell, kind::Kind, names::Part};

fn object(name: &str, uid: &str, revision: u32, words: &str) -> DynamicObject {
    let metadata = json!({
        "name": name, "uid": uid, "resourceVersion": revision.to_string(),
        "labels": {"telemetry.kubewake.io/part": "layer"},
        "managedFields": [{"manager": "somebody"}],
    });
    serde_json::from_value(json!({"metadata": metadata, "spec": {"words": words}, "status": {"seen": words}})).unwrap()
}

fn words(live: &Live, name: &str) -> Option<String> {
    let object = live.get(Kind::Service, name)?;
    assert!(object.pointer("/metadata/managedFields").is_none() && object.get("status").is_none());
    text(&object, "/spec/words").map(str::to_owned)
}

#[test]
fn the_newer_of_watch_and_answer_counts() {
    let live = Live::new([Kind::Service], Bell::default());
    let mut listed = BTreeMap::new();
    live.note(Kind::Service, &object("one", "1", 7, "answer"));
    live.observe(Kind::Service, Event::Apply(object("one", "1", 6, "late")), &mut listed);
    assert_eq!(words(&live, "one").as_deref(), Some("answer"));
    live.observe(Kind::Service, Event::Apply(object("one", "1", 8, "newest")), &mut listed);
    assert_eq!(words(&live, "one").as_deref(), Some("newest"));
    live.observe(Kind::Service, Event::Delete(object("one", "0", 9, "")), &mut listed);
    assert!(words(&live, "one").is_some(), "an older one of that name went");
    live.observe(Kind::Service, Event::Delete(object("one", "1", 9, "")), &mut listed);
    assert_eq!(words(&live, "one"), None);
}

#[test]
fn what_is_not_listed_any_more_is_gone() {
    let live = Live::new([Kind::Service, Kind::Secret], Bell::default());
    let mut listed = BTreeMap::new();
    live.note(Kind::Service, &object("gone", "1", 1, ""));
    live.note(Kind::Secret, &object("other", "2", 2, ""));
    for event in [Event::Init, Event::InitApply(object("here", "3", 3, "")), Event::InitDone] {
        live.observe(Kind::Service, event, &mut listed);
    }
    assert_eq!(live.keys(Part::Layer), [(Kind::Secret, "other".to_owned()), (Kind::Service, "here".to_owned())]);
    assert!(!live.is_synced());
    live.observe(Kind::Secret, Event::InitDone, &mut listed);
    assert!(live.is_synced() && live.keys(Part::Layer).len() == 1);
}

#[test]
fn a_kind_that_nobody_waits_for_comes_and_goes() {
    let live = Live::new([], Bell::default());
    let mut listed = BTreeMap::new();
    assert!(live.is_synced() && !live.shows(Kind::PodMonitor));
    for event in [Event::Init, Event::InitApply(object("here", "1", 1, "")), Event::InitDone] {
        assert!(!live.shows(Kind::PodMonitor), "not all of it has been listed");
        live.observe(Kind::PodMonitor, event, &mut listed);
    }
    assert!(live.shows(Kind::PodMonitor) && live.get(Kind::PodMonitor, "here").is_some());
    live.close(Kind::PodMonitor);
    assert!(!live.shows(Kind::PodMonitor) && live.get(Kind::PodMonitor, "here").is_none());
}
