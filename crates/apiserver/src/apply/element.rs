//! One step of the path to a field.

use std::{cmp::Ordering, fmt, sync::Arc};

use serde_json::Value;

/// One step of a path.
#[derive(Clone, Debug)]
pub enum Element {
    /// A member of an object, by its name.
    Field(Arc<str>),
    /// An item of a list, by the fields that are its keys, in the order of their names.
    Key(Vec<(Arc<str>, Value)>),
    /// An item of a set, by its value.
    Value(Value),
    /// An item of a list, by its place.
    Index(i64),
}

/// A path as messages show it: `.spec.containers[name="main"].image`
#[derive(Clone, Copy, Debug)]
pub struct Path<'a>(pub &'a [&'a Element]);

impl Element {
    /// A member of an object.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    fn rank(&self) -> u8 {
        match self {
            Element::Field(_) => 0,
            Element::Key(_) => 1,
            Element::Value(_) => 2,
            Element::Index(_) => 3,
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Element::Field(this), Element::Field(other)) => this.cmp(other),
            (Element::Key(this), Element::Key(other)) => compare_keys(this, other),
            (Element::Value(this), Element::Value(other)) => compare_values(this, other),
            (Element::Index(this), Element::Index(other)) => this.cmp(other),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element {}

fn compare_keys(this: &[(Arc<str>, Value)], other: &[(Arc<str>, Value)]) -> Ordering {
    for ((name, value), (other_name, other_value)) in this.iter().zip(other) {
        let order = name.cmp(other_name).then_with(|| compare_values(value, other_value));
        if order.is_ne() {
            return order;
        }
    }
    this.len().cmp(&other.len())
}

/// Numbers first, by value, then texts, then the rest.
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

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Field(name) => write!(f, ".{name}"),
            Element::Key(keys) => {
                f.write_str("[")?;
                for (place, (name, value)) in keys.iter().enumerate() {
                    let comma = if place == 0 { "" } else { "," };
                    write!(f, "{comma}{name}={value}")?;
                }
                f.write_str("]")
            }
            Element::Value(value) => write!(f, "[={value}]"),
            Element::Index(place) => write!(f, "[{place}]"),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}
