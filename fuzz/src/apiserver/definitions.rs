//! CustomResourceDefinitions by a tenant who is allowed to define kinds.

use std::sync::Arc;

use kubewake_apiserver::{
    crd::{SchemaValidator, resources, structural},
    fuzzing::{check_definition, pattern_problem},
    schema::{Schema, SchemaNode, prune},
};
use serde_json::Value;

use crate::{memory::bounded, two_texts};

/// A pattern compiles or is refused, within a multiple of its text and the size limit of the regex crate.
pub(super) fn go_pattern(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if text.len() <= 1024 {
        bounded("a pattern", text.len(), 4096, 64 << 20, || pattern_problem(text));
    }
}

/// A valid definition can be served: its schema prunes and validates any object.
pub(super) fn crd(data: &[u8]) {
    let Some((definition, object)) = two_texts(data) else { return };
    let (Ok(definition), Ok(object)) = (serde_json::from_str::<Value>(definition), serde_json::from_str(object)) else {
        return;
    };
    if !bounded("a definition", data.len(), 4096, 64 << 20, || check_definition(&definition)) {
        return;
    }
    let _ = resources(&definition, 1);
    let versions = definition["spec"]["versions"].as_array().cloned().unwrap_or_default();
    for version in versions {
        validate(&version["schema"]["openAPIV3Schema"], object_like(&object));
    }
}

fn object_like(object: &Value) -> Value {
    if object.is_object() { object.clone() } else { serde_json::json!({"spec": object}) }
}

fn validate(openapi: &Value, mut object: Value) {
    let meta = SchemaNode::from(Schema::default());
    let schema = Arc::new(structural::build_schema(openapi, &meta));
    if prune::prune(&mut object, &schema).is_err() {
        return;
    }
    let mut again = object.clone();
    let unknown = prune::prune(&mut again, &schema).expect("what was pruned is right");
    assert_eq!((again, unknown), (object.clone(), Vec::new()));
    let _ = SchemaValidator::new(&schema).validate(&object, None);
}
