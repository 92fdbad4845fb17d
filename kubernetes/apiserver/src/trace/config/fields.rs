//! Access to the fields of a document that keeps track of unknown ones.

use serde_json::{Map, Value};

use crate::api::go_format;

/// The errors in a document so far.
#[derive(Debug, Default)]
pub(super) struct ConfigProblems {
    /// The errors of strict decoding.
    pub(super) strict: Vec<String>,
    pub(super) other: Vec<String>,
}

pub(super) struct ConfigFields {
    kind: &'static str,
    /// The path of the object with a trailing dot, or empty.
    prefix: String,
    map: Map<String, Value>,
}

impl ConfigProblems {
    pub(super) fn into_messages(self) -> Vec<String> {
        let strict = if self.strict.is_empty() {
            None
        } else {
            Some(undecodable(&format!("strict decoding error: {}", self.strict.join(", "))))
        };
        strict.into_iter().chain(self.other).collect()
    }
}

/// kube-apiserver's prefix of decode errors.
pub(super) fn undecodable(why: &str) -> String {
    format!("unable to decode tracing configuration data: {why}")
}

impl ConfigFields {
    pub(super) fn new(kind: &'static str, map: Map<String, Value>) -> Self {
        Self { kind, prefix: String::new(), map }
    }

    pub(super) fn path(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    pub(super) fn text(&mut self, key: &str, problems: &mut ConfigProblems) -> Option<String> {
        self.take(key, "string", problems, |value| match value {
            Value::String(text) => Ok(text),
            other => Err(other),
        })
    }

    pub(super) fn number(&mut self, key: &str, problems: &mut ConfigProblems) -> Option<i64> {
        self.take(key, "int32", problems, |value| {
            value.as_i64().filter(|number| i32::try_from(*number).is_ok()).ok_or(value)
        })
    }

    pub(super) fn flag(&mut self, key: &str, problems: &mut ConfigProblems) -> Option<bool> {
        self.take(key, "bool", problems, |value| value.as_bool().ok_or(value))
    }

    pub(super) fn texts(&mut self, key: &str, problems: &mut ConfigProblems) -> Option<Vec<String>> {
        self.take(key, "[]string", problems, |value| {
            let texts =
                value.as_array().and_then(|all| all.iter().map(|one| one.as_str().map(str::to_owned)).collect());
            texts.ok_or(value)
        })
    }

    pub(super) fn pairs(&mut self, key: &str, problems: &mut ConfigProblems) -> Option<Vec<(String, String)>> {
        self.take(key, "map[string]string", problems, |value| {
            let pair = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
            value.as_object().and_then(|map| map.iter().map(pair).collect()).ok_or(value)
        })
    }

    pub(super) fn object(&mut self, key: &str, problems: &mut ConfigProblems) -> Option<ConfigFields> {
        let map = self.take(key, "struct", problems, |value| match value {
            Value::Object(map) => Ok(map),
            other => Err(other),
        })?;
        Some(ConfigFields { kind: self.kind, prefix: format!("{}.", self.path(key)), map })
    }

    /// The fields that were not read are unknown.
    pub(super) fn report_unknown(self, problems: &mut ConfigProblems) {
        problems.strict.extend(self.map.keys().map(|key| format!("unknown field {:?}", self.path(key))));
    }

    fn take<T>(
        &mut self,
        key: &str,
        wanted: &str,
        problems: &mut ConfigProblems,
        read: impl FnOnce(Value) -> Result<T, Value>,
    ) -> Option<T> {
        let value = self.map.remove(key).filter(|value| !value.is_null())?;
        let refuse = |value: Value| {
            // The values themselves may be secret.
            let kind = self.kind;
            let path = self.path(key);
            let found = go_format::json_kind(&value);
            let why = format!("json: cannot unmarshal {found} into Go struct field {kind}.{path} of type {wanted}");
            problems.other.push(undecodable(&why));
        };
        read(value).map_err(refuse).ok()
    }
}
