//! Values of attributes, and regular expressions.

use kubewake_otlp::Value;

use super::{cursor::Cursor, report::DecodeReport, scalar};
use crate::{RegexPattern, yaml};

/// A value of any type, by YAML's rules as in the Collector: `8080` is a number, `"8080"` is text.
pub(crate) fn value(at: &Cursor<'_>, report: &DecodeReport) -> Option<Value> {
    Some(match &at.node.value {
        // A reference that expanded to nothing.
        yaml::NodeValue::Null => Value::String(String::new()),
        yaml::NodeValue::Bad => return None,
        yaml::NodeValue::Bool(value) => Value::Bool(*value),
        yaml::NodeValue::Int(value) => Value::Int(*value),
        yaml::NodeValue::Float(value) => Value::Double(*value),
        yaml::NodeValue::String(text) => Value::String(text.clone()),
        yaml::NodeValue::Seq(_) => Value::Array(at.items()?.filter_map(|item| value(&item, report)).collect()),
        yaml::NodeValue::Map(entries) => {
            report.mark_keys_public(entries);
            let pairs =
                entries.iter().filter_map(|entry| Some((entry.key.text.clone(), value(&at.entry(entry), report)?)));
            Value::KeyValueList(pairs.collect())
        }
    })
}

pub(crate) fn pattern(at: &Cursor<'_>, report: &DecodeReport) -> Option<RegexPattern> {
    compile(at, report, &scalar::text(at, report)?)
}

/// Compiles a regular expression that was read before.
pub(crate) fn compile(at: &Cursor<'_>, report: &DecodeReport, text: &str) -> Option<RegexPattern> {
    match RegexPattern::new(text) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let help = "use RE2 syntax, as in Go, and put the expression in single quotes";
            report.error(
                at,
                format!("{} is not a valid regular expression: {error}", at.subject(text)),
                Some(help.into()),
            );
            None
        }
    }
}
