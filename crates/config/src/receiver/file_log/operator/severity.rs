//! `preset` and `mapping` of severities.

use std::collections::HashMap;

use crate::{
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    yaml::{NodeValue, YamlNode},
};

/// Which texts and numbers stand for which severity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeverityMapping {
    /// Texts in lower case, and numbers as texts.
    numbers: HashMap<String, u8>,
}

/// The names of severities, each of which has four levels.
const NAMES: [&str; 6] = ["trace", "debug", "info", "warn", "error", "fatal"];
/// Other names that `preset: default` knows.
const ALIASES: [(&str, &str); 2] = [("warning", "warn"), ("err", "error")];
/// The most numbers in one range.
const MAX_RANGE: i64 = 10_000;

impl SeverityMapping {
    /// The severity number of a text in any case; 0 if it is not known.
    pub fn find(&self, text: &str) -> u8 {
        let found = self.numbers.get(text).or_else(|| self.numbers.get(&text.to_lowercase()));
        found.copied().unwrap_or(0)
    }

    fn from_preset(preset: Preset) -> Self {
        let mut numbers = HashMap::new();
        if preset == Preset::None {
            return Self { numbers };
        }
        for number in 1..=24_u8 {
            numbers.insert(number.to_string(), number);
            let (Some(name), level) = (NAMES.get(usize::from((number - 1) / 4)), (number - 1) % 4 + 1) else {
                continue;
            };
            let with_level = |name: &str| if level == 1 { name.to_owned() } else { format!("{name}{level}") };
            numbers.insert(with_level(name), number);
            let alias = ALIASES.iter().find(|(_, known)| known == name);
            if let Some((alias, _)) = alias.filter(|_| preset == Preset::Default) {
                numbers.insert(with_level(alias), number);
            }
        }
        Self { numbers }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Preset {
    None,
    Otel,
    Default,
}

/// Reads `preset` and `mapping`.
pub(super) fn mapping(fields: &mut FieldReader<'_, '_>) -> SeverityMapping {
    let preset = match fields.text("preset").as_deref() {
        Some("none") => Preset::None,
        Some("otel" | "aliases") => Preset::Otel,
        _ => Preset::Default,
    };
    let mut mapping = SeverityMapping::from_preset(preset);
    let report = fields.report;
    let Some(at) = fields.find("mapping") else { return mapping };
    let NodeValue::Map(entries) = &at.node.value else {
        scalar::wrong_type::<()>(&at, report, "a map of severities", None);
        return mapping;
    };
    report.mark_keys_public(entries);
    let known = SeverityMapping::from_preset(Preset::Otel);
    for entry in entries {
        let number = known.find(&entry.key.text);
        let at = at.entry(entry);
        if number == 0 {
            let message = format!(
                "unknown severity `{}`: what it lists gets no severity",
                crate::problem::label(&entry.key.text)
            );
            report.warning(
                &at,
                message,
                Some(format!("known severities: {}, each also with 2, 3 or 4", NAMES.join(", "))),
            );
        }
        match at.items() {
            Some(items) => items.for_each(|item| add(&mut mapping, &item, report, number)),
            None => add(&mut mapping, &at, report, number),
        }
    }
    mapping
}

/// Adds a text, a number, a class of HTTP status codes, or a range.
fn add(mapping: &mut SeverityMapping, at: &Cursor<'_>, report: &DecodeReport, severity: u8) {
    report.mark_public(at);
    let range = match &at.node.value {
        NodeValue::Int(number) => (*number, *number),
        NodeValue::String(text) => match text.as_str() {
            "2xx" => (200, 299),
            "3xx" => (300, 399),
            "4xx" => (400, 499),
            "5xx" => (500, 599),
            _ => {
                mapping.numbers.insert(text.to_lowercase(), severity);
                return;
            }
        },
        NodeValue::Map(entries) => {
            let find = |name: &str| entries.iter().find(|entry| entry.key.text == name).map(|entry| &entry.value);
            match (find("min").and_then(integer), find("max").and_then(integer)) {
                (Some(min), Some(max)) => (min.min(max), max.max(min)),
                _ => return refuse(at, report),
            }
        }
        NodeValue::Null | NodeValue::Bad => return,
        _ => return refuse(at, report),
    };
    if range.1.checked_sub(range.0).is_none_or(|length| length >= MAX_RANGE) {
        return report.error(at, format!("a range of severities must have at most {MAX_RANGE} numbers"), None);
    }
    mapping.numbers.extend((range.0..=range.1).map(|number| (number.to_string(), severity)));
}

fn integer(node: &YamlNode) -> Option<i64> {
    match node.value {
        NodeValue::Int(value) => Some(value),
        _ => None,
    }
}

fn refuse(at: &Cursor<'_>, report: &DecodeReport) {
    let help = "write a text, a whole number, 2xx to 5xx, or {min: 1, max: 9}";
    report.error(at, "this cannot stand for a severity", Some(help.into()));
}
