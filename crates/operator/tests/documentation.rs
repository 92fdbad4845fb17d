//! Checks that docs/pipelines.md names every field, condition and reason.
#![allow(clippy::unwrap_used, reason = "these are tests, their helper functions included")]

use std::{collections::BTreeSet, fs};

use kubewake_api::{ConditionReason, ConditionType, State, crds};
use serde_json::Value;

fn page() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pipelines.md")).unwrap()
}

/// The names of all fields below a schema.
fn fields(schema: &Value, names: &mut BTreeSet<String>) {
    if let Some(properties) = schema["properties"].as_object() {
        for (name, schema) in properties {
            names.insert(name.clone());
            fields(schema, names);
        }
    }
    let below = ["items", "additionalProperties"].into_iter().filter_map(|below| schema.get(below));
    below.for_each(|schema| fields(schema, names));
}

#[test]
fn every_field_is_on_the_page() {
    let page = page();
    let mut names = BTreeSet::new();
    for crd in crds() {
        let crd = serde_json::to_value(crd).unwrap();
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        assert!(schema["properties"].is_object());
        fields(schema, &mut names);
    }
    let missing: Vec<_> = names.iter().filter(|name| !has(&page, name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_state_condition_and_reason_is_on_the_page() {
    let page = page();
    let states = [State::Pending, State::Ready, State::Degraded, State::Invalid].map(State::as_str);
    let conditions = ConditionType::ALL.map(ConditionType::as_str);
    let reasons = ConditionReason::ALL.iter().map(|reason| reason.as_str());
    let missing: Vec<_> =
        states.into_iter().chain(conditions).chain(reasons).filter(|name| !has(&page, name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Whether a name appears as code, by itself or as the last part of a path.
fn has(page: &str, name: &str) -> bool {
    [format!("`{name}`"), format!(".{name}`")].iter().any(|written| page.contains(written))
}
