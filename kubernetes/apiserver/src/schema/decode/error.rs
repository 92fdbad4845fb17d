//! Decode errors, with the messages of Go's JSON decoder.

use std::fmt;

use serde_json::Value;

use super::super::{ScalarType, Schema, SchemaShape};
use crate::api::go_format;

/// The reason why an object cannot be decoded. Its text is what kube-apiserver adds after `… cannot be handled
/// as a …: `.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct DecodeError(Box<DecodeErrorReason>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum DecodeErrorReason {
    /// A JSON type that does not fit the Go type.
    Type {
        found: String,
        /// The expected type: `map[string]string`.
        wanted: String,
        /// The Go struct with the field, and the path from the root: `DeploymentSpec`, `spec.replicas`.
        place: Option<(String, String)>,
    },
    /// An error of the value's own type, which does not name the field.
    Text(String),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            DecodeErrorReason::Type { found, wanted, place: Some((of, path)) } => {
                write!(f, "json: cannot unmarshal {found} into Go struct field {of}.{path} of type {wanted}")
            }
            DecodeErrorReason::Type { found, wanted, place: None } => {
                write!(f, "json: cannot unmarshal {found} into Go value of type {wanted}")
            }
            DecodeErrorReason::Text(text) => f.write_str(text),
        }
    }
}

impl DecodeError {
    /// An error with its own message.
    pub(in crate::schema) fn text(text: impl Into<String>) -> Self {
        Self(Box::new(DecodeErrorReason::Text(text.into())))
    }

    /// Nesting beyond the limit.
    pub(super) fn too_deep() -> Self {
        Self::text("exceeded max depth")
    }

    pub(super) fn unexpected_type(found: impl Into<String>, wanted: impl Into<String>) -> Self {
        Self(Box::new(DecodeErrorReason::Type { found: found.into(), wanted: wanted.into(), place: None }))
    }

    /// Adds the struct and the field in which the error occurred. Lists and maps add no step.
    pub(super) fn in_struct_field(mut self, of: &Schema, field: &str) -> Self {
        if let DecodeErrorReason::Type { place, .. } = &mut *self.0 {
            *place = Some(match place.take() {
                Some((innermost, path)) => (innermost, format!("{field}.{path}")),
                None => (short_name(of).to_owned(), field.to_owned()),
            });
        }
        self
    }
}

/// A value of a type that the schema does not accept.
pub(super) fn wrong_type(value: &Value, schema: &Schema) -> DecodeError {
    DecodeError::unexpected_type(go_format::json_kind(value), go_type(schema))
}

/// `io.k8s.api.core.v1.Container` is `Container`.
fn short_name(schema: &Schema) -> &str {
    schema.name.rsplit('.').next().unwrap_or_default()
}

/// The name of a Go type, as Go prints it: with the last part of its package.
fn go_type(schema: &Schema) -> String {
    match &schema.shape {
        SchemaShape::Map { values, .. } if values.shape == SchemaShape::Scalar(ScalarType::Quantity) => {
            "v1.ResourceList".into()
        }
        SchemaShape::Map { values, .. } => format!("map[string]{}", go_type(values)),
        SchemaShape::List { items, .. } => format!("[]{}", go_type(items)),
        _ if !schema.name.is_empty() => {
            let mut parts = schema.name.rsplit('.');
            let name = parts.next().unwrap_or_default();
            let package = parts.next().unwrap_or_default();
            format!("{package}.{name}")
        }
        SchemaShape::Scalar(scalar) => go_scalar(*scalar).into(),
        SchemaShape::Any | SchemaShape::Object { .. } => "map[string]interface {}".into(),
    }
}

/// The Go type of a scalar.
pub(super) fn go_scalar(scalar: ScalarType) -> &'static str {
    match scalar {
        ScalarType::String | ScalarType::Time | ScalarType::MicroTime | ScalarType::Duration => "string",
        ScalarType::Boolean => "bool",
        ScalarType::Int32 | ScalarType::IntOrString => "int32",
        ScalarType::Int64 | ScalarType::Integer => "int64",
        ScalarType::Double => "float64",
        ScalarType::Bytes => "[]uint8",
        ScalarType::Quantity => "resource.Quantity",
    }
}
