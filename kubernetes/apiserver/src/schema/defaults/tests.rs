use serde_json::json;

use super::*;
use crate::{
    api::GroupVersion,
    schema::{builtin, testing::widget},
};

fn defaulted(spec: Value, schema: &Schema) -> Value {
    let mut object = json!({"spec": spec});
    apply_defaults(&mut object, schema);
    let first = object.clone();
    apply_defaults(&mut object, schema);
    assert_eq!(object, first);
    object["spec"].take()
}

#[test]
fn defaults_are_filled_in_at_every_level_that_is_there() {
    let schema = widget(json!({"type": "object", "properties": {
        "size": {"type": "integer", "default": 3},
        "deep": {"type": "object", "default": {}, "properties": {"a": {"type": "string", "default": "x"}, "b": {"type": "string"}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}}},
    }}));
    let expected = json!({"deep": {"a": "x"}, "list": [{"p": "TCP"}, {"p": "UDP"}], "size": 3});
    assert_eq!(defaulted(json!({"list": [{}, {"p": "UDP"}]}), &schema), expected);
    let expected = json!({"deep": {"a": "x", "b": "y"}, "size": 3});
    assert_eq!(defaulted(json!({"size": null, "deep": {"b": "y"}}), &schema), expected);
    let mut bare = json!({"metadata": {"name": "c"}});
    apply_defaults(&mut bare, &schema);
    assert_eq!(bare, json!({"metadata": {"name": "c"}}));
}

#[test]
fn null_is_replaced_where_it_is_no_value() {
    let schema = widget(json!({"type": "object", "properties": {
        "n": {"type": "string", "nullable": true}, "d": {"type": "string", "default": "x"},
        "nd": {"type": "string", "nullable": true, "default": "y"},
        "list": {"type": "array", "items": {"type": "string", "default": "i"}},
        "map": {"type": "object", "additionalProperties": {"type": "string", "default": "v"}},
    }}));
    let given = json!({"n": null, "d": null, "nd": null, "list": [null, "a"], "map": {"k": null}});
    assert_eq!(
        defaulted(given, &schema),
        json!({"n": null, "d": "x", "nd": null, "list": ["i", "a"], "map": {"k": "v"}})
    );
    assert_eq!(defaulted(json!({}), &schema), json!({"d": "x", "nd": "y"}));
}

#[test]
fn built_in_kinds_have_the_defaults_of_the_table() {
    let service = builtin::schema_for_kind(&GroupVersion::new("", "v1"), "Service").unwrap();
    assert_eq!(defaulted(json!({"ports": [{"port": 1}]}), service), json!({"ports": [{"port": 1, "protocol": "TCP"}]}));
    let pod = builtin::schema_for_kind(&GroupVersion::new("", "v1"), "Pod").unwrap();
    assert_eq!(defaulted(json!({"imagePullSecrets": [{}]}), pod), json!({"imagePullSecrets": [{}]}));
}
