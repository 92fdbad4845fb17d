//! The reference implementation of `redaction`, on decoded data.

use kubewake_config::{
    RegexPattern,
    model::{RedactionProcessor, SummaryLevel, TextMatcher},
};
use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value::Value as Any},
    logs::v1::LogRecord,
    metrics::v1::Metric,
    trace::v1::Span,
};

use crate::{
    model::Decoded,
    plain::{Plain, any_of, inner, set_int, set_text, string, text_of},
    rules::Picker,
};

/// Settings that concern the contents of the requests.
pub(crate) fn settings(picker: &mut Picker) -> RedactionProcessor {
    let keys = |picker: &mut Picker| TextMatcher::strict((0..picker.below(4)).map(|_| picker.key()).collect());
    let patterns = |picker: &mut Picker| (0..picker.below(3)).map(|_| picker.pattern()).collect::<Vec<RegexPattern>>();
    RedactionProcessor {
        allow_all_keys: picker.flip(),
        allowed_keys: keys(picker),
        ignored_keys: keys(picker),
        ignored_key_patterns: if picker.flip() { Vec::new() } else { patterns(picker) },
        blocked_key_patterns: if picker.flip() { Vec::new() } else { patterns(picker) },
        blocked_values: patterns(picker),
        allowed_values: if picker.flip() { Vec::new() } else { patterns(picker) },
        redact_all_types: picker.flip(),
        hash_function: None,
        summary: [SummaryLevel::Silent, SummaryLevel::Info, SummaryLevel::Debug][picker.below(3)],
    }
}

/// The parts of a record besides its attributes.
pub(crate) trait Redacted: Plain {
    fn redact_rest(&mut self, _: &RedactionProcessor) {}

    fn body(&mut self) -> Option<&mut AnyValue> {
        None
    }
}

impl Redacted for Span {
    fn redact_rest(&mut self, rules: &RedactionProcessor) {
        self.events.iter_mut().for_each(|event| redact(rules, &mut event.attributes));
    }
}

impl Redacted for Metric {}

impl Redacted for LogRecord {
    fn body(&mut self) -> Option<&mut AnyValue> {
        self.body.as_mut()
    }

    fn redact_rest(&mut self, rules: &RedactionProcessor) {
        let mut found = Found::default();
        match inner(self.body.as_ref()) {
            Some(Any::ArrayValue(_) | Any::KvlistValue(_)) => {
                redact_value(rules, "", self.body.as_mut().unwrap(), &mut found);
            }
            _ => {
                let text = text_of(self.body.as_ref());
                let masked = mask(rules, &text);
                if !matches_any(&rules.allowed_values, &text) && masked != text {
                    found.masked.push("body".into());
                    self.body = Some(string(masked));
                }
            }
        }
        found.tell(rules, &mut self.attributes, "redaction.body.");
    }
}

#[derive(Default)]
struct Found {
    redacted: Vec<String>,
    masked: Vec<String>,
    allowed: Vec<String>,
    ignored: Vec<String>,
}

impl Found {
    fn tell(self, rules: &RedactionProcessor, attributes: &mut Vec<KeyValue>, prefix: &str) {
        let all = [
            ("redacted", self.redacted),
            ("masked", self.masked),
            ("allowed", self.allowed),
            ("ignored", self.ignored),
        ];
        for (name, mut keys) in all.into_iter().filter(|(_, keys)| !keys.is_empty()) {
            keys.sort();
            if rules.summary == SummaryLevel::Debug && name != "ignored" {
                set_text(attributes, &format!("{prefix}{name}.keys"), keys.join(","));
            }
            if rules.summary != SummaryLevel::Silent {
                set_int(attributes, &format!("{prefix}{name}.count"), keys.len() as i64);
            }
        }
    }
}

fn matches_any(patterns: &[RegexPattern], text: &str) -> bool {
    any_of(&Some(TextMatcher::Regexp(patterns.to_vec())), text)
}

fn ignores(rules: &RedactionProcessor, key: &str) -> bool {
    any_of(&Some(rules.ignored_keys.clone()), key) || matches_any(&rules.ignored_key_patterns, key)
}

fn removes(rules: &RedactionProcessor, key: &str) -> bool {
    !rules.allow_all_keys && !any_of(&Some(rules.allowed_keys.clone()), key)
}

fn mask(rules: &RedactionProcessor, text: &str) -> String {
    rules.blocked_values.iter().fold(text.to_owned(), |text, pattern| {
        let regex = regex::Regex::new(&crate::plain::escaped(pattern.as_str())).unwrap();
        regex.replace_all(&text, "****").into_owned()
    })
}

pub(crate) fn redact(rules: &RedactionProcessor, attributes: &mut Vec<KeyValue>) {
    let mut found = Found::default();
    attributes.retain_mut(|pair| {
        if ignores(rules, &pair.key) {
            found.ignored.push(pair.key.clone());
            return true;
        }
        if removes(rules, &pair.key) {
            found.redacted.push(pair.key.clone());
            return false;
        }
        let text = match inner(pair.value.as_ref()) {
            Some(Any::StringValue(text)) => text.clone(),
            _ if rules.redact_all_types => text_of(pair.value.as_ref()),
            _ => String::new(),
        };
        let masked = mask(rules, &text);
        if matches_any(&rules.allowed_values, &text) {
            found.allowed.push(pair.key.clone());
        } else if matches_any(&rules.blocked_key_patterns, &pair.key) {
            found.masked.push(pair.key.clone());
            pair.value = Some(string("****".into()));
        } else if masked != text {
            found.masked.push(pair.key.clone());
            pair.value = Some(string(masked));
        }
        true
    });
    found.tell(rules, attributes, "redaction.");
}

fn redact_value(rules: &RedactionProcessor, path: &str, value: &mut AnyValue, found: &mut Found) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value.value.as_mut() {
        Some(Any::KvlistValue(list)) => list.values.retain_mut(|pair| {
            let path = below(&pair.key);
            if ignores(rules, &pair.key) {
                found.ignored.push(path);
            } else if removes(rules, &pair.key) {
                found.redacted.push(path);
                return false;
            } else if matches_any(&rules.blocked_key_patterns, &pair.key) {
                found.masked.push(path);
                pair.value = Some(string("****".into()));
            } else {
                redact_value(rules, &path, pair.value.get_or_insert_default(), found);
            }
            true
        }),
        Some(Any::ArrayValue(list)) => {
            for (at, value) in list.values.iter_mut().enumerate() {
                redact_value(rules, &below(&format!("[{at}]")), value, found);
            }
        }
        _ => {
            let text = text_of(Some(value));
            let masked = mask(rules, &text);
            if matches_any(&rules.allowed_values, &text) {
                found.allowed.push(path.to_owned());
            } else if masked != text {
                found.masked.push(path.to_owned());
                *value = string(masked);
            }
        }
    }
}

/// Gives a pair without a value in a map an empty one. The two are equal, and a rewritten map contains the
/// latter.
pub(crate) fn fill(value: Option<&mut AnyValue>) {
    match value.and_then(|value| value.value.as_mut()) {
        Some(Any::KvlistValue(list)) => {
            list.values.iter_mut().for_each(|pair| fill(Some(pair.value.get_or_insert_default())));
        }
        Some(Any::ArrayValue(list)) => list.values.iter_mut().for_each(|value| fill(Some(value))),
        _ => {}
    }
}

/// A request with all rules applied.
pub(crate) fn redact_all<R: Redacted>(rules: &RedactionProcessor, request: &mut Decoded<R>) {
    for entry in &mut request.0 {
        entry.resource.iter_mut().for_each(|resource| redact(rules, &mut resource.attributes));
        for scope in &mut entry.scopes {
            scope.scope.iter_mut().for_each(|scope| redact(rules, &mut scope.attributes));
            for record in &mut scope.records {
                record.attribute_lists().into_iter().for_each(|list| redact(rules, list));
                record.redact_rest(rules);
            }
        }
    }
}
