//! The elements of field paths.

use std::{cmp::Ordering, fmt, sync::Arc};

use serde_json::Value;

#[derive(Clone, Debug)]
pub enum PathElement {
    /// A member of an object, by name.
    Field(Arc<str>),
    /// An item of a list, by its key fields, sorted by name.
    Key(Vec<(Arc<str>, Value)>),
    /// An item of a set, by value.
    Value(Value),
    /// An item of a list, by index.
    Index(i64),
}

/// A path as messages show it: `.spec.containers[name="main"].image`
#[derive(Clone, Copy, Debug)]
pub struct FieldPath<'a>(pub &'a [&'a PathElement]);

impl PathElement {
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (PathElement::Field(this), PathElement::Field(other)) => this.cmp(other),
            (PathElement::Key(this), PathElement::Key(other)) => compare_keys(this, other),
            (PathElement::Value(this), PathElement::Value(other)) => compare_values(this, other),
            (PathElement::Index(this), PathElement::Index(other)) => this.cmp(other),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

fn compare_keys(this: &[(Arc<str>, Value)], other: &[(Arc<str>, Value)]) -> Ordering {
    for ((name, value), (other_name, other_value)) in this.iter().zip(other) {
        let order = name.cmp(other_name).then_with(|| compare_values(value, other_value));
        if order.is_ne() {
            return order;
        }
    }
    this.len().cmp(&other.len())
}

/// Numbers first, by value, then strings, then the rest.
fn compare_values(this: &Value, other: &Value) -> Ordering {
    match (this, other) {
        (Value::String(this), Value::String(other)) => this.cmp(other),
        (Value::Number(this), Value::Number(other)) => match (this.as_i64(), other.as_i64()) {
            (Some(this), Some(other)) => this.cmp(&other),
            _ => this.as_f64().unwrap_or_default().total_cmp(&other.as_f64().unwrap_or_default()),
        },
        (Value::Bool(this), Value::Bool(other)) => this.cmp(other),
        _ => rank(this).cmp(&rank(other)).then_with(|| this.to_string().cmp(&other.to_string())),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(keys) => {
                f.write_str("[")?;
                for (place, (name, value)) in keys.iter().enumerate() {
                    let comma = if place == 0 { "" } else { "," };
                    write!(f, "{comma}{name}={value}")?;
                }
                f.write_str("]")
            }
            PathElement::Value(value) => write!(f, "[={value}]"),
            PathElement::Index(place) => write!(f, "[{place}]"),
        }
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}
