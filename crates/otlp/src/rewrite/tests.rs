use std::sync::Arc;

use super::*;
use crate::view::{AnyValue, Span, resources};
use crate::wire::{put_bytes, put_uint};

fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, number, content);
    out
}

/// A request of one span in one scope, whose entry has no resource.
fn request(span: &[u8]) -> Bytes {
    Bytes::from(field(1, &field(2, &field(2, span))))
}

fn only_span(request: &Bytes) -> Span<'_> {
    resources(request).next().unwrap().scopes().next().unwrap().spans().next().unwrap()
}

/// Applies this function to every record.
fn edited(request: &Bytes, edits: impl IntoIterator<Item = MessageEdit>) -> Bytes {
    rewrite(
        Signal::Traces,
        request,
        &mut UniformEditor { records: edits.into_iter().collect(), ..UniformEditor::default() },
    )
}

#[test]
fn every_kind_of_value_reads_back() {
    let list = Value::KeyValueList(vec![("k".to_owned(), Value::Int(-1))]);
    let edits = [
        MessageEdit::set("string", "text"),
        MessageEdit::set("bool", true),
        MessageEdit::set("int", -7),
        MessageEdit::set("double", 1.5),
        MessageEdit::set("bytes", Value::Bytes(Bytes::from_static(b"\xff"))),
        MessageEdit::set("array", Value::Array(vec![Value::Int(1), "two".into()])),
        MessageEdit::set("list", list.clone()),
        MessageEdit::set("encoded", Value::Encoded(list.encoded())),
    ];
    let bytes = edited(&request(&[]), edits);
    let attributes = only_span(&bytes).attributes();
    assert_eq!(attributes.get("string").unwrap().as_str(), Some("text"));
    assert!(matches!(attributes.get("bool"), Some(AnyValue::Bool(true))));
    assert!(matches!(attributes.get("int"), Some(AnyValue::Int(-7))));
    assert!(matches!(attributes.get("double"), Some(AnyValue::Double(1.5))));
    assert!(matches!(attributes.get("bytes"), Some(AnyValue::Bytes(b"\xff"))));
    assert!(matches!(attributes.get("array"), Some(AnyValue::Array(values)) if values.count() == 2));
    for key in ["list", "encoded"] {
        let Some(AnyValue::KeyValueList(mut pairs)) = attributes.get(key) else { panic!("{key} is a list") };
        assert!(matches!(pairs.next().unwrap().value(), AnyValue::Int(-1)));
    }
}

#[test]
fn a_trace_state_is_set_replaced_and_removed() {
    let span = [field(3, b"old=1"), field(5, b"name"), field(3, b"old=2")].concat();
    let set = edited(&request(&span), [MessageEdit::trace_state("ot=th:8")]);
    assert_eq!(only_span(&set).trace_state(), b"ot=th:8");
    assert_eq!(only_span(&set).name(), b"name");
    let removed = edited(&set, [MessageEdit::trace_state("")]);
    assert_eq!(removed, request(&field(5, b"name")));
}

#[test]
fn an_entry_without_a_resource_gets_one_when_an_attribute_is_set() {
    let request = request(&field(5, b"name"));
    let mut rules = UniformEditor {
        resources: vec![MessageEdit::remove("x"), MessageEdit::update("x", 1)],
        ..UniformEditor::default()
    };
    assert_eq!(rewrite(Signal::Traces, &request, &mut rules).as_ptr(), request.as_ptr(), "nothing to do");
    rules.resources.push(MessageEdit::insert("service.name", "shop"));
    let bytes = rewrite(Signal::Traces, &request, &mut rules);
    let entry = resources(&bytes).next().unwrap();
    assert_eq!(entry.resource().attributes().text("service.name"), Some(&b"shop"[..]));
    assert_eq!(only_span(&bytes).name(), b"name");
}

#[test]
fn a_renamed_attribute_keeps_its_value_its_place_and_its_unknown_fields() {
    let mut pair = [field(1, b"from"), field(2, &field(1, b"v"))].concat();
    put_uint(&mut pair, 77, 5);
    let span = [field(9, &field(1, b"to")), field(9, &pair), field(9, &field(1, b"last"))].concat();
    let bytes = edited(&request(&span), [MessageEdit::rename("from", "to")]);
    let span = only_span(&bytes);
    let keys: Vec<_> = span.attributes().iter().map(|pair| pair.key()).collect();
    assert_eq!(keys, [&b"to"[..], b"last"]);
    let renamed = span.attributes().iter().next().unwrap();
    assert_eq!(renamed.value().as_str(), Some("v"));
    assert_eq!(WireFields::new(renamed.as_bytes()).last_of(77).unwrap().as_varint(), Some(5));
}

#[test]
fn an_editor_chooses_by_what_it_sees() {
    struct OnlySlow;
    impl RecordEditor for OnlySlow {
        fn record(&mut self, record: &RecordRef<'_>, edits: &mut EditList) {
            if record.span().is_some_and(|span| span.name() == b"slow") {
                edits.push(MessageEdit::set("kept", true));
            }
        }
    }
    let fast = request(&field(5, b"fast"));
    assert_eq!(rewrite(Signal::Traces, &fast, &mut OnlySlow).as_ptr(), fast.as_ptr());
    let slow = rewrite(Signal::Traces, &request(&field(5, b"slow")), &mut OnlySlow);
    assert!(matches!(only_span(&slow).attributes().get("kept"), Some(AnyValue::Bool(true))));
}

/// Sets an attribute and removes another one, everywhere.
#[derive(Debug)]
struct Everywhere;

impl AttributeChange for Everywhere {
    fn change(&self, attributes: &mut AttributeList<'_>) {
        attributes.remove("gone");
        attributes.set("seen", &Value::Bool(true), SetCondition::Present);
    }
}

impl RecordEditor for Everywhere {
    fn scope(&mut self, _: Scope<'_>, edits: &mut EditList) {
        edits.push(MessageEdit::apply_change(Arc::new(Everywhere)));
    }

    fn record(&mut self, _: &RecordRef<'_>, edits: &mut EditList) {
        edits.push(MessageEdit::events(Arc::new(Everywhere)));
        edits.push(MessageEdit::body("said"));
    }
}

fn pair(key: &[u8]) -> Vec<u8> {
    [field(1, key), field(2, &field(1, b"v"))].concat()
}

#[test]
fn attributes_of_scopes_and_events_are_changed_where_they_stand() {
    let event = [field(2, b"exception"), field(3, &pair(b"gone")), field(3, &pair(b"seen")), field(77, b"?")].concat();
    let span =
        [field(5, b"name"), field(11, &event), field(9, &pair(b"gone")), field(11, &field(2, b"other"))].concat();
    let scope = [field(1, b"lib"), field(3, &pair(b"gone"))].concat();
    let bytes = Bytes::from(field(1, &field(2, &[field(2, &span), field(1, &scope)].concat())));
    let rewritten = rewrite(Signal::Traces, &bytes, &mut Everywhere);
    let entry = resources(&rewritten).next().unwrap().scopes().next().unwrap();
    assert_eq!((entry.scope().name(), entry.scope().attributes().iter().count()), (&b"lib"[..], 0));
    let span = only_span(&rewritten);
    assert_eq!(span.attributes().iter().count(), 1, "the span's own stay");
    let events: Vec<_> = span.events().collect();
    assert_eq!((events[0].name(), events[1].name()), (&b"exception"[..], &b"other"[..]));
    assert_eq!(events[0].attributes().iter().count(), 1);
    assert!(matches!(events[0].attributes().get("seen"), Some(AnyValue::Bool(true))));
    assert!(WireFields::new(events[0].as_bytes()).last_of(77).is_some());
    let again = rewrite(Signal::Traces, &rewritten, &mut Everywhere);
    assert_eq!(again.as_ptr(), rewritten.as_ptr(), "there is nothing left to do");
}

#[test]
fn a_body_is_set_on_log_records_alone() {
    let record = [field(5, &field(1, b"old")), field(3, b"INFO")].concat();
    let bytes = rewrite(Signal::Logs, &request(&record), &mut Everywhere);
    let record = resources(&bytes).next().unwrap().scopes().next().unwrap().log_records().next().unwrap();
    assert_eq!((record.body().as_str(), record.severity_text()), (Some("said"), &b"INFO"[..]));
    let span = request(&field(5, b"name"));
    assert_eq!(rewrite(Signal::Traces, &span, &mut Everywhere).as_ptr(), span.as_ptr());
}
