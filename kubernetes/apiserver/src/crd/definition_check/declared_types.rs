//! Schemas as types for cel-go's cost estimation, with the largest possible sizes of their values in a request.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value};

use crate::{
    cel::check as cel,
    crd::{
        structural::{array_field, bool_field, text},
        validate::escape_identifier,
    },
};

/// The fields of objects, by type name.
type StructFields = HashMap<Arc<str>, Vec<(String, cel::CelType)>>;

/// kube-apiserver's limit of a request, which bounds every value without a limit of its own.
const MAX_REQUEST_BYTES: u64 = 3 << 20;

/// The minimal lengths of values in JSON.
const MIN_STRING_BYTES: u64 = 2;
const MIN_NUMBER_BYTES: u64 = 1;
const MIN_BOOL_BYTES: u64 = 4;
const DURATION_BYTES_RANGE: (u64, u64) = (3, 32);
const DATE_BYTES: u64 = 12;
const DATE_TIME_BYTES_RANGE: (u64, u64) = (21, 27);

/// The type of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExpressionType {
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Null,
    Duration,
    Timestamp,
    List(Box<ExpressionType>),
    Map(Box<ExpressionType>, Box<ExpressionType>),
    /// An object with declared fields.
    Object,
    /// Explicitly of any type.
    Dyn,
    Unknown,
}

/// A part of a schema.
#[derive(Clone, Copy, Debug)]
pub(super) enum DeclaredType<'s> {
    /// A schema; `true` for a resource, which has metadata.
    Schema(&'s Map<String, Value>, bool),
    /// The `metadata` of a resource, of which only the names are visible.
    Metadata,
    Text,
}

impl<'s> DeclaredType<'s> {
    pub(super) fn kind(self) -> ExpressionType {
        let schema = match self {
            Self::Text => return ExpressionType::Text,
            Self::Metadata => return ExpressionType::Object,
            Self::Schema(schema, _) => schema,
        };
        if bool_field(schema, "x-kubernetes-int-or-string") {
            return ExpressionType::Dyn;
        }
        match text(schema, "type") {
            "boolean" => ExpressionType::Bool,
            "integer" => ExpressionType::Int,
            "number" => ExpressionType::Double,
            "string" => match text(schema, "format") {
                "byte" => ExpressionType::Bytes,
                "duration" => ExpressionType::Duration,
                "date" | "date-time" => ExpressionType::Timestamp,
                _ => ExpressionType::Text,
            },
            "array" => ExpressionType::List(Box::new(self.element().map_or(ExpressionType::Unknown, Self::kind))),
            "object" => match self.element() {
                Some(values) => ExpressionType::Map(Box::new(ExpressionType::Text), Box::new(values.kind())),
                None => ExpressionType::Object,
            },
            _ => ExpressionType::Unknown,
        }
    }

    /// The type for cel-go's checker, under this name if it is an object, with the types of all parts. None if
    /// the schema does not determine the type: expressions cannot refer to such a part.
    pub(super) fn cel_type(self, name: &str, structs: &mut StructFields) -> Option<cel::CelType> {
        Some(match self.kind() {
            ExpressionType::Bool => cel::CelType::Bool,
            ExpressionType::Int => cel::CelType::Int,
            ExpressionType::Uint => cel::CelType::Uint,
            ExpressionType::Double => cel::CelType::Double,
            ExpressionType::Text => cel::CelType::String,
            ExpressionType::Bytes => cel::CelType::Bytes,
            ExpressionType::Null => cel::CelType::Null,
            ExpressionType::Duration => cel::CelType::Duration,
            ExpressionType::Timestamp => cel::CelType::Timestamp,
            ExpressionType::Dyn => cel::CelType::Dyn,
            ExpressionType::List(_) => cel::CelType::list(self.element()?.cel_type(&format!("{name}.@idx"), structs)?),
            ExpressionType::Map(..) => {
                let values = self.element()?.cel_type(&format!("{name}.@elem"), structs)?;
                cel::CelType::map(cel::CelType::String, values)
            }
            ExpressionType::Object => {
                let mut fields = Vec::new();
                for field in self.field_names() {
                    let of = self.field(&field).and_then(|of| of.cel_type(&format!("{name}.{field}"), structs));
                    fields.extend(of.map(|of| (field, of)));
                }
                structs.insert(Arc::from(name), fields);
                cel::CelType::object(name)
            }
            ExpressionType::Unknown => return None,
        })
    }

    /// The names of all fields, in their form for expressions.
    fn field_names(self) -> Vec<String> {
        let (schema, is_resource) = match self {
            Self::Text => return Vec::new(),
            Self::Metadata => return vec!["name".to_owned(), "generateName".to_owned()],
            Self::Schema(schema, is_resource) => (schema, is_resource),
        };
        let own = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let mut names: Vec<String> = own.map(|(name, _)| escape_identifier(name)).collect();
        for name in ["apiVersion", "kind", "metadata"] {
            if is_resource && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// The items of a list, or the values of a map.
    pub(super) fn element(self) -> Option<Self> {
        let Self::Schema(schema, _) = self else { return None };
        let part = match text(schema, "type") {
            "array" => schema.get("items"),
            "object" => schema.get("additionalProperties"),
            _ => None,
        };
        part.and_then(Value::as_object).map(declare_schema)
    }

    /// A field, by its name in expressions.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        match self {
            Self::Metadata => matches!(name, "name" | "generateName").then_some(Self::Text),
            Self::Schema(_, true) if name == "metadata" => Some(Self::Metadata),
            Self::Schema(schema, is_resource) => {
                let all = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
                let found = all.into_iter().find(|(field, _)| escape_identifier(field) == name);
                let found = found.and_then(|(_, field)| field.as_object()).map(declare_schema);
                found.or_else(|| (is_resource && matches!(name, "apiVersion" | "kind")).then_some(Self::Text))
            }
            Self::Text => None,
        }
    }

    /// The largest number of items, entries or characters of a value.
    pub(super) fn max_elements(self) -> u64 {
        let schema = match self {
            Self::Text => return MAX_REQUEST_BYTES - 2,
            Self::Metadata => return 0,
            Self::Schema(schema, _) => schema,
        };
        let limit =
            |name: &str| schema.get(name).and_then(Value::as_i64).map(|limit| u64::try_from(limit).unwrap_or(0));
        let unlimited = match text(schema, "format") {
            "duration" => DURATION_BYTES_RANGE.1,
            "date" => DATE_BYTES,
            "date-time" => DATE_TIME_BYTES_RANGE.1,
            _ => MAX_REQUEST_BYTES - 2,
        };
        match self.kind() {
            // A character has up to four bytes.
            ExpressionType::Dyn => limit("maxLength").map_or(MAX_REQUEST_BYTES - 2, |limit| limit.saturating_mul(4)),
            ExpressionType::Bytes => limit("maxLength").unwrap_or(unlimited),
            ExpressionType::Text => match (limit("maxLength"), array_field(schema, "enum")) {
                (Some(limit), _) => limit.saturating_mul(4),
                (None, []) => unlimited,
                (None, all) => all.iter().filter_map(Value::as_str).map(str::len).max().unwrap_or(0) as u64,
            },
            ExpressionType::Duration | ExpressionType::Timestamp => unlimited,
            ExpressionType::List(_) => {
                let min = self.element().map_or(0, Self::min_size);
                limit("maxItems").unwrap_or((MAX_REQUEST_BYTES - 2) / (min + 1))
            }
            ExpressionType::Map(..) => {
                let min = self.element().map_or(0, Self::min_size);
                limit("maxProperties").unwrap_or((MAX_REQUEST_BYTES - 2) / (min + 6))
            }
            _ => 0,
        }
    }

    /// The minimal length of a value in JSON.
    pub(super) fn min_size(self) -> u64 {
        let schema = match self {
            Self::Text => return MIN_STRING_BYTES,
            Self::Metadata => return 2,
            Self::Schema(schema, _) => schema,
        };
        match self.kind() {
            ExpressionType::Bool => MIN_BOOL_BYTES,
            ExpressionType::Int | ExpressionType::Uint | ExpressionType::Double | ExpressionType::Dyn => {
                MIN_NUMBER_BYTES
            }
            ExpressionType::Duration => DURATION_BYTES_RANGE.0,
            ExpressionType::Timestamp if text(schema, "format") == "date" => DATE_BYTES,
            ExpressionType::Timestamp => DATE_TIME_BYTES_RANGE.0,
            ExpressionType::Object => {
                let required = array_field(schema, "required").iter().filter_map(Value::as_str);
                let size = |name: &str| {
                    let field = schema.get("properties")?.get(name)?.as_object()?;
                    let has_default = field.get("default").is_some_and(|default| !default.is_null());
                    (!has_default).then(|| name.len() as u64 + declare_schema(field).min_size() + 4)
                };
                2 + required.filter_map(size).sum::<u64>()
            }
            _ => MIN_STRING_BYTES,
        }
    }

    /// The largest number of such values in a request.
    pub(super) fn max_cardinality(self) -> u64 {
        MAX_REQUEST_BYTES / (self.min_size() + 1)
    }
}

fn declare_schema(schema: &Map<String, Value>) -> DeclaredType<'_> {
    DeclaredType::Schema(schema, bool_field(schema, "x-kubernetes-embedded-resource"))
}
