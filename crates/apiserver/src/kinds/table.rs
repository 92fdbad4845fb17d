//! What `kubectl get` shows: the columns of a resource, and the cells of an object.
//!
//! Built-in kinds have kube-apiserver's columns; kinds without any have their name and when they were made. Custom resources have
//! what their definition says, by JSONPath. Objects are in their stored shape, or in the resource's own: both read the same.

mod age;
mod apps;
mod core;
mod custom;
mod more;
mod pod;
mod words;

use jiff::Timestamp;
use serde_json::{Value, json};

pub use self::age::human;
use super::object::{at, list_at, number_at, text_at};
use crate::{api::meta::Meta, registry::Resource};

/// A column of a built-in kind.
struct Column {
    name: &'static str,
    kind: &'static str,
    words: &'static str,
    /// Shown only with `-o wide`.
    wide: bool,
    cell: fn(&Row<'_>) -> Value,
}

/// An object, and when it is looked at.
struct Row<'a> {
    object: &'a Value,
    now: Timestamp,
}

/// The column definitions of a resource's Table.
pub fn columns(resource: &Resource) -> Vec<Value> {
    match &resource.custom {
        Some(custom) => custom::columns(custom),
        None => built_in(resource).iter().map(Column::definition).collect(),
    }
}

/// The cells of an object's row, one for each column.
pub fn cells(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    let row = Row { object, now };
    match &resource.custom {
        Some(custom) => custom::cells(custom, &row),
        None => built_in(resource).iter().map(|column| (column.cell)(&row)).collect(),
    }
}

fn built_in(resource: &Resource) -> &'static [Column] {
    let (group, kind) = (&*resource.gv.group, &*resource.kind);
    let found = match group {
        "" => core::columns(kind),
        "apps" | "batch" => apps::columns(kind),
        _ => more::columns(group, kind),
    };
    found.unwrap_or(PLAIN)
}

/// Kinds that have no columns of their own.
const PLAIN: &[Column] = &[NAME, CREATED];

const NAME: Column = text("Name", words::NAME, |row| row.object.name().into());
const AGE: Column = text("Age", words::CREATED, |row| row.age());
const CREATED: Column = Column { kind: "date", ..text("Created At", words::CREATED, |row| row.meta_time()) };

const fn text(name: &'static str, words: &'static str, cell: fn(&Row<'_>) -> Value) -> Column {
    Column { name, kind: "string", words, wide: false, cell }
}

const fn integer(name: &'static str, words: &'static str, cell: fn(&Row<'_>) -> Value) -> Column {
    Column { kind: "integer", ..text(name, words, cell) }
}

const fn boolean(name: &'static str, words: &'static str, cell: fn(&Row<'_>) -> Value) -> Column {
    Column { kind: "boolean", ..text(name, words, cell) }
}

const fn wide(name: &'static str, words: &'static str, cell: fn(&Row<'_>) -> Value) -> Column {
    Column { wide: true, ..text(name, words, cell) }
}

impl Column {
    fn definition(&self) -> Value {
        let format = if self.name == "Name" { "name" } else { "" };
        definition(self.name, self.kind, format, self.words, i64::from(self.wide))
    }
}

fn definition(name: &str, kind: &str, format: &str, words: &str, priority: i64) -> Value {
    json!({"name": name, "type": kind, "format": format, "description": words, "priority": priority})
}

impl Row<'_> {
    /// The text at a path; empty if there is none.
    fn text(&self, path: &[&str]) -> &str {
        text_at(self.object, path)
    }

    /// The number at a path; zero if there is none.
    fn number(&self, path: &[&str]) -> i64 {
        number_at(self.object, path)
    }

    /// The items of the list at a path.
    fn list(&self, path: &[&str]) -> &[Value] {
        list_at(self.object, path)
    }

    /// The text at a path, or these words.
    fn or(&self, path: &[&str], nothing: &str) -> Value {
        match self.text(path) {
            "" => nothing.into(),
            text => text.into(),
        }
    }

    /// Whether the value at a path is `true`.
    fn is_true(&self, path: &[&str]) -> bool {
        at(self.object, path).and_then(Value::as_bool).unwrap_or(false)
    }

    /// How long ago the object was made.
    fn age(&self) -> Value {
        self.since(self.object.meta_str("creationTimestamp")).into()
    }

    fn meta_time(&self) -> Value {
        self.object.meta("creationTimestamp").cloned().unwrap_or_default()
    }

    /// How long ago a time was, in short.
    fn since(&self, time: &str) -> String {
        age::since(time, self.now)
    }
}
