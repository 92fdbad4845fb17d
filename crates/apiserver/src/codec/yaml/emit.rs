//! A value as YAML, as go-yaml writes it: keys sorted, two blanks of indentation, lists no deeper than their key.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::{
    order::Natural,
    resolve::{self, Scalar},
    scalar::{self, Style, Writer},
};
use crate::api::go;

/// A key longer than this, or of several lines, is written with `?`.
const SIMPLE_KEY: usize = 128;

/// Writes a document.
pub fn encode(value: &Value) -> String {
    let mut emitter = Emitter { out: Writer::default() };
    match value {
        Value::Object(map) if !map.is_empty() => emitter.map(map, 0, true),
        Value::Array(items) if !items.is_empty() => emitter.list(items, 0, true),
        // Lines of a text are indented also where nothing is above it: a mark that says how far needs it.
        scalar => emitter.inline(scalar, 2),
    }
    emitter.out.finish()
}

struct Emitter {
    out: Writer,
}

impl Emitter {
    /// The entries of a map. `here` says that the first one goes on in the line that is begun.
    fn map(&mut self, map: &Map<String, Value>, indent: usize, mut here: bool) {
        // A tree, since the order of go-yaml is not total and sorting by such an order may panic.
        let sorted: BTreeMap<Natural<'_>, &Value> = map.iter().map(|(key, value)| (Natural(key), value)).collect();
        for (Natural(key), value) in sorted {
            if !here {
                self.out.line(indent);
            }
            here = false;
            if key.len() <= SIMPLE_KEY && !key.contains('\n') {
                self.out.scalar(key, style(key), indent, true);
                self.out.push(":");
            } else {
                self.out.push("? ");
                self.out.scalar(key, style(key), indent + 2, false);
                self.out.line(indent);
                self.out.push(":");
            }
            self.value(value, indent);
        }
    }

    /// What stands behind a key's colon.
    fn value(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(map) if !map.is_empty() => self.map(map, indent + 2, false),
            Value::Array(items) if !items.is_empty() => self.list(items, indent, false),
            scalar => {
                self.out.push(" ");
                self.inline(scalar, indent + 2);
            }
        }
    }

    fn list(&mut self, items: &[Value], indent: usize, mut here: bool) {
        for item in items {
            if !here {
                self.out.line(indent);
            }
            here = false;
            self.out.push("- ");
            match item {
                Value::Object(map) if !map.is_empty() => self.map(map, indent + 2, true),
                Value::Array(items) if !items.is_empty() => self.list(items, indent + 2, true),
                scalar => self.inline(scalar, indent + 2),
            }
        }
    }

    fn inline(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Null => self.out.push("null"),
            Value::Bool(on) => self.out.push(if *on { "true" } else { "false" }),
            Value::Number(number) => self.out.push(&number_text(number)),
            Value::String(text) => self.out.scalar(text, style(text), indent, false),
            Value::Array(_) => self.out.push("[]"),
            Value::Object(_) => self.out.push("{}"),
        }
    }
}

/// How a text is written, before its characters are looked at.
fn style(text: &str) -> Style {
    if text.contains('\n') {
        Style::Literal
    } else if matches!(resolve::resolve(text), Scalar::String(_)) && !scalar::is_base_60(text) && text != "<<" {
        Style::Plain
    } else {
        Style::Double
    }
}

/// A number on its way through JSON: floats without a fraction become whole there.
fn number_text(number: &Number) -> String {
    if !number.is_f64() {
        return number.to_string();
    }
    let float = number.as_f64().unwrap_or_default();
    let text = go::float(float);
    if text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() { text } else { go::float_g(float) }
}
