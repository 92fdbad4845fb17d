//! Encodes YAML like go-yaml: keys sorted, two blanks of indentation, lists no deeper than their key.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::{
    key_order::NaturalKey,
    resolve::{self, YamlScalar},
    scalar::{self, EmitStyle, YamlWriter},
};
use crate::api::go_format;

/// A key longer than this, or of several lines, is written with `?`.
const MAX_SIMPLE_KEY_CHARS: usize = 128;

pub fn encode(value: &Value) -> String {
    let mut emitter = YamlEmitter { out: YamlWriter::default() };
    match value {
        Value::Object(map) if !map.is_empty() => emitter.map(map, 0, true),
        Value::Array(items) if !items.is_empty() => emitter.list(items, 0, true),
        // The lines of a text are indented even at the top level: the indentation indicator needs that.
        scalar => emitter.inline(scalar, 2),
    }
    emitter.out.finish()
}

struct YamlEmitter {
    out: YamlWriter,
}

impl YamlEmitter {
    /// The entries of a map. With `here` the first one continues the current line.
    fn map(&mut self, map: &Map<String, Value>, indent: usize, mut here: bool) {
        // A tree, since go-yaml's order is not total and sorting by such an order may panic.
        let sorted: BTreeMap<NaturalKey<'_>, &Value> =
            map.iter().map(|(key, value)| (NaturalKey(key), value)).collect();
        for (NaturalKey(key), value) in sorted {
            if !here {
                self.out.line(indent);
            }
            here = false;
            if key.len() <= MAX_SIMPLE_KEY_CHARS && !key.contains('\n') {
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

    /// The value after a key's colon.
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

/// The style of a text, before its characters are examined.
fn style(text: &str) -> EmitStyle {
    if text.contains('\n') {
        EmitStyle::Literal
    } else if matches!(resolve::resolve(text), YamlScalar::String(_)) && !scalar::is_base_60(text) && text != "<<" {
        EmitStyle::Plain
    } else {
        EmitStyle::Double
    }
}

/// A number after conversion by JSON, where floats without a fraction become integers.
fn number_text(number: &Number) -> String {
    if !number.is_f64() {
        return number.to_string();
    }
    let float = number.as_f64().unwrap_or_default();
    let text = go_format::float(float);
    if text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() { text } else { go_format::float_g(float) }
}
