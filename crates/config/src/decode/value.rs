//! Values of attributes, and regular expressions.

use kubewake_otlp::Value;

use super::{cursor::Cursor, report::Report, scalar};
use crate::{Pattern, yaml};

/// A value of any type. What YAML makes of it counts, as in the Collector: `8080` is a number, `"8080"` is text.
pub(crate) fn value(at: &Cursor<'_>, report: &Report) -> Option<Value> {
    Some(match &at.node.value {
        // A reference that came out empty.
        yaml::Value::Null => Value::String(String::new()),
        yaml::Value::Bad => return None,
        yaml::Value::Bool(value) => Value::Bool(*value),
        yaml::Value::Int(value) => Value::Int(*value),
        yaml::Value::Float(value) => Value::Double(*value),
        yaml::Value::String(text) => Value::String(text.clone()),
        yaml::Value::Seq(_) => Value::Array(at.items()?.filter_map(|item| value(&item, report)).collect()),
        yaml::Value::Map(entries) => {
            report.has_public_keys(entries);
            let pairs =
                entries.iter().filter_map(|entry| Some((entry.key.text.clone(), value(&at.entry(entry), report)?)));
            Value::KeyValueList(pairs.collect())
        }
    })
}

/// A regular expression.
pub(crate) fn pattern(at: &Cursor<'_>, report: &Report) -> Option<Pattern> {
    compile(at, report, &scalar::text(at, report)?)
}

/// A regular expression that was read already.
pub(crate) fn compile(at: &Cursor<'_>, report: &Report, text: &str) -> Option<Pattern> {
    match Pattern::new(text) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let help = "the syntax is that of RE2, as in Go; in YAML put it in single quotes";
            report.error(at, format!("{} is no regular expression: {error}", at.subject(text)), Some(help.into()));
            None
        }
    }
}
