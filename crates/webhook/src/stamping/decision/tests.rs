//! The decision table.

use kubewake_trail::context;
use proptest::strategy::Strategy as _;
use serde_json::json;

use super::*;

const A: &str = "00-0af7651916cd43dd8448eb211c80319c-00000000000000aa-01";
const B: &str = "00-0af7651916cd43dd8448eb211c80319c-00000000000000bb-01";
const C: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00000000000000cc-00";

fn parsed(text: &str) -> SpanContext {
    context::parse(text, None).unwrap()
}

/// An object with this number of replicas.
fn object(replicas: u32, annotations: &[(&str, &str)]) -> Value {
    let annotations: BTreeMap<_, _> = annotations.iter().copied().collect();
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "generation": 3, "annotations": annotations },
        "spec": { "replicas": replicas },
        "status": { "readyReplicas": replicas },
    })
}

const PARENT: &str = "tracing.k8s.io/traceparent";
const SPEC: &str = "trail.kubewake.io/spec";
const PREVIOUS: &str = "trail.kubewake.io/previous";

fn ask(old: Option<&Value>, new: &Value) -> StampDecision {
    decide(StampInput { old, new, is_trusted: true }, &AnnotationKeys::default()).unwrap()
}

fn unbelieved(old: Option<&Value>, new: &Value) -> StampDecision {
    decide(StampInput { old, new, is_trusted: false }, &AnnotationKeys::default()).unwrap()
}

fn stamped(new: &Value, generation: Option<i64>, previous: Option<&str>) -> StampDecision {
    StampDecision::Stamp { spec: hash::hash_value(new), generation, previous: previous.map(parsed) }
}

fn kept(new: &Value, own: &str, generation: Option<i64>, previous: Option<&str>) -> StampDecision {
    let beside = StampDetails { is_foreign: false, spec: hash::hash_value(new), generation };
    StampDecision::Keep { context: parsed(own), previous: previous.map(parsed), details: Some(beside) }
}

fn restored(entries: &[(&str, &str)]) -> StampDecision {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    StampDecision::Restore { entries: entries.iter().map(owned).collect() }
}

#[test]
fn a_new_object_is_stamped() {
    let new = object(1, &[("app", "shop")]);
    assert_eq!(ask(None, &new), stamped(&new, Some(1), None));
    let bare = json!({ "kind": "ConfigMap", "metadata": { "name": "a" } });
    assert_eq!(ask(None, &bare), stamped(&bare, Some(1), None));
}

#[test]
fn a_new_object_with_a_context_of_its_writers_keeps_it() {
    let new = object(1, &[(PARENT, A)]);
    assert_eq!(ask(None, &new), kept(&new, A, Some(1), None));
    assert_eq!(unbelieved(None, &new), stamped(&new, Some(1), None));
}

#[test]
fn what_a_writer_put_beside_its_context_stays() {
    let new = object(1, &[(PARENT, A), (SPEC, "its own")]);
    let keep = StampDecision::Keep { context: parsed(A), previous: None, details: None };
    assert_eq!(ask(None, &new), keep);
    let old = object(2, &[(PARENT, B), (SPEC, "another")]);
    let keep = StampDecision::Keep { context: parsed(A), previous: Some(parsed(B)), details: None };
    assert_eq!(ask(Some(&old), &new), keep);
    // The hash is only carried along from the old object, so it is not the writer's.
    let old = object(2, &[(PARENT, B), (SPEC, "its own")]);
    assert_eq!(ask(Some(&old), &new), kept(&new, A, Some(4), Some(B)));
}

#[test]
fn another_spec_is_stamped_and_remembers_what_was_replaced() {
    let old = object(1, &[(PARENT, A)]);
    for new in [object(2, &[(PARENT, A)]), object(2, &[]), object(2, &[(PARENT, "garbage")])] {
        assert_eq!(ask(Some(&old), &new), stamped(&new, Some(4), Some(A)));
    }
    let old = object(1, &[]);
    let new = object(2, &[]);
    assert_eq!(ask(Some(&old), &new), stamped(&new, Some(4), None));
}

#[test]
fn an_object_without_generations_gets_none() {
    let with = |data: &str| json!({ "metadata": { "name": "a" }, "data": { "a": data } });
    assert_eq!(ask(Some(&with("1")), &with("2")), stamped(&with("2"), None, None));
}

#[test]
fn a_writers_own_context_wins_with_and_without_another_spec() {
    let old = object(1, &[(PARENT, A)]);
    let new = object(2, &[(PARENT, C)]);
    assert_eq!(ask(Some(&old), &new), kept(&new, C, Some(4), Some(A)));
    let new = object(1, &[(PARENT, C)]);
    // Whether this makes a new generation depends on the kind.
    assert_eq!(ask(Some(&old), &new), kept(&new, C, None, Some(A)));
    let old = object(1, &[]);
    assert_eq!(ask(Some(&old), &new), kept(&new, C, None, None));
}

#[test]
fn the_same_spec_gets_its_context_back_word_for_word() {
    let entries = [(PARENT, A), ("tracing.k8s.io/tracestate", "k=v"), (SPEC, "hash"), (PREVIOUS, B)];
    let old = object(1, &entries);
    for new in [
        object(1, &[]),
        object(1, &[("other", "x")]),
        object(1, &[(PARENT, A)]),
        object(1, &[(PARENT, "??")]),
        old.clone(),
    ] {
        assert_eq!(ask(Some(&old), &new), restored(&entries));
    }
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({ "a": "b" });
    labelled["status"] = json!({ "readyReplicas": 0 });
    assert_eq!(ask(Some(&old), &labelled), restored(&entries));
}

#[test]
fn a_deployment_that_is_annotated_keeps_a_context_of_its_generation() {
    const GENERATION: &str = "trail.kubewake.io/generation";
    let with = |generation: &'static str| [(PARENT, A), (SPEC, "hash"), (GENERATION, generation)];
    let old = object(1, &with("3"));
    let annotated = object(1, &[(PARENT, A), (SPEC, "hash"), (GENERATION, "3"), ("other", "x")]);
    assert_eq!(ask(Some(&old), &annotated), restored(&with("4")));
    let asked_again = object(1, &[(PARENT, A), (SPEC, "hash"), (GENERATION, "4"), ("other", "x")]);
    assert_eq!(ask(Some(&old), &asked_again), restored(&with("4")));
    assert_eq!(ask(Some(&old), &object(1, &[])), restored(&with("3")), "what is put back changes nothing");
    let outdated = object(1, &with("2"));
    assert_eq!(ask(Some(&outdated), &annotated), restored(&with("2")), "it belonged to an earlier one before");
    let set = |mut object: Value| {
        object["kind"] = json!("StatefulSet");
        object
    };
    assert_eq!(ask(Some(&set(old)), &set(annotated)), restored(&with("3")), "others do not count annotations");
}

#[test]
fn the_same_spec_without_a_context_stays_without() {
    assert_eq!(ask(Some(&object(1, &[])), &object(1, &[])), restored(&[]));
    let garbage = object(1, &[(PARENT, "garbage")]);
    assert_eq!(ask(Some(&garbage), &garbage), restored(&[(PARENT, "garbage")]));
}

#[test]
fn an_old_copy_that_is_sent_back_sets_nothing() {
    let old = object(1, &[(PARENT, B), (PREVIOUS, A)]);
    assert_eq!(ask(Some(&old), &object(1, &[(PARENT, A)])), restored(&[(PARENT, B), (PREVIOUS, A)]));
    let new = object(2, &[(PARENT, A)]);
    assert_eq!(ask(Some(&old), &new), stamped(&new, Some(4), Some(B)));
}

#[test]
fn a_writer_who_is_not_believed_changes_nothing() {
    let old = object(1, &[(PARENT, A)]);
    assert_eq!(unbelieved(Some(&old), &object(1, &[(PARENT, C)])), restored(&[(PARENT, A)]));
    let new = object(2, &[(PARENT, C)]);
    assert_eq!(unbelieved(Some(&old), &new), stamped(&new, Some(4), Some(A)));
}

#[test]
fn contexts_under_the_keys_of_others_are_written_under_ours() {
    let json = format!(r#"{{"traceparent":"{C}"}}"#);
    let tekton = [("tekton.dev/pipelinerunSpanContext", json.as_str())];
    let new = object(1, &tekton);
    let decision = ask(None, &new);
    assert!(
        matches!(&decision, StampDecision::Keep { details: Some(StampDetails { is_foreign: true, .. }), .. }),
        "{decision:?}"
    );
    let entries =
        decision.entries(&AnnotationKeys::default(), Some(&parsed(A)), Timestamp::UNIX_EPOCH, &Annotations::new());
    assert!(entries.contains(&(PARENT.to_owned(), C.to_owned())), "{entries:?}");
    // The foreign context is still there when the spec changes, but it is no longer new.
    let old = object(1, &[tekton[0], (PARENT, A)]);
    let new = object(2, &[tekton[0], (PARENT, A)]);
    assert_eq!(ask(Some(&old), &new), stamped(&new, Some(4), Some(A)));
}

#[test]
fn asked_again_after_another_webhook_it_leaves_its_stamp() {
    let keys = AnnotationKeys::default();
    let old = object(1, &[(PARENT, A)]);
    let asked = object(2, &[(PARENT, A)]);
    let first = ask(Some(&old), &asked);
    let mut mutated = object(3, &[]);
    let entries: BTreeMap<_, _> =
        first.entries(&keys, Some(&parsed(B)), Timestamp::UNIX_EPOCH, &Annotations::new()).into_iter().collect();
    mutated["metadata"]["annotations"] = json!(entries);
    let again = ask(Some(&old), &mutated);
    assert_eq!(again, StampDecision::Keep { context: parsed(B), previous: Some(parsed(A)), details: None });
    let after: BTreeMap<_, _> =
        again.entries(&keys, Some(&parsed(C)), Timestamp::UNIX_EPOCH, &entries).into_iter().collect();
    assert_eq!(after, entries);
}

#[test]
fn without_a_context_of_its_own_nothing_is_stamped() {
    let new = object(1, &[]);
    let entries = ask(None, &new).entries(&AnnotationKeys::default(), None, Timestamp::UNIX_EPOCH, &Annotations::new());
    assert!(entries.is_empty(), "{entries:?}");
}

#[test]
fn a_writers_words_stay_and_get_what_is_missing() {
    let keys = AnnotationKeys::default();
    let said = [(PARENT, C), ("tracing.k8s.io/tracestate", "a=b")];
    let old = object(1, &[(PARENT, A), (SPEC, "x")]);
    let new = object(2, &said);
    let annotations = object_annotations(&new).unwrap().unwrap();
    let entries: BTreeMap<_, _> = ask(Some(&old), &new)
        .entries(&keys, Some(&parsed(B)), Timestamp::UNIX_EPOCH, &annotations)
        .into_iter()
        .collect();
    let expected = [
        (PARENT, C),
        ("tracing.k8s.io/tracestate", "a=b"),
        (SPEC, &hash::hash_value(&new)),
        ("trail.kubewake.io/generation", "4"),
        ("trail.kubewake.io/changed", "1970-01-01T00:00:00.000000Z"),
        (PREVIOUS, A),
    ];
    assert_eq!(entries, expected.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect());
}

#[test]
fn what_is_no_object_is_told() {
    let good = object(1, &[]);
    for bad in [
        json!(null),
        json!([]),
        json!({ "metadata": 1 }),
        json!({ "metadata": { "annotations": [] } }),
        json!({ "metadata": { "annotations": { "a": 1 } } }),
    ] {
        let question = StampInput { old: None, new: &bad, is_trusted: true };
        assert_eq!(decide(question, &AnnotationKeys::default()), Err(InvalidAnnotations), "{bad}");
        let question = StampInput { old: Some(&bad), new: &good, is_trusted: true };
        assert_eq!(decide(question, &AnnotationKeys::default()), Err(InvalidAnnotations), "{bad}");
    }
}

/// Annotations with valid contexts and garbage, under our keys and others'.
fn any_annotations() -> impl proptest::strategy::Strategy<Value = BTreeMap<String, String>> {
    let keys =
        [PARENT, SPEC, PREVIOUS, "tracing.k8s.io/tracestate", "traceparent", "trail.kubewake.io/changed", "mine"];
    let values = [A, B, C, "", "x", "a=b", "1970-01-01T00:00:00Z", "{}"];
    let pair = (proptest::sample::select(keys.to_vec()), proptest::sample::select(values.to_vec()));
    proptest::collection::btree_map(pair.0.prop_map(str::to_owned), pair.1.prop_map(str::to_owned), 0..5)
}

proptest::proptest! {
    #[test]
    fn whatever_is_there_others_stay_and_the_second_look_changes_no_context(
        (old, new) in (proptest::option::of((any_annotations(), 0..2_u32)), (any_annotations(), 0..2_u32)),
        believed: bool,
    ) {
        let keys = AnnotationKeys::default();
        let object = |(annotations, replicas): &(BTreeMap<String, String>, u32)| {
            json!({ "metadata": { "annotations": annotations }, "spec": { "replicas": replicas } })
        };
        let old = old.as_ref().map(object);
        let mut asked = object(&new);
        let mut annotations = new.0.clone();
        let mut contexts = Vec::new();
        // No generated input contains these.
        for own in [A, B].map(|context| context.replace("00-0af7", "00-1234")) {
            let question = StampInput { old: old.as_ref(), new: &asked, is_trusted: believed };
            let decision = decide(question, &keys).unwrap();
            let wanted = decision.entries(&keys, Some(&parsed(&own)), Timestamp::UNIX_EPOCH, &annotations);
            keys.all().iter().for_each(|key| drop(annotations.remove(*key)));
            annotations.extend(wanted);
            asked["metadata"]["annotations"] = json!(annotations);
            contexts.push(annotations.get(PARENT).cloned());
        }
        for key in ["mine", "traceparent"] {
            proptest::prop_assert_eq!(annotations.get(key), new.0.get(key));
        }
        // An untrusted writer's stamp is replaced each time, including the webhook's own first stamp.
        if believed {
            proptest::prop_assert_eq!(&contexts[0], &contexts[1]);
        }
    }
}
