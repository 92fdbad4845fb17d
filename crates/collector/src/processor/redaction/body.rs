//! Redaction of log record bodies.

use std::sync::Arc;

use kubewake_otlp::{
    EditList, MessageEdit, Value,
    view::{AnyValue, KeyValue, lossy},
};

use super::{RedactionRules, key_decisions::KeyDecision, summary::RedactionReport};

/// Values nested deeper than this are masked as a whole. A stranger chooses the depth, and each level takes
/// stack.
const MAX_DEPTH: usize = 64;

/// Limit of a key's length in a reported path. Paths repeat the keys around a value, so that a stranger could
/// make a little data very long.
const MAX_PATH_KEY_CHARS: usize = 256;

/// Redacts a body.
pub(super) fn redact_body(rules: &RedactionRules, body: AnyValue<'_>, edits: &mut EditList) {
    let mut walk = BodyRedactor { rules, report: rules.new_report(), path: String::new() };
    let new = match body {
        AnyValue::KeyValueList(_) | AnyValue::Array(_) => walk.redact_value(body, MAX_DEPTH),
        body => {
            let text = body.to_text();
            let masked = if rules.allows_value(&text) { None } else { rules.mask_blocked(&text) };
            masked.inspect(|_| walk.report.masked(b"body"))
        }
    };
    if let Some(new) = new {
        edits.push(MessageEdit::body(new));
    }
    if !walk.report.is_empty_or_silent() {
        edits.push(MessageEdit::apply_change(Arc::new(walk.report)));
    }
}

struct BodyRedactor<'r> {
    rules: &'r RedactionRules,
    report: RedactionReport,
    /// The keys that lead to the current value.
    path: String,
}

impl BodyRedactor<'_> {
    /// The redacted value; `None` if it is unchanged.
    fn redact_value(&mut self, value: AnyValue<'_>, depth: usize) -> Option<Value> {
        match value {
            AnyValue::KeyValueList(_) | AnyValue::Array(_) if depth == 0 => {
                self.report.masked(self.path.as_bytes());
                Some(self.rules.mask.mask_whole(b""))
            }
            AnyValue::KeyValueList(pairs) => {
                let mut changed = false;
                let pairs: Vec<(String, Value)> =
                    pairs.filter_map(|pair| self.redact_pair(pair, depth, &mut changed)).collect();
                changed.then_some(Value::KeyValueList(pairs))
            }
            AnyValue::Array(values) => {
                let mut changed = false;
                let one = |(at, content): (usize, &[u8])| {
                    let new = self
                        .with_path_key(&format!("[{at}]"), |walk| walk.redact_value(AnyValue::new(content), depth - 1));
                    changed |= new.is_some();
                    new.unwrap_or_else(|| Value::Encoded(content.to_vec().into()))
                };
                let values = values.enumerate().map(one).collect();
                changed.then_some(Value::Array(values))
            }
            value => {
                let text = value.to_text();
                if self.rules.allows_value(&text) {
                    self.report.allowed(self.path.as_bytes());
                    return None;
                }
                self.rules.mask_blocked(&text).inspect(|_| self.report.masked(self.path.as_bytes()))
            }
        }
    }

    /// The redacted entry of a map; `None` if it is removed.
    fn redact_pair(&mut self, pair: KeyValue<'_>, depth: usize, changed: &mut bool) -> Option<(String, Value)> {
        let key = lossy(pair.key()).into_owned();
        let new = self.with_path_key(&key, |walk| {
            let BodyRedactor { rules, report: found, path } = walk;
            match rules.decide_key(pair.key()) {
                KeyDecision::Ignored => found.ignored(),
                KeyDecision::Removed => {
                    found.redacted(path.as_bytes());
                    return Err(());
                }
                KeyDecision::Masked => {
                    found.masked(path.as_bytes());
                    return Ok(Some(rules.mask.mask_whole(pair.value().as_text().unwrap_or_default())));
                }
                KeyDecision::ByValue => return Ok(walk.redact_value(pair.value(), depth - 1)),
            }
            Ok(None)
        });
        *changed |= !matches!(new, Ok(None));
        let unchanged = || Value::Encoded(pair.raw_value().into_owned().into());
        new.ok().map(|new| (key, new.unwrap_or_else(unchanged)))
    }

    /// Runs `act` with `key` appended to the path.
    fn with_path_key<T>(&mut self, key: &str, act: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.extend(key.chars().take(MAX_PATH_KEY_CHARS));
        let result = act(self);
        self.path.truncate(length);
        result
    }
}
