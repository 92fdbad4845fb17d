//! What `kubectl get` shows: the columns of a resource, and the cells of an object.
//!
//! Built-in kinds have kube-apiserver's columns; kinds without any have their name and when they were made. Custom resources have
//! what their definition says, by JSONPath. Objects are in their stored shape, or in the resource's own: both read the same.

mod age;
mod apps;
mod cluster;
mod core;
mod custom;
mod more;
mod pod;
mod words;

use std::sync::LazyLock;

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

/// What columns of built-in kinds say of themselves, by kind and name, as the API's own documentation has it.
static DESCRIPTIONS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("table/descriptions.json")).unwrap_or_default());

/// The column definitions of a resource's Table. `kind` is that of its objects: of a part, another one than the resource's.
pub fn columns(resource: &Resource, kind: &str) -> Vec<Value> {
    match &resource.custom {
        Some(custom) => custom::columns(custom),
        None => built_in(resource, kind).iter().map(|column| column.definition(kind)).collect(),
    }
}

/// The cells of an object's row, one for each column.
pub fn cells(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    let row = Row { object, now };
    match &resource.custom {
        Some(custom) => custom::cells(custom, &row),
        None => {
            let kind = object.get("kind").and_then(Value::as_str).unwrap_or(&resource.kind);
            built_in(resource, kind).iter().map(|column| (column.cell)(&row)).collect()
        }
    }
}

fn built_in(resource: &Resource, kind: &str) -> &'static [Column] {
    if kind == "Scale" {
        return cluster::SCALE;
    }
    let (group, kind) = (&*resource.gv.group, &*resource.kind);
    let found = match group {
        "" => core::columns(kind),
        "apps" | "batch" => apps::columns(kind),
        _ => more::columns(group, kind),
    };
    found.or_else(|| cluster::columns(group, kind)).unwrap_or(PLAIN)
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
    fn definition(&self, kind: &str) -> Value {
        let format = match (kind, self.name) {
            ("Scale", _) => "",
            (_, "Name") | ("VolumeAttachment", "Attacher") => "name",
            _ => "",
        };
        let words = DESCRIPTIONS.get(kind).and_then(|kind| kind.get(self.name)).and_then(Value::as_str);
        definition(self.name, self.kind, format, words.unwrap_or(self.words), i64::from(self.wide))
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
