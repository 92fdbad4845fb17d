//! Validation errors of fields, with kube-apiserver's messages.

use std::fmt;

use serde_json::Value;

use super::go_format;

/// One validation error, with kube-apiserver's message.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The path of the field: `spec.containers[0].name`.
    pub path: String,
    pub kind: FieldErrorType,
    /// The message without the path.
    pub message: String,
}

/// The reason of a cause in a `Status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorType {
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
pub type FieldErrors = Vec<FieldError>;

impl FieldErrorType {
    pub fn reason(self) -> &'static str {
        match self {
            FieldErrorType::Required => "FieldValueRequired",
            FieldErrorType::Invalid => "FieldValueInvalid",
            FieldErrorType::Duplicate => "FieldValueDuplicate",
            FieldErrorType::NotSupported => "FieldValueNotSupported",
            FieldErrorType::NotFound => "FieldValueNotFound",
            FieldErrorType::Forbidden => "FieldValueForbidden",
            FieldErrorType::TooLong => "FieldValueTooLong",
            FieldErrorType::TooMany => "FieldValueTooMany",
            FieldErrorType::TypeInvalid => "FieldValueTypeInvalid",
            FieldErrorType::Internal => "InternalError",
        }
    }
}

impl FieldError {
    pub fn required(path: impl Into<String>, detail: &str) -> Self {
        Self::new(path, FieldErrorType::Required, append_detail("Required value", detail))
    }

    pub fn invalid(path: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::new(
            path,
            FieldErrorType::Invalid,
            append_detail(&format!("Invalid value: {}", format_value(value)), detail),
        )
    }

    /// A value of the wrong type; `value` is shown as it is.
    pub fn type_invalid(path: impl Into<String>, value: &str, detail: &str) -> Self {
        Self::new(path, FieldErrorType::TypeInvalid, append_detail(&format!("Invalid value: {value}"), detail))
    }

    pub fn duplicate(path: impl Into<String>, value: &Value) -> Self {
        Self::new(path, FieldErrorType::Duplicate, format!("Duplicate value: {}", format_value(value)))
    }

    /// A value that is not one of the supported ones.
    pub fn not_supported(path: impl Into<String>, value: &Value, known: &[&str]) -> Self {
        let known: Vec<String> = known.iter().map(|known| format!("{known:?}")).collect();
        let detail = if known.is_empty() { String::new() } else { format!("supported values: {}", known.join(", ")) };
        Self::new(
            path,
            FieldErrorType::NotSupported,
            append_detail(&format!("Unsupported value: {}", format_value(value)), &detail),
        )
    }

    /// A reference to an object that does not exist.
    pub fn not_found(path: impl Into<String>, value: &Value) -> Self {
        Self::new(path, FieldErrorType::NotFound, format!("Not found: {}", format_value(value)))
    }

    /// A field that may not be set.
    pub fn forbidden(path: impl Into<String>, detail: &str) -> Self {
        Self::new(path, FieldErrorType::Forbidden, append_detail("Forbidden", detail))
    }

    pub fn too_long(path: impl Into<String>, max: usize) -> Self {
        let message = format!("Too long: may not be more than {max} bytes");
        Self::new(path, FieldErrorType::TooLong, message)
    }

    pub fn too_many(path: impl Into<String>, count: usize, max: usize) -> Self {
        let message = format!("Too many: {count}: must have at most {max} items");
        Self::new(path, FieldErrorType::TooMany, message)
    }

    /// An error with its own message.
    pub fn new(path: impl Into<String>, kind: FieldErrorType, message: impl Into<String>) -> Self {
        Self { path: path.into(), kind, message: message.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

fn append_detail(head: &str, detail: &str) -> String {
    if detail.is_empty() { head.to_owned() } else { format!("{head}: {detail}") }
}

/// A value as messages show it: strings in quotes, everything else as JSON.
fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => go_format::quote(text),
        other => escape_html(&other.to_string()),
    }
}

/// JSON as Go's encoder writes it: escapes `<`, `>` and `&`, which only occur inside of strings.
pub fn escape_html(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
