use proptest::prelude::*;
use serde_json::json;

use super::*;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OLD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn annotations(entries: &[(&str, &str)]) -> Annotations {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn read(entries: &[(&str, &str)]) -> ContextReading {
    AnnotationKeys::default().read(Some(&annotations(entries)))
}

#[test]
fn a_stamp_is_found_again() {
    let keys = AnnotationKeys::default();
    let stamp = Stamp {
        context: context::parse(PARENT, Some("a=1")).unwrap(),
        spec: hash::hash_value(&json!({"spec": {"size": 1}})),
        generation: Some(4),
        stamped_at: "2026-11-16T06:00:00.123456789Z".parse().unwrap(),
        previous: context::parse(OLD, None),
    };
    let mut on = annotations(&[("mine", "stays"), ("tracing.k8s.io/tracestate", "old=1")]);
    stamp.write(&keys, &mut on);
    assert_eq!(on.get("mine").map(String::as_str), Some("stays"));
    assert_eq!(on.get("trail.kubewake.io/changed").map(String::as_str), Some("2026-11-16T06:00:00.123456Z"));

    let ContextReading { found, unreadable: garbage } = keys.read(Some(&on));
    let found = found.unwrap();
    assert_eq!(garbage, 0);
    assert_eq!((found.context.clone(), found.source), (stamp.context.clone(), ContextSource::Own));
    assert_eq!(found.spec.as_deref(), Some(&*stamp.spec));
    assert_eq!(found.previous, stamp.previous);
    assert!(!found.is_outdated(Some(4)) && !found.is_outdated(None) && found.is_outdated(Some(5)));
    assert_eq!(keys.entries(Some(&on)).len(), 6);
}

#[test]
fn a_new_stamp_leaves_nothing_of_the_old() {
    let keys = AnnotationKeys::default();
    let mut on = annotations(&[("trail.kubewake.io/previous", OLD), ("tracing.k8s.io/tracestate", "old=1")]);
    let stamp = Stamp {
        context: context::parse(PARENT, None).unwrap(),
        spec: String::new(),
        generation: None,
        stamped_at: Timestamp::UNIX_EPOCH,
        previous: None,
    };
    stamp.write(&keys, &mut on);
    assert_eq!(on.len(), 3);
    assert_eq!(keys.read(Some(&on)).found.unwrap().previous, None);
}

#[test]
fn contexts_of_others_are_read() {
    let tekton = json!({"traceparent": PARENT}).to_string();
    assert_eq!(read(&[("tekton.dev/pipelinerunSpanContext", &tekton)]).found.unwrap().source, ContextSource::Tekton);
    let state = json!({"traceparent": OLD, "tracestate": "a=1"}).to_string();
    let nearest = [
        ("tekton.dev/pipelinerunSpanContext", &*tekton),
        ("tekton.dev/customrunSpanContext", &*tekton),
        ("tekton.dev/taskrunSpanContext", &*state),
    ];
    let found = read(&nearest).found.unwrap().context;
    assert_eq!((context::traceparent(&found), context::tracestate(&found).as_deref()), (OLD.to_owned(), Some("a=1")));
    assert!(read(&nearest[1..2]).found.is_some_and(|found| found.source == ContextSource::Tekton));
    assert_eq!(read(&[("traceparent", PARENT)]).found.unwrap().source, ContextSource::Bare);
    let base64 = "MDAtNGJmOTJmMzU3N2IzNGRhNmEzY2U5MjlkMGUwZTQ3MzYtMDBmMDY3YWEwYmE5MDJiNy0wMQ==";
    let binary = "AABL+S81d7NNpqPOkp0ODkc2AQDwZ6oLqQK3AgE=";
    for text in [base64, binary, PARENT] {
        let found = read(&[("trace.kubernetes.io/context", text)]).found.unwrap();
        assert_eq!((context::traceparent(&found.context), found.source), (PARENT.to_owned(), ContextSource::Proposal));
    }
    let keys = AnnotationKeys { read_foreign: false, ..AnnotationKeys::default() };
    assert!(keys.read(Some(&annotations(&[("traceparent", PARENT)]))).found.is_none());
}

#[test]
fn our_own_context_is_nearer_than_that_of_others() {
    let found = read(&[("traceparent", OLD), ("tracing.k8s.io/traceparent", PARENT)]).found.unwrap();
    assert_eq!(context::traceparent(&found.context), PARENT);
}

#[test]
fn garbage_is_counted_and_costs_only_itself() {
    let reading = read(&[("tracing.k8s.io/traceparent", "garbage"), ("traceparent", PARENT)]);
    assert_eq!((reading.unreadable, reading.found.map(|found| found.source)), (1, Some(ContextSource::Bare)));
    let long = "9".repeat(10_000);
    let reading = read(&[
        ("tracing.k8s.io/traceparent", PARENT),
        ("trail.kubewake.io/spec", &long),
        ("trail.kubewake.io/changed", "yesterday"),
        ("trail.kubewake.io/generation", "many"),
        ("trail.kubewake.io/previous", &long),
    ]);
    assert_eq!(reading.unreadable, 4);
    let found = reading.found.unwrap();
    assert_eq!((found.spec, found.stamped_at, found.generation, found.previous), (None, None, None, None));
    assert_eq!(read(&[("tekton.dev/taskrunSpanContext", &"[".repeat(5000))]).unreadable, 1);
}

#[test]
fn the_prefix_is_the_users_choice() {
    let keys = AnnotationKeys::new("tracing.example.com").unwrap();
    assert_eq!(keys.traceparent, "tracing.example.com/traceparent");
    for bad in ["", "UPPER.example", "a..b", "-a.b", "a/b", "a b", &"a".repeat(300)] {
        assert!(AnnotationKeys::new(bad).is_err(), "{bad}");
    }
}

#[test]
fn what_means_the_same_has_the_same_hash() {
    let object = json!({"apiVersion": "v1", "kind": "Head", "metadata": {"name": "a"}, "status": {"ready": true},
        "spec": {"size": 1, "names": ["a", null], "note": null, "more": {"none": {}, "list": []}}});
    let same = json!({"spec": {"names": ["a", null], "size": 1.0}});
    assert_eq!(hash::hash_object(&object).unwrap(), hash::hash_value(&same));
    for other in [
        json!({"spec": {"names": ["a"], "size": 1}}),
        json!({"spec": {"names": [null, "a"], "size": 1}}),
        json!({"spec": {"names": ["a", null], "size": "1"}}),
        json!({"spec": {"names": ["a", null], "size": 2}}),
        json!({"data": {"names": ["a", null], "size": 1}}),
    ] {
        assert_ne!(hash::hash_value(&same), hash::hash_value(&other), "{other}");
    }
    assert_ne!(hash::hash_value(&json!({"data": {"a": "b"}})), hash::hash_value(&json!({"data": {"ab": ""}})));
}

fn hostile() -> impl Strategy<Value = Annotations> {
    let keys = AnnotationKeys::default();
    let mut names: Vec<String> = keys.all().map(str::to_owned).into();
    names.extend(["traceparent", "tekton.dev/taskrunSpanContext", "trace.kubernetes.io/context"].map(str::to_owned));
    let value = prop_oneof![".*", "[0-9a-f-]{50,60}", Just(PARENT.to_owned()), "\\PC{0,2000}", "[A-Za-z0-9+/]{39}="];
    prop::collection::btree_map(prop::sample::select(names), value, 0..9)
}

proptest! {
    #[test]
    fn whatever_stands_in_the_annotations_is_read_without_harm(annotations in hostile()) {
        let reading = AnnotationKeys::default().read(Some(&annotations));
        prop_assert!(reading.found.is_none_or(|found| found.context.is_valid()));
    }
}
