//! Why an object cannot be decoded, in the words of Go's JSON decoder.

use std::fmt;

use serde_json::Value;

use super::super::{Scalar, Schema, Shape};
use crate::api::go;

/// Why an object is not of its type. Its text is what kube-apiserver says after `… cannot be handled as a …: `.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct DecodeError(Box<Reason>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reason {
    /// A JSON type that the Go type does not take.
    Type {
        /// What is there: `number`.
        found: String,
        /// What should be there: `map[string]string`.
        wanted: String,
        /// The Go struct that has the field, and the way to it from the root: `DeploymentSpec`, `spec.replicas`.
        place: Option<(String, String)>,
    },
    /// What the value's own type says. It does not name the field.
    Text(String),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Reason::Type { found, wanted, place: Some((of, path)) } => {
                write!(f, "json: cannot unmarshal {found} into Go struct field {of}.{path} of type {wanted}")
            }
            Reason::Type { found, wanted, place: None } => {
                write!(f, "json: cannot unmarshal {found} into Go value of type {wanted}")
            }
            Reason::Text(text) => f.write_str(text),
        }
    }
}

impl DecodeError {
    /// An error with a text of its own.
    pub(in crate::schema) fn text(text: impl Into<String>) -> Self {
        Self(Box::new(Reason::Text(text.into())))
    }

    /// Nesting beyond what is followed.
    pub(super) fn too_deep() -> Self {
        Self::text("exceeded max depth")
    }

    /// A value of the wrong type.
    pub(super) fn wrong(found: impl Into<String>, wanted: impl Into<String>) -> Self {
        Self(Box::new(Reason::Type { found: found.into(), wanted: wanted.into(), place: None }))
    }

    /// The same error, seen from the struct that has the field it is in. Lists and maps add no step.
    pub(super) fn inside(mut self, of: &Schema, field: &str) -> Self {
        if let Reason::Type { place, .. } = &mut *self.0 {
            *place = Some(match place.take() {
                Some((innermost, path)) => (innermost, format!("{field}.{path}")),
                None => (short_name(of).to_owned(), field.to_owned()),
            });
        }
        self
    }
}

/// A value that is not what the schema wants.
pub(super) fn wrong_type(value: &Value, schema: &Schema) -> DecodeError {
    DecodeError::wrong(go::json_kind(value), go_type(schema))
}

/// `io.k8s.api.core.v1.Container` is `Container`.
fn short_name(schema: &Schema) -> &str {
    schema.name.rsplit('.').next().unwrap_or_default()
}

/// The name of a Go type, as Go prints it: with the last part of its package.
fn go_type(schema: &Schema) -> String {
    match &schema.shape {
        Shape::Map { values, .. } if values.shape == Shape::Scalar(Scalar::Quantity) => "v1.ResourceList".into(),
        Shape::Map { values, .. } => format!("map[string]{}", go_type(values)),
        Shape::List { items, .. } => format!("[]{}", go_type(items)),
        _ if !schema.name.is_empty() => {
            let mut parts = schema.name.rsplit('.');
            let (name, package) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            format!("{package}.{name}")
        }
        Shape::Scalar(scalar) => go_scalar(*scalar).into(),
        Shape::Any | Shape::Object { .. } => "map[string]interface {}".into(),
    }
}

/// The Go type that a scalar is read into.
pub(super) fn go_scalar(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::String | Scalar::Time | Scalar::MicroTime | Scalar::Duration => "string",
        Scalar::Boolean => "bool",
        Scalar::Int32 | Scalar::IntOrString => "int32",
        Scalar::Int64 | Scalar::Integer => "int64",
        Scalar::Double => "float64",
        Scalar::Bytes => "[]uint8",
        Scalar::Quantity => "resource.Quantity",
    }
}
