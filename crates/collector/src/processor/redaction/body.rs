//! The bodies of log records.

use std::sync::Arc;

use kubewake_otlp::{
    Edit, Edits, Value,
    view::{AnyValue, KeyValue, lossy},
};

use super::{Rules, keys::Judged, summary::Found};

/// Values that lie in each other deeper than this are masked as a whole. A stranger chooses the depth, and each level takes stack.
const MAX_DEPTH: usize = 64;

/// No more of a key is shown. With the keys of all that is around it, a stranger could make a little data very long.
const MAX_NAME: usize = 256;

/// Says what to do with a body.
pub(super) fn redact(rules: &Rules, body: AnyValue<'_>, edits: &mut Edits) {
    let mut walk = Walk { rules, found: rules.found(), path: String::new() };
    let new = match body {
        AnyValue::KeyValueList(_) | AnyValue::Array(_) => walk.value(body, MAX_DEPTH),
        body => {
            let text = body.to_text();
            let masked = if rules.allows_value(&text) { None } else { rules.masked(&text) };
            masked.inspect(|_| walk.found.masked(b"body"))
        }
    };
    if let Some(new) = new {
        edits.push(Edit::body(new));
    }
    if !walk.found.is_silent() {
        edits.push(Edit::with(Arc::new(walk.found)));
    }
}

struct Walk<'r> {
    rules: &'r Rules,
    found: Found,
    /// The keys that lead to where one is.
    path: String,
}

impl Walk<'_> {
    /// The value as it may leave; `None` if it may as it is.
    fn value(&mut self, value: AnyValue<'_>, depth: usize) -> Option<Value> {
        match value {
            AnyValue::KeyValueList(_) | AnyValue::Array(_) if depth == 0 => {
                self.found.masked(self.path.as_bytes());
                Some(self.rules.mask.whole(b""))
            }
            AnyValue::KeyValueList(pairs) => {
                let mut changed = false;
                let pairs: Vec<(String, Value)> =
                    pairs.filter_map(|pair| self.pair(pair, depth, &mut changed)).collect();
                changed.then_some(Value::KeyValueList(pairs))
            }
            AnyValue::Array(values) => {
                let mut changed = false;
                let one = |(at, content): (usize, &[u8])| {
                    let new = self.within(&format!("[{at}]"), |walk| walk.value(AnyValue::new(content), depth - 1));
                    changed |= new.is_some();
                    new.unwrap_or_else(|| Value::Encoded(content.to_vec().into()))
                };
                let values = values.enumerate().map(one).collect();
                changed.then_some(Value::Array(values))
            }
            value => {
                let text = value.to_text();
                if self.rules.allows_value(&text) {
                    self.found.allowed(self.path.as_bytes());
                    return None;
                }
                self.rules.masked(&text).inspect(|_| self.found.masked(self.path.as_bytes()))
            }
        }
    }

    /// A pair of a map; `None` if it goes.
    fn pair(&mut self, pair: KeyValue<'_>, depth: usize, changed: &mut bool) -> Option<(String, Value)> {
        let key = lossy(pair.key()).into_owned();
        let new = self.within(&key, |walk| {
            let Walk { rules, found, path } = walk;
            match rules.judge(pair.key()) {
                Judged::Ignored => found.ignored(),
                Judged::Removed => {
                    found.redacted(path.as_bytes());
                    return Err(());
                }
                Judged::Masked => {
                    found.masked(path.as_bytes());
                    return Ok(Some(rules.mask.whole(pair.value().as_text().unwrap_or_default())));
                }
                Judged::ByValue => return Ok(walk.value(pair.value(), depth - 1)),
            }
            Ok(None)
        });
        *changed |= !matches!(new, Ok(None));
        let unchanged = || Value::Encoded(pair.raw_value().into_owned().into());
        new.ok().map(|new| (key, new.unwrap_or_else(unchanged)))
    }

    /// Does something one key further down.
    fn within<T>(&mut self, key: &str, act: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.extend(key.chars().take(MAX_NAME));
        let result = act(self);
        self.path.truncate(length);
        result
    }
}
