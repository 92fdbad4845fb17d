//! The `fieldsV1` format of field sets: `f:` a field, `k:` keys of an item, `v:` a value of a set, `i:` an
//! index, `.` the field itself.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    MAX_PATH_ELEMENTS,
    element::PathElement,
    fieldset::{FieldSet, FieldSetNode},
};

impl FieldSet {
    /// Encodes the set as `fieldsV1`.
    pub fn to_value(&self) -> Value {
        self.iter().map(|(element, node)| (name(element), node_value(node))).collect()
    }

    /// Decodes `fieldsV1`. Elements of an unknown type are ignored.
    pub fn from_value(value: &Value) -> Result<Self, String> {
        let Value::Object(members) = value else { return Err("fieldsV1 is no object".to_owned()) };
        Ok(read(members, 0)?.children)
    }
}

fn node_value(node: &FieldSetNode) -> Value {
    let mut members = Map::new();
    if node.member && !node.children.is_empty() {
        members.insert(".".to_owned(), Value::Object(Map::new()));
    }
    members.extend(node.children.iter().map(|(element, node)| (name(element), node_value(node))));
    Value::Object(members)
}

/// The value at one key. An empty object means the field itself.
fn read(members: &Map<String, Value>, depth: usize) -> Result<FieldSetNode, String> {
    if depth > MAX_PATH_ELEMENTS {
        return Err("fieldsV1 is too deep".to_owned());
    }
    let mut children = Vec::with_capacity(members.len());
    for (key, value) in members.iter().filter(|(key, _)| *key != ".") {
        let Some(element) = element(key)? else { continue };
        let below = match value {
            Value::Object(members) => read(members, depth + 1)?,
            _ => return Err(format!("{key} is no object")),
        };
        children.push((element, below));
    }
    let member = children.is_empty() || members.contains_key(".");
    Ok(FieldSetNode { member, children: FieldSet::from_entries(children) })
}

fn element(key: &str) -> Result<Option<PathElement>, String> {
    let (sort, text) = match key.split_at_checked(1) {
        Some((sort, rest)) => (sort, rest.strip_prefix(':').ok_or_else(|| format!("missing colon: {key}"))?),
        None => return Err("key must be 2 characters long:".to_owned()),
    };
    let wrong = |error: serde_json::Error| format!("{key}: {error}");
    Ok(Some(match sort {
        "f" => PathElement::field(text),
        "v" => PathElement::Value(serde_json::from_str(text).map_err(wrong)?),
        "i" => PathElement::Index(text.parse().map_err(|error| format!("{key}: {error}"))?),
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(text).map_err(wrong)?;
            PathElement::Key(keys.into_iter().map(|(name, value)| (Arc::from(name), value)).collect())
        }
        _ => return Ok(None),
    }))
}

fn name(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => format!("f:{name}"),
        PathElement::Value(value) => format!("v:{}", html_safe(value.to_string())),
        PathElement::Index(place) => format!("i:{place}"),
        PathElement::Key(keys) => {
            let keys: Vec<String> =
                keys.iter().map(|(name, value)| format!("{}:{value}", Value::from(&**name))).collect();
            format!("k:{{{}}}", html_safe(keys.join(",")))
        }
    }
}

/// Go's JSON encoder escapes these characters for use in HTML.
fn html_safe(json: String) -> String {
    if !json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return json;
    }
    let mut safe = String::with_capacity(json.len() + 16);
    for char in json.chars() {
        match char {
            '<' => safe.push_str("\\u003c"),
            '>' => safe.push_str("\\u003e"),
            '&' => safe.push_str("\\u0026"),
            '\u{2028}' => safe.push_str("\\u2028"),
            '\u{2029}' => safe.push_str("\\u2029"),
            other => safe.push(other),
        }
    }
    safe
}
