//! The fields of a document, taken one by one, so that what nobody took is known.

use serde_json::{Map, Value};

use crate::api::go;

/// What is wrong with a document so far.
#[derive(Debug, Default)]
pub(super) struct Problems {
    /// What strict decoding objects to.
    pub(super) strict: Vec<String>,
    /// Everything else.
    pub(super) other: Vec<String>,
}

/// An object of the document.
pub(super) struct Fields {
    kind: &'static str,
    /// The path of the object with a dot after it, or nothing.
    prefix: String,
    map: Map<String, Value>,
}

impl Problems {
    /// All of them.
    pub(super) fn all(self) -> Vec<String> {
        let strict = match self.strict.is_empty() {
            true => None,
            false => Some(undecodable(&format!("strict decoding error: {}", self.strict.join(", ")))),
        };
        strict.into_iter().chain(self.other).collect()
    }
}

/// kube-apiserver's words around what is wrong.
pub(super) fn undecodable(why: &str) -> String {
    format!("unable to decode tracing configuration data: {why}")
}

impl Fields {
    /// The document itself.
    pub(super) fn new(kind: &'static str, map: Map<String, Value>) -> Self {
        Self { kind, prefix: String::new(), map }
    }

    /// The path of a field.
    pub(super) fn path(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// A text.
    pub(super) fn text(&mut self, key: &str, problems: &mut Problems) -> Option<String> {
        self.take(key, "string", problems, |value| match value {
            Value::String(text) => Ok(text),
            other => Err(other),
        })
    }

    /// A whole number.
    pub(super) fn number(&mut self, key: &str, problems: &mut Problems) -> Option<i64> {
        self.take(key, "int32", problems, |value| {
            value.as_i64().filter(|number| i32::try_from(*number).is_ok()).ok_or(value)
        })
    }

    /// Yes or no.
    pub(super) fn flag(&mut self, key: &str, problems: &mut Problems) -> Option<bool> {
        self.take(key, "bool", problems, |value| value.as_bool().ok_or(value))
    }

    /// Texts.
    pub(super) fn texts(&mut self, key: &str, problems: &mut Problems) -> Option<Vec<String>> {
        self.take(key, "[]string", problems, |value| {
            let texts =
                value.as_array().and_then(|all| all.iter().map(|one| one.as_str().map(str::to_owned)).collect());
            texts.ok_or(value)
        })
    }

    /// Names and their texts.
    pub(super) fn pairs(&mut self, key: &str, problems: &mut Problems) -> Option<Vec<(String, String)>> {
        self.take(key, "map[string]string", problems, |value| {
            let pair = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
            value.as_object().and_then(|map| map.iter().map(pair).collect()).ok_or(value)
        })
    }

    /// An object within.
    pub(super) fn object(&mut self, key: &str, problems: &mut Problems) -> Option<Fields> {
        let map = self.take(key, "struct", problems, |value| match value {
            Value::Object(map) => Ok(map),
            other => Err(other),
        })?;
        Some(Fields { kind: self.kind, prefix: format!("{}.", self.path(key)), map })
    }

    /// What is left is unknown.
    pub(super) fn end(self, problems: &mut Problems) {
        problems.strict.extend(self.map.keys().map(|key| format!("unknown field {:?}", self.path(key))));
    }

    fn take<T>(
        &mut self,
        key: &str,
        wanted: &str,
        problems: &mut Problems,
        read: impl FnOnce(Value) -> Result<T, Value>,
    ) -> Option<T> {
        let value = self.map.remove(key).filter(|value| !value.is_null())?;
        let refuse = |value: Value| {
            // The values themselves may be secret.
            let (kind, path, found) = (self.kind, self.path(key), go::json_kind(&value));
            let why = format!("json: cannot unmarshal {found} into Go struct field {kind}.{path} of type {wanted}");
            problems.other.push(undecodable(&why));
        };
        read(value).map_err(refuse).ok()
    }
}
