//! Checks a configuration against its schema, with structured-merge-diff's messages.

use serde_json::Value;

use super::schema_position::{self, SchemaPosition};
use crate::{
    api::go_format,
    schema::{ListType, ScalarType, Schema, SchemaShape},
};

/// The limit of reported errors.
const MAX_REPORTED_ERRORS: usize = 100;

/// Validates a configuration. All errors are in one message.
pub(super) fn validate(value: &Value, schema: &Schema) -> Result<(), String> {
    let mut errors = ValueErrors::default();
    errors.value(SchemaPosition::root(schema), value);
    match errors.found.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

#[derive(Default)]
struct ValueErrors {
    /// The path of the current value.
    path: String,
    found: Vec<String>,
}

impl ValueErrors {
    fn value(&mut self, place: SchemaPosition<'_>, value: &Value) {
        if place.depth >= super::MAX_PATH_ELEMENTS || self.found.len() >= MAX_REPORTED_ERRORS {
            return;
        }
        match (&place.schema.shape, value) {
            (SchemaShape::Any, _) | (SchemaShape::Scalar(_), Value::Null) => {}
            (SchemaShape::Scalar(scalar), value) => self.scalar(*scalar, value),
            (SchemaShape::Object { .. } | SchemaShape::Map { .. } | SchemaShape::List { .. }, Value::Null) => {}
            (SchemaShape::Object { .. } | SchemaShape::Map { .. }, Value::Object(members)) => {
                for (name, value) in members {
                    let member = place.member(name);
                    if !member.declared && !place.is_open() {
                        self.descend(&format!(".{name}"), |errors| errors.add("field not declared in schema"));
                    } else {
                        self.descend(&format!(".{name}"), |errors| errors.value(member.place, value));
                    }
                }
            }
            (SchemaShape::Object { .. } | SchemaShape::Map { .. }, other) => {
                self.add(format!("expected map, got {}", format_pointer(other)))
            }
            (SchemaShape::List { items, list }, Value::Array(values)) => self.items(place, values, items, list),
            (SchemaShape::List { .. }, other) => self.add(format!("expected list, got {}", format_pointer(other))),
        }
    }

    fn items(&mut self, place: SchemaPosition<'_>, values: &[Value], items: &Schema, list: &ListType) {
        let mut seen = std::collections::BTreeSet::new();
        for (at, value) in values.iter().enumerate() {
            if *list == ListType::Atomic {
                self.descend(&format!("[{at}]"), |errors| errors.value(place.item(items), value));
                continue;
            }
            let element = match schema_position::item_element(value, items, list) {
                Ok(element) => element,
                Err(error) => return self.add(format!("element {at}: {error}")),
            };
            let shown = element.to_string();
            if !seen.insert(element) {
                self.add(format!("duplicate entries for key {shown}"));
            }
            self.descend(&shown, |errors| errors.value(place.item(items), value));
        }
    }

    fn scalar(&mut self, scalar: ScalarType, value: &Value) {
        let is_scalar = !value.is_object() && !value.is_array();
        match scalar {
            ScalarType::String | ScalarType::Bytes if !value.is_string() => {
                self.add(format!(
                    "expected string, got &value.valueUnstructured{{Value:{}}}",
                    go_format::syntax(value)
                ));
            }
            ScalarType::Boolean if !value.is_boolean() => {
                self.add(format!("expected boolean, got {}", format_pointer(value)))
            }
            ScalarType::Int32 | ScalarType::Int64 | ScalarType::Integer | ScalarType::Double if !value.is_number() => {
                self.add(format!("expected numeric (int or float), got {}", go_format::type_name(value)));
            }
            _ if !is_scalar => self.add(format!("expected any scalar, got {}", format_pointer(value))),
            _ => {}
        }
    }

    fn descend(&mut self, step: &str, look: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(step);
        look(self);
        self.path.truncate(length);
    }

    fn add(&mut self, message: impl AsRef<str>) {
        let message = message.as_ref();
        self.found.push(if self.path.is_empty() { message.to_owned() } else { format!("{}: {message}", self.path) });
    }
}

/// A value behind a pointer, as Go's `%v` prints it.
fn format_pointer(value: &Value) -> String {
    format!("&{{{}}}", go_format::printed(value))
}
