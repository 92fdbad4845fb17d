//! The validation of custom resources. The messages are those of a real kube-apiserver.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::SchemaValidator;
use crate::{crd::structural, schema::SchemaNode};

fn validator(spec: Value) -> SchemaValidator {
    with_schema(&json!({"type": "object", "properties": {"spec": spec}}))
}

fn with_schema(schema: &Value) -> SchemaValidator {
    SchemaValidator::new(&Arc::new(structural::build_schema(schema, &SchemaNode::default())))
}

fn told(errors: &[crate::api::field::FieldError]) -> Vec<String> {
    let mut errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    errors.sort();
    errors
}

fn refusal(schema: Value, spec: Value) -> Vec<String> {
    told(&validator(schema).validate(&json!({"metadata": {"name": "w"}, "spec": spec}), None))
}

fn field(schema: Value, value: Value) -> Vec<String> {
    refusal(json!({"type": "object", "properties": {"a": schema}}), json!({"a": value}))
}

fn change(schema: Value, old: Value, new: Value) -> Vec<String> {
    told(&validator(schema).validate(&json!({"spec": new}), Some(&json!({"spec": old}))))
}

#[test]
fn types_are_checked() {
    let typed = |kind: &str| json!({"type": kind});
    let wrong = |kind: &str, got: &str| {
        format!("spec.a: Invalid value: {got:?}: spec.a in body must be of type {kind}: {got:?}")
    };
    assert_eq!(field(typed("integer"), json!("x")), [wrong("integer", "string")]);
    assert_eq!(field(typed("integer"), json!(1.5)), [wrong("integer", "number")]);
    assert_eq!(field(typed("boolean"), json!(1)), [wrong("boolean", "integer")]);
    assert_eq!(field(typed("string"), json!([])), [wrong("string", "array")]);
    assert_eq!(field(typed("array"), json!({})), [wrong("array", "object")]);
    assert_eq!(field(typed("string"), json!(null)), [wrong("string", "null")]);
    assert!(field(json!({"type": "string", "nullable": true}), json!(null)).is_empty());
    assert!(field(typed("integer"), json!(2.0)).is_empty());
    assert!(field(typed("number"), json!(2)).is_empty());
    assert_eq!(
        refusal(json!({"type": "object"}), json!("x")),
        ["spec: Invalid value: \"string\": spec in body must be of type object: \"string\""]
    );
}

#[test]
fn int_or_string() {
    let schema = json!({"type": "object", "properties": {
        "p": {"x-kubernetes-int-or-string": true},
        "q": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^[0-9]+%$"},
    }});
    assert!(refusal(schema.clone(), json!({"p": 1, "q": "5%"})).is_empty());
    assert!(refusal(schema.clone(), json!({"p": "x", "q": 7})).is_empty());
    let wrong =
        |got: &str| format!("spec.p: Invalid value: {got:?}: spec.p in body must be of type integer,string: {got:?}");
    assert_eq!(refusal(schema.clone(), json!({"p": true})), [wrong("boolean")]);
    assert_eq!(
        refusal(schema, json!({"p": 1.5, "q": "x"})),
        [wrong("number"), "spec.q: Invalid value: \"x\": spec.q in body should match '^[0-9]+%$'".to_owned()]
    );
}

#[test]
fn limits() {
    let about = |what: &str| format!("spec.a: {what}");
    let body = |value: &str, what: &str| format!("spec.a: Invalid value: {value}: spec.a in body {what}");
    let text = json!({"type": "string", "minLength": 2, "maxLength": 3});
    assert_eq!(field(text.clone(), json!("abcd")), [about("Too long: may not be more than 3 bytes")]);
    assert_eq!(field(text.clone(), json!("a")), [body("\"a\"", "should be at least 2 chars long")]);
    assert!(field(text, json!("äöü")).is_empty());
    let number = json!({"type": "integer", "minimum": 1, "maximum": 10, "exclusiveMaximum": true, "multipleOf": 2});
    assert_eq!(field(number.clone(), json!(10)), [body("10", "should be less than 10")]);
    assert_eq!(field(number.clone(), json!(0)), [body("0", "should be greater than or equal to 1")]);
    assert_eq!(field(number, json!(3)), [body("3", "should be a multiple of 2")]);
    assert_eq!(
        field(json!({"type": "number", "maximum": 1.5}), json!(2.25)),
        [body("2.25", "should be less than or equal to 1.5")]
    );
    let list = json!({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2});
    assert_eq!(field(list.clone(), json!([])), [body("0", "should have at least 1 items")]);
    assert_eq!(field(list.clone(), json!([1, 2, 3])), [about("Too many: 3: must have at most 2 items")]);
    assert_eq!(
        field(list, json!([1, "x"])),
        ["spec.a[1]: Invalid value: \"string\": spec.a[1] in body must be of type integer: \"string\""]
    );
    let map =
        json!({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1, "maxProperties": 2});
    assert_eq!(field(map.clone(), json!({})), [body("0", "should have at least 1 properties")]);
    assert_eq!(
        field(map.clone(), json!({"a": "", "b": "", "c": ""})),
        [about("Too many: 3: must have at most 2 items")]
    );
    assert_eq!(
        field(map, json!({"k": 1})),
        ["spec.a.k: Invalid value: \"integer\": spec.a.k in body must be of type string: \"integer\""]
    );
}

#[test]
fn enums_and_required_fields() {
    let schema = json!({"type": "string", "enum": ["x", "y"]});
    assert_eq!(field(schema, json!("z")), ["spec.a: Unsupported value: \"z\": supported values: \"x\", \"y\""]);
    assert_eq!(
        field(json!({"type": "integer", "enum": [1, 2]}), json!(3)),
        ["spec.a: Unsupported value: 3: supported values: \"1\", \"2\""]
    );
    let required = json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    assert_eq!(refusal(required, json!({"b": ""})), ["spec.a: Required value"]);
    let root =
        with_schema(&json!({"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object"}}}));
    assert_eq!(told(&root.validate(&json!({}), None)), ["spec: Required value"]);
}

#[test]
fn formats() {
    let wrong = |format: &str, text: &str| {
        vec![format!("spec.a: Invalid value: {text:?}: spec.a in body must be of type {format}: {text:?}")]
    };
    let check = |format: &str, text: &str| field(json!({"type": "string", "format": format}), json!(text));
    let samples = [
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
        ("date", "2024-02-29", "2023-02-29"),
        ("date-time", "2024-01-02T03:04:05.5Z", "2024-01-02"),
        ("duration", "1h30m", "1 hour ago"),
        ("byte", "aGk=", "%"),
        ("hostname", "a.example.com", "-a"),
        ("uri", "https://example.com/x?y", "no uri"),
        ("email", "a@example.com", "a at example.com"),
        ("mac", "00:11:22:33:44:55", "00:11"),
        ("isbn", "978-0321751041", "978-0321751042"),
        ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
        ("hexcolor", "#fff", "#ff"),
        ("rgbcolor", "rgb(1, 2, 255)", "rgb(1,2,256)"),
        ("ssn", "123-45-6789", "12-345"),
        ("k8s-short-name", "a-b", "a.b"),
    ];
    for (format, right, bad) in samples {
        assert!(check(format, right).is_empty(), "{format}: {right}");
        assert_eq!(check(format, bad), wrong(format, bad));
    }
    assert!(check("made-up", "anything").is_empty());
    assert_eq!(
        field(json!({"type": "string", "format": "date-time"}), json!(5)),
        ["spec.a: Invalid value: \"int64\": spec.a in body must be of type date-time: \"int64\""]
    );
}

#[test]
fn patterns_are_gos() {
    let matches =
        |pattern: &str, text: &str| field(json!({"type": "string", "pattern": pattern}), json!(text)).is_empty();
    assert!(matches(r"^\d+$", "12"));
    assert!(!matches(r"^\d+$", "١"));
    assert!(matches(r"^[\w.-]+$", "a-b.c_d"));
    assert!(matches("^[[]$", "["));
    assert!(matches("^[[:alpha:]&&~]+$", "a&~"));
    assert!(!matches("^[^]a]$", "]"));
    assert!(matches(r"\bfoo\b", "a foo b"));
}

#[test]
fn alternatives() {
    let schema = json!({"type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "n": {"type": "integer", "not": {"enum": [3]}}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    assert_eq!(
        refusal(schema.clone(), json!({"a": "1", "b": "2"})),
        [
            "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). Found 2 valid alternatives"
        ]
    );
    assert_eq!(
        refusal(schema.clone(), json!({})),
        [
            "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). Found none valid",
            "spec.a: Required value"
        ]
    );
    assert_eq!(
        refusal(schema, json!({"a": "1", "n": 3})),
        ["<nil>: Invalid value: \"\": \"spec.n\" must not validate the schema (not)"]
    );
    let any = json!({"type": "integer", "anyOf": [{"minimum": 5}, {"enum": [1]}]});
    assert!(field(any.clone(), json!(1)).is_empty());
    assert_eq!(
        field(any, json!(2))[0],
        "<nil>: Invalid value: \"\": \"spec.a\" must validate at least one schema (anyOf)"
    );
    let all = json!({"type": "integer", "allOf": [{"minimum": 5}, {"maximum": 7}]});
    assert_eq!(
        field(all, json!(9)),
        [
            "<nil>: Invalid value: \"\": \"spec.a\" must validate all the schemas (allOf)",
            "spec.a: Invalid value: 9: spec.a in body should be less than or equal to 7",
        ]
    );
}

#[test]
fn lists_by_key() {
    let schema = json!({"type": "object", "properties": {
        "m": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"], "items": {
            "type": "object", "required": ["k"],
            "properties": {"k": {"type": "string"}, "p": {"type": "string", "default": "TCP"}, "v": {"type": "string"}}}},
        "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    }});
    let twice = json!({"m": [{"k": "a", "p": "TCP"}, {"k": "a", "p": "TCP"}], "s": ["x", "x", "x"]});
    let wanted = ["spec.m[1]: Duplicate value: {\"k\":\"a\",\"p\":\"TCP\"}", "spec.s[1]: Duplicate value: \"x\""];
    assert_eq!(refusal(schema.clone(), twice.clone()), wanted);
    assert!(
        refusal(schema.clone(), json!({"m": [{"k": "a", "p": "TCP"}, {"k": "a", "p": "UDP"}], "s": ["x", "y"]}))
            .is_empty()
    );
    // Existing duplicates may stay.
    assert!(change(schema, twice.clone(), twice).is_empty());
}

#[test]
fn embedded_resources() {
    let schema = json!({"type": "object", "properties": {"obj": {
        "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}});
    assert!(
        refusal(
            schema.clone(),
            json!({"obj": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "data": 1}})
        )
        .is_empty()
    );
    assert_eq!(
        refusal(schema.clone(), json!({"obj": {"data": 1}})),
        ["spec.obj.apiVersion: Required value", "spec.obj.kind: Required value"]
    );
    assert_eq!(
        refusal(schema, json!({"obj": {"apiVersion": 1, "kind": ""}})),
        [
            "spec.obj.apiVersion: Invalid value: 1: must be a string",
            "spec.obj.kind: Invalid value: \"\": must not be empty"
        ]
    );
}

#[test]
fn a_name_can_be_restricted() {
    let schema = json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 2}}}}});
    let errors = with_schema(&schema).validate(&json!({"metadata": {"name": "abc", "labels": {}}}), None);
    assert_eq!(told(&errors), ["metadata.name: Too long: may not be more than 2 bytes"]);
}

#[test]
fn what_did_not_change_is_tolerated() {
    let schema = json!({"type": "object", "properties": {"s": {"type": "string", "maxLength": 3}, "t": {"type": "string"},
        "l": {"type": "array", "items": {"type": "integer", "maximum": 3}}}});
    assert!(change(schema.clone(), json!({"s": "long text"}), json!({"s": "long text", "t": "x"})).is_empty());
    assert_eq!(
        change(schema.clone(), json!({"s": "long text"}), json!({"s": "other long text"})),
        ["spec.s: Too long: may not be more than 3 bytes"]
    );
    assert_eq!(
        change(schema, json!({"l": [9, 1]}), json!({"l": [9, 8]})),
        ["spec.l[1]: Invalid value: 8: spec.l[1] in body should be less than or equal to 3"]
    );
}

fn ruled() -> Value {
    json!({"type": "object",
        "properties": {
            "size": {"type": "integer"}, "max": {"type": "integer"},
            "name": {"type": "string", "maxLength": 20, "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "name is immutable"}]}},
        "x-kubernetes-validations": [
            {"rule": "self.size <= self.max", "message": "size above max"},
            {"rule": "!has(self.name) || self.name.startsWith('w')", "messageExpression": "'name ' + self.name + ' must start with w'",
             "reason": "FieldValueForbidden", "fieldPath": ".name"},
            {"rule": "self.max >= oldSelf.max", "message": "max may not shrink"}]})
}

#[test]
fn rules_have_messages() {
    assert_eq!(refusal(ruled(), json!({"size": 11, "max": 10})), ["spec: Invalid value: size above max"]);
    assert_eq!(
        refusal(ruled(), json!({"size": 1, "max": 10, "name": "abc"})),
        ["spec.name: Forbidden: name abc must start with w"]
    );
    assert!(refusal(ruled(), json!({"size": 1, "max": 10, "name": "wow"})).is_empty());
    assert_eq!(
        field(json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}), json!(1)),
        ["spec.a: Invalid value: 1: failed rule: self > 1"]
    );
}

#[test]
fn rules_that_fail_say_why() {
    assert_eq!(
        refusal(ruled(), json!({"size": 11})),
        ["spec: Invalid value: \"object\": no such key: max evaluating rule: size above max"]
    );
    let overload = json!({"x-kubernetes-int-or-string": true, "x-kubernetes-validations": [{"rule": "self + 1 > 1"}]});
    assert_eq!(
        field(overload, json!("x")),
        [
            "spec.a: Invalid value: \"\": 'no such overload': call arguments did not match a supported operator, function or macro \
          signature for rule: self + 1 > 1"
        ]
    );
}

#[test]
fn rules_wait_for_types() {
    let wanted = [
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing \
         errors to complete validation",
        "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
    ];
    assert_eq!(refusal(ruled(), json!({"size": "x", "max": 1})), wanted);
}

#[test]
fn transition_rules() {
    let old = json!({"size": 1, "max": 8, "name": "wow"});
    let with = |changes: Value| {
        let mut new = old.clone();
        json_patch::merge(&mut new, &changes);
        change(ruled(), old.clone(), new)
    };
    assert_eq!(with(json!({"max": 7})), ["spec: Invalid value: max may not shrink"]);
    assert_eq!(with(json!({"name": "wo"})), ["spec.name: Invalid value: \"wo\": name is immutable"]);
    assert!(with(json!({"max": 9, "name": null})).is_empty());
}

#[test]
fn old_items_are_found_by_their_keys() {
    let schema = json!({"type": "object", "properties": {"l": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "v may not shrink"}]}}}});
    let old = json!({"l": [{"k": "a", "v": 1}, {"k": "b", "v": 5}]});
    assert!(
        change(schema.clone(), old.clone(), json!({"l": [{"k": "b", "v": 5}, {"k": "c", "v": 0}, {"k": "a", "v": 2}]}))
            .is_empty()
    );
    assert_eq!(change(schema, old, json!({"l": [{"k": "b", "v": 4}]})), ["spec.l[0]: Invalid value: v may not shrink"]);
}

#[test]
fn old_values_may_be_optional() {
    let rule =
        json!({"rule": "oldSelf.hasValue() || self == 'new'", "optionalOldSelf": true, "message": "starts as new"});
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-validations": [rule]}}});
    assert_eq!(refusal(schema.clone(), json!({"a": "old"})), ["spec.a: Invalid value: \"old\": starts as new"]);
    assert!(refusal(schema.clone(), json!({"a": "new"})).is_empty());
    assert!(change(schema, json!({"a": "new"}), json!({"a": "old"})).is_empty());
}

#[test]
fn broken_rules_of_what_did_not_change_are_tolerated() {
    let rule = json!([{"rule": "self > 5"}]);
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer", "x-kubernetes-validations": rule}, "b": {"type": "integer"}}});
    assert!(change(schema.clone(), json!({"a": 1}), json!({"a": 1, "b": 2})).is_empty());
    assert_eq!(change(schema, json!({"a": 1}), json!({"a": 2})), ["spec.a: Invalid value: 2: failed rule: self > 5"]);
}

#[test]
fn rules_at_the_root_see_the_name() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}},
        "x-kubernetes-validations": [{"rule": "self.metadata.name.startsWith('ok')", "message": "bad name"}]});
    let check =
        |name: &str| told(&with_schema(&schema).validate(&json!({"metadata": {"name": name}, "spec": {}}), None));
    assert_eq!(check("no"), ["<nil>: Invalid value: bad name"]);
    assert!(check("ok1").is_empty());
}

#[test]
fn rules_have_kubernetes_functions() {
    let schema = json!({"type": "object",
        "properties": {"q": {"type": "string"}, "u": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}}},
        "x-kubernetes-validations": [
            {"rule": "!has(self.q) || quantity(self.q).isGreaterThan(quantity('1Gi'))", "message": "q too small"},
            {"rule": "!has(self.u) || url(self.u).getScheme() == 'https'", "message": "u must be https"},
            {"rule": "!has(self.l) || self.l.all(x, x.matches('^[a-z]+$')) && self.l.isSorted()", "message": "l must be sorted words"}]});
    assert_eq!(
        refusal(schema.clone(), json!({"q": "500Mi", "u": "http://x", "l": ["b", "a"]})),
        [
            "spec: Invalid value: l must be sorted words",
            "spec: Invalid value: q too small",
            "spec: Invalid value: u must be https"
        ]
    );
    assert!(refusal(schema, json!({"q": "2Gi", "u": "https://x", "l": ["a", "b"]})).is_empty());
}

#[test]
fn values_have_the_types_of_their_schema() {
    let holds = |schema: Value, value: Value, rule: &str| {
        let mut schema = schema;
        schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
        let errors = field(schema, value);
        assert!(errors.is_empty(), "{rule}: {errors:?}");
    };
    holds(json!({"type": "number"}), json!(1), "self == 1.0 && self / 2.0 == 0.5");
    holds(
        json!({"type": "string", "format": "date-time"}),
        json!("2024-01-02T03:04:05Z"),
        "self.getFullYear() == 2024",
    );
    holds(json!({"type": "string", "format": "duration"}), json!("90m"), "self > duration('1h')");
    holds(json!({"type": "string", "format": "byte"}), json!("aGk="), "size(self) == 2");
    let named = json!({"type": "object", "properties": {"namespace": {"type": "string"}, "a-b": {"type": "string"}, "c_d": {"type": "string"}}});
    holds(
        named,
        json!({"namespace": "x", "a-b": "y", "c_d": "z"}),
        "self.__namespace__ == 'x' && self.a__dash__b == 'y' && self.c_d == 'z'",
    );
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    holds(map, json!({"a-b": 1}), "self['a-b'] == 1 && self.all(k, self[k] > 0)");
}

#[test]
fn costly_rules_are_refused() {
    let rule = json!([{"rule": "self.all(x, self.all(y, self.all(z, x + y + z >= 0)))", "message": "sums"}]);
    let schema = json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": rule});
    let long: Vec<u32> = (0..1000).collect();
    assert_eq!(
        field(schema.clone(), json!(long)),
        [
            "spec.a: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run \
          due to call cost exceeds limit for rule: sums"
        ]
    );
    assert!(field(schema, json!([1, 2, 3])).is_empty());
}

#[test]
fn status_is_checked_by_itself() {
    let schema = json!({"type": "object", "properties": {"status": {"type": "object", "properties": {"ready": {"type": "boolean"}}}}});
    let errors = with_schema(&schema).validate_status(&json!({"status": {"ready": "x"}}), &json!({}));
    assert_eq!(
        told(&errors),
        ["status.ready: Invalid value: \"string\": ready in body must be of type boolean: \"string\""]
    );
}

/// Small JSON with keywords of schemas.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let words = prop_oneof![
        Just("object"),
        Just("array"),
        Just("string"),
        Just("integer"),
        Just("map"),
        Just("self.a > 1"),
        Just("^[a-z"),
        Just("x"),
        Just("date-time"),
        Just(".spec.a"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let key = prop_oneof![
            Just("type"),
            Just("properties"),
            Just("items"),
            Just("additionalProperties"),
            Just("anyOf"),
            Just("not"),
            Just("a"),
            Just("x-kubernetes-validations"),
            Just("rule"),
            Just("x-kubernetes-list-type"),
            Just("x-kubernetes-list-map-keys"),
            Just("default"),
            Just("pattern"),
            Just("format"),
            Just("enum"),
            Just("required"),
            Just("spec"),
            Just("versions"),
            Just("metadata"),
            Just("x-kubernetes-embedded-resource"),
            Just("fieldPath"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())),
        ]
    })
}

proptest! {
    /// No schema and no object makes the validation panic; and an unchanged object is never refused, except by
    /// rules that fail to run.
    #[test]
    fn nothing_breaks(schema in any_json(), object in any_json()) {
        let validator = with_schema(&schema);
        validator.validate(&object, None);
        let unchanged = validator.validate(&object, Some(&object));
        let harmless = |message: &str| message.contains("evaluating rule") || message.contains("compile error")
            || message.contains("no such overload") || message.contains("apiVersion") || message.contains("kind");
        for error in unchanged {
            prop_assert!(harmless(&error.to_string()), "{}", error);
        }
    }
}
