//! What is wrong with a field of an object, in kube-apiserver's words.

use std::fmt;

use serde_json::Value;

/// One error of validation. Its message is what kube-apiserver would say.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// The path of the field, as in `spec.containers[0].name`.
    pub path: String,
    /// What sort of error.
    pub kind: Kind,
    /// The whole message without the path.
    pub message: String,
}

/// The reason of a cause in a Status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum Kind {
    Required,
    Invalid,
    Duplicate,
    NotSupported,
    NotFound,
    Forbidden,
    TooLong,
    TooMany,
    TypeInvalid,
    Internal,
}

/// All errors of an object.
pub type Errors = Vec<Error>;

impl Kind {
    /// As in `details.causes[].reason`.
    pub fn reason(self) -> &'static str {
        match self {
            Kind::Required => "FieldValueRequired",
            Kind::Invalid => "FieldValueInvalid",
            Kind::Duplicate => "FieldValueDuplicate",
            Kind::NotSupported => "FieldValueNotSupported",
            Kind::NotFound => "FieldValueNotFound",
            Kind::Forbidden => "FieldValueForbidden",
            Kind::TooLong => "FieldValueTooLong",
            Kind::TooMany => "FieldValueTooMany",
            Kind::TypeInvalid => "FieldValueTypeInvalid",
            Kind::Internal => "InternalError",
        }
    }
}

impl Error {
    /// A missing field.
    pub fn required(path: impl Into<String>, detail: &str) -> Self {
        Self::of(path, Kind::Required, with_detail("Required value", detail))
    }

    /// A value that is wrong in itself.
    pub fn invalid(path: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::of(path, Kind::Invalid, with_detail(&format!("Invalid value: {}", shown(value)), detail))
    }

    /// A value of the wrong type; `value` is shown as it is.
    pub fn type_invalid(path: impl Into<String>, value: &str, detail: &str) -> Self {
        Self::of(path, Kind::TypeInvalid, with_detail(&format!("Invalid value: {value}"), detail))
    }

    /// A value that is there twice.
    pub fn duplicate(path: impl Into<String>, value: &Value) -> Self {
        Self::of(path, Kind::Duplicate, format!("Duplicate value: {}", shown(value)))
    }

    /// A value that is none of the known ones.
    pub fn not_supported(path: impl Into<String>, value: &Value, known: &[&str]) -> Self {
        let known: Vec<String> = known.iter().map(|known| format!("{known:?}")).collect();
        let detail = if known.is_empty() { String::new() } else { format!("supported values: {}", known.join(", ")) };
        Self::of(path, Kind::NotSupported, with_detail(&format!("Unsupported value: {}", shown(value)), &detail))
    }

    /// A reference to what is not there.
    pub fn not_found(path: impl Into<String>, value: &Value) -> Self {
        Self::of(path, Kind::NotFound, format!("Not found: {}", shown(value)))
    }

    /// A value that may not be set.
    pub fn forbidden(path: impl Into<String>, detail: &str) -> Self {
        Self::of(path, Kind::Forbidden, with_detail("Forbidden", detail))
    }

    /// A value of more than `max` bytes.
    pub fn too_long(path: impl Into<String>, max: usize) -> Self {
        let message = format!("Too long: may not be more than {max} bytes");
        Self::of(path, Kind::TooLong, message)
    }

    /// More than `max` items.
    pub fn too_many(path: impl Into<String>, count: usize, max: usize) -> Self {
        let message = format!("Too many: {count}: must have at most {max} items");
        Self::of(path, Kind::TooMany, message)
    }

    /// An error with a message of its own.
    pub fn of(path: impl Into<String>, kind: Kind, message: impl Into<String>) -> Self {
        Self { path: path.into(), kind, message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

fn with_detail(head: &str, detail: &str) -> String {
    if detail.is_empty() { head.to_owned() } else { format!("{head}: {detail}") }
}

/// A value as messages show it: strings in quotes, everything else as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        other => html_escaped(&other.to_string()),
    }
}

/// JSON as Go's encoder writes it: `<`, `>` and `&` are escaped, which only occur inside of strings.
pub fn html_escaped(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
