//! Whether a configuration fits its schema, in structured-merge-diff's words.

use serde_json::Value;

use super::shape::{self, Place};
use crate::{
    api::go,
    schema::{ListType, Scalar, Schema, Shape},
};

/// More errors than this say nothing new.
const MAX_ERRORS: usize = 100;

/// What is wrong with a configuration, all of it in one text.
pub(super) fn validate(value: &Value, schema: &Schema) -> Result<(), String> {
    let mut errors = Errors::default();
    errors.value(Place::root(schema), value);
    match errors.found.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

#[derive(Default)]
struct Errors {
    /// The path of the value that is looked at.
    path: String,
    found: Vec<String>,
}

impl Errors {
    fn value(&mut self, place: Place<'_>, value: &Value) {
        if place.depth >= super::MAX_PATH || self.found.len() >= MAX_ERRORS {
            return;
        }
        match (&place.schema.shape, value) {
            (Shape::Any, _) | (Shape::Scalar(_), Value::Null) => {}
            (Shape::Scalar(scalar), value) => self.scalar(*scalar, value),
            (Shape::Object { .. } | Shape::Map { .. } | Shape::List { .. }, Value::Null) => {}
            (Shape::Object { .. } | Shape::Map { .. }, Value::Object(members)) => {
                for (name, value) in members {
                    let member = place.member(name);
                    if !member.declared && !place.is_open() {
                        self.at(&format!(".{name}"), |errors| errors.add("field not declared in schema"));
                    } else {
                        self.at(&format!(".{name}"), |errors| errors.value(member.place, value));
                    }
                }
            }
            (Shape::Object { .. } | Shape::Map { .. }, other) => {
                self.add(format!("expected map, got {}", plain(other)))
            }
            (Shape::List { items, list }, Value::Array(values)) => self.items(place, values, items, list),
            (Shape::List { .. }, other) => self.add(format!("expected list, got {}", plain(other))),
        }
    }

    fn items(&mut self, place: Place<'_>, values: &[Value], items: &Schema, list: &ListType) {
        let mut seen = std::collections::BTreeSet::new();
        for (at, value) in values.iter().enumerate() {
            if *list == ListType::Atomic {
                self.at(&format!("[{at}]"), |errors| errors.value(place.item(items), value));
                continue;
            }
            let element = match shape::element(value, items, list) {
                Ok(element) => element,
                Err(error) => return self.add(format!("element {at}: {error}")),
            };
            let shown = element.to_string();
            if !seen.insert(element) {
                self.add(format!("duplicate entries for key {shown}"));
            }
            self.at(&shown, |errors| errors.value(place.item(items), value));
        }
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value) {
        let is_scalar = !value.is_object() && !value.is_array();
        match scalar {
            Scalar::String | Scalar::Bytes if !value.is_string() => {
                self.add(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go::syntax(value)));
            }
            Scalar::Boolean if !value.is_boolean() => self.add(format!("expected boolean, got {}", plain(value))),
            Scalar::Int32 | Scalar::Int64 | Scalar::Integer | Scalar::Double if !value.is_number() => {
                self.add(format!("expected numeric (int or float), got {}", go::type_name(value)));
            }
            _ if !is_scalar => self.add(format!("expected any scalar, got {}", plain(value))),
            _ => {}
        }
    }

    fn at(&mut self, step: &str, look: impl FnOnce(&mut Self)) {
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

/// A value behind a pointer, as `%v` prints it.
fn plain(value: &Value) -> String {
    format!("&{{{}}}", go::printed(value))
}
