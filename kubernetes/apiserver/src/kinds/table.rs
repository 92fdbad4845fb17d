//! The Tables of `kubectl get`: the columns of a resource, and the cells of an object.
//!
//! Built-in kinds have kube-apiserver's columns; kinds without any have their name and creation time. Custom
//! resources have the columns of their CRD, by JSONPath. Objects are in their stored shape or in the served
//! one: both read the same.

mod age;
mod apps;
mod cluster;
mod column_descriptions;
mod core;
mod custom;
mod named_groups;
mod pod;

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Value, json};

pub use self::age::format_duration;
use super::json_object::{list_at, number_at, text_at, value_at};
use crate::{api::meta::MetaAccessor, registry::ServedResource};

/// A column of a built-in kind.
struct PrinterColumn {
    name: &'static str,
    kind: &'static str,
    words: &'static str,
    /// Shown only with `-o wide`.
    wide: bool,
    cell: fn(&PrinterRow<'_>) -> Value,
}

/// An object, and the current time.
struct PrinterRow<'a> {
    object: &'a Value,
    now: Timestamp,
}

/// The descriptions of built-in columns, by kind and name, from the API's own documentation.
static DESCRIPTIONS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("table/descriptions.json")).unwrap_or_default());

/// The column definitions of a resource's Table. `kind` is that of its objects, which for a subresource may
/// differ from the resource's.
pub fn columns(resource: &ServedResource, kind: &str) -> Vec<Value> {
    match &resource.custom {
        Some(custom) => custom::columns(custom),
        None => built_in(resource, kind).iter().map(|column| column.definition(kind)).collect(),
    }
}

/// The cells of an object's row, one for each column.
pub fn cells(resource: &ServedResource, object: &Value, now: Timestamp) -> Vec<Value> {
    let row = PrinterRow { object, now };
    match &resource.custom {
        Some(custom) => custom::cells(custom, &row),
        None => {
            let kind = object.get("kind").and_then(Value::as_str).unwrap_or(&resource.kind);
            built_in(resource, kind).iter().map(|column| (column.cell)(&row)).collect()
        }
    }
}

fn built_in(resource: &ServedResource, kind: &str) -> &'static [PrinterColumn] {
    if kind == "Scale" {
        return cluster::SCALE;
    }
    let group = &*resource.gv.group;
    let kind = &*resource.kind;
    let found = match group {
        "" => core::columns(kind),
        "apps" | "batch" => apps::columns(kind),
        _ => named_groups::columns(group, kind),
    };
    found.or_else(|| cluster::columns(group, kind)).unwrap_or(DEFAULT_COLUMNS)
}

/// The columns of kinds without columns of their own.
const DEFAULT_COLUMNS: &[PrinterColumn] = &[NAME, CREATED];

const NAME: PrinterColumn = text("Name", column_descriptions::NAME, |row| row.object.name().into());
const AGE: PrinterColumn = text("Age", column_descriptions::CREATED, |row| row.age());
const CREATED: PrinterColumn =
    PrinterColumn { kind: "date", ..text("Created At", column_descriptions::CREATED, |row| row.meta_time()) };

const fn text(name: &'static str, words: &'static str, cell: fn(&PrinterRow<'_>) -> Value) -> PrinterColumn {
    PrinterColumn { name, kind: "string", words, wide: false, cell }
}

const fn integer(name: &'static str, words: &'static str, cell: fn(&PrinterRow<'_>) -> Value) -> PrinterColumn {
    PrinterColumn { kind: "integer", ..text(name, words, cell) }
}

const fn boolean(name: &'static str, words: &'static str, cell: fn(&PrinterRow<'_>) -> Value) -> PrinterColumn {
    PrinterColumn { kind: "boolean", ..text(name, words, cell) }
}

const fn wide(name: &'static str, words: &'static str, cell: fn(&PrinterRow<'_>) -> Value) -> PrinterColumn {
    PrinterColumn { wide: true, ..text(name, words, cell) }
}

impl PrinterColumn {
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

impl PrinterRow<'_> {
    /// The string at a path; empty if absent.
    fn text(&self, path: &[&str]) -> &str {
        text_at(self.object, path)
    }

    /// The number at a path; zero if absent.
    fn number(&self, path: &[&str]) -> i64 {
        number_at(self.object, path)
    }

    /// The items of the list at a path.
    fn list(&self, path: &[&str]) -> &[Value] {
        list_at(self.object, path)
    }

    /// The string at a path, or else `nothing`.
    fn text_or(&self, path: &[&str], nothing: &str) -> Value {
        match self.text(path) {
            "" => nothing.into(),
            text => text.into(),
        }
    }

    /// Whether the value at a path is `true`.
    fn is_true(&self, path: &[&str]) -> bool {
        value_at(self.object, path).and_then(Value::as_bool).unwrap_or(false)
    }

    /// The age of the object.
    fn age(&self) -> Value {
        self.since(self.object.meta_str("creationTimestamp")).into()
    }

    fn meta_time(&self) -> Value {
        self.object.meta("creationTimestamp").cloned().unwrap_or_default()
    }

    /// The time since `time`, in short form.
    fn since(&self, time: &str) -> String {
        age::age_since(time, self.now)
    }
}
